//! How a run performs its workflow: begins steps, records how they end, and stops without a root agent.

use provost_event::{
    AgentPolicy, AgentSpawned, Brief, Budget, ErrorClass, Outcome, PauseReason, Paused, Priority, SessionId,
    SlotAssignment, StepEnd, StepEnded, StepPolicy, StopRequested,
};

use super::{Attempt, StepNumber, cut};
use crate::run::agent::Agent;
use crate::run::spawn::Acquired;
use crate::run::{AgentNumber, Deciding, RunState};

/// Maximum bytes of earlier steps' final texts that a step gets, all of them together.
const TOLD_BYTES_MAX: usize = 64 * 1024;

impl Deciding<'_> {
    /// Begins all steps that can be: each is queued for a slot, unless another agent yields to it.
    pub(in crate::run) fn begin_steps(&mut self) {
        while self.state.outcome.is_none()
            && !self.state.is_stopping()
            && let Some(step) = self.state.flow.as_ref().and_then(|flow| flow.next(self.step.now().elapsed))
            && let Some((brief, priority)) = self.state.brief_of(step)
        {
            let child = self.state.agents.session(self.state.agents.next());
            let slot = match self.state.agents.slots.would_acquire(priority) {
                Acquired::Granted => SlotAssignment::Free,
                Acquired::After(victim) => SlotAssignment::After(self.state.agents.session(victim)),
                Acquired::Exhausted => SlotAssignment::Queued,
            };
            self.admit(AgentSpawned { child, parent: None, call: None, depth: 0, brief, priority, slot });
        }
    }

    /// The agent of a step has ended: the step is done, tried again, or has failed.
    pub(in crate::run) fn step_over(&mut self, child: SessionId, outcome: &Outcome, text: &str) {
        let name = self.state.agents.get(child.agent).map(|agent| agent.name.clone()).unwrap_or_default();
        let Some(flow) = &self.state.flow else { return };
        let Some(step) = flow.find(&name) else { return };
        let attempt = Attempt { outcome, text, at: self.step.now().at, entropy: self.entropy };
        let Some(end) = flow.after(step, &attempt) else { return };
        // The run is ending: stopping its agents for that is no failure of their steps.
        if self.state.is_ending() && !matches!(end, StepEnd::Done { .. }) {
            return;
        }
        let attempt = u32::try_from(flow.attempts(step).len()).unwrap_or(u32::MAX);
        let failed = match &end {
            StepEnd::Failed { outcome, then: provost_event::OnStepFailure::Abort, .. } => {
                Some(outcome.clone())
            }
            StepEnd::Done { .. } | StepEnd::Again { .. } | StepEnd::Failed { .. } => None,
        };
        self.commit(StepEnded { step: name.clone(), child, attempt, end });
        if let Some(outcome) = failed {
            self.give_up(&name, &outcome);
        }
    }

    /// A step has failed, and the run with it: all agents at work are stopped.
    fn give_up(&mut self, step: &str, outcome: &Outcome) {
        let of_run = match outcome {
            Outcome::Aborted { hook, reason } => {
                Outcome::Aborted { hook: hook.clone(), reason: format!("step `{step}`: {reason}") }
            }
            other => failed(format!("`{step}`: {other}")),
        };
        self.commit(StopRequested { agent: None, outcome: of_run, for_child: false });
        self.stop_all(&Outcome::Cancelled { by: format!("the end of step `{step}`, which has failed") });
    }

    /// Suspends or ends the whole run.
    pub(in crate::run) fn stop_flow(&mut self, outcome: &Outcome) {
        let before = self.state.stopping.as_ref();
        let counts = before.is_none_or(|before| !before.is_final() && outcome.is_final());
        // A run that is already suspended has nothing to suspend.
        if counts && (self.state.outcome.is_none() || outcome.is_final()) {
            self.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
        }
        self.stop_all(outcome);
    }

    fn stop_all(&mut self, outcome: &Outcome) {
        let live = self.state.agents.iter().filter(|(_, agent)| agent.is_live());
        for agent in live.map(|(number, _)| number).collect::<Vec<_>>() {
            self.have_stop(agent, outcome);
        }
    }

    /// After each event: a run without a root is suspended or ends when no step can continue.
    pub(in crate::run) fn finish_without_root(&mut self) {
        let Some(flow) = &self.state.flow else { return };
        if self.state.has_ended() {
            return;
        }
        if self.state.agents.live() == 0 {
            if let Some(outcome) = self.state.stopping.clone().filter(Outcome::is_final) {
                return self.end(outcome);
            }
            if flow.is_over() {
                let outcome = Outcome::Completed { verdict: None, verification: flow.verification() };
                return self.end(outcome);
            }
        }
        if self.state.outcome.is_some() || self.state.agents.at_work() > 0 {
            return;
        }
        match self.state.outcome_of_flow() {
            Some(outcome) if outcome.is_final() => self.end(outcome),
            Some(outcome) => self.commit(Paused { outcome }),
            None => {}
        }
    }
}

impl RunState {
    /// Whether it was told to end.
    fn is_ending(&self) -> bool {
        self.stopping.as_ref().is_some_and(Outcome::is_final)
    }

