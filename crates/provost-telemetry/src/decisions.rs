//! Decisions about an agent: by hooks, permissions, people, judges, and the rules of its conversation. Events on
//! its span.

use opentelemetry::KeyValue;
use provost_event::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, CallId, Compacted, ConversationEntry, Entry,
    FinalSummaryFinished, GateEntry, GoalEntry, GoalFinding, HookDecision, HookReport, Permission,
    PermissionDecided, StopHookVerdict,
};

use crate::content::Sieve;
use crate::goal;
use crate::metrics::Instruments;
use crate::names;
use crate::span::whole;

/// An event of a span.
pub(crate) type SpanEvent = (&'static str, Vec<KeyValue>);

const TRIP: &str = "provost.guardrail.trip";
const FAILED: &str = "provost.guardrail.failed";
const SOURCE: &str = "provost.guardrail.source";
const NAME: &str = "provost.guardrail.name";
const POINT: &str = "provost.guardrail.point";
const DECISION: &str = "provost.guardrail.decision";
const REASON: &str = "provost.guardrail.reason";

/// The decision in `entry` as an event; also counts it.
pub(crate) fn told(entry: &Entry, sieve: &Sieve, instruments: &Instruments) -> Vec<SpanEvent> {
    let told = match entry {
        Entry::Gate(GateEntry::HooksDecided(decided)) => {
            decided.reports.iter().filter_map(|report| hook(report, sieve)).collect()
        }
        Entry::Gate(GateEntry::StopChecked(verdicts)) => {
            verdicts.reports.iter().filter_map(|report| stop_hook(report, sieve)).collect()
        }
        Entry::Gate(GateEntry::PermissionDecided(decided)) => {
            permission(decided, sieve).into_iter().collect()
        }
        Entry::Gate(GateEntry::ApprovalRequested(requested)) => vec![asked(requested, sieve)],
        Entry::Gate(GateEntry::ApprovalResolved(resolved)) => vec![answered(resolved, sieve)],
        Entry::Conversation(ConversationEntry::Compacted(compacted)) => vec![shortened(compacted, sieve)],
        Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => vec![final_summary(wrapped, sieve)],
        Entry::Goal(GoalEntry::Verdict(verdict)) => vec![goal::told(verdict, sieve)],
        _ => Vec::new(),
    };
    match entry {
        Entry::Gate(GateEntry::ApprovalRequested(_)) => instruments.approval("requested"),
        Entry::Gate(GateEntry::ApprovalResolved(resolved)) => instruments.approval(state(&resolved.answer)),
        Entry::Goal(GoalEntry::Verdict(verdict)) => {
            instruments.verified(goal::word(&verdict.finding));
            if matches!(verdict.finding, GoalFinding::NotAchieved { .. }) {
                instruments.tripped("judge");
            }
        }
        _ => {
            let source = match entry {
                Entry::Gate(GateEntry::HooksDecided(_)) => "hook",
                Entry::Gate(GateEntry::StopChecked(_)) => "stop_hook",
                _ => "permission",
            };
            told.iter().filter(|(name, _)| *name == TRIP).for_each(|_| instruments.tripped(source));
        }
    }
    told
}

fn hook(report: &HookReport, sieve: &Sieve) -> Option<SpanEvent> {
    let failure = report.decision.failure().unwrap_or_default();
    let (name, decision, reason) = match &report.decision {
        HookDecision::Continue | HookDecision::Allow | HookDecision::Ask(_) => return None,
        HookDecision::Deny(reason) => (TRIP, "deny", reason),
        HookDecision::Pause(reason) => (TRIP, "pause", reason),
        HookDecision::Abort(reason) => (TRIP, "abort", reason),
        HookDecision::Failed(_) => (FAILED, "failed", &failure),
        HookDecision::Broken(_) => (FAILED, "broken", &failure),
        HookDecision::TimedOut(_) => (FAILED, "timed_out", &failure),
    };
    let mut attributes = said(("hook", &report.hook), (decision, reason), sieve);
    attributes.push(KeyValue::new(POINT, names::word(&report.point)));
    Some((name, attributes))
}

fn stop_hook(report: &HookReport, sieve: &Sieve) -> Option<SpanEvent> {
    let verdict = report.stop_verdict();
    let error = verdict.error().unwrap_or_default();
    let (name, decision, reason) = match &verdict {
        StopHookVerdict::Allow => return None,
        StopHookVerdict::Block(reason) => (TRIP, "block", reason),
        StopHookVerdict::Halt(reason) => (TRIP, "halt", reason),
        StopHookVerdict::Error(_) => (FAILED, "failed", &error),
        StopHookVerdict::Broken(_) => (FAILED, "broken", &error),
        StopHookVerdict::TimedOut(_) => (FAILED, "timed_out", &error),
    };
    Some((name, said(("stop_hook", &report.hook), (decision, reason), sieve)))
}

fn permission(decided: &PermissionDecided, sieve: &Sieve) -> Option<SpanEvent> {
    if decided.permission != Permission::Deny {
        return None;
    }
    let rule = decided.rule.as_deref().unwrap_or_default();
    let mut attributes = said(("permission", rule), ("deny", &decided.why), sieve);
    attributes.push(call(&decided.call, sieve));
    Some((TRIP, attributes))
}

fn said(who: (&'static str, &str), what: (&'static str, &str), sieve: &Sieve) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new(SOURCE, who.0),
        KeyValue::new(NAME, sieve.label(who.1)),
        KeyValue::new(DECISION, what.0),
    ];
    attributes.extend(sieve.text(what.1).map(|reason| KeyValue::new(REASON, reason)));
    attributes
}

