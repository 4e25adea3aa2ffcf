//! Commands to a run's agents from outside, and time limits: a message, a stop, a resumption, another priority.

use provost_event::{
    AgentResumeRequested, AgentSuspended, BudgetExhausted, Exhausted, Outcome, Priority, Reprioritized,
    SessionId, StopRequested,
};

use super::agent::Agent;
use super::agents::ROOT;
use super::{AgentNumber, Deciding};
use crate::SessionEvent;

impl Deciding<'_> {
    /// Notifies the nearest agent above that is at work that a suspended agent below continues.
    pub(super) fn tell_of_going_on(&mut self, agent: AgentNumber) {
        let mut below = agent;
        while let Some(agent) = self.state.agents.get(below)
            && let (Some(parent), Some(started)) = (agent.parent, agent.call)
        {
            if self.state.agents.get(parent).is_some_and(|parent| parent.is_at_work()) {
                let to = self.state.agents.session(parent);
                return self.tell(to, SessionEvent::SubAgentResumed { started });
            }
            below = parent;
        }
    }

    /// An agent whose session has ended gets no message before its restart.
    pub(super) fn say(&mut self, agent: AgentNumber, text: String, by: String) {
        let has_ended = |agent: &Agent| {
            let restart = agent.restart.as_ref();
            agent.request.is_some() || restart.is_some_and(|restart| restart.failed.is_final())
        };
        let hears = |agent: &Agent| agent.is_live() && agent.has_begun && !has_ended(agent);
        if self.state.agents.get(agent).is_some_and(hears) {
            self.tell(self.state.agents.session(agent), SessionEvent::Say { text, by });
        }
    }

    /// Clears an agent's goal: the agent and all below it are suspended.
    pub(super) fn clear_goal(&mut self, agent: AgentNumber, by: String) {
        let begun = self.state.agents.get(agent).is_some_and(|agent| agent.is_live() && agent.has_begun);
        if !begun || self.state.policy_of(agent).is_none_or(|policy| policy.goal.is_none()) {
            return;
        }
        let session = self.state.agents.session(agent);
        self.tell(session, SessionEvent::ClearGoal { by });
    }

    /// Stops an agent and all below it, or the whole run.
    pub(super) fn stop(&mut self, agent: Option<AgentNumber>, outcome: Outcome) {
        if self.state.flow.is_some() && matches!(agent, None | Some(ROOT)) {
            return self.stop_flow(&outcome);
        }
        let agent = agent.unwrap_or(ROOT);
        let Some(one) = self.state.agents.get(agent).filter(|one| one.is_live()) else { return };
        let before = if agent == ROOT { &self.state.stopping } else { &one.stopping };
        // A second request counts only if it ends what the first one suspends.
        let counts = before.as_ref().is_none_or(|before| !before.is_final() && outcome.is_final());
        let below = self.state.agents.below(agent);
        let is_noted = agent != ROOT || (!below.is_empty() && self.state.outcome.is_none());
        if counts && is_noted {
            let agent = (agent != ROOT).then(|| self.state.agents.session(agent));
            self.commit(StopRequested { agent, outcome: outcome.clone(), for_child: false });
        }
        for one in [agent].into_iter().chain(below) {
            self.have_stop(one, &outcome);
            if agent != ROOT {
                self.hold(one, &outcome);
            }
        }
    }

    /// An agent that waits for a slot gets none until it is resumed.
    pub(super) fn hold(&mut self, agent: AgentNumber, outcome: &Outcome) {
        let waits = |agent: &Agent| match &agent.suspended {
            Some(rest) => rest.is_preempted() || agent.awaits_new_segment(),
            None => !agent.has_begun,
        };
        if !outcome.is_final() && self.state.agents.get(agent).is_some_and(|one| one.is_live() && waits(one))
        {
            let child = self.state.agents.session(agent);
            self.commit(AgentSuspended { child, outcome: outcome.clone(), for_child: false });
            self.tell_of_stop(agent, outcome);
        }
    }

    pub(super) fn resume_agent(&mut self, agent: AgentNumber, by: &str) {
        if self.state.outcome.is_some() || self.state.is_stopping() {
            return;
        }
        let mut wanted = self.state.agents.below(agent);
        wanted.push(agent);
        for agent in wanted {
            let live = self.state.agents.get(agent).filter(|agent| agent.is_live());
            let suspended = live.and_then(|agent| agent.suspended.as_ref());
            if suspended.is_some_and(|outcome| !outcome.is_preempted()) {
                let child = self.state.agents.session(agent);
                self.commit(AgentResumeRequested { child, by: by.to_owned() });
                self.tell_of_going_on(agent);
            }
        }
    }

    pub(super) fn reprioritize(&mut self, agent: AgentNumber, priority: Priority, by: String) {
        let known = self.state.agents.get(agent).filter(|agent| agent.is_live());
        if known.is_some() && self.state.agents.slots.priority(agent) != Some(priority) {
            let agent = self.state.agents.session(agent);
            self.commit(Reprioritized { agent, priority, by });
        }
    }

    /// An agent has used up its time, or the wait for its result is over.
    pub(super) fn agents_time_passed(&mut self, number: AgentNumber) {
        let now = self.step.now().elapsed;
        let session = self.state.agents.session(number);
        let Some(agent) = self.state.agents.get(number) else { return };
        if agent.restart_ready().is_some() {
            return self.restart_is_due(number);
        }
        let (below, used) = (self.state.agents.below(number), agent.clock.used(now));
        let outcome = match (agent.asked_too_long(now), used) {
            (Some(timeout_ms), _) => {
                let by = format!("its ask timeout of {} s", timeout_ms / 1_000);
                Outcome::Cancelled { by }
            }
            (None, Some(exhausted)) => Outcome::BudgetExhausted(exhausted),
            (None, None) => return,
        };
        match used.filter(|_| !agent.clock.winds_down && !outcome.is_final()) {
            Some(exhausted) => self.note_exhausted(session, exhausted),
            None => self.commit(StopRequested {
                agent: Some(session),
                outcome: outcome.clone(),
                for_child: false,
            }),
        }
        self.have_stop(number, &outcome);
        below.into_iter().for_each(|agent| self.have_stop(agent, &outcome));
    }

    fn note_exhausted(&mut self, session: SessionId, exhausted: Exhausted) {
        self.commit(BudgetExhausted { session, of: Some(session), exhausted });
    }

    /// No agent waits any more for the sub-agents of `agent`.
    pub(super) fn end_below(&mut self, agent: AgentNumber) {
        let outcome = Outcome::Cancelled { by: "the end of the agent that asked for it".to_owned() };
        for agent in self.state.agents.below(agent) {
            self.have_stop(agent, &outcome);
        }
    }

    /// Stops one agent; if it never began and is to end, it is finished at once.
    pub(super) fn have_stop(&mut self, agent: AgentNumber, outcome: &Outcome) {
        let child = self.state.agents.session(agent);
        let Some(one) = self.state.agents.get(agent).filter(|one| one.is_live()) else { return };
        if one.restart.is_some() && self.ends_without_restart(agent, outcome) {
            return;
        }
        if self.state.agents.get(agent).is_some_and(|one| one.request.is_some()) {
            // Its session has ended.
            if outcome.is_final() {
                self.finish(child, outcome.clone(), "");
            }
            return;
        }
        let Some(one) = self.state.agents.get(agent) else { return };
        if one.has_begun {
            self.tell(child, SessionEvent::Stop { outcome: outcome.clone() });
        } else if outcome.is_final() {
            self.finish(child, outcome.clone(), "");
        }
    }
}
