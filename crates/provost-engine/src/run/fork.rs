//! A run that continues the conversation of another run's agent, and what the other run records of it.

use provost_event::{Forked, RunStarted, SessionStarted};

use super::{Deciding, RunState};
use crate::event::{ForkStart, RunForkRequest};
use crate::{Event, Message, RunEvent, SessionEvent};

impl Deciding<'_> {
    /// One step writes to both logs: they name each other, or neither does.
    pub(super) fn start_fork(&mut self, wish: RunForkRequest) {
        let RunForkRequest { goal, agent_goal, policy, fork, worktree, text, by } = wish;
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
        self.commit(RunStarted { goal, policy });
        let forked = Forked { from: base.session, at: base.through, hash: base.hash, to: self.state.run };
        self.commit(forked.clone());
        let to = base.session.run.into();
        self.step.message(Message { to, event: Event::Run(RunEvent::Forked(forked)) });
        let start = ForkStart { started: Box::new(started), is_told_more: text.is_some() };
        self.tell(self.root(), SessionEvent::Fork(Box::new(start)));
        if let Some(text) = text {
            self.tell(self.root(), SessionEvent::Say { text, by });
        }
    }
}

impl RunState {
    /// The run's goal.
    #[must_use]
    pub fn goal(&self) -> &str {
        &self.goal
    }

    /// The source of the fork, if it is one.
    #[must_use]
    pub const fn forked_from(&self) -> Option<&Forked> {
        self.forked_from.as_ref()
    }

    /// The runs that were forked from its agents, in order.
    #[must_use]
    pub fn forks(&self) -> &[Forked] {
        &self.forks
    }

    pub(super) fn forked(&mut self, forked: &Forked) {
        if forked.to == self.run {
            self.forked_from = Some(forked.clone());
        } else {
            self.forks.push(forked.clone());
        }
    }
}
