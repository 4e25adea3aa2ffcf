//! Acting on a run from outside, whichever process holds it.

use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::{Actor, AgentState, PendingApproval, RunEvent, SessionEvent};
use provost_event::{ApprovalAnswer, ApprovalScope, Budget, Priority, RunId, SessionId};

use crate::{Backend, BackendError};

/// Acts on one run of a backend: a request is decided by the process that holds the run, or by this one if none does.
/// Cheap to clone. Each method returns whether the request changed anything: what doesn't fit the run's state any more
/// is no error.
#[derive(Clone)]
pub struct Control {
    backend: Arc<dyn Backend>,
    run: RunId,
    by: Arc<str>,
}

/// A call that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenApproval {
    /// The agent.
    pub session: SessionId,
    /// The question: tool, arguments, reason, and until when an answer counts.
    pub question: PendingApproval,
}

/// Keeps a pattern that was approved for all runs in the user's settings.
#[async_trait]
pub trait KeepsApproved: Send + Sync {
    /// Adds it.
    ///
    /// # Errors
    /// Why it can't be kept, for people.
    async fn keep(&self, pattern: &str) -> Result<(), String>;
}

impl Control {
    /// Control of `run`; `by` is who the log names for each request.
    pub fn new(backend: Arc<dyn Backend>, run: RunId, by: &str) -> Self {
        Self { backend, run, by: by.into() }
    }

    /// The run.
    #[must_use]
    pub const fn run_id(&self) -> RunId {
        self.run
    }

    /// Sends a message to an agent, which gets it before its next model call; the root is 0.
    ///
    /// # Errors
    /// When the request can't be recorded.
    pub async fn say(&self, agent: u32, text: impl Into<String>) -> Result<bool, BackendError> {
        self.to_run(RunEvent::Say { agent, text: text.into(), by: self.by() }).await
    }

    /// Pauses the run, or one agent with those below it, as soon as everything in flight has stopped.
    ///
    /// # Errors
    /// When the request can't be recorded.
    pub async fn pause(&self, agent: Option<u32>) -> Result<bool, BackendError> {
        self.stop(agent, RunEvent::Pause { agent, by: self.by() }).await
    }

    /// Resumes a suspended agent of a run that isn't suspended as a whole; it goes on when there is a slot.
    ///
    /// # Errors
    /// When the request can't be recorded.
    pub async fn resume(&self, agent: u32) -> Result<bool, BackendError> {
        let budget = Budget::default();
        let agent = Some(agent);
        self.to_run(RunEvent::Resume { agent, by: self.by(), budget, turns_max: None, text: None }).await
    }

    /// Cancels the run, or one agent with those below it.
    ///
    /// # Errors
    /// When the request can't be recorded.
    pub async fn cancel(&self, agent: Option<u32>) -> Result<bool, BackendError> {
        self.stop(agent, RunEvent::Cancel { agent, by: self.by() }).await
    }

    /// Changes the priority of an agent; the root is 0. A finished agent stays unchanged.
    ///
    /// # Errors
    /// When the request can't be recorded.
    pub async fn reprioritize(&self, agent: u32, priority: Priority) -> Result<bool, BackendError> {
        self.to_run(RunEvent::Reprioritize { agent, priority, by: self.by() }).await
    }

    /// Clears the goal of an agent; the root is 0. A verification in flight is stopped, and its judge's answer is
    /// ignored. The agent is suspended, with all agents below it, until it is resumed without the goal. A
    /// suspended agent stays suspended; one that has no goal, or has finished, stays unchanged.
    ///
    /// # Errors
    /// When the request can't be recorded.
    pub async fn clear_goal(&self, agent: u32) -> Result<bool, BackendError> {
        self.to_run(RunEvent::ClearGoal { agent, by: self.by() }).await
    }

    /// The calls that wait for an approval, by agent and in the order of their questions.
    ///
    /// # Errors
    /// When a log can't be read.
    pub async fn approvals(&self) -> Result<Vec<OpenApproval>, BackendError> {
        let Actor::Run(state) = self.backend.state(self.run.into()).await? else {
            return Ok(Vec::new());
        };
        let may_wait =
            |standing: &AgentState| !matches!(standing, AgentState::Queued | AgentState::Finished(_));
        let agents = state.agents().filter(|agent| may_wait(&agent.standing)).map(|agent| agent.session);
        let mut open = Vec::new();
        for session in agents {
            if let Actor::Session(state) = self.backend.state(session.into()).await? {
                let questions = state.approvals().cloned();
                open.extend(questions.map(|question| OpenApproval { session, question }));
            }
        }
        Ok(open)
    }

    /// Allows the call that `approval` asks about, and no other.
    ///
    /// # Errors
    /// When the answer can't be recorded; the question stays open.
    pub async fn approve(&self, approval: &OpenApproval) -> Result<bool, BackendError> {
        self.answer(approval, ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None }).await
    }

    /// Denies the call that `approval` asks about; the model gets the reason, which may be empty.
    ///
    /// # Errors
    /// When the answer can't be recorded; the question stays open.
    pub async fn deny(
        &self,
        approval: &OpenApproval,
        reason: impl Into<String>,
    ) -> Result<bool, BackendError> {
        self.answer(approval, ApprovalAnswer::Deny { reason: reason.into() }).await
    }

    /// Answers a question; false if it has an answer already or needs none any more.
    ///
    /// # Errors
    /// When the answer can't be recorded; the question stays open.
    pub async fn answer(
        &self,
        approval: &OpenApproval,
        answer: ApprovalAnswer,
    ) -> Result<bool, BackendError> {
        let event = SessionEvent::Resolve { asked: approval.question.asked, answer, by: self.by() };
        Ok(self.backend.post(approval.session.into(), event.into(), None).await?.changed)
    }

    /// A run that no process holds stops at once.
    async fn stop(&self, agent: Option<u32>, event: RunEvent) -> Result<bool, BackendError> {
        let changed = self.to_run(event).await?;
        if agent.is_none() {
            self.backend.recover_unheld(self.run).await?;
        }
        Ok(changed)
    }

    async fn to_run(&self, event: RunEvent) -> Result<bool, BackendError> {
        Ok(self.backend.post(self.run.into(), event.into(), None).await?.changed)
    }

    fn by(&self) -> String {
        self.by.as_ref().to_owned()
    }
}
