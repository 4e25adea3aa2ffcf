//! Which runs the user has looked at, in a file that all programs over one store share.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_event::{RunId, Timestamp};

/// How old what is known of the file may be.
const KNOWN_FOR: Duration = Duration::from_millis(500);
/// Bytes of the file; beyond it begins anew with what is newest.
const BYTES_MAX: u64 = 256 * 1024;

/// A line for each look: the run, and when it had last changed.
#[derive(Debug)]
pub struct SeenFile {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    runs: HashMap<RunId, Timestamp>,
    bytes: u64,
    looked_at: Option<Instant>,
}

impl SeenFile {
    /// The one at this path, which needn't exist.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path, known: Mutex::default() }
    }

    /// Whether the run was looked at as it was when it last changed. Where the file can't be read, it wasn't.
    pub fn has_seen(&self, run: RunId, changed_at: Timestamp) -> bool {
        let mut known = self.known();
        known.look(&self.path);
        known.runs.get(&run).is_some_and(|seen| *seen >= changed_at)
    }

    /// The run was looked at as it was when it last changed.
    ///
    /// # Errors
    /// When that can't be kept; it counts for this process.
    pub fn look_at(&self, run: RunId, changed_at: Timestamp) -> std::io::Result<()> {
        let mut known = self.known();
        known.look(&self.path);
        if known.runs.insert(run, changed_at) == Some(changed_at) {
            return Ok(());
        }
        if known.bytes > BYTES_MAX {
            return known.begin_anew(&self.path);
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        // One write of a short line: those of two processes don't mix.
        file.write_all(line(run, changed_at).as_bytes())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(run: RunId, changed_at: Timestamp) -> String {
    format!("{run} {}\n", changed_at.0)
}

impl Known {
    /// Reads the file again, if it has changed since.
    fn look(&mut self, path: &Path) {
        if self.looked_at.is_some_and(|at| at.elapsed() < KNOWN_FOR) {
            return;
        }
        self.looked_at = Some(Instant::now());
        let bytes = fs::metadata(path).map_or(0, |file| file.len());
        if bytes == self.bytes {
            return;
        }
        self.bytes = bytes;
        let text = fs::read_to_string(path).unwrap_or_default();
        self.runs = text.lines().filter_map(read).collect();
    }

    /// Keeps the newer half.
    fn begin_anew(&mut self, path: &Path) -> std::io::Result<()> {
        let mut newest = self.runs.iter().map(|(run, at)| (*at, *run)).collect::<Vec<_>>();
        newest.sort_unstable();
        let kept = newest.split_off(newest.len() / 2);
        self.runs = kept.iter().map(|(at, run)| (*run, *at)).collect();
        let text = kept.into_iter().map(|(at, run)| line(run, at)).collect::<String>();
        let written = path.with_extension("new");
        File::create(&written)?.write_all(text.as_bytes())?;
        self.bytes = text.len() as u64;
        fs::rename(written, path)
    }
}

fn read(line: &str) -> Option<(RunId, Timestamp)> {
    let (run, at) = line.split_once(' ')?;
    Some((run.parse().ok()?, Timestamp(at.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_process_looked_at_another_one_knows_until_the_run_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen");
        let (one, other) = (SeenFile::at(path.clone()), SeenFile::at(path.clone()));
        let run = RunId::from_entropy(7);
        assert!(!one.has_seen(run, Timestamp(5)));
        one.look_at(run, Timestamp(5)).unwrap();
        assert!(one.has_seen(run, Timestamp(5)) && other.has_seen(run, Timestamp(5)));
        assert!(!other.has_seen(run, Timestamp(6)), "it has changed since");
        fs::write(&path, "no line\n\u{1b}[2J x\n").unwrap();
        assert!(!SeenFile::at(path).has_seen(run, Timestamp(5)));
    }

    #[test]
    fn a_long_file_begins_anew_with_what_is_newest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen");
        let all = (0..20_000).map(|number| line(RunId::from_entropy(number), Timestamp(number)));
        fs::write(&path, all.collect::<String>()).unwrap();
        let seen = SeenFile::at(path.clone());
        seen.look_at(RunId::from_entropy(30_000), Timestamp(30_000)).unwrap();
        assert!(fs::metadata(&path).unwrap().len() < BYTES_MAX);
        let again = SeenFile::at(path);
        assert!(again.has_seen(RunId::from_entropy(30_000), Timestamp(30_000)));
        assert!(again.has_seen(RunId::from_entropy(19_999), Timestamp(19_999)));
        assert!(!again.has_seen(RunId::from_entropy(1), Timestamp(1)));
    }
}