    /// The outcome of a run without working agents; `None` if a step is still to begin.
    fn outcome_of_flow(&self) -> Option<Outcome> {
        if let Some(stopping) = &self.stopping {
            return (!stopping.is_final()).then(|| stopping.clone());
        }
        let suspended = self.agents.iter().filter(|(_, agent)| agent.is_live());
        let suspended = suspended.filter_map(|(_, agent)| agent.suspended.as_ref());
        let suspended = suspended.filter(|outcome| !outcome.is_preempted()).collect::<Vec<_>>();
        let spent = suspended.iter().find(|outcome| matches!(outcome, Outcome::BudgetExhausted(_)));
        if self.clock.winds_down {
            let spent = spent.map(|outcome| (*outcome).clone());
            return spent.or_else(|| self.clock.used(self.elapsed).map(Outcome::BudgetExhausted));
        }
        let flow = self.flow.as_ref()?;
        if flow.first_due().is_some() || self.agents.any_awaits_restart() {
            return None;
        }
        if let Some(outcome) = spent.or_else(|| suspended.first()) {
            return Some((*outcome).clone());
        }
        if let Some((step, outcome)) = flow.asks() {
            let (step, reason) = (step.to_owned(), outcome.to_string());
            return Some(Outcome::Paused { why: PauseReason::StepFailed { step, reason } });
        }
        (self.agents.live() == 0).then(|| failed("none of those that are left can be begun"))
    }

    /// When the next step is due to be retried, while steps are begun at all.
    pub(in crate::run) fn step_due(&self) -> Option<provost_event::Elapsed> {
        self.flow.as_ref().filter(|_| !self.is_stopping())?.first_due()
    }

    /// The step that an agent works on, if any.
    fn step_of(&self, agent: &Agent) -> Option<&StepPolicy> {
        let number = self.flow.as_ref().filter(|_| agent.parent.is_none())?.find(&agent.name)?;
        self.step_policy(number)
    }

    /// The restart limit that the agent's step sets, if it does.
    pub(in crate::run) fn step_restarts_max(&self, agent: &Agent) -> Option<u32> {
        self.step_of(agent)?.restarts_max
    }

    fn step_policy(&self, step: StepNumber) -> Option<&StepPolicy> {
        self.policy.as_ref()?.flow.as_ref()?.steps.get(step)
    }

    /// The brief and the priority for the agent of a step.
    fn brief_of(&self, step: StepNumber) -> Option<(Brief, Priority)> {
        let policy = self.step_policy(step)?;
        let named = policy.agent.as_deref().and_then(|name| self.sub_agent(name));
        let brief = Brief {
            name: policy.name.clone(),
            goal: self.goal_of(step, &policy.goal),
            agent: policy.agent.clone(),
            instructions: None,
            tools: None,
            budget: self
                .left_of(step, tighter(policy.budget, named.map(|named| named.budget).unwrap_or_default())),
            turns_max: None,
            ask_timeout_ms: None,
            isolation: named.map(|named| named.isolation).unwrap_or_default(),
            done_when: None,
        };
        Some((brief, policy.priority))
    }

    /// The step's goal, with the final texts of its dependencies.
    fn goal_of(&self, step: StepNumber, goal: &str) -> String {
        let told = self.flow.iter().flat_map(|flow| flow.told(step)).collect::<Vec<_>>();
        if told.is_empty() {
            return goal.to_owned();
        }
        let each = TOLD_BYTES_MAX.checked_div(told.len()).unwrap_or_default();
        let mut text = format!("{goal}\n\nThis was done before. What was said last of each step:");
        for (name, said) in told {
            let said = if said.is_empty() { "(nothing)".to_owned() } else { cut(said, each) };
            text.push_str(&format!("\n\n<step name=\"{name}\">\n{said}\n</step>"));
        }
        text
    }

    /// What the attempts so far have left of a step's budget.
    fn left_of(&self, step: StepNumber, budget: Budget) -> Budget {
        let attempts = self.flow.as_ref().map(|flow| flow.attempts(step)).unwrap_or_default();
        attempts.iter().fold(budget, |left, agent| {
            let spent = self.ledger.spent(*agent).copied().unwrap_or_default();
            let worked_ms = self.agents.get(*agent).map_or(0, |agent| agent.clock.used_ms(self.elapsed));
            Budget {
                tokens: left.tokens.map(|tokens| tokens.saturating_sub(spent.tokens)),
                money: left.money.map(|money| money.saturating_sub(spent.cost)),
                wall_time_ms: left.wall_time_ms.map(|ms| ms.saturating_sub(worked_ms)),
                turns: left.turns.map(|turns| turns.saturating_sub(spent.turns)),
            }
        })
    }

    /// Adds to an agent's policy what its step requires.
    pub(in crate::run) fn bind_to_step(&self, agent: AgentNumber, policy: &mut AgentPolicy) {
        let Some(step) = self.agents.get(agent).and_then(|agent| self.step_of(agent)) else { return };
        for hook in &step.stop_hooks {
            if !policy.stop_hooks.iter().any(|known| known.name == hook.name) {
                policy.stop_hooks.push(hook.clone());
            }
        }
    }
}

/// The smaller one of each limit.
fn tighter(one: Budget, other: Budget) -> Budget {
    Budget {
        tokens: one.tokens.into_iter().chain(other.tokens).min(),
        money: one.money.into_iter().chain(other.money).min(),
        wall_time_ms: one.wall_time_ms.into_iter().chain(other.wall_time_ms).min(),
        turns: one.turns.into_iter().chain(other.turns).min(),
    }
}

fn failed(message: impl Into<String>) -> Outcome {
    Outcome::Failed { class: ErrorClass::StepFailed, message: message.into() }
}
