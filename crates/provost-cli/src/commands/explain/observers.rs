//! How observers fared: they write no log entries, so the process that holds a run keeps this beside the store.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;

use anyhow::Context as _;
use provost_event::RunId;
use provost_harness::RunStatus;
use serde::{Deserialize, Serialize};

use super::say::RuleUse;

/// An observer, and how it fared.
#[derive(Debug, Serialize)]
pub(super) struct Observer {
    pub(super) name: String,
    /// Segments of work, from a start or a resumption to the next suspension or end, that it observed.
    pub(super) stretches: u64,
    /// Events that were delivered to it.
    pub(super) delivered: u64,
    /// Events that were not delivered.
    pub(super) lost: u64,
    pub(super) failed: u64,
    pub(super) panicked: u64,
    pub(super) hung: u64,
    #[serde(flatten)]
    pub(super) standing: RuleUse,
}

/// The result of one segment of work for one observer.
#[derive(Deserialize)]
struct ObserverLine {
    observer: String,
    delivered: u64,
    lost: u64,
    #[serde(default)]
    waiting: u64,
    failed: u64,
    panicked: u64,
    hung: u64,
}

/// The observers of the run `run`, as its file in `folder` has them. A line that can't be read doesn't count.
///
/// # Errors
/// When the file is there and can't be read.
pub(super) fn observers(
    folder: &Path,
    run: RunId,
    status: &RunStatus,
    names: &[String],
) -> anyhow::Result<Vec<Observer>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = names.iter().map(|name| Observer::new(name)).collect::<Vec<_>>();
    let path = folder.join(format!("{run}.jsonl"));
    match File::open(&path) {
        Ok(file) => {
            for line in BufReader::new(file).split(b'\n') {
                let line = line.with_context(|| format!("can't read {}", path.display()))?;
                let Ok(line) = serde_json::from_slice::<ObserverLine>(&line) else { continue };
                if let Some(observer) = all.iter_mut().find(|one| one.name == line.observer) {
                    observer.add(&line);
                }
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
    }
    all.iter_mut().for_each(|observer| observer.standing = observer.stands(status));
    Ok(all)
}

impl Observer {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            stretches: 0,
            delivered: 0,
            lost: 0,
            failed: 0,
            panicked: 0,
            hung: 0,
            standing: RuleUse::NOT_SET,
        }
    }

    const fn add(&mut self, line: &ObserverLine) {
        self.stretches += 1;
        self.delivered = self.delivered.saturating_add(line.delivered);
        self.lost = self.lost.saturating_add(line.lost).saturating_add(line.waiting);
        self.failed = self.failed.saturating_add(line.failed);
        self.panicked = self.panicked.saturating_add(line.panicked);
        self.hung = self.hung.saturating_add(line.hung);
    }

    fn stands(&self, status: &RunStatus) -> RuleUse {
        match (self.stretches, status) {
            (0, RunStatus::Running) => RuleUse::not_reported("the run is being worked on"),
            (0, RunStatus::Interrupted) => {
                RuleUse::not_reported("the process that held the run is gone, or was on another machine")
            }
            (0, RunStatus::Stopped(_)) => {
                RuleUse::not_reported("the process was killed, or worked on another machine")
            }
            _ => RuleUse::of(self.delivered, || "no event reached it".to_owned()),
        }
    }
}
