//! What the embedding program may want of a run or an agent at any moment, whatever it does then.

use provost_engine::RunEvent;
use provost_event::{ModelPolicy, Priority, RunPolicyChanged};

use super::Harness;
use crate::HarnessError;

impl Harness {
    /// Asks the run to rest. It does so as soon as what is in flight has stopped; `run` then returns.
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

    /// Has another model asked from here on, in place of the run's own, and of one that can't be asked any more; and
    /// outages waited out for another time, in milliseconds. What is `None` stays. A run that rests stays at rest.
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

    /// Has another policy, or another goal, bind the run and its agents from the next segment on: what is different about
    /// it, and who wants it, stands in the log with it. A run that is worked on stays as it is.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn change_policy(&self, changed: RunPolicyChanged) -> Result<(), HarnessError> {
        self.to_run(RunEvent::ChangePolicy(Box::new(changed))).await?;
        self.sessions.forget_policies();
        Ok(())
    }

    /// Says something to the root agent; it hears it before its next model call.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub fn say(&self, text: &str, by: &str) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.to_run(RunEvent::Say { agent: 0, text: text.to_owned(), by: by.to_owned() })
    }

    /// Gives an agent another priority; the root is 0. One whose work is over stays as it is.
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

    /// Takes the goal of an agent away; the root is 0. A verification in flight is stopped, and what its judge still
    /// says changes nothing. The agent rests, and with it all below it, until somebody has it go on without the goal.
    /// One that is at rest stays so; one that has no goal, or whose work is over, stays as it is.
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
