//! Decisions that change what applies to a run and its agents: the model, the policy, and the start as a fork.

use provost_event::{
    AgentPolicyChanged, Forked, ModelChange, ModelChanged, ModelPolicy, OutageWaitChanged, RunPolicyChanged,
    RunStarted, SessionStarted, ToolSpec, ToolsChanged,
};

use super::Deciding;
use crate::event::{ForkStart, RunForkRequest};
use crate::run::AgentNumber;
use crate::run::agent_policy::told_of_goal;
use crate::run::agents::{Agent, ROOT};
use crate::{Event, Message, RunEvent, SessionEvent};

impl Deciding<'_> {
    /// Changes the model or the wait from here on: for the run's own agents, new ones, and those whose model
    /// doesn't answer.
    pub(super) fn retune(&mut self, model: Option<Box<ModelPolicy>>, outage_max_ms: Option<u64>, by: &str) {
        let Some(policy) = self.state.policy.get() else { return };
        let of_run = policy.agent.model.name.clone();
        let changed = self.state.policy.changed_model().map(|model| model.name.clone());
        let by = by.to_owned();
        for number in self.state.agents.table().that_may_work() {
            let own = self.state.policies().of(number).map(|policy| policy.model.name);
            let lacks_model = self.agent(number).is_some_and(Agent::lacks_model);
            let is_own = own.as_ref() == Some(&of_run) || (changed.is_some() && own == changed);
            let model = model.clone().filter(|_| lacks_model || is_own);
            if model.is_some() || outage_max_ms.is_some() {
                let session = self.session(number);
                self.tell(session, SessionEvent::Retune { model, outage_max_ms, by: by.clone() });
            }
        }
        if let Some(to) = model {
            let from = changed.unwrap_or(of_run);
            self.commit(ModelChanged { from, to, why: ModelChange::Asked { by: by.clone() } });
        }
        if let Some(outage_max_ms) = outage_max_ms {
            self.commit(OutageWaitChanged { outage_max_ms, by });
        }
    }

    /// Changes the tools of the run's own agent, and tells each agent that may still work what that changes for it.
    pub(super) fn change_tools(&mut self, changed: ToolsChanged) {
        let Some(policy) = self.state.policy.get() else { return };
        let tools = &policy.agent.tools;
        let Some(changed) = ToolsChanged::between(tools, &changed.applied_to(tools), &changed.by) else {
            return;
        };
        let by = changed.by.clone();
        let agents = self.state.agents.table().that_may_work();
        let before = agents.into_iter().map(|number| (number, self.tools_of(number))).collect::<Vec<_>>();
        self.commit(changed);
        for (number, tools) in before {
            let Some(mut changed) = ToolsChanged::between(&tools, &self.tools_of(number), &by) else {
                continue;
            };
            if self.state.policies().lacks_settings(number) {
                changed.added.clear();
            }
            let session = self.session(number);
            self.tell(session, SessionEvent::ChangeTools(Box::new(changed)));
        }
    }

    /// The tools of an agent; none for an external agent, whose tools are what its program can do.
    fn tools_of(&self, number: AgentNumber) -> Vec<ToolSpec> {
        let policy = self.state.policies().of(number).filter(|policy| policy.external.is_none());
        policy.map(|policy| policy.tools).unwrap_or_default()
    }

    /// Applies another policy to the run and to each of its agents that may still work.
    pub(super) fn change_policy(&mut self, changed: RunPolicyChanged) {
        if self.is_worked_on() {
            return;
        }
        let goal = changed.goal.clone();
        let by = changed.by.clone();
        let before = self.state.policy.get().cloned();
        self.commit(changed);
        if self.state.policy.get() == before.as_ref() && goal.is_none() {
            return;
        }
        for number in self.state.agents.table().that_may_work() {
            let policies = self.state.policies();
            if policies.lacks_settings(number) {
                continue;
            }
            let Some(policy) = policies.of(number).map(told_of_goal) else { continue };
            let goal = goal.clone().filter(|_| number == ROOT);
            let changed = AgentPolicyChanged { policy, goal, by: by.clone() };
            let session = self.session(number);
            self.tell(session, SessionEvent::ChangePolicy(Box::new(changed)));
        }
    }

    /// Starts the run with the conversation of another run's agent. One step writes to both logs: they name each
    /// other, or neither does.
    pub(super) fn start_fork(&mut self, request: RunForkRequest) {
        let RunForkRequest { goal, agent_goal, policy, fork, worktree, baseline, text, by } = request;
        let Some(base) = fork.bases.last().cloned() else { return };
        let started = SessionStarted {
            goal: agent_goal,
            images: Vec::new(),
            policy: policy.agent.clone(),
            parent: None,
            depth: 0,
            call: None,
            agent: None,
            worktree,
            reminder_id: fork.reminder_id.clone(),
            fork: Some(fork),
        };
        self.commit(RunStarted { goal, policy, baseline });
        let forked = Forked { from: base.session, at: base.through, hash: base.hash, to: self.state.run };
        self.commit(forked.clone());
        let to = base.session.run.into();
        self.step.message(Message { to, event: Event::Run(RunEvent::Forked(forked)) });
        let root = self.session(ROOT);
        let start = ForkStart { started: Box::new(started), is_told_more: text.is_some() };
        self.tell(root, SessionEvent::Fork(Box::new(start)));
        if let Some(text) = text {
            self.tell(root, SessionEvent::Say { text, by });
        }
    }
}
