//! Decisions by which agents stop, and what follows when they have: results, restarts, the end of a segment.

use provost_event::{
    AgentFinished, AgentResumeRequested, AgentRetryScheduled, AgentSuspended, Outcome, Paused, SessionId,
    StepEnded, StopRequested,
};

use super::Deciding;
use crate::SessionEvent;
use crate::retry::restart_delay_ms;
use crate::run::AgentNumber;
use crate::run::agents::{Agent, ROOT, StopEffect};
use crate::run::flow::Attempt;
use crate::run::report::AgentEnd;

/// Who ends a suspended agent once its partial result has been delivered.
pub(crate) const DELIVERED: &str = "its run: it was suspended, and what it had come to was delivered";

/// Decides which agents stop, and what follows when they have.
pub(super) struct Stops<'d, 'a> {
    pub(super) run: &'d mut Deciding<'a>,
}

impl Stops<'_, '_> {
    /// Stops an agent and all below it, or the whole run.
    pub(super) fn stop(&mut self, number: Option<AgentNumber>, outcome: Outcome) {
        let number = number.unwrap_or(ROOT);
        if number == ROOT && self.run.state.workflow.steps().is_some() {
            return self.stop_workflow(&outcome);
        }
        let Some(agent) = self.run.agent(number).filter(|agent| agent.is_live()) else { return };
        let before = if number == ROOT { self.run.state.lifecycle.stopping() } else { agent.stopping() };
        let counts = replaces(&outcome, before);
        let below = self.run.state.agents.table().below(number);
        let is_noted = number != ROOT || (!below.is_empty() && self.run.is_worked_on());
        if counts && is_noted {
            let agent = (number != ROOT).then(|| self.run.session(number));
            self.run.commit(StopRequested { agent, outcome: outcome.clone(), for_child: false });
        }
        for one in [number].into_iter().chain(below) {
            self.stop_one(one, &outcome);
            if number != ROOT {
                self.hold(one, &outcome);
            }
        }
    }

    /// Suspends or ends the whole run.
    fn stop_workflow(&mut self, outcome: &Outcome) {
        let counts = replaces(outcome, self.run.state.lifecycle.stopping());
        // A run that is already suspended has nothing to suspend.
        if counts && (self.run.is_worked_on() || outcome.is_final()) {
            self.run.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
        }
        self.stop_all(outcome);
    }

    fn stop_all(&mut self, outcome: &Outcome) {
        let live = self.run.state.agents.table().iter().filter(|(_, agent)| agent.is_live());
        let live = live.map(|(number, _)| number).collect::<Vec<_>>();
        self.stop_each(live, outcome);
    }

    pub(super) fn stop_each(&mut self, numbers: impl IntoIterator<Item = AgentNumber>, outcome: &Outcome) {
        for number in numbers {
            self.stop_one(number, outcome);
        }
    }

    fn stop_one(&mut self, number: AgentNumber, outcome: &Outcome) {
        let child = self.run.session(number);
        let Some(agent) = self.run.agent(number) else { return };
        match agent.told_to_stop(outcome) {
            StopEffect::None => {}
            StopEffect::Session => self.run.tell(child, SessionEvent::Stop { outcome: outcome.clone() }),
            StopEffect::Finishes(outcome) => self.finish(child, outcome, ""),
        }
    }

    /// No agent waits any more for the sub-agents of `number`.
    fn end_below(&mut self, number: AgentNumber) {
        let outcome = Outcome::Cancelled { by: "the end of the agent that asked for it".to_owned() };
        let below = self.run.state.agents.table().below(number);
        self.stop_each(below, &outcome);
    }

    /// An agent that waits for a slot gets none until it is resumed.
    fn hold(&mut self, number: AgentNumber, outcome: &Outcome) {
        if !outcome.is_final() && self.run.agent(number).is_some_and(Agent::waits_for_slot) {
            let child = self.run.session(number);
            self.run.commit(AgentSuspended { child, outcome: outcome.clone(), for_child: false });
            self.tell_of_suspension(number, outcome);
        }
    }

    /// A session has ended or was suspended.
    pub(super) fn session_stopped(
        &mut self,
        session: SessionId,
        outcome: Outcome,
        text: &str,
        for_child: bool,
    ) {
        let number = session.agent;
        if self.run.agent(number).is_none_or(|agent| !agent.awaits_end()) {
            return;
        }
        if number == ROOT {
            return self.root_stopped(outcome, for_child);
        }
        if self.restarts(session, &outcome) {
            return;
        }
        let Some(agent) = self.run.agent(number) else { return };
        if outcome.is_final() || agent.is_reported(&outcome, self.run.state.budget.winds_down()) {
            let was_asked_for = agent.parent().is_some();
            self.finish(session, outcome.clone(), text);
            if was_asked_for && matches!(outcome, Outcome::Aborted { .. }) {
                // A hook ends the run, whichever agent it was called for.
                self.stop(None, outcome);
            }
            return;
        }
        if agent.suspended().is_some() {
            return;
        }
        self.run.commit(AgentSuspended { child: session, outcome, for_child });
        if let Some(outcome) = self.run.state.agents.table().blocking_outcome(number) {
            self.tell_of_suspension(number, &outcome);
        }
    }

