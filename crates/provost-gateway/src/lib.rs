//! The model gateway: a loopback endpoint that speaks the providers' wire formats, for the programs of external agents.
//!
//! A request is identified by the token of its session's program. Its budget is reserved on the run's ledger by an event
//! of the session, like that of any model call; its output cap is lowered to what was granted; then it is forwarded to the
//! configured provider with the real key, and the answer passes back byte for byte. The usage is read from the answer with
//! the readers of native agents, and settled. The gateway decides nothing about budgets and retries nothing.

mod activity;
mod answer;
mod budget;
mod connection;
mod estimate;
mod gateway;
mod json;
mod limits;
mod pump;
mod refusal;
mod replay;
mod request;
mod route;
mod server;
mod session;
mod source;
mod usage_filter;

pub use gateway::{Gateway, GatewayOptions, GatewayProviders};
pub use limits::GatewayLimits;
