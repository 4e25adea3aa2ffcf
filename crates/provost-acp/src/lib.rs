//! Provost as an agent of an editor, by version 1 of the [Agent Client Protocol](https://agentclientprotocol.com).
//!
//! A session is a run. A prompt is a message to a run that is worked on, and another segment of one that isn't; each run
//! is worked on by a process of its own, so that it outlives the editor. What the editor is shown is read from the run's
//! log, so a session that is loaded shows what it showed before. The crate holds no run and acts through
//! [`Control`](provost_harness::Control). The editor's file system and terminals aren't used.
//!
//! | file | what lives there |
//! |---|---|
//! | `agent.rs` | the sessions of a connection, and what the editor asks for |
//! | `session.rs` | one session: prompts, and what ends them |
//! | `follow.rs` | the task that reads a run's log for a session |
//! | `live.rs` | answers that are being written |
//! | `questions.rs` | tool calls that need approval |
//! | `updates.rs`, `calls.rs`, `diff.rs` | from entries of the log to what an editor shows |
//! | `ending.rs` | what a run's outcome means for a prompt |
//! | `editor.rs` | the port to the editor |
//! | `protocol.rs` | the protocol: all use of its types |
//! | `transport.rs` | lines in and out, with limits |

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "standard output is the protocol's")]

mod agent;
mod calls;
mod diff;
mod editor;
mod ending;
mod follow;
mod live;
mod protocol;
mod questions;
mod session;
mod transport;
mod updates;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_harness::{Backend, KeepsApproved, RunStarts};
use tokio::io::{AsyncRead, AsyncWrite};

/// What an agent of an editor works with.
pub struct AcpOptions {
    /// The runs.
    pub backend: Arc<dyn Backend>,
    /// Who the log names for what is done through the editor.
    pub by: String,
    /// The folder with the sockets on which processes tell what models are writing.
    pub live: PathBuf,
    /// Has processes work on runs.
    pub starts: RunStarts,
    /// Where approvals for all runs are kept; absent: none is offered.
    pub approved: Option<Arc<dyn KeepsApproved>>,
    /// Which servers of tools agents have anyway.
    pub servers: Arc<dyn TrustedServers>,
}

/// A server of tools that an editor names for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorServer {
    /// Its name.
    pub name: String,
    /// How it is reached; `None`: in a way that Provost doesn't know.
    pub reach: Option<EditorServerReach>,
}

/// How a server of tools is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditorServerReach {
    /// It is started.
    Program {
        /// The program.
        command: PathBuf,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It has an address.
    Address(String),
}

/// Knows the servers of tools that the user has agreed to.
pub trait TrustedServers: Send + Sync {
    /// Whether agents that work in this folder have the tools of such a server already: the settings name it so and reach it
    /// so, and the user has agreed to it.
    fn has(&self, folder: &Path, server: &EditorServer) -> bool;
}

/// Why the conversation with an editor broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcpError {
    /// The connection failed.
    #[error("the connection to the editor failed: {0}")]
    Connection(String),
}

/// Serves the editor at the other end of `input` and `output`, until it ends the connection. Its runs go on.
///
/// # Errors
/// When the connection fails.
///
/// # Cancellation
/// Dropping the future ends the conversation, and no run.
pub async fn serve(
    options: AcpOptions,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), AcpError> {
    protocol::serve(options, input, output).await
}
