//! The files of a cluster.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::plan::{ClusterPlan, VERSION};
use crate::{ClusterError, Role};

const PLAN: &str = "cluster.json";
const LOCK: &str = "lock";
const IDENTITY: &str = "identity.pem";
const BLOBS: &str = "blobs";
/// A log longer than this is put aside when its program is started.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of a log that an error shows.
const TAIL_BYTES: u64 = 4 * 1024;
const TAIL_LINES: usize = 15;

/// The folder of a cluster. Only its user may read it.
#[derive(Debug, Clone)]
pub(crate) struct ClusterFolder(pub(crate) PathBuf);

/// A node or worker that was started.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) role: Role,
}

impl ClusterFolder {
    /// Makes it, and keeps other commands from changing it until the lock is dropped.
    pub(crate) fn lock(&self) -> Result<File, ClusterError> {
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        folders.create(&self.0).map_err(|source| failed("make", &self.0, source))?;
        let path = self.0.join(LOCK);
        let open = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = open.map_err(|source| failed("open", &path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(fs::TryLockError::WouldBlock) => Err(ClusterError::Busy { folder: self.0.clone() }),
            Err(fs::TryLockError::Error(source)) => Err(failed("lock", &path, source)),
        }
    }

    /// What the cluster is made of; `None` if there is none.
    pub(crate) fn plan(&self) -> Result<Option<ClusterPlan>, ClusterError> {
        let path = self.0.join(PLAN);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed("read", &path, source)),
        };
        let damaged = |why: String| ClusterError::Damaged { path: path.clone(), why };
        let plan: ClusterPlan = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if plan.version != VERSION {
            return Err(damaged(format!("its version is {}, not {VERSION}", plan.version)));
        }
        Ok(Some(plan))
    }

    /// Whether there is one, also if it can't be read.
    pub(crate) fn has_plan(&self) -> bool {
        self.0.join(PLAN).exists()
    }

    /// The members that were ever started, whatever the plan says: each has a log, and a node a configuration.
    pub(crate) fn members(&self) -> Result<Vec<Member>, ClusterError> {
        let list = || -> io::Result<Vec<Member>> {
            let mut members = Vec::new();
            for entry in fs::read_dir(&self.0)? {
                let name = entry?.file_name();
                if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".log")) {
                    let is_node = self.0.join(Self::config_name(name)).exists();
                    let role = if is_node { Role::Node } else { Role::Worker };
                    members.push(Member { name: name.to_owned(), role });
                }
            }
            members.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(members)
        };
        list().map_err(|source| failed("list", &self.0, source))
    }

    pub(crate) fn keep_plan(&self, plan: &ClusterPlan) -> Result<(), ClusterError> {
        let path = self.0.join(PLAN);
        let text = serde_json::to_string_pretty(plan)
            .map_err(|error| ClusterError::Damaged { path: path.clone(), why: error.to_string() })?;
        self.replace(PLAN, &format!("{text}\n"))
    }

    pub(crate) fn keep_identity(&self, pem: &str) -> Result<(), ClusterError> {
        self.replace(IDENTITY, pem)
    }

    /// Puts a file with this text in its place, whole or not at all.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<(), ClusterError> {
        let (path, new) = (self.0.join(name), self.0.join(format!("{name}.new")));
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|source| failed("write", &path, source))
    }

    pub(crate) fn identity(&self) -> PathBuf {
        self.0.join(IDENTITY)
    }

    /// Where large bodies are kept.
    pub(crate) fn blobs(&self) -> PathBuf {
        self.0.join(BLOBS)
    }

    pub(crate) fn config_name(node: &str) -> String {
        format!("{node}.toml")
    }

    /// The argument that a node's process has, and no other one.
    pub(crate) fn node_argument(&self, node: &str) -> OsString {
        argument("--config-file=", &self.0.join(Self::config_name(node)))
    }

    /// The argument that a worker's process has, and no other one.
    pub(crate) fn worker_argument(&self, worker: &str) -> OsString {
        argument("--member=", &self.0.join(worker))
    }

    pub(crate) fn log(&self, member: &str) -> PathBuf {
        self.0.join(format!("{member}.log"))
    }

    /// The log of a member, for what is started now.
    pub(crate) fn open_log(&self, member: &str) -> Result<File, ClusterError> {
        let path = self.log(member);
        let open = || {
            if fs::metadata(&path).is_ok_and(|facts| facts.len() > LOG_BYTES_MAX) {
                fs::rename(&path, path.with_extension("log.old"))?;
            }
            OpenOptions::new().append(true).create(true).mode(0o600).open(&path)
        };
        open().map_err(|source| failed("open", &path, source))
    }

    /// The last lines of a member's log.
    pub(crate) fn tail(&self, member: &str) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(self.log(member))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
            let text = String::from_utf8_lossy(&bytes);
            let lines = text.lines().collect::<Vec<_>>();
            let from = lines.len().saturating_sub(TAIL_LINES);
            Ok(lines.get(from..).unwrap_or_default().join("\n"))
        };
        read().unwrap_or_else(|error| format!("(it can't be read: {error})"))
    }

    /// Removes everything, the lock last.
    pub(crate) fn remove(&self) -> Result<(), ClusterError> {
        fs::remove_dir_all(&self.0).map_err(|source| failed("remove", &self.0, source))
    }
}

fn argument(option: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(option);
    argument.push(path);
    argument
}

fn failed(attempt: &'static str, path: &Path, source: io::Error) -> ClusterError {
    ClusterError::Folder { attempt, path: path.to_owned(), source }
}
