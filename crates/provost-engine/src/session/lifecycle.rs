//! The course of a session: its phase, and how its segments begin and end.
//!
//! A turn goes `Ready` → (hooks) → (budget) → `Thinking` → `Acting` or `CheckingStop` → `Ready`.

use provost_event::{Dimension, Outcome, Seq, SessionId, StopRequested, YieldRequested};
use serde::{Deserialize, Serialize};

/// The phase of a session within a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Before its first entry.
    New,
    /// Its worktree is being made, by the effect that this entry opened.
    MakingWorktree(Seq),
    /// A model call is next; budget for it was requested.
    Ready,
    /// A stepped session between turns.
    Between,
    /// Hooks are called, by this entry, before the next model call.
    Preparing(Seq),
    /// A model call is in flight, opened by this entry.
    Thinking(Seq),
    /// A failed model call waits for its retry, with a timer opened by this entry.
    Waiting(Seq),
    /// Hooks are called, by this entry, on whether the conversation may be shortened.
    Compacting(Seq),
    /// The tool calls of the last answer are run.
    Acting,
    /// The agent asks to stop, or its goal is verified; hooks or stop hooks are called by the effect that this
    /// entry opened.
    CheckingStop(Seq),
    /// The goal is verified; a judge is next, and budget for it was requested.
    Verifying,
    /// A judge is called, by this entry.
    Judging(Seq),
    /// A judge without a verdict is called again, with a timer opened by this entry.
    JudgeWaits(Seq),
}

impl Phase {
    /// The phase from which a suspended session continues: nothing is in flight then.
    pub(super) const fn when_suspended(self) -> Self {
        match self {
            Self::Thinking(_)
            | Self::Waiting(_)
            | Self::Preparing(_)
            | Self::Compacting(_)
            | Self::Verifying
            | Self::Judging(_)
            | Self::JudgeWaits(_) => Self::Ready,
            Self::New
            | Self::MakingWorktree(_)
            | Self::Ready
            | Self::Between
            | Self::Acting
            | Self::CheckingStop(_) => self,
        }
    }
}

/// A request to yield the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Yielding {
    /// The entry that set the timer, until that has fired.
    pub(super) timer: Option<Seq>,
    /// The agent that gets the slot, if any.
    pub(super) to: Option<SessionId>,
}

/// The course of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lifecycle {
    phase: Phase,
    /// The phase to return to after the final summary.
    before_final_summary: Option<Phase>,
    /// The outcome of the last segment, until another begins.
    outcome: Option<Outcome>,
    /// Its outcome when it completed, until the agent gets another message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done_before: Option<Outcome>,
    /// The outcome that it is to stop with.
    stopping: Option<Outcome>,
    /// It stops only because its sub-agents are suspended.
    stops_for_child: bool,
    /// The request to yield its slot, if there is one.
    yielding: Option<Yielding>,
    /// Interruptions of the current turn.
    interruptions: u32,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            phase: Phase::New,
            before_final_summary: None,
            outcome: None,
            done_before: None,
            stopping: None,
            stops_for_child: false,
            yielding: None,
            interruptions: 0,
        }
    }
}

/// How entries change it.
impl Lifecycle {
    pub(super) const fn go_to(&mut self, phase: Phase) {
        self.phase = phase;
    }

    pub(super) fn stop_requested(&mut self, requested: &StopRequested) {
        self.stops_with(&requested.outcome);
        self.stops_for_child = requested.for_child;
    }

    /// The last questions before it stops with this outcome are asked.
    pub(super) fn stops_with(&mut self, outcome: &Outcome) {
        self.stopping = Some(outcome.clone());
    }

    pub(super) fn yield_requested(&mut self, requested: &YieldRequested, head: Seq) {
        self.yielding = Some(Yielding { timer: requested.due.map(|_| head), to: requested.to });
    }

    /// The agent gets a message or an item: it isn't done any more.
    pub(super) fn told(&mut self) {
        self.done_before = None;
    }

    pub(super) const fn turn_ended(&mut self, next: Phase) {
        self.interruptions = 0;
        self.phase = next;
    }

    /// The final summary is asked for by the entry `head`.
    pub(super) const fn final_summary_called(&mut self, head: Seq) {
        self.before_final_summary = Some(self.phase.when_suspended());
        self.phase = Phase::Thinking(head);
    }

