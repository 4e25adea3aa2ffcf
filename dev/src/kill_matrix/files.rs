//! The files of one run: what its processes record for the checks from outside.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use provost_event::Outcome;
use serde::{Deserialize, Serialize};

use super::on_engine::RunEngine;

/// The end or suspension of the run, as one process saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FinalState {
    pub(super) outcome: Outcome,
    /// The agent's final answer.
    pub(super) text: String,
    /// The kinds of entries in each transaction of this process.
    pub(super) commits: Vec<Vec<String>>,
    /// Its tools' effects.
    pub(super) effects: usize,
    /// Questions that another process answered while it worked.
    #[serde(default)]
    pub(super) answers: usize,
}

/// The files of one run, all in one folder.
#[derive(Debug, Clone)]
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    /// The files in `folder`, which is created if it is missing.
    ///
    /// # Errors
    /// When it can't be.
    pub(super) fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder.join("work"))?;
        Ok(Self { folder: folder.canonicalize()? })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn database(&self) -> PathBuf {
        self.folder.join("state").join("provost.db")
    }

    /// Where the agent works.
    pub(super) fn workspace(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// A line for each effect of a tool.
    pub(super) fn effects(&self) -> PathBuf {
        self.folder.join("effects.txt")
    }

    /// A line for each hook call: its hook point.
    pub(super) fn hooks(&self) -> PathBuf {
        self.folder.join("hooks.txt")
    }

    /// A line for each call of a judge.
    pub(super) fn judges(&self) -> PathBuf {
        self.folder.join("judges.txt")
    }

    /// A line for each record that a subscriber got.
    pub(super) fn shown(&self) -> PathBuf {
        self.folder.join("shown.jsonl")
    }

    /// A line for each request that was wrong.
    pub(super) fn complaints(&self) -> PathBuf {
        self.folder.join("complaints.txt")
    }

    /// Exists once the model has failed on an answer to an agent.
    pub(super) fn trouble(&self, agent: u32, answer: u32) -> PathBuf {
        self.folder.join(format!("trouble-{agent}-{answer}"))
    }

    fn engine_file(&self) -> PathBuf {
        self.folder.join("engine.json")
    }

    /// Notes that the run is on an engine.
    pub(super) fn keep_engine(&self, engine: &RunEngine) -> Result<()> {
        Ok(fs::write(self.engine_file(), serde_json::to_vec(engine)?)?)
    }

    /// The engine that the run is on; `None` if it is in a store.
    pub(super) fn engine(&self) -> Result<Option<RunEngine>> {
        match fs::read(self.engine_file()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).context("engine.json")?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn rest(&self) -> PathBuf {
        self.folder.join("rest.json")
    }

    pub(super) fn complain(&self, what: &str) {
        // A write error can't be reported here; the check of the run's text would fail.
        let _ = append(&self.complaints(), what);
    }

    pub(super) fn forget_rest(&self) {
        let _ = fs::remove_file(self.rest());
    }

    pub(super) fn keep_final_state(&self, rest: &FinalState) -> Result<()> {
        Ok(fs::write(self.rest(), serde_json::to_vec(rest)?)?)
    }

    /// The report of a process that saw the run suspended or ended.
    pub(super) fn read_final_state(&self) -> Result<Option<FinalState>> {
        match fs::read(self.rest()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).context("rest.json")?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Adds a line to a file, at once.
pub(super) fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// The lines of a file; none if it doesn't exist.
pub(super) fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether this is the first time, also among processes.
pub(super) fn once(path: &Path) -> bool {
    OpenOptions::new().create_new(true).write(true).open(path).is_ok()
}
