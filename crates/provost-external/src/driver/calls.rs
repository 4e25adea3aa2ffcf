//! The program's model calls as the model gateway sees them.

use std::future::pending;

use provost_harness::GatewayActivity;
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
