//! How a run lets agents work for others: it acquires slots, spawns, asks again, releases, and preempts.

use provost_event::{
    AgentFinished, AgentResumeRequested, AgentSpawned, AgentStarted, AgentSuspended, AgentYieldRequested,
    Brief, ChainContext, Dimension, Json, LimitOwner, Outcome, PauseReason, Paused, Priority, Seq, SessionId,
    SessionStarted, SlotAssignment, ToolStatus,
};

use super::agent::Agent;
use super::agents::ROOT;
use super::brief::told_of_goal;
use super::brief::{Wanted, names_agent};
use super::restart::PendingRestart;
use super::spawn::{Acquired, SlotMove};
use super::{AgentNumber, Deciding};
use crate::reminder::reminder_id;
use crate::{SessionEvent, SubAgentReport};

/// How long an agent that yields may still wait for its model; then that call is cancelled, and made again later.
const PREEMPT_GRACE_MS: u64 = 30_000;

/// Who ends a suspended agent once its partial result has been delivered.
pub(crate) const DELIVERED: &str = "its run: it was suspended, and what it had come to was delivered";

/// A call for an agent that was refused.
#[derive(Debug)]
pub(super) struct Refused {
    /// The status of the call.
    pub(super) status: ToolStatus,
    /// The reason, as text for the requesting agent.
    pub(super) why: String,
}

