//! Where a run stands: its segments and their outcomes, its times, and its timer.

use provost_event::{Elapsed, Entry, LifecycleEntry, Outcome, ResumeCause, Seq, Timestamp};
use serde::{Deserialize, Serialize};

use crate::decision_time::DecisionTime;

/// What an entry means for the segments of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentChange {
    /// It begins none.
    None,
    /// A suspended run works again.
    Begins,
    /// A run that had ended works again.
    Reopens,
}

/// The run's timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunTimer {
    /// The entry that set it.
    pub(super) seq: Seq,
    /// When it is due.
    pub(super) due: Elapsed,
}

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lifecycle {
    outcome: Option<Outcome>,
    /// The outcome that it was told to stop with, and all its agents with it.
    stopping: Option<Outcome>,
    started_at: Timestamp,
    updated: DecisionTime,
    timer: Option<RunTimer>,
}

impl Lifecycle {
    /// The outcome while it is suspended or after its end.
    pub(super) const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    pub(super) const fn is_worked_on(&self) -> bool {
        self.outcome.is_none()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::is_final)
    }

    /// The outcome that it was told to stop with.
    pub(super) const fn stopping(&self) -> Option<&Outcome> {
        self.stopping.as_ref()
    }

    /// Whether it was told to end.
    pub(super) fn is_ending(&self) -> bool {
        self.stopping.as_ref().is_some_and(Outcome::is_final)
    }

    pub(super) const fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// When its last entry was made.
    pub(super) const fn updated(&self) -> DecisionTime {
        self.updated
    }

    pub(super) const fn timer(&self) -> Option<RunTimer> {
        self.timer
    }

    /// What the next entry means for the segments.
    pub(super) fn segment_change(&self, entry: &Entry) -> SegmentChange {
        match entry {
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed))
                if !self.is_worked_on() && resumed.cause != ResumeCause::ToEnd =>
            {
                if self.has_ended() {
                    SegmentChange::Reopens
                } else {
                    SegmentChange::Begins
                }
            }
            _ => SegmentChange::None,
        }
    }

    pub(super) fn apply(&mut self, entry: &Entry, now: DecisionTime) {
        match entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(_)) => self.started_at = now.at,
            Entry::Lifecycle(LifecycleEntry::StopRequested(requested)) if requested.agent.is_none() => {
                self.stopping = Some(requested.outcome.clone());
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => self.segment_ended(&paused.outcome),
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.segment_ended(&ended.outcome),
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => {
                self.outcome = None;
                // No process held it for a while: a time that it waits for may have passed, and its timer is set
                // anew.
                self.timer = None;
            }
            _ => {}
        }
        self.updated = now;
    }

    fn segment_ended(&mut self, outcome: &Outcome) {
        self.outcome = Some(outcome.clone());
        self.stopping = None;
    }

    /// Entry `seq` sets the timer, if it changes when that is due; a suspended run has none.
    pub(super) fn set_timer(&mut self, seq: Seq, due: Option<Elapsed>) {
        let due = due.filter(|_| self.is_worked_on());
        if due != self.timer.map(|timer| timer.due) {
            self.timer = due.map(|due| RunTimer { seq, due });
        }
    }
}
