//! The server of `provost serve`: an API under `/v1`, live events, metrics, and a page, over all runs of a store.
//!
//! It draws the read models of `provost-view` and acts through [`Control`](provost_harness::Control): it decides
//! nothing, holds no run, and can be killed at any moment. It listens on loopback and on a Unix socket; elsewhere only
//! with TLS, where that is asked for.
//!
//! Every request needs a token in its `Authorization` header, or comes from the page with the cookie that a one-time
//! link has set. The page has a host name of its own, made anew at each start: cookies don't tell ports apart, and a
//! program that an agent serves on another port must not get this one.
//!
//! | file | what lives there |
//! |---|---|
//! | `access.rs` | the token, one-time links, the sessions of browsers |
//! | `guard.rs` | what every request passes: host, origin, token or cookie; the headers of every answer |
//! | `listen.rs` | the sockets, and the limits of connections |
//! | `peer.rs` | whether a client was started by a run |
//! | `problem.rs` | errors as problem details |
//! | `terminal.rs`, `terminal/` | the screens of external agents, and their recordings |
//! | `tls.rs`, `access_log.rs` | certificates; a line for each request |
//! | `api/` | the routes under `/v1`, each with what the OpenAPI document says of it |
//! | `page/` | the page: a document for each view, its live sections, its assets |

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "the caller has the terminal")]

mod access;
mod access_log;
mod api;
mod app;
mod guard;
mod health;
mod listen;
mod metrics;
mod page;
mod peer;
mod problem;
mod terminal;
mod tls;

pub use access::{OneTimeLink, Token};
pub use api::openapi;
pub use app::{Listen, ServerOptions};
pub use health::{Health, serve_health};
pub use listen::{Links, Server, ServerError};
pub use tls::TlsFiles;
