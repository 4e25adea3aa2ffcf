//! The access log: a line of JSON for each request, without tokens, codes and bodies.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use provost_event::Timestamp;
use serde::Serialize;

/// Bytes of the file; then it becomes `NAME.1`, and a new one begins.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A request that was answered.
#[derive(Debug, Serialize)]
pub(crate) struct Access<'a> {
    pub(crate) at_ms: Timestamp,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    /// How long it took until the answer began.
    pub(crate) ms: u64,
    /// `token`, `page`, or `none`.
    pub(crate) by: &'a str,
}

/// The file.
pub(crate) struct AccessLog {
    path: PathBuf,
    open: Mutex<Option<(File, u64)>>,
}

impl AccessLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, open: Mutex::default() }
    }

    /// Adds a line. What can't be written is lost, and the request is answered all the same.
    pub(crate) fn add(&self, access: &Access<'_>) {
        let Ok(mut line) = serde_json::to_vec(access) else { return };
        line.push(b'\n');
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_some_and(|(_, bytes)| *bytes >= FILE_BYTES_MAX) {
            *open = None;
            let _ = std::fs::rename(&self.path, self.path.with_extension("log.1"));
        }
        if open.is_none() {
            *open = open_file(&self.path);
        }
        if let Some((file, bytes)) = open.as_mut() {
            *bytes += line.len() as u64;
            let _ = file.write_all(&line);
        }
    }
}

fn open_file(path: &Path) -> Option<(File, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).ok()?;
    let bytes = file.metadata().map_or(0, |facts| facts.len());
    Some((file, bytes))
}

/// Milliseconds, for the log.
pub(crate) fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use provost_event::Timestamp;

    use super::{Access, AccessLog, FILE_BYTES_MAX};

    #[test]
    fn a_full_log_becomes_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, vec![b' '; usize::try_from(FILE_BYTES_MAX).unwrap()]).unwrap();
        let log = AccessLog::new(path.clone());
        let access = Access { at_ms: Timestamp(1), method: "GET", path: "/", status: 200, ms: 2, by: "page" };
        log.add(&access);
        log.add(&access);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "{\"at_ms\":1,\"method\":\"GET\",\"path\":\"/\",\"status\":200,\"ms\":2,\"by\":\"page\"}\n"
        );
        let before = std::fs::read_to_string(folder.path().join("access.log.1")).unwrap();
        assert!(before.trim_start().starts_with("{\"at_ms\":1,"), "one fitted in");
    }
}
