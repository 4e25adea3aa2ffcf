//! Asking the hooks of a moment.

use provost_engine::Consult;
use provost_event::HookReport;
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;

impl HarnessExecutor {
    /// Asks the hooks that the policy names for the subject's moments, within each one's time.
    pub(super) async fn ask_hooks(&self, consult: &Consult, cancel: &CancellationToken) -> Vec<HookReport> {
        let _ = (consult, cancel);
        Vec::new()
    }
}