    /// Returns to the phase before the final summary, if it was asked for; returns whether it was.
    pub(super) fn return_from_final_summary(&mut self) -> bool {
        let before = self.before_final_summary.take();
        self.phase = before.unwrap_or(self.phase);
        before.is_some()
    }

    /// A model call is made again: at once, or with the timer that the entry `head` sets.
    pub(super) fn retried(&mut self, delay_ms: u64, head: Seq) {
        if matches!(self.phase, Phase::Judging(_)) {
            self.phase = Phase::Verifying;
        } else if !self.return_from_final_summary() {
            self.phase = if delay_ms == 0 { Phase::Ready } else { Phase::Waiting(head) };
        }
    }

    /// A segment ends; `back` is the phase that follows a verification of the goal, if one was in progress.
    pub(super) fn segment_ended(&mut self, outcome: &Outcome, back: Option<Phase>) {
        self.outcome = Some(outcome.clone());
        self.stopping = None;
        self.yielding = None;
        self.stops_for_child = false;
        self.phase = back.unwrap_or(self.phase);
        if outcome.is_final() {
            self.return_from_final_summary();
        }
        self.phase = self.phase.when_suspended();
    }

    /// Another segment begins, or the process that worked on this one is gone.
    pub(super) fn resumed(&mut self) {
        let before = self.outcome.take();
        self.done_before = before.filter(|outcome| matches!(outcome, Outcome::Completed { .. }));
    }

    /// The process that worked on it was lost.
    pub(super) const fn interrupted(&mut self) {
        self.interruptions = self.interruptions.saturating_add(1);
    }

    /// It was resumed by a request.
    pub(super) const fn resumed_by_request(&mut self) {
        self.interruptions = 0;
    }
}

/// What others ask about it.
impl Lifecycle {
    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether it has no entry.
    pub(super) const fn is_new(&self) -> bool {
        matches!(self.phase, Phase::New)
    }

    /// The outcome of the last segment, until another begins.
    pub(super) const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Whether a segment is in progress, or none has begun.
    pub(super) const fn is_live(&self) -> bool {
        self.outcome.is_none()
    }

    /// Whether its last segment has ended. Only a request begins another.
    pub(super) fn has_ended(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::is_final)
    }

    /// The outcome that it is to stop with.
    pub(super) const fn stopping(&self) -> Option<&Outcome> {
        self.stopping.as_ref()
    }

    pub(super) const fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// Whether it is to stop with exactly this outcome.
    pub(super) fn stops_as(&self, outcome: &Outcome) -> bool {
        self.stopping.as_ref() == Some(outcome)
    }

    /// Whether it stops only because its sub-agents are suspended.
    pub(super) const fn stops_for_child(&self) -> bool {
        self.stops_for_child
    }

    /// Its outcome when it completed, until the agent gets another message.
    pub(super) const fn done_before(&self) -> Option<&Outcome> {
        self.done_before.as_ref()
    }

    /// The request to yield its slot, if there is one.
    pub(super) const fn yielding(&self) -> Option<Yielding> {
        self.yielding
    }

    pub(super) const fn is_yielding(&self) -> bool {
        self.yielding.is_some()
    }

    /// The phase to return to after the final summary, if that is asked for.
    pub(super) const fn before_final_summary(&self) -> Option<Phase> {
        self.before_final_summary
    }

    /// Interruptions of the current turn.
    pub(super) const fn interruptions(&self) -> u32 {
        self.interruptions
    }

    /// Whether a request to stop with `outcome` counts. A second request counts only if it ends what the first one
    /// suspends, or if the first came from suspended sub-agents. What an external agent has taken over a limit counts while
    /// its program is ended, though it is done.
    pub(super) fn accepts_stop(&self, outcome: &Outcome) -> bool {
        let is_over = matches!(outcome, Outcome::BudgetExhausted(exhausted) if exhausted.dimension != Dimension::WallTime);
        let is_harder = |first: &Outcome| match first {
            Outcome::Completed { .. } => is_over,
            first => !first.is_final() && (outcome.is_final() || self.stops_for_child),
        };
        self.stopping.as_ref().is_none_or(is_harder)
    }
}