    fn root_stopped(&mut self, outcome: Outcome, for_child: bool) {
        if !self.run.is_worked_on() && !outcome.is_final() {
            return;
        }
        let child = self.run.session(ROOT);
        match (self.run.state.agents.table().live(), outcome.is_final()) {
            (0, true) => self.run.end(outcome),
            (0, false) => self.run.commit(Paused { outcome }),
            (_, false) => self.run.commit(AgentSuspended { child, outcome, for_child }),
            (_, true) => {
                self.run.commit(AgentFinished { child, outcome, restarts: 0 });
                self.end_below(ROOT);
            }
        }
    }

    /// Schedules a restart for an agent that has failed, if its policy allows one. Returns whether it does.
    fn restarts(&mut self, session: SessionId, outcome: &Outcome) -> bool {
        let number = session.agent;
        let state = &*self.run.state;
        if state.lifecycle.is_ending() || !state.agents.may_restart(number, outcome) {
            return false;
        }
        let Some(policy) = state.policies().restarts_of(number) else { return false };
        let Some(attempt) = state.agents.next_restart(number, policy.attempts_max) else { return false };
        let delay_ms = restart_delay_ms(policy, attempt, self.run.entropy);
        let stopping = self.run.agent(number).and_then(Agent::stopping).cloned();
        self.run.commit(AgentRetryScheduled {
            agent: session,
            outcome: outcome.clone(),
            attempt,
            attempts_max: policy.attempts_max,
            delay_ms,
            due: self.run.now().at.plus_ms(delay_ms),
        });
        if let Some(stopping) = stopping {
            // The agent failed while it was being suspended.
            self.hold(number, &stopping);
        }
        true
    }

    /// An agent's work is over: its parent gets the result, and its sub-agents stop.
    fn finish(&mut self, child: SessionId, outcome: Outcome, text: &str) {
        let Some(agent) = self.run.agent(child.agent) else { return };
        let parent = agent.parent();
        let call = agent.call();
        let is_told = agent.has_begun() && !outcome.is_final();
        let at = self.run.now().elapsed;
        let end = AgentEnd { session: child, outcome: &outcome, text, at };
        let report = end.report(agent, self.run.state.ledger());
        let restarts = agent.restarts();
        self.run.commit(AgentFinished { child, outcome: outcome.clone(), restarts });
        if is_told {
            let outcome = Outcome::Cancelled { by: DELIVERED.to_owned() };
            self.run.tell(child, SessionEvent::Stop { outcome });
        }
        self.end_below(child.agent);
        if let Some(parent) = parent
            && let Some(started) = call
            && self.run.agent(parent).is_some_and(Agent::is_live)
        {
            self.run.tell(self.run.session(parent), SessionEvent::SubAgentFinished { started, report });
            self.child_finished(parent);
        }
        if parent.is_none() {
            self.attempt_ended(child, &outcome, text);
        }
    }

    /// A sub-agent of `parent` is done: if the parent doesn't work itself, the agents above are told what it depends
    /// on now, or the root continues.
    fn child_finished(&mut self, parent: AgentNumber) {
        if let Some(outcome) = self.run.state.agents.table().blocking_outcome(parent) {
            return self.tell_of_suspension(parent, &outcome);
        }
        if self.run.state.may_start() && self.run.state.agents.table().root_may_go_on() {
            let child = self.run.session(ROOT);
            let by = self.run.state.agents.resumed_by().to_owned();
            self.run.commit(AgentResumeRequested { child, by: by.clone() });
            let resume = SessionEvent::Resume { by, turns_max: None, text: None, reopens: false };
            self.run.tell(child, resume);
        }
    }

    /// The agents above a suspended one can't continue either, once they have nothing else to do.
    fn tell_of_suspension(&mut self, number: AgentNumber, outcome: &Outcome) {
        if let Some(above) = self.run.state.agents.table().affected_by_suspension(number) {
            let suspended = SessionEvent::SubAgentSuspended { started: above.call, outcome: outcome.clone() };
            self.run.tell(above.session, suspended);
        }
    }

    /// The agent of a step has ended: the step is done, tried again, or has failed, and the run with it.
    fn attempt_ended(&mut self, child: SessionId, outcome: &Outcome, text: &str) {
        let Some(agent) = self.run.agent(child.agent) else { return };
        let attempt = Attempt { outcome, text, at: self.run.now().at, entropy: self.run.entropy };
        let is_ending = self.run.state.lifecycle.is_ending();
        let Some(ended) = self.run.state.workflow.attempt_ended(agent, &attempt, is_ending) else { return };
        let step = agent.name().to_owned();
        let run_fails = ended.run_fails(&step);
        self.run.commit(StepEnded { step: step.clone(), child, attempt: ended.attempt, end: ended.end });
        if let Some(outcome) = run_fails {
            self.run.commit(StopRequested { agent: None, outcome, for_child: false });
            self.stop_all(&Outcome::Cancelled { by: format!("the end of step `{step}`, which has failed") });
        }
    }

    /// After each event: suspends or ends the run when none of its agents works and none will.
    pub(super) fn end_segment(&mut self) {
        match self.run.state.segment_end() {
            Some(outcome) if outcome.is_final() => self.run.end(outcome),
            Some(outcome) => self.run.commit(Paused { outcome }),
            None => {}
        }
    }
}

/// Whether a request to stop counts after the one `before`: only if it ends what that one suspends.
fn replaces(outcome: &Outcome, before: Option<&Outcome>) -> bool {
    before.is_none_or(|before| !before.is_final() && outcome.is_final())
}
