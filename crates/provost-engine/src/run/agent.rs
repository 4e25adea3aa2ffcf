//! One agent of a run: how it stands.

use provost_event::{Brief, Elapsed, Outcome, PauseReason, ProviderAwaited, Seq, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::AgentNumber;
use super::again::PendingRequest;
use super::clock::WorkClock;
use super::restart::PendingRestart;

/// How an agent stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentStanding {
    /// It waits for a slot, its first one or to go on after a rest.
    InLine,
    /// It works, or waits for those that work for it.
    Working,
    /// It works until its next check, and then makes way.
    Yielding {
        /// For whom, if for somebody.
        to: Option<SessionId>,
    },
    /// It has made way, and goes on when there is a slot.
    Furloughed {
        /// For whom, if for somebody.
        to: Option<SessionId>,
    },
    /// It has failed, and is restarted when the time comes.
    AwaitsRestart {
        /// Which restart in a row that is, from 1.
        attempt: u32,
        /// Restarts in a row that it may have.
        attempts_max: u32,
        /// When.
        due: Timestamp,
        /// How it failed.
        failed: Outcome,
    },
    /// It rests, and somebody must see to it.
    Rests(Outcome),
    /// Its work is over.
    Finished(Outcome),
}

/// For whom an agent makes way, if for somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Yields {
    pub(super) to: Option<SessionId>,
}

/// One agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agent {
    pub(super) parent: Option<AgentNumber>,
    /// The entry of the parent's log that asked for it.
    pub(super) call: Option<Seq>,
    /// The last entry of its own log that asked for an agent.
    pub(super) last_call: Seq,
    pub(super) depth: u32,
    pub(super) name: String,
    /// What it was given, absent for the root. Once its work is over, only what binds it when it is asked again.
    pub(super) brief: Option<Brief>,
    pub(super) clock: WorkClock,
    pub(super) ask_timeout_ms: Option<u64>,
    pub(super) spawned_at: Timestamp,
    /// The run's elapsed time then.
    pub(super) spawned: Elapsed,
    pub(super) has_begun: bool,
    /// It was told to make way.
    pub(super) yields: Option<Yields>,
    /// At what it rests, without a slot.
    pub(super) rests: Option<Outcome>,
    /// It rests no longer than until there is a slot: somebody had it go on.
    pub(super) shall_go_on: bool,
    /// It was told to come to this.
    pub(super) stopping: Option<Outcome>,
    /// It rests only because those do that work for it: it goes on when they are done.
    pub(super) rests_for_child: bool,
    pub(super) finished: Option<Outcome>,
    /// Agents that work for it.
    pub(super) children: u32,
    /// The last limit that it reached was the run's.
    pub(super) run_is_exhausted: bool,
    pub(super) due: Option<Elapsed>,
    /// The provider that it waits for, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) awaits: Option<Box<ProviderAwaited>>,
    /// It has failed, and this is its restart to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) restart: Option<Box<PendingRestart>>,
    /// It was asked again, and has yet to begin with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Box<PendingRequest>>,
    /// Turns that it may have taken in all, where it was asked again; else its policy says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turns_max: Option<u32>,
    /// How often it was restarted since it was last asked.
    #[serde(default)]
    pub(super) restarts: u32,
}

impl Agent {
    pub(super) fn is_live(&self) -> bool {
        self.finished.is_none()
    }

    /// What it was given, while its work isn't over.
    pub(super) fn live_brief(&self) -> Option<&Brief> {
        self.brief.as_ref().filter(|_| self.is_live())
    }

    /// Whether its session's last segment has ended, and it waits for a slot to begin another.
    pub(super) fn awaits_new_segment(&self) -> bool {
        self.restart.is_some() || self.request.is_some()
    }

    /// Whether its session is worked on.
    pub(super) fn is_at_work(&self) -> bool {
        self.has_begun && self.is_live() && self.rests.is_none()
    }

    /// Until when it waits for its restart, if it does.
    pub(super) fn restart_ready(&self) -> Option<Elapsed> {
        Some(self.restart.as_ref().filter(|_| self.is_live())?.wait?.ready)
    }

    pub(super) fn standing(&self) -> AgentStanding {
        match (&self.finished, &self.rests) {
            (Some(outcome), _) => AgentStanding::Finished(outcome.clone()),
            (None, Some(Outcome::Paused { why: PauseReason::Preempted { by } })) => {
                AgentStanding::Furloughed { to: *by }
            }
            (None, Some(_))
                if let Some(restart) = &self.restart
                    && let Some(wait) = restart.wait =>
            {
                AgentStanding::AwaitsRestart {
                    attempt: restart.attempt,
                    attempts_max: restart.attempts_max,
                    due: wait.due,
                    failed: restart.failed.clone(),
                }
            }
            (None, Some(_)) if self.shall_go_on => AgentStanding::InLine,
            (None, Some(outcome)) => AgentStanding::Rests(outcome.clone()),
            (None, None) if !self.has_begun => AgentStanding::InLine,
            (None, None) => match self.yields {
                Some(Yields { to }) => AgentStanding::Yielding { to },
                None => AgentStanding::Working,
            },
        }
    }

    /// When something is to be done about its time.
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

    /// How long it is waited for, once that is over.
    pub(super) fn asked_too_long(&self, now: Elapsed) -> Option<u64> {
        self.ask_timeout_ms.filter(|timeout_ms| self.clock.used_since_asked_ms(now) >= *timeout_ms)
    }
}
