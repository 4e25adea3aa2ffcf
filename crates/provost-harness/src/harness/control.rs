//! Control requests of the embedding program to a run or an agent, possible at any time.

use std::sync::Arc;

use provost_engine::RunEvent;
use provost_event::{ModelPolicy, Priority, RunPolicyChanged};

use super::Harness;

use crate::{Control, HarnessError};

impl Harness {
    /// Control of the run, which may be used while [`Harness::run`] works; `by` is who the log names.
    #[must_use]
    pub fn control(&self, by: &str) -> Control {
        Control::new(Arc::clone(&self.deps.backend), self.run, by)
    }

    /// Pauses the run as soon as everything in flight has stopped; `run` then returns.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub fn pause(&self, by: &str) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.to_run(RunEvent::Pause { agent: None, by: by.to_owned() })
    }

    /// Cancels the run for good.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub fn cancel(&self, by: &str) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.to_run(RunEvent::Cancel { agent: None, by: by.to_owned() })
    }

    /// Changes the model from here on, which replaces the run's own and an unavailable one; and the maximum wait
    /// for outages, in milliseconds. `None` leaves a value unchanged. A suspended run stays suspended.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub fn retune(
        &self,
        model: Option<ModelPolicy>,
        outage_max_ms: Option<u64>,
        by: &str,
    ) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.to_run(RunEvent::Retune { model: model.map(Box::new), outage_max_ms, by: by.to_owned() })
    }

    /// Changes the policy or the goal of the run and its agents from the next segment on; the log records the
    /// differences and who requested them. An active run stays unchanged.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn change_policy(&self, changed: RunPolicyChanged) -> Result<(), HarnessError> {
        self.to_run(RunEvent::ChangePolicy(Box::new(changed))).await?;
        self.sessions.forget_policies();
        Ok(())
    }

    /// Sends a message to the root agent, which gets it before its next model call.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub fn say(&self, text: &str, by: &str) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.to_run(RunEvent::Say { agent: 0, text: text.to_owned(), by: by.to_owned() })
    }

    /// Changes the priority of an agent; the root is 0. A finished agent stays unchanged.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub fn reprioritize(
        &self,
        agent: u32,
        priority: Priority,
        by: &str,
    ) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.to_run(RunEvent::Reprioritize { agent, priority, by: by.to_owned() })
    }

    /// Clears the goal of an agent; the root is 0. A verification in flight is stopped, and its judge's answer is
    /// ignored. The agent is suspended, with all agents below it, until it is resumed without the goal. A
    /// suspended agent stays suspended; one that has no goal, or has finished, stays unchanged.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub fn clear_goal(
        &self,
        agent: u32,
        by: &str,
    ) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.to_run(RunEvent::ClearGoal { agent, by: by.to_owned() })
    }
}
