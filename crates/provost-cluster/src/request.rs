//! What a cluster is started with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a cluster is to be made of, and with which programs.
#[derive(Debug, Clone)]
pub struct UpRequest<'a> {
    /// Nodes of the engine, at least 1. A cluster that is there keeps its number; `None`: that one, or 1.
    pub nodes: Option<usize>,
    /// Workers; a cluster that has more ends the others. `None`: as many as it has, or 1.
    pub workers: Option<usize>,
    /// The engine's server.
    pub server: &'a Path,
    /// The environment of the nodes: what they need for `snapshots`.
    pub env: Vec<(OsString, OsString)>,
    /// Where the nodes write snapshots. Those that run already keep to what they had until they start again.
    pub snapshots: Snapshots,
    /// The workers' program.
    pub worker: WorkerProgram,
}

/// Where nodes write snapshots of their data. Without a bucket they keep their whole log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Snapshots {
    /// Where the cluster has them; nowhere for a new one.
    #[default]
    AsBefore,
    /// Nowhere.
    Off,
    /// To this bucket, `s3://BUCKET/PREFIX`.
    To(String),
}

/// How a worker is started. It gets further arguments: `--name=NAME`, `--listen=ADDRESS`, `--shared=ADDRESS`,
/// `--health=ADDRESS`, and one that names its cluster, which it ignores: `--member=PATH`.
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub args: Vec<OsString>,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// The folder it starts in.
    pub cwd: PathBuf,
}
