//! What can go wrong between settings and a running harness.

use std::io;
use std::path::PathBuf;

use provost_config::{ConfigError, Problems};
use provost_harness::{BackendError, HarnessError};

/// Why something can't be done as it is requested, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Refusal {
    what: String,
    hint: String,
}

impl Refusal {
    /// `what` is wrong, and `hint` is the remedy; empty for none.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }

    /// The remedy; `None` where there is none.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        Some(self.hint.as_str()).filter(|hint| !hint.is_empty())
    }
}

/// A harness can't be assembled from the settings, or a run's settings can't be found out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The request can't be met.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Settings are wrong.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// Settings can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store can't be opened.
    #[error("can't open the store in {}", folder.display())]
    Store {
        /// The folder of the store.
        folder: PathBuf,
        /// Why.
        source: BackendError,
    },
    /// The engine can't be reached.
    #[error("can't reach the engine {url}")]
    Engine {
        /// Where it is.
        url: String,
        /// Why.
        source: BackendError,
    },
    /// No address of this machine can be listened on for the engine's.
    #[error("can't listen on 127.0.0.1 for the engine")]
    Route {
        /// Why.
        source: io::Error,
    },
    /// The backend has failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A run can't be opened.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// A file beside the store can't be written.
    #[error("can't write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The current folder isn't known.
    #[error("the current folder isn't known")]
    CurrentFolder(#[source] io::Error),
}

/// What the user should be told, and no one asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Processes that a killed Provost had left were ended.
    LeftoversEnded {
        /// How many.
        count: usize,
    },
    /// Whether a killed Provost has left processes isn't known, for this reason.
    LeftoversUnknown(String),
    /// The store has lost this.
    StoreLoss(String),
    /// The user couldn't be told of something, in which way and why.
    NotNotified(String),
}
