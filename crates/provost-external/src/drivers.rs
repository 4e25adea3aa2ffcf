//! One driver a session, from its first exchange until it is closed.

use std::path::PathBuf;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{CallId, ErrorClass, Exit, ModelFailure, SessionId};
use provost_harness::{Exchange, ExternalAgents, ToolOutput};
use tokio_util::sync::CancellationToken;

/// What drivers work with.
#[derive(Debug, Clone)]
pub struct DriversOptions {
    /// The folder for what must be found again after a crash, for sockets by which others attach, and for recordings.
    /// It is made with access for its owner only.
    pub folder: PathBuf,
    /// Whether terminals are recorded.
    pub records: bool,
    /// The environment of programs; their policy's variables come on top. Never give it the keys of providers.
    pub env: Vec<(String, String)>,
}

/// The programs of external agents.
pub struct Drivers {
    options: DriversOptions,
}

impl Drivers {
    /// Drives none yet.
    #[must_use]
    pub const fn new(options: DriversOptions) -> Self {
        Self { options }
    }
}

#[async_trait]
impl ExternalAgents for Drivers {
    async fn exchange(&self, exchange: Exchange<'_>, _: &CancellationToken) -> Result<Answer, ModelFailure> {
        let message =
            format!("`{}` can't be run in {}", exchange.policy.program, self.options.folder.display());
        Err(ModelFailure::new(ErrorClass::Program, message))
    }

    async fn answer(&self, _: SessionId, _: &CallId, _: &CancellationToken) -> ToolOutput {
        ToolOutput::error("There is no program that asks.")
    }

    async fn close(&self, _: SessionId, _: &CancellationToken) -> Option<Exit> {
        None
    }
}
