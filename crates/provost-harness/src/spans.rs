//! Spans for `tracing`, around what an agent does. Without a subscriber for them they cost one comparison.
//!
//! | span | around | fields |
//! |---|---|---|
//! | `agent.turn` | a turn: from its first hook or model call until its end is reported | `run`, `agent`, `turn` |
//! | `model.call` | a call of a model, judges included | `turn`, `purpose`, `model`, `input_tokens`, `output_tokens`, `error` |
//! | `tool.call` | a tool call that runs | `tool`, `status` |
//! | `hook.call` | one hook at one hook point | `hook`, `point`, `decision` |
//! | `stop_hook.call` | one stop hook | `hook`, `decision` |
//! | `goal.supervisor.verify` | a question to a judge, with its `model.call` | `turn`, `again`, `achieved`, `error` |
//!
//! All have the level INFO and the target `provost`. No field holds a prompt, an answer, an argument, a result or a
//! reason. Spans of what happens in a turn are below its `agent.turn`; what happens between turns has no parent.
//! `tracing` isn't the record of a run: that is its log, and observers get all of it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use provost_engine::{Answer, Effect};
use provost_event::{
    ActorKey, ConversationEntry, Entry, HookDecision, JudgeAnswer, ModelFailure, Record, SessionId,
    SupervisorError,
};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, field};

/// The target of all spans.
pub(crate) const TARGET: &str = "provost";

/// A span whose fields are all filled in later, or at once.
macro_rules! span {
    ($name:literal, $($fields:tt)*) => {
        tracing::span!(target: $crate::spans::TARGET, tracing::Level::INFO, $name, $($fields)*)
    };
}
pub(crate) use span;

/// The current turn of each session of a run.
#[derive(Debug, Default)]
pub(crate) struct TurnSpans {
    turns: Mutex<HashMap<SessionId, Turn>>,
}

#[derive(Debug)]
struct Turn {
    number: u32,
    span: Span,
}

impl TurnSpans {
    /// The span of the turn that the effect is part of. The first hook or model call of a turn begins it.
    pub(crate) fn of(&self, effect: &Effect) -> Span {
        if LevelFilter::current() < Level::INFO {
            return Span::none();
        }
        let (session, begun) = match effect {
            Effect::CallModel(call) => (call.session, Some(call.turn)),
            Effect::RunTool(run) => (run.session, None),
            Effect::CheckStop(check) => (check.session, None),
            Effect::Judge(call) => (call.session, None),
            Effect::AskHooks(call) => (call.session, Some(call.turn)),
            Effect::MakeWorktree(_)
            | Effect::CheckWorktree(_)
            | Effect::CloseTerminal { .. }
            | Effect::Timer { .. } => return Span::none(),
        };
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = begun
            && turns.get(&session).is_none_or(|turn| turn.number < number)
        {
            let span = span!("agent.turn", run = %session.run, agent = session.agent, turn = number);
            turns.insert(session, Turn { number, span });
        }
        turns.get(&session).map_or_else(Span::none, |turn| turn.span.clone())
    }

    /// Ends the turn that the entry says has ended.
    pub(crate) fn take_in(&self, record: &Record) {
        let (ActorKey::Session(session), Entry::Conversation(ConversationEntry::TurnEnded(ended))) =
            (record.actor, &record.entry)
        else {
            return;
        };
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // The number stays: a late effect of this turn doesn't begin it again.
        if let Some(known) = turns.get_mut(&session).filter(|known| known.number <= ended.turn) {
            known.span = Span::none();
        }
    }

    /// The session is suspended or has ended, and so has its turn.
    pub(crate) fn forget(&self, session: SessionId) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}

/// Fills in how a model call ended.
pub(crate) fn model_answered(span: &Span, answer: &Result<Answer, ModelFailure>) {
    let usage = match answer {
        Ok(answer) => {
            span.record("model", answer.model.as_str());
            answer.usage
        }
        Err(failure) => {
            span.record("error", field::debug(failure.class));
            failure.usage
        }
    };
    span.record("input_tokens", usage.input_tokens);
    span.record("output_tokens", usage.output_tokens);
}

/// Fills in what a judge has found.
pub(crate) fn judged(span: &Span, answer: &JudgeAnswer) {
    match answer {
        JudgeAnswer::Verdict(verdict) => span.record("achieved", verdict.achieved),
        JudgeAnswer::Failed(error) => span.record(
            "error",
            match error {
                SupervisorError::Llm { .. } => "llm",
                SupervisorError::Timeout(_) => "timeout",
                SupervisorError::Parse(_) => "parse",
                SupervisorError::RateLimited { .. } => "rate_limited",
            },
        ),
    };
}

/// What a hook has decided, without its reason.
pub(crate) const fn decision(decision: &HookDecision) -> &'static str {
    match decision {
        HookDecision::Continue => "continue",
        HookDecision::Allow => "allow",
        HookDecision::Ask(_) => "ask",
        HookDecision::Deny(_) => "deny",
        HookDecision::Pause(_) => "pause",
        HookDecision::Abort(_) => "abort",
        HookDecision::Failed(_) => "failed",
        HookDecision::Broken(_) => "broken",
        HookDecision::TimedOut(_) => "timed_out",
    }
}
