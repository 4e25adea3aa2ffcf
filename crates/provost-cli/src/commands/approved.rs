//! Approvals for all runs, as a service keeps them.

use std::path::PathBuf;

use async_trait::async_trait;
use provost_config::keep_approved;
use provost_harness::KeepsApproved;

/// Keeps them in the user's own settings file.
pub(super) struct UserSettings(pub(super) PathBuf);

#[async_trait]
impl KeepsApproved for UserSettings {
    async fn keep(&self, pattern: &str) -> Result<(), String> {
        let file = self.0.clone();
        let pattern = pattern.to_owned();
        let kept = tokio::task::spawn_blocking(move || keep_approved(&file, &pattern)).await;
        match kept {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("can't change your settings: {error}")),
            Err(error) => Err(format!("can't change your settings: {error}")),
        }
    }
}
