//! One agent of a run, with its status.

use provost_event::{
    AgentSpawned, AgentSuspended, Brief, Dimension, Elapsed, Exhausted, LimitOwner, Outcome, PauseReason,
    ProviderAwaited, Seq, SessionId, Timestamp, ToolStatus,
};
use serde::{Deserialize, Serialize};

use super::pending::{PendingRequest, PendingRestart};
use crate::decision_time::DecisionTime;
use crate::run::AgentNumber;
use crate::run::clock::WorkClock;

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

/// The event with which an agent's session works once it has a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) enum FirstEvent {
    Start,
    SlotFree,
    Resume,
    Restart { attempt: u32, attempts_max: u32 },
    Request(PendingRequest),
}

/// What follows for an agent whose time is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) enum TimeUp {
    /// Its wait for a restart is over.
    Restarts,
    /// Its working time is over; the rest of the limit is for its final summary.
    WindsDown(Exhausted),
    /// It is stopped with this outcome.
    Stops(Outcome),
}

/// What follows for an agent that is told to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) enum StopEffect {
    /// Its session isn't worked on, and the agent may still continue.
    None,
    /// Its session stops.
    Session,
    /// Its session isn't worked on: the agent is finished with this outcome.
    Finishes(Outcome),
}

/// The agent that a slot is yielded to, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Yields {
    pub(super) to: Option<SessionId>,
}

