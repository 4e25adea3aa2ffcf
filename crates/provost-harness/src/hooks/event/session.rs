//! When a session starts, is suspended, or ends.

use provost_event::{HookPoint, HookTrigger, Outcome, SessionId, SessionSource};

use super::{HookEvent, HookInput, hook_call, outcome_of, sealed};
use crate::hooks::reminders::HookInvocation;

events! {
    /// A session starts, or continues after a suspension. Its hooks are only informed.
    OnSessionStart: SessionStart, OnSessionStartInput => ();
    may "()", must_not "OnTurnEndAction::Pause";

    /// The session is about to be suspended or to end before its work is done. Its hooks are only informed.
    OnAbort: Abort, OnAbortInput => ();
    may "()", must_not "OnTurnEndAction::Finish";

    /// The session is about to end. Its hooks are only informed.
    OnSessionEnd: SessionEnd, OnSessionEndInput => ();
    may "()", must_not "PreToolCallAction::Continue";
}

inputs! {
    /// The input of [`OnSessionStart`](crate::hooks::OnSessionStart) hooks.
    OnSessionStartInput {
        /// Whether the session is new.
        source: SessionSource,
    }
    /// The input of [`OnAbort`](crate::hooks::OnAbort) hooks.
    OnAbortInput {
        /// The coming outcome.
        outcome: &'a Outcome,
    }
    /// The input of [`OnSessionEnd`](crate::hooks::OnSessionEnd) hooks.
    OnSessionEndInput {
        /// The coming outcome.
        outcome: &'a Outcome,
    }
}

views! {
    OnSessionStartInput: |asked, hook_call| match hook_call.about {
        HookTrigger::Session { source } => Some(Self { session: hook_call.session, source, asked }),
        _ => None,
    };
    OnAbortInput: |asked, hook_call| {
        Some(Self { session: hook_call.session, outcome: outcome_of(hook_call)?, asked })
    };
    OnSessionEndInput: |asked, hook_call| {
        Some(Self { session: hook_call.session, outcome: outcome_of(hook_call)?, asked })
    };
}
