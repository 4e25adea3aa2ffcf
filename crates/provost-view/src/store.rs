//! What was done to the store, or found in it.

use std::path::PathBuf;

use provost_event::RunId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;

/// A backup of the whole store, which was checked after it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreBackup {
    /// The version of the view.
    pub v: ViewVersion,
    /// The file.
    pub file: PathBuf,
    /// Number of runs in it.
    pub runs: usize,
    /// Number of entries of all logs.
    pub entries: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// What a check of the whole store found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedStore {
    /// The version of the view.
    pub v: ViewVersion,
    /// The database.
    pub database: PathBuf,
    /// Whether nothing is lost.
    pub whole: bool,
    /// Number of runs.
    pub runs: usize,
    /// Number of entries that were read, of all logs.
    pub entries: u64,
    /// Number of outputs and pictures beside the logs.
    pub outputs: u64,
    /// Size of the database with its log of writes.
    pub bytes: u64,
    /// Free bytes among them, which later writes use.
    pub free_bytes: u64,
    /// Entries that were acknowledged and weren't there when the database was opened; null if there are none, or if
    /// they were taken note of.
    pub lost_entries: Option<u64>,
    /// What is damaged.
    pub problems: Vec<FoundProblem>,
    /// The damaged runs that were written to files, where that was asked for.
    pub salvaged: Vec<SalvagedRun>,
}

/// Something that is damaged in a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundProblem {
    /// What it is, with its run and entry where it has one.
    pub what: String,
    /// Whether something is lost by it; otherwise it is made anew from the logs.
    pub lost: bool,
}

/// A damaged run, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SalvagedRun {
    /// The run.
    pub run: RunId,
    /// Where it is; null if nothing of it could be written.
    pub file: Option<PathBuf>,
    /// Why nothing of it could be written; null if it was.
    pub error: Option<String>,
    /// What it is without, each with its log and entry.
    pub lost: Vec<String>,
}

/// The runs that were removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrunedRuns {
    /// The version of the view.
    pub v: ViewVersion,
    /// The runs to remove, the newest first.
    pub planned: Vec<RunId>,
    /// The runs that match but stay.
    pub kept: Vec<KeptRun>,
    /// What was removed; null where nothing was.
    pub removed: Option<RemovedRuns>,
}

/// A run that matches but stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptRun {
    /// The run.
    pub run: RunId,
    /// Why it stays.
    pub why: String,
}

/// What was removed from a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedRuns {
    /// The runs, the newest first.
    pub runs: Vec<RunId>,
    /// Number of outputs and pictures that nothing refers to any more.
    pub outputs: usize,
    /// Bytes that were freed, in the store and of files beside it.
    pub freed_bytes: u64,
    /// Size of the store now.
    pub bytes: u64,
    /// Why outputs that aren't needed stay; null if they don't.
    pub outputs_stay: Option<String>,
    /// Why the space wasn't given back yet; null if it was. Later writes use it.
    pub space_stays: Option<String>,
}
