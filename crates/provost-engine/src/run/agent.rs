//! One agent of a run, with its status.

use provost_event::{Brief, Elapsed, Outcome, PauseReason, ProviderAwaited, Seq, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::AgentNumber;
use super::again::PendingRequest;
use super::clock::WorkClock;
use super::restart::PendingRestart;

/// The status of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentState {
    /// Queued for a slot, to begin or after it was suspended.
    Queued,
    /// It works, or waits for its sub-agents.
    Working,
    /// It works until its next check, and then yields its slot.
    Yielding {
        /// The agent that gets the slot, if any.
        to: Option<SessionId>,
    },
    /// It has yielded its slot, and continues when a slot is free.
    Preempted {
        /// The agent that got the slot, if any.
        to: Option<SessionId>,
    },
    /// It has failed, and a restart is scheduled.
    AwaitsRestart {
        /// The number of this restart in a row, from 1.
        attempt: u32,
        /// The maximum number of restarts in a row.
        attempts_max: u32,
        /// When it is due.
        due: Timestamp,
        /// The failure.
        failed: Outcome,
    },
    /// It is suspended until a person acts.
    Suspended(Outcome),
    /// Its work is over.
    Finished(Outcome),
}

/// The agent that a slot is yielded to, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Yields {
    pub(super) to: Option<SessionId>,
}

/// One agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agent {
    pub(super) parent: Option<AgentNumber>,
    /// The entry of the parent's log that requested it.
    pub(super) call: Option<Seq>,
    /// The last entry of its own log that requested an agent.
    pub(super) last_call: Seq,
    pub(super) depth: u32,
    pub(super) name: String,
    /// Its brief; absent for the root. Once its work is over, only what applies when it is asked again.
    pub(super) brief: Option<Brief>,
    pub(super) clock: WorkClock,
    pub(super) ask_timeout_ms: Option<u64>,
    pub(super) spawned_at: Timestamp,
    /// The run's elapsed time at that moment.
    pub(super) spawned: Elapsed,
    pub(super) has_begun: bool,
    /// The request to yield its slot, if there is one.
    pub(super) yields: Option<Yields>,
    /// The outcome with which it is suspended, without a slot.
    pub(super) suspended: Option<Outcome>,
    /// It was resumed, and is suspended only until a slot is free.
    pub(super) shall_go_on: bool,
    /// The outcome that it was told to stop with.
    pub(super) stopping: Option<Outcome>,
    /// It is suspended only because its sub-agents are: it continues when they are done.
    pub(super) suspended_for_child: bool,
    pub(super) finished: Option<Outcome>,
    /// Its sub-agents that aren't done.
    pub(super) children: u32,
    /// The last limit that it reached was the run's.
    pub(super) run_is_exhausted: bool,
    pub(super) due: Option<Elapsed>,
    /// The provider that it waits for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) awaits: Option<Box<ProviderAwaited>>,
    /// The scheduled restart after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) restart: Option<Box<PendingRestart>>,
    /// The further request that it has yet to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Box<PendingRequest>>,
    /// The maximum of its turns in all, if it was asked again; otherwise its policy sets the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turns_max: Option<u32>,
    /// Restarts since it was last asked.
    #[serde(default)]
    pub(super) restarts: u32,
}

impl Agent {
    pub(super) fn is_live(&self) -> bool {
        self.finished.is_none()
    }

    /// Its brief, while its work isn't over.
    pub(super) fn live_brief(&self) -> Option<&Brief> {
        self.brief.as_ref().filter(|_| self.is_live())
    }

    /// Whether its session's last segment has ended, and it waits for a slot to begin another.
    pub(super) fn awaits_new_segment(&self) -> bool {
        self.restart.is_some() || self.request.is_some()
    }

    /// Whether its session is worked on.
    pub(super) fn is_at_work(&self) -> bool {
        self.has_begun && self.is_live() && self.suspended.is_none()
    }

    /// When its wait for a restart is over, if it waits for one.
    pub(super) fn restart_ready(&self) -> Option<Elapsed> {
        Some(self.restart.as_ref().filter(|_| self.is_live())?.wait?.ready)
    }

    pub(super) fn standing(&self) -> AgentState {
        match (&self.finished, &self.suspended) {
            (Some(outcome), _) => AgentState::Finished(outcome.clone()),
            (None, Some(Outcome::Paused { why: PauseReason::Preempted { by } })) => {
                AgentState::Preempted { to: *by }
            }
            (None, Some(_))
                if let Some(restart) = &self.restart
                    && let Some(wait) = restart.wait =>
            {
                AgentState::AwaitsRestart {
                    attempt: restart.attempt,
                    attempts_max: restart.attempts_max,
                    due: wait.due,
                    failed: restart.failed.clone(),
                }
            }
            (None, Some(_)) if self.shall_go_on => AgentState::Queued,
            (None, Some(outcome)) => AgentState::Suspended(outcome.clone()),
            (None, None) if !self.has_begun => AgentState::Queued,
            (None, None) => match self.yields {
                Some(Yields { to }) => AgentState::Yielding { to },
                None => AgentState::Working,
            },
        }
    }

    /// When the run next acts on its time limits.
    pub(super) fn next_due(&self) -> Option<Elapsed> {
        if let Some(ready) = self.restart_ready() {
            return Some(ready);
        }
        if !self.is_at_work() || self.stopping.is_some() {
            return None;
        }
        let asked_until = self.ask_timeout_ms.and_then(|timeout_ms| self.clock.when(timeout_ms));
        let ends = self.clock.due();
        asked_until.into_iter().chain(ends).min()
    }

    /// The limit on the wait for its result, in milliseconds, once that has passed.
    pub(super) fn asked_too_long(&self, now: Elapsed) -> Option<u64> {
        self.ask_timeout_ms.filter(|timeout_ms| self.clock.used_since_asked_ms(now) >= *timeout_ms)
    }
}
