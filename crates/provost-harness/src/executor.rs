//! Performs effects.

use async_trait::async_trait;
use provost_engine::{Effect, Event};
use provost_event::EffectId;
use tokio_util::sync::CancellationToken;

/// Performs effects. A home calls it at least once for each; the id is the idempotency key.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Performs `effect` and returns what happened as the event to post. Never called for timers.
    ///
    /// # Cancellation
    /// When `cancel` fires it ends what it does and returns soon, with an event that says so. Dropping the
    /// future ends it too, with nothing left running, but then nobody is told.
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event;
}
