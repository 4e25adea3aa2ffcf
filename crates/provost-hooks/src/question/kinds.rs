//! What notifications and failures are called in scripts.

use provost_event::{ErrorClass, HookTrigger, Outcome};
use serde_json::{Value, json};

pub(super) fn notification(about: Option<&HookTrigger>, message: String) -> Value {
    let (kind, title) = match about.map(notification_type) {
        Some(kind @ "permission_prompt") => (kind, "Permission needed"),
        Some(kind @ "agent_completed") => (kind, "Agent finished"),
        Some(kind) => (kind, "Agent waits"),
        None => ("agent_needs_input", "Agent waits"),
    };
    json!({ "message": message, "title": title, "notification_type": kind })
}

pub(super) const fn notification_type(about: &HookTrigger) -> &'static str {
    match about {
        HookTrigger::Approval { .. } => "permission_prompt",
        HookTrigger::Closing { outcome } if outcome.is_final() => "agent_completed",
        _ => "agent_needs_input",
    }
}

/// A failure as one of the few kinds in scripts.
pub(super) const fn error_kind(outcome: &Outcome) -> &'static str {
    let Outcome::Failed { class, .. } = outcome else { return "unknown" };
    match class {
        ErrorClass::RateLimited => "rate_limit",
        ErrorClass::QuotaUsedUp => "billing_error",
        ErrorClass::Overloaded => "overloaded",
        ErrorClass::Unauthorized | ErrorClass::Forbidden => "authentication_failed",
        ErrorClass::InvalidRequest | ErrorClass::ContextTooLong | ErrorClass::ContextExhausted => {
            "invalid_request"
        }
        ErrorClass::NotFound => "model_not_found",
        ErrorClass::Server
        | ErrorClass::Transport
        | ErrorClass::Cut
        | ErrorClass::Stalled
        | ErrorClass::Silent
        | ErrorClass::Redirected
        | ErrorClass::MalformedResponse => "server_error",
        ErrorClass::Workspace
        | ErrorClass::StepFailed
        | ErrorClass::Refusal
        | ErrorClass::NoAnswer
        | ErrorClass::OutputCap
        | ErrorClass::Aborted
        | ErrorClass::ScriptMismatch
        | ErrorClass::Storage
        | ErrorClass::Program
        | ErrorClass::ProgramGone
        | ErrorClass::Unanswered => "unknown",
    }
}
