//! The result of a decision: entries to append and effects to perform.

use provost_event::{ActorKey, Entry, Seq};
use serde::{Deserialize, Serialize};

use crate::decision_time::DecisionTime;
use crate::{Effect, Event, Now, ToolResult};

/// The result of one decision. A backend stores `entries`, `effects`, `closed` and `held` atomically, together with the
/// steps that `messages` lead to or with the messages themselves; only then are effects performed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// Entries to append, in order; the state already includes them.
    pub entries: Vec<Entry>,
    /// Effects to perform, each named by the entry that opened it.
    pub effects: Vec<EffectRequest>,
    /// Effects that are over: their rows are removed, and no process performs them again.
    pub closed: Vec<Seq>,
    /// Effects in flight that must stop; their results are still awaited.
    pub aborts: Vec<Seq>,
    /// Results that the actor itself gives to effects that stay open: no process performs these any more.
    pub held: Vec<HeldResult>,
    /// Events for other actors.
    pub messages: Vec<Message>,
}

impl Decision {
    /// Whether the event changed nothing: it was a duplicate, late, or not meant for this state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// A result that isn't in the log before those of earlier calls are. An actor that is made anew from its log doesn't know
/// it: it has to be told, with [`SessionEvent::ToolDone`](crate::SessionEvent::ToolDone).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldResult {
    /// The effect.
    pub seq: Seq,
    /// The result.
    pub result: ToolResult,
}

/// An event for another actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The actor that it is for.
    pub to: ActorKey,
    /// The event.
    pub event: Event,
}

/// An effect with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectRequest {
    /// The entry that opened it; with the actor it is the effect's id and idempotency key.
    pub seq: Seq,
    /// What to do.
    pub effect: Effect,
}

/// Collects a decision in progress.
#[derive(Debug)]
pub(crate) struct DecisionBuilder {
    now: DecisionTime,
    decision: Decision,
}

impl DecisionBuilder {
    pub(crate) fn at(now: Now) -> Self {
        Self { now: DecisionTime { at: now.at, elapsed: now.elapsed }, decision: Decision::default() }
    }

    pub(crate) const fn now(&self) -> DecisionTime {
        self.now
    }

    pub(crate) fn entry(&mut self, entry: Entry) {
        self.decision.entries.push(entry);
    }

    pub(crate) fn effect(&mut self, seq: Seq, effect: Effect) {
        self.decision.effects.push(EffectRequest { seq, effect });
    }

    /// Closes an effect, even if this same decision has opened it.
    pub(crate) fn close(&mut self, seq: Seq) {
        self.decision.effects.retain(|request| request.seq != seq);
        self.decision.held.retain(|held| held.seq != seq);
        self.decision.closed.push(seq);
    }

    pub(crate) fn abort(&mut self, seq: Seq) {
        self.decision.aborts.push(seq);
    }

    pub(crate) fn hold(&mut self, seq: Seq, result: ToolResult) {
        self.decision.held.push(HeldResult { seq, result });
    }

    pub(crate) fn message(&mut self, message: Message) {
        self.decision.messages.push(message);
    }

    pub(crate) fn finish(self) -> Decision {
        self.decision
    }
}