fn asked(requested: &ApprovalRequested, sieve: &Sieve) -> SpanEvent {
    let attributes =
        vec![KeyValue::new(names::TOOL_NAME, sieve.label(&requested.tool)), call(&requested.call, sieve)];
    ("provost.approval.requested", attributes)
}

fn answered(resolved: &ApprovalResolved, sieve: &Sieve) -> SpanEvent {
    let mut attributes = vec![KeyValue::new("provost.approval.state", state(&resolved.answer))];
    match &resolved.answer {
        ApprovalAnswer::Allow { scope, .. } => {
            attributes.push(KeyValue::new("provost.approval.scope", names::word(scope)));
        }
        // What was answered is for the tool alone.
        ApprovalAnswer::Answered { .. } => {}
        ApprovalAnswer::Deny { reason } => {
            let reason = sieve.text(reason).filter(|reason| !reason.is_empty());
            attributes.extend(reason.map(|reason| KeyValue::new("provost.approval.reason", reason)));
        }
    }
    // The person's name is content.
    attributes.extend(sieve.text(&resolved.by).map(|by| KeyValue::new("provost.approval.by", by)));
    ("provost.approval.resolved", attributes)
}

fn shortened(compacted: &Compacted, sieve: &Sieve) -> SpanEvent {
    let mut attributes = vec![
        KeyValue::new("provost.compaction.kind", names::word(&compacted.how)),
        KeyValue::new("provost.compaction.tokens_before", whole(compacted.tokens_before)),
        KeyValue::new("provost.compaction.tokens_after", whole(compacted.tokens_after)),
    ];
    let summary = sieve.text(&compacted.summary).filter(|summary| !summary.is_empty());
    attributes.extend(summary.map(|summary| KeyValue::new("provost.compaction.summary", summary)));
    ("provost.compaction", attributes)
}

fn final_summary(wrapped: &FinalSummaryFinished, sieve: &Sieve) -> SpanEvent {
    let mut attributes = vec![KeyValue::new("provost.final_summary.given", wrapped.problem.is_none())];
    let problem = wrapped.problem.as_ref().and_then(|problem| sieve.text(problem));
    attributes.extend(problem.map(|problem| KeyValue::new("provost.final_summary.problem", problem)));
    ("provost.final_summary", attributes)
}

fn call(call: &CallId, sieve: &Sieve) -> KeyValue {
    KeyValue::new(names::TOOL_CALL, sieve.label(&call.0))
}

const fn state(answer: &ApprovalAnswer) -> &'static str {
    match answer {
        ApprovalAnswer::Allow { .. } => "allowed",
        ApprovalAnswer::Answered { .. } => "answered",
        ApprovalAnswer::Deny { .. } => "denied",
    }
}
