//! Runs as tools of the [Model Context Protocol](https://modelcontextprotocol.io), in its current revision and those
//! before it.
//!
//! A client starts runs, waits for them, reads what they did and spent, speaks to them, pauses and cancels them. It can't
//! approve or deny a call: agents don't approve agents. Each run is worked on by a process of its own, which outlives the
//! client; runs of other processes are acted on through [`Control`](provost_harness::Control).
//!
//! | file | what lives there |
//! |---|---|
//! | `server.rs` | the protocol: all use of its types |
//! | `tools.rs` | the tools: names, descriptions, arguments |
//! | `calls.rs` | what each tool does |
//! | `wait.rs` | waiting for a run |

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "standard output is the protocol's")]

mod calls;
mod server;
mod tools;
mod wait;

use std::path::PathBuf;
use std::sync::Arc;

use provost_harness::{Backend, RunStarts};
use tokio::io::{AsyncRead, AsyncWrite};

/// What a server of tools works with.
pub struct McpServerOptions {
    /// The runs.
    pub backend: Arc<dyn Backend>,
    /// Who the log names for what is done through the tools.
    pub by: String,
    /// Has processes work on runs.
    pub starts: RunStarts,
    /// Where runs work whose request names no folder.
    pub folder: PathBuf,
}

/// Why a server of tools ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpServerError {
    /// The client didn't begin as the protocol has it, or the connection failed.
    #[error("the connection to the MCP client failed: {0}")]
    Connection(String),
}

/// Serves the client at the other end of `input` and `output`, until it ends the connection. Its runs go on.
///
/// # Errors
/// When the connection fails.
///
/// # Cancellation
/// Dropping the future ends the server, and no run.
pub async fn serve(
    options: McpServerOptions,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), McpServerError> {
    server::serve(options, input, output).await
}
