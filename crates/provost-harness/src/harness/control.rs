//! Control requests of the embedding program to a run or an agent, possible at any time.

use std::sync::Arc;

use provost_engine::RunEvent;
use provost_event::{ModelPolicy, RunPolicyChanged};

use super::Harness;

use crate::{Control, HarnessError};

impl Harness {
    /// Control of the run, which may be used while [`Harness::run`] works; `by` is who the log names.
    #[must_use]
    pub fn control(&self, by: &str) -> Control {
        Control::new(Arc::clone(&self.deps.backend), self.run, by)
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
}
