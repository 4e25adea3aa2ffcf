//! How a run treats agents that wait for their model's provider, and a change of the model.

use provost_event::{
    AgentPolicy, Elapsed, ModelChange, ModelChanged, ModelPolicy, ModelTrouble, OutageWaitChanged, Outcome,
    PauseReason, ProviderAwaited,
};

use super::agent::Agent;
use super::agents::ROOT;
use super::{AgentNumber, Deciding, RunState};
use crate::SessionEvent;

impl Deciding<'_> {
    pub(super) fn awaits_provider(&mut self, awaited: ProviderAwaited) {
        let at_work = |agent: &Agent| agent.is_at_work();
        if self.state.outcome.is_none() && self.state.agents.get(awaited.session.agent).is_some_and(at_work) {
            self.commit(awaited);
        }
    }

    /// Changes the model or the wait from here on: for the run's own agents, new ones, and those whose model
    /// doesn't answer.
    pub(super) fn retune(&mut self, model: Option<Box<ModelPolicy>>, outage_max_ms: Option<u64>, by: &str) {
        let Some(policy) = &self.state.policy else { return };
        let of_run = policy.agent.model.name.clone();
        let by = by.to_owned();
        // The first agent may begin another segment.
        let counts = |number: AgentNumber, agent: &Agent| number == ROOT || agent.is_live();
        let begun = self.state.agents.iter();
        let begun = begun.filter(|(number, agent)| agent.has_begun && counts(*number, agent));
        let begun = begun.map(|(number, agent)| {
            let is_stuck = matches!(&agent.suspended, Some(Outcome::Paused { why: PauseReason::Model(_) }));
            (number, is_stuck || agent.awaits.is_some())
        });
        for (number, is_stuck) in begun.collect::<Vec<_>>() {
            let own = self.state.policy_of(number).map(|policy| policy.model.name);
            let now = self.state.model.as_ref().map(|model| &model.name);
            let uses = is_stuck || own.as_ref() == Some(&of_run) || (now.is_some() && own.as_ref() == now);
            let model = model.clone().filter(|_| uses);
            if model.is_some() || outage_max_ms.is_some() {
                let session = self.state.agents.session(number);
                self.tell(session, SessionEvent::Retune { model, outage_max_ms, by: by.clone() });
            }
        }
        if let Some(to) = model {
            let from = self.state.model.as_ref().map_or(of_run, |model| model.name.clone());
            self.commit(ModelChanged { from, to, why: ModelChange::Asked { by: by.clone() } });
        }
        if let Some(outage_max_ms) = outage_max_ms {
            self.commit(OutageWaitChanged { outage_max_ms, by });
        }
    }
}

impl RunState {
    /// The model of its agents that have none of their own.
    #[must_use]
    pub fn model(&self) -> Option<&ModelPolicy> {
        self.model.as_deref().or_else(|| self.policy.as_ref().map(|policy| &policy.agent.model))
    }

    /// How long outages are waited out, in milliseconds.
    #[must_use]
    pub fn outage_max_ms(&self) -> u64 {
        let frozen = || self.policy.as_ref().map_or(0, |policy| policy.agent.limits.outage_max_ms);
        self.outage_max_ms.unwrap_or_else(frozen)
    }

    /// The provider that the run waits for, while all its working agents wait for theirs; the one that is tried
    /// first.
    #[must_use]
    pub fn awaits_provider(&self) -> Option<&ProviderAwaited> {
        let awaited = self.agents.iter().filter_map(|(_, agent)| agent.awaits.as_deref());
        awaited.min_by_key(|awaited| awaited.until).filter(|_| self.outcome.is_none() && !self.is_worked_on())
    }

    /// The trouble of the provider that an agent, or else the whole run, waits for.
    pub(super) fn trouble_awaited(&self, agent: Option<AgentNumber>) -> Option<&ModelTrouble> {
        let awaited = match agent {
            Some(agent) => self.agents.get(agent)?.awaits.as_deref(),
            None => self.awaits_provider(),
        };
        awaited.map(|awaited| &awaited.trouble)
    }

    /// Whether any of its agents does more than wait for a provider, or for agents that do.
    fn is_worked_on(&self) -> bool {
        let mut at_work = self.agents.iter().filter(|(_, agent)| agent.is_at_work()).peekable();
        if at_work.peek().is_none() {
            // Steps that wait to be retried, or a run that begins.
            return true;
        }
        at_work.any(|(number, agent)| {
            agent.awaits.is_none() && (agent.children == 0 || self.ledger.has_reserved(number))
        })
    }

    /// The run's time counts while any of its agents does more than wait for a provider.
    pub(super) fn count_work(&mut self, now: Elapsed) {
        if self.outcome.is_some() || self.policy.is_none() {
            return;
        }
        if self.agents.any_awaits() && !self.is_worked_on() {
            self.clock.stop(now);
        } else {
            self.clock.go_on(now);
        }
    }

    /// A later change of the policy also applies to new agents.
    pub(super) fn retuned(&self, policy: &mut AgentPolicy) {
        let of_run = self.policy.as_ref().map(|run| &run.agent.model.name);
        if let Some(model) = self.model.as_deref().filter(|_| of_run == Some(&policy.model.name)) {
            policy.model = model.clone();
        }
        policy.limits.outage_max_ms = self.outage_max_ms();
    }
}
