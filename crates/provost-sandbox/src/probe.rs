//! What a machine can do for sandboxes, and what to change.

use std::path::PathBuf;

use serde::Serialize;

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Probe {
    /// The program that makes the box.
    pub bwrap: Option<PathBuf>,
    /// One by one.
    pub findings: Vec<Finding>,
}

/// One thing that a sandbox needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub what: String,
    /// How it is.
    pub state: FindingState,
    /// What was found.
    pub found: String,
    /// What to change; empty if nothing has to be.
    pub remedy: String,
}

/// How something is that a sandbox needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingState {
    /// As it should be.
    Fine,
    /// Worth knowing.
    Note,
    /// No sandbox is possible.
    Missing,
}

impl Finding {
    pub(crate) fn fine(what: &str, found: &str) -> Self {
        Self::new(FindingState::Fine, what, found, "")
    }

    pub(crate) fn note(what: &str, found: &str, remedy: &str) -> Self {
        Self::new(FindingState::Note, what, found, remedy)
    }

    pub(crate) fn missing(what: &str, found: &str, remedy: &str) -> Self {
        Self::new(FindingState::Missing, what, found, remedy)
    }

    fn new(state: FindingState, what: &str, found: &str, remedy: &str) -> Self {
        Self { what: what.to_owned(), state, found: found.to_owned(), remedy: remedy.to_owned() }
    }
}

impl Probe {
    /// Why no sandbox is possible, with the remedy; `None` if nothing speaks against one.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        let missing = self.findings.iter().find(|finding| finding.state == FindingState::Missing)?;
        Some(format!("{}: {} ({})", missing.what, missing.found, missing.remedy))
    }
}
