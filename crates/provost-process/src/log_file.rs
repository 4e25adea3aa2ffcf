//! The output of a child in a file, of which the end is kept.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The end of the name of the file with what was written before.
const OLDER: &str = ".old";

/// A file that gets all output of a child. Only its owner may read it. Of more than `bytes_max` bytes the end is kept,
/// at least half of that: the first half is in a second file, which has `.old` added to its name and is replaced when
/// the first one has reached the same size again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Where. Its folder must exist.
    pub path: PathBuf,
    /// Maximum bytes of both files together.
    pub bytes_max: u64,
}

/// The end of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// Its last bytes.
    pub bytes: Vec<u8>,
    /// Whether there is more before them.
    pub is_cut: bool,
}

impl LogFile {
    /// Reads at most `bytes_max` bytes of the end of the log at `path`. Blocks.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn read_end(path: &Path, bytes_max: usize) -> io::Result<LogEnd> {
        let (newest, newest_is_cut) = end_of(path, bytes_max)?;
        let room = bytes_max.saturating_sub(newest.len());
        let older = older(path);
        if newest_is_cut || room == 0 || !older.exists() {
            let is_cut = newest_is_cut || older.exists();
            return Ok(LogEnd { bytes: newest, is_cut });
        }
        let (mut bytes, is_cut) = end_of(&older, room)?;
        bytes.extend(newest);
        Ok(LogEnd { bytes, is_cut })
    }

    /// Removes the log at `path`.
    pub fn remove(path: &Path) {
        for file in [path.to_owned(), older(path)] {
            if let Err(error) = fs::remove_file(&file)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, ?file, "a log could not be removed");
            }
        }
    }
}

fn older(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(OLDER);
    name.into()
}

fn end_of(path: &Path, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let wanted = length.min(u64::try_from(bytes_max).unwrap_or(u64::MAX));
    file.seek(SeekFrom::Start(length.saturating_sub(wanted)))?;
    let mut bytes = Vec::new();
    file.take(wanted).read_to_end(&mut bytes)?;
    Ok((bytes, wanted < length))
}

/// Writes a log; after a failure it writes nothing more.
pub(crate) struct LogWriter {
    path: PathBuf,
    half: u64,
    file: Option<File>,
    written: u64,
}

impl LogWriter {
    /// Creates the file, which replaces one of the same name.
    pub(crate) fn create(log: &LogFile) -> io::Result<Self> {
        LogFile::remove(&log.path);
        let file = Some(created(&log.path)?);
        Ok(Self { path: log.path.clone(), half: log.bytes_max / 2, file, written: 0 })
    }

    pub(crate) fn add(&mut self, chunk: &[u8]) {
        if let Err(error) = self.try_add(chunk) {
            tracing::warn!(%error, path = ?self.path, "a child's output can't be logged any more");
            self.file = None;
        }
    }

    fn try_add(&mut self, chunk: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let bytes = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        if self.written > 0 && self.written.saturating_add(bytes) > self.half {
            fs::rename(&self.path, older(&self.path))?;
            *file = created(&self.path)?;
            self.written = 0;
        }
        self.written = self.written.saturating_add(bytes);
        file.write_all(chunk)
    }
}

fn created(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For every limit, the end of the log equals that of all that was written.
    #[test]
    fn the_end_is_kept_at_every_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let text: Vec<u8> = (0..100).collect();
        for bytes_max in [0, 1, 10, 40, 199, 200, 1_000] {
            for step in [1, 7, 33, 100] {
                let mut log = LogWriter::create(&LogFile { path: path.clone(), bytes_max }).unwrap();
                text.chunks(step).for_each(|chunk| log.add(chunk));
                for asked in [0, 1, 5, 50, 200] {
                    let end = LogFile::read_end(&path, asked).unwrap();
                    assert!(
                        text.ends_with(&end.bytes) && end.bytes.len() <= asked,
                        "{bytes_max} {step} {asked}"
                    );
                    let kept = usize::try_from(bytes_max / 2).unwrap().saturating_sub(step);
                    assert!(end.bytes.len() >= asked.min(kept).min(text.len()), "{bytes_max} {step} {asked}");
                    assert!(end.is_cut || end.bytes.len() == text.len() || bytes_max < 200, "{end:?}");
                }
            }
        }
        LogFile::remove(&path);
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}