/// One agent of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) struct Agent {
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
    /// When it was requested last.
    pub(super) requested: DecisionTime,
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
    /// The agent that a run begins with.
    pub(super) fn root(now: DecisionTime) -> Self {
        Self { requested: now, has_begun: true, ..Self::default() }
    }

    /// An agent that is requested now.
    pub(super) fn requested(spawned: &AgentSpawned, now: DecisionTime) -> Self {
        let brief = &spawned.brief;
        Self {
            parent: spawned.parent.map(|parent| parent.agent),
            call: spawned.call,
            depth: spawned.depth,
            name: brief.name.clone(),
            clock: WorkClock::limited(brief.budget.wall_time_ms),
            ask_timeout_ms: brief.ask_timeout_ms,
            brief: Some(brief.clone()),
            requested: now,
            ..Self::default()
        }
    }

    pub(in crate::run) const fn parent(&self) -> Option<AgentNumber> {
        self.parent
    }

    pub(in crate::run) const fn call(&self) -> Option<Seq> {
        self.call
    }

    pub(in crate::run) const fn depth(&self) -> u32 {
        self.depth
    }

    pub(in crate::run) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::run) const fn brief(&self) -> Option<&Brief> {
        self.brief.as_ref()
    }

    pub(in crate::run) const fn clock(&self) -> &WorkClock {
        &self.clock
    }

    pub(in crate::run) const fn requested_at(&self) -> DecisionTime {
        self.requested
    }

    pub(in crate::run) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(in crate::run) const fn suspended(&self) -> Option<&Outcome> {
        self.suspended.as_ref()
    }

    pub(in crate::run) const fn stopping(&self) -> Option<&Outcome> {
        self.stopping.as_ref()
    }

    pub(in crate::run) const fn finished(&self) -> Option<&Outcome> {
        self.finished.as_ref()
    }

    pub(in crate::run) const fn children(&self) -> u32 {
        self.children
    }

    pub(in crate::run) fn awaits(&self) -> Option<&ProviderAwaited> {
        self.awaits.as_deref()
    }

    pub(in crate::run) const fn turns_max(&self) -> Option<u32> {
        self.turns_max
    }

    pub(in crate::run) const fn restarts(&self) -> u32 {
        self.restarts
    }

    pub(in crate::run) const fn is_live(&self) -> bool {
        self.finished.is_none()
    }

    /// Its brief, while its work isn't over.
    pub(in crate::run) fn live_brief(&self) -> Option<&Brief> {
        self.brief.as_ref().filter(|_| self.is_live())
    }

    /// Whether its session is worked on.
    pub(in crate::run) const fn is_at_work(&self) -> bool {
        self.has_begun && self.is_live() && self.suspended.is_none()
    }

    /// Whether it may request an agent by this call: each call counts once.
    pub(in crate::run) fn may_request(&self, call: Seq) -> bool {
        self.is_at_work() && call > self.last_call
    }

    /// Whether a message can reach it. An agent whose session has ended gets none before its restart.
    pub(in crate::run) fn gets_messages(&self) -> bool {
        let failed = self.restart.as_ref().is_some_and(|restart| restart.failed.is_final());
        self.is_live() && self.has_begun && self.request.is_none() && !failed
    }

    /// Whether the end of its session is news: a finished agent, or one that has yet to begin with a further
    /// request, has had it.
    pub(in crate::run) fn awaits_end(&self) -> bool {
        self.is_live() && self.request.is_none()
    }

    /// Whether it waits for a slot, which it doesn't get once it is to be suspended.
    pub(in crate::run) fn waits_for_slot(&self) -> bool {
        let waits = match &self.suspended {
            Some(outcome) => outcome.is_preempted() || self.restart.is_some() || self.request.is_some(),
            None => !self.has_begun,
        };
        self.is_live() && waits
    }

    /// Whether its model gives no answer.
    pub(in crate::run) const fn lacks_model(&self) -> bool {
        self.awaits.is_some()
            || matches!(&self.suspended, Some(Outcome::Paused { why: PauseReason::Model(_) }))
    }

    /// When its wait for a restart is over, if it waits for one.
    pub(super) fn restart_ready(&self) -> Option<Elapsed> {
        Some(self.restart.as_ref().filter(|_| self.is_live())?.wait?.ready)
    }

    /// Whether it is suspended until its sub-agents are done.
    pub(super) fn waits_for_children(&self) -> bool {
        self.suspended.as_ref().is_some_and(|outcome| outcome.is_preempted() || self.suspended_for_child)
    }

    /// Whether a person has suspended it, with all below it.
    pub(super) fn is_paused_by_request(&self) -> bool {
        !self.suspended_for_child
            && matches!(&self.suspended, Some(Outcome::Paused { why: PauseReason::Asked { .. } }))
    }

    pub(in crate::run) fn standing(&self) -> AgentState {
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

    /// How its session begins to work, now that it has a slot; `None` if the session is worked on.
    pub(in crate::run) fn first_event(&self) -> Option<FirstEvent> {
        if let Some(restart) = &self.restart {
            let PendingRestart { attempt, attempts_max, .. } = **restart;
            return Some(FirstEvent::Restart { attempt, attempts_max });
        }
        if let Some(request) = &self.request {
            return Some(FirstEvent::Request((**request).clone()));
        }
        if !self.has_begun {
            return Some(FirstEvent::Start);
        }
        let outcome = self.suspended.as_ref()?;
        Some(if outcome.is_preempted() { FirstEvent::SlotFree } else { FirstEvent::Resume })
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
    fn asked_too_long(&self, now: Elapsed) -> Option<u64> {
        self.ask_timeout_ms.filter(|timeout_ms| self.clock.used_since_asked_ms(now) >= *timeout_ms)
    }

    /// What follows once its time is due; `None` if it has no limit.
    pub(in crate::run) fn time_up(&self, now: Elapsed) -> Option<TimeUp> {
        if self.restart_ready().is_some() {
            return Some(TimeUp::Restarts);
        }
        if let Some(timeout_ms) = self.asked_too_long(now) {
            let by = format!("its ask timeout of {} s", timeout_ms / 1_000);
            return Some(TimeUp::Stops(Outcome::Cancelled { by }));
        }
        let exhausted = self.clock.used(now)?;
        Some(match self.clock.winds_down {
            true => TimeUp::Stops(Outcome::BudgetExhausted(exhausted)),
            false => TimeUp::WindsDown(exhausted),
        })
    }

    /// What follows from telling it to stop with this outcome. If it waits for its restart, its failure is its
    /// outcome.
    pub(in crate::run) fn told_to_stop(&self, outcome: &Outcome) -> StopEffect {
        if !self.is_live() {
            return StopEffect::None;
        }
        if let Some(restart) = &self.restart
            && outcome.is_final()
            && restart.failed.is_final()
        {
            return StopEffect::Finishes(restart.failed.clone());
        }
        if self.has_begun && self.request.is_none() {
            StopEffect::Session
        } else if outcome.is_final() {
            StopEffect::Finishes(outcome.clone())
        } else {
            StopEffect::None
        }
    }

    /// The status of the call that requested it, once it is finished with this outcome.
    pub(in crate::run) fn call_status(&self, outcome: &Outcome, now: Elapsed) -> ToolStatus {
        match outcome {
            Outcome::Completed { .. } => ToolStatus::Ok,
            Outcome::Cancelled { .. } if self.asked_too_long(now).is_some() => ToolStatus::TimedOut,
            Outcome::Cancelled { .. } => ToolStatus::Cancelled,
            _ => ToolStatus::Error,
        }
    }

    /// Whether the parent gets its state as its result, because no other party would act on it. `run_winds_down`:
    /// the run's own time is over.
    pub(in crate::run) fn is_reported(&self, outcome: &Outcome, run_winds_down: bool) -> bool {
        match outcome {
            Outcome::BudgetExhausted(exhausted) => {
                // The run as a whole is at its limit, and continues with all its agents when the limit is raised.
                let is_runs = match exhausted.dimension {
                    Dimension::Turns => exhausted.owner == LimitOwner::Run,
                    Dimension::Tokens | Dimension::Money => self.run_is_exhausted,
                    Dimension::WallTime => run_winds_down,
                };
                !is_runs
            }
            Outcome::Blocked { .. } => true,
            Outcome::Paused { why } => match why {
                PauseReason::RepeatedCall { .. }
                | PauseReason::ToolFailures { .. }
                | PauseReason::Unanswered { .. }
                | PauseReason::Stuck { .. } => true,
                PauseReason::Model(trouble) => !trouble.cause().is_outside(),
                PauseReason::Asked { .. }
                | PauseReason::WorkspaceGone { .. }
                | PauseReason::CrashLoop { .. }
                | PauseReason::Hook { .. }
                | PauseReason::Approval { .. }
                | PauseReason::StepFailed { .. }
                | PauseReason::JudgeUnreachable { .. }
                | PauseReason::GoalCleared { .. }
                | PauseReason::Preempted { .. } => false,
            },
            Outcome::Completed { .. }
            | Outcome::Aborted { .. }
            | Outcome::Cancelled { .. }
            | Outcome::Failed { .. } => true,
        }
    }

    /// It is suspended, without a slot.
    pub(super) fn pause(&mut self, suspended: &AgentSuspended, now: Elapsed) {
        self.leave_work(&suspended.outcome, now);
        self.suspended_for_child = suspended.for_child;
        if let Some(restart) = &mut self.restart {
            restart.wait = None;
        }
    }

    /// It no longer works, and isn't finished.
    pub(super) fn leave_work(&mut self, outcome: &Outcome, now: Elapsed) {
        self.suspended = Some(outcome.clone());
        self.awaits = None;
        self.shall_go_on = false;
        self.yields = None;
        self.stopping = None;
        self.suspended_for_child = false;
        self.clock.stop(now);
    }

    /// Its work is over.
    pub(super) fn finish(&mut self, outcome: &Outcome, now: Elapsed) {
        self.finished = Some(outcome.clone());
        self.awaits = None;
        if let Some(brief) = &mut self.brief {
            brief.goal = String::new();
            brief.instructions = None;
        }
        self.request = None;
        self.clock.stop(now);
    }

    /// It has its slot and works.
    pub(super) fn work(&mut self, now: Elapsed) {
        self.has_begun = true;
        self.suspended = None;
        self.shall_go_on = false;
        self.request = None;
        if self.restart.take().is_some() {
            self.restarts = self.restarts.saturating_add(1);
        }
        self.clock.start(now);
    }
}
