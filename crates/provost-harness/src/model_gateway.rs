//! The port to the model gateway: the address at which an external agent's program calls models within the run's budget.

use async_trait::async_trait;
use provost_event::{ErrorClass, SessionId};
use tokio::sync::watch;

/// The access of one session's program to the gateway.
#[derive(Clone)]
pub struct GatewayAccess {
    /// The gateway's address, such as `http://127.0.0.1:40123`.
    pub url: String,
    /// The token of the session's program. It is worth nothing elsewhere and after the session has stopped.
    pub token: String,
}

/// The model calls of a session's program, as far as the gateway sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayActivity {
    /// Calls that are open.
    pub open: u32,
    /// Calls that have begun, those included that were refused.
    pub begun: u64,
    /// Calls that have ended with a complete answer.
    pub answered: u64,
    /// The last failure, unless a complete answer has ended after the failed call began.
    pub failure: Option<GatewayFailure>,
}

/// A model call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayFailure {
    /// The class.
    pub class: ErrorClass,
    /// The HTTP status that the program got; absent if the stream broke off.
    pub status: Option<u16>,
    /// The message, without secrets.
    pub message: String,
}

/// Gives the programs of external agents their model endpoint.
#[async_trait]
pub trait ModelGateway: Send + Sync {
    /// Lets the program of `session` call models, from now until [`close`](Self::close). A second call returns the same
    /// access.
    ///
    /// # Errors
    /// When the gateway can't listen; the text says why.
    async fn open(&self, session: SessionId) -> Result<GatewayAccess, String>;

    /// Withdraws the access of the session's program, and returns when each of its calls is charged. Without an access it
    /// does nothing.
    async fn close(&self, session: SessionId);

    /// Follows the calls of the session's program: evidence for what drives it. `None` without an access.
    fn activity(&self, session: SessionId) -> Option<watch::Receiver<GatewayActivity>>;
}
