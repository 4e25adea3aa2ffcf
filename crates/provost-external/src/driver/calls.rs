//! The program's model calls as the model gateway sees them.

use std::future::pending;

use provost_harness::GatewayActivity;
use provost_process::ModelConnections;
use tokio::sync::watch;
use tokio::time::Instant;

/// Follows the model calls of one program.
pub(crate) struct CallWatch {
    /// Absent if its calls don't pass the gateway.
    activity: Option<watch::Receiver<GatewayActivity>>,
    last: GatewayActivity,
    changed: Instant,
}

/// What is known of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ModelCalls {
    /// Whether one is open.
    pub(super) is_open: bool,
    /// When one has begun or ended last; the program's start if there was none.
    pub(super) changed: Instant,
}

impl CallWatch {
    pub(crate) fn new(activity: Option<watch::Receiver<GatewayActivity>>) -> Self {
        Self { activity, last: GatewayActivity::default(), changed: Instant::now() }
    }

    /// What is known now.
    pub(super) fn look(&mut self) -> ModelCalls {
        if let Some(activity) = &mut self.activity {
            let now = activity.borrow_and_update().clone();
            if now != self.last {
                (self.last, self.changed) = (now, Instant::now());
            }
        }
        ModelCalls { is_open: self.last.open > 0, changed: self.changed }
    }

    /// Returns when a call begins or ends after the last look.
    pub(super) async fn changes(&mut self) {
        if let Some(activity) = &mut self.activity
            && activity.changed().await.is_ok()
        {
            return;
        }
        pending().await
    }
}

/// What the gateway knows of a program's requests to its model; all of them pass it. What the kernel shows of its other
/// connections (a registry, a server that keeps a request open) says nothing of its model.
pub(super) struct GatewayConnections(pub(super) watch::Receiver<GatewayActivity>);

impl ModelConnections for GatewayConnections {
    fn awaits_answer(&mut self, _processes: &[u32]) -> Option<bool> {
        Some(self.0.borrow().open > 0)
    }

    fn model_calls(&self) -> Option<u64> {
        Some(self.0.borrow().begun)
    }
}