impl Deciding<'_> {
    pub(super) fn spawn(&mut self, parent: SessionId, call: Seq, tool: &str, input: &Json) {
        let Some(asking) = self.state.agents.get(parent.agent).filter(|agent| agent.is_at_work()) else {
            return;
        };
        if call <= asking.last_call {
            return;
        }
        let asked = match names_agent(input) {
            true => self.ask_again(parent, call, tool, input),
            false => self.newcomer((parent, call), tool, input).map(|newcomer| self.admit(newcomer)),
        };
        if let Err(Refused { status, why }) = asked {
            let report = SubAgentReport { status, text: why, duration_ms: 0, ended: None };
            self.tell(parent, SessionEvent::SubAgentFinished { started: call, report });
        }
    }

    /// The new agent that a call of `asked` requests.
    ///
    /// # Errors
    /// The status of the call, and why there is no such agent, as text for the requesting agent.
    fn newcomer(&self, asked: (SessionId, Seq), tool: &str, input: &Json) -> Result<AgentSpawned, Refused> {
        let state = &*self.state;
        let (parent, call) = asked;
        let rejected = |why: String| Refused { status: ToolStatus::Rejected, why };
        let Wanted { brief, priority } = state.wanted(parent.agent, tool, input).map_err(rejected)?;
        let above = state.agents.get(parent.agent).map_or(0, |asking| asking.depth);
        let place = ChainContext { chain: parent.run, parent: None, depth: above };
        let place = place.child_of(parent, state.spawn_budget().max_depth);
        let too_deep = |why: String| Refused { status: ToolStatus::Error, why };
        let depth = place.map_err(|deep| too_deep(deep.to_string()))?.depth;
        let slot = state.slot_for(parent.agent, priority)?;
        let child = state.agents.session(state.agents.next());
        Ok(AgentSpawned { child, parent: Some(parent), call: Some(call), depth, brief, priority, slot })
    }

    /// Adds a new agent, and tells the agent that must yield to it.
    pub(super) fn admit(&mut self, newcomer: AgentSpawned) {
        let AgentSpawned { child, slot, .. } = newcomer;
        self.commit(newcomer);
        self.free_slot(slot, child);
    }

    /// Tells the agent that gives its slot to `child` to yield, if there is one.
    pub(super) fn free_slot(&mut self, slot: SlotAssignment, child: SessionId) {
        if let SlotAssignment::After(victim) = slot {
            self.have_make_way(victim, Some(child));
        }
    }

    pub(super) fn have_make_way(&mut self, victim: SessionId, to: Option<SessionId>) {
        self.commit(AgentYieldRequested { child: victim, to });
        self.tell(victim, SessionEvent::YieldSlot { to, grace_ms: PREEMPT_GRACE_MS });
    }

    /// After each event: starts or resumes the agents that have got a slot, and suspends the run when all agents
    /// are.
    pub(super) fn go_on(&mut self) {
        self.begin_steps();
        while self.state.outcome.is_none() && !self.state.is_stopping() {
            let Some(next) = self.state.agents.moves.front().copied() else { break };
            match next {
                SlotMove::Leave(agent) => self.have_make_way(self.state.agents.session(agent), None),
                SlotMove::Begin(agent) | SlotMove::GoOn(agent) => self.have_work(agent),
            }
        }
        self.finish_if_all_are_suspended();
        self.finish_without_root();
    }

    /// An agent has its slot.
    fn have_work(&mut self, agent: AgentNumber) {
        let child = self.state.agents.session(agent);
        let suspended = self.state.agents.get(agent).and_then(|agent| agent.suspended.clone());
        let has_begun = self.state.agents.get(agent).is_some_and(|agent| agent.has_begun);
        let restart = self.state.agents.get(agent).and_then(|agent| agent.restart.clone());
        let request = self.state.agents.get(agent).and_then(|agent| agent.request.clone());
        self.commit(AgentStarted { child });
        if suspended.is_some() {
            self.tell_of_going_on(agent);
        }
        if let Some(restart) = restart {
            let PendingRestart { attempt, attempts_max, .. } = *restart;
            return self.tell(child, SessionEvent::Restart { attempt, attempts_max });
        }
        if let Some(request) = request {
            return self.tell(child, request.into_event());
        }
        let event = match suspended.filter(|_| has_begun) {
            Some(outcome) if outcome.is_preempted() => SessionEvent::SlotFree,
            Some(_) => SessionEvent::Resume {
                by: self.state.resumed_by.clone(),
                turns_max: None,
                text: None,
                reopens: false,
            },
            None => match self.state.opening(agent, self.entropy).filter(|_| !has_begun) {
                Some(started) => SessionEvent::Start(Box::new(started)),
                None => return,
            },
        };
        self.tell(child, event);
    }

    fn finish_if_all_are_suspended(&mut self) {
        let Some(root) = self.state.agents.get(ROOT) else { return };
        match (root.finished.clone(), root.suspended.clone()) {
            (Some(outcome), _) if self.state.agents.live() == 0 && !self.state.has_ended() => {
                self.end(outcome);
            }
            (None, Some(outcome)) if self.state.outcome.is_none() && self.state.is_idle() => {
                self.commit(Paused { outcome });
            }
            _ => {}
        }
    }

    pub(super) fn session_stopped(
        &mut self,
        session: SessionId,
        outcome: Outcome,
        text: &str,
        for_child: bool,
    ) {
        let is_done = |agent: &Agent| !agent.is_live() || agent.request.is_some();
        if self.state.agents.get(session.agent).is_none_or(is_done) {
            return;
        }
        if session.agent == ROOT {
            return self.root_stopped(outcome, for_child);
        }
        if self.restarts(session, &outcome) {
            return;
        }
        let Some(agent) = self.state.agents.get(session.agent) else { return };
        if outcome.is_final() || self.state.is_reported(agent, &outcome) {
            let was_asked_for = agent.parent.is_some();
            self.finish(session, outcome.clone(), text);
            if was_asked_for && matches!(outcome, Outcome::Aborted { .. }) {
                // A hook ends the run, whichever agent it was called for.
                self.stop(None, outcome);
            }
            return;
        }
        if agent.suspended.is_some() {
            return;
        }
        self.commit(AgentSuspended { child: session, outcome: outcome.clone(), for_child });
        if let Some(outcome) = self.state.agents.hangs_on(session.agent) {
            self.tell_of_stop(session.agent, &outcome);
        }
    }

    fn root_stopped(&mut self, outcome: Outcome, for_child: bool) {
        if self.state.outcome.is_some() && !outcome.is_final() {
            return;
        }
        let child = self.root();
        match (self.state.agents.live(), outcome.is_final()) {
            (0, true) => self.end(outcome),
            (0, false) => self.commit(Paused { outcome }),
            (_, false) => self.commit(AgentSuspended { child, outcome, for_child }),
            (_, true) => {
                self.commit(AgentFinished { child, outcome, restarts: 0 });
                self.end_below(ROOT);
            }
        }
    }

    /// An agent's work is over: its parent gets the result, and its sub-agents stop.
    pub(super) fn finish(&mut self, child: SessionId, outcome: Outcome, text: &str) {
        let Some(agent) = self.state.agents.get(child.agent) else { return };
        let (parent, call) = (agent.parent, agent.call);
        let now = self.step.now().elapsed;
        let duration_ms = now.since_ms(agent.spawned);
        let status = match &outcome {
            Outcome::Completed { .. } => ToolStatus::Ok,
            Outcome::Cancelled { .. } if agent.asked_too_long(now).is_some() => ToolStatus::TimedOut,
            Outcome::Cancelled { .. } => ToolStatus::Cancelled,
            _ => ToolStatus::Error,
        };
        let text_of = self.state.report(child, &outcome, text);
        let ended = Some((child, outcome.clone()));
        let report = SubAgentReport { status, text: text_of, duration_ms, ended };
        let restarts = agent.restarts;
        let (is_final, has_begun) = (outcome.is_final(), agent.has_begun);
        self.commit(AgentFinished { child, outcome: outcome.clone(), restarts });
        if !is_final && has_begun {
            let by = DELIVERED.to_owned();
            self.tell(child, SessionEvent::Stop { outcome: Outcome::Cancelled { by } });
        }
        self.end_below(child.agent);
        if let (Some(parent), Some(started)) = (parent, call)
            && self.state.agents.get(parent).is_some_and(|parent| parent.is_live())
        {
            self.tell(self.state.agents.session(parent), SessionEvent::SubAgentFinished { started, report });
            self.see_to(parent);
        }
        if parent.is_none() {
            self.step_over(child, &outcome, text);
        }
    }

    /// A sub-agent of `parent` is done: the agents above are notified what it depends on now, if it doesn't work
    /// itself.
    fn see_to(&mut self, parent: AgentNumber) {
        if let Some(outcome) = self.state.agents.hangs_on(parent) {
            return self.tell_of_stop(parent, &outcome);
        }
        let Some(root) = self.state.agents.get(ROOT) else { return };
        let may_go_on =
            root.suspended.is_some() && root.children == 0 && self.state.agents.waits_for_children(ROOT);
        if may_go_on && self.state.outcome.is_none() && !self.state.is_stopping() {
            let (child, by) = (self.root(), self.state.resumed_by.clone());
            self.commit(AgentResumeRequested { child, by: by.clone() });
            self.tell(child, SessionEvent::Resume { by, turns_max: None, text: None, reopens: false });
        }
    }

    /// The agents above a suspended one can't continue either, once they have nothing else to do.
    pub(super) fn tell_of_stop(&mut self, agent: AgentNumber, outcome: &Outcome) {
        let mut below = agent;
        while let Some(suspended) = self.state.agents.get(below) {
            let (Some(parent), Some(started)) = (suspended.parent, suspended.call) else { return };
            if self.state.agents.get(parent).is_some_and(|parent| parent.is_at_work()) {
                let to = self.state.agents.session(parent);
                return self.tell(to, SessionEvent::SubAgentSuspended { started, outcome: outcome.clone() });
            }
            if !self.state.agents.stands_still(parent) {
                return;
            }
            below = parent;
        }
    }
}

impl super::RunState {
    /// Whether the parent gets a suspended agent's state as its result, because no other party would act on it.
    fn is_reported(&self, agent: &super::agent::Agent, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::BudgetExhausted(exhausted) => {
                // The run as a whole is at its limit, and continues with all its agents when the limit is raised.
                let is_runs = match exhausted.dimension {
                    Dimension::Turns => exhausted.owner == LimitOwner::Run,
                    Dimension::Tokens | Dimension::Money => agent.run_is_exhausted,
                    Dimension::WallTime => self.clock.winds_down,
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

    /// The report for the requesting agent.
    fn report(&self, child: SessionId, outcome: &Outcome, text: &str) -> String {
        let said = if text.trim().is_empty() { "(It said nothing.)" } else { text.trim() };
        let name = self.agents.get(child.agent).map(|agent| agent.name.clone()).unwrap_or_default();
        let turns = self.ledger.own_turns(child.agent);
        let attempts = match self.agents.get(child.agent).map_or(0, |agent| agent.restarts) {
            0 => String::new(),
            restarts => format!("attempts: {}, ", restarts.saturating_add(1)),
        };
        let (tokens, cost) =
            self.ledger.spent(child.agent).map_or_else(Default::default, |spent| (spent.tokens, spent.cost));
        // An agent can't resume a run: the remedies for people are left out.
        let outcome = match outcome {
            Outcome::Paused { why: PauseReason::Model(trouble) } => trouble.what(),
            outcome => outcome.to_string(),
        };
        format!(
            "{said}\n\n[agent {child} ({name}): {outcome}; {attempts}turns: {turns}, tokens: {tokens}, cost: {cost}]"
        )
    }

    /// Whether no agent works, and none will without a request.
    fn is_idle(&self) -> bool {
        self.agents.at_work() == 0 && (self.is_stopping() || !self.agents.any_awaits_restart())
    }

    /// How an agent that agent `asking` requests gets its slot.
    ///
    /// # Errors
    /// There is none for it; with the text for the requesting agent.
    pub(super) fn slot_for(
        &self,
        asking: AgentNumber,
        priority: Priority,
    ) -> Result<SlotAssignment, Refused> {
        if self.is_stopping() {
            let why = "Not started: the run is being stopped.".to_owned();
            return Err(Refused { status: ToolStatus::Cancelled, why });
        }
        let children = self.agents.get(asking).map_or(0, |asking| asking.children);
        match self.agents.slots.would_acquire(priority) {
            Acquired::Granted => Ok(SlotAssignment::Free),
            Acquired::After(victim) => Ok(SlotAssignment::After(self.agents.session(victim))),
            // An agent that already waits for a sub-agent may wait for this one too: that sub-agent ends some
            // time.
            Acquired::Exhausted if children > 0 => Ok(SlotAssignment::Queued),
            Acquired::Exhausted => Err(Refused { status: ToolStatus::Error, why: self.no_slot(priority) }),
        }
    }

    fn no_slot(&self, priority: Priority) -> String {
        let (held, slots) = (self.agents.slots.held(), self.spawn_budget().slots());
        format!(
            "Not started: {held} of {slots} agents are at work (spawn.max_agents), and none of them yields to one \
             of priority {priority}. Do this part yourself, or ask again when other agents are done."
        )
    }

    /// The first entry of an agent that begins.
    fn opening(&self, agent: AgentNumber, entropy: u64) -> Option<SessionStarted> {
        let one = self.agents.get(agent)?;
        let Brief { goal, agent: kind, .. } = one.brief.as_ref()?;
        Some(SessionStarted {
            goal: goal.clone(),
            images: Vec::new(),
            policy: told_of_goal(self.policy_of(agent)?),
            parent: one.parent.map(|parent| self.agents.session(parent)),
            depth: one.depth,
            call: one.call,
            agent: kind.clone(),
            worktree: self.worktree_of(agent),
            fork: None,
            reminder_id: reminder_id(entropy, agent),
        })
    }
}
