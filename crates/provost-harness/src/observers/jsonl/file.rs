//! A file for appending lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Maximum buffered bytes.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// Why lines couldn't be written.
#[derive(Debug, thiserror::Error)]
#[error("can't write the trace {path}: {lines} lines are dropped", path = path.display())]
pub(super) struct FileError {
    path: PathBuf,
    lines: usize,
    #[source]
    source: io::Error,
}

/// Whole lines, buffered and written at once, so that several processes may write to one file.
pub(super) struct LineFile {
    path: PathBuf,
    /// Opened with the first lines; closed after a failure, so that a removed or replaced file is noticed.
    file: Option<File>,
    held: Vec<u8>,
    lines: usize,
}

impl LineFile {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, file: None, held: Vec::new(), lines: 0 }
    }

    /// Appends `line` to the buffer, and writes the buffer when it is full.
    pub(super) fn add(&mut self, line: &str) -> Result<(), FileError> {
        self.held.extend_from_slice(line.as_bytes());
        self.held.push(b'\n');
        self.lines += 1;
        if self.held.len() < HELD_BYTES_MAX { Ok(()) } else { self.flush() }
    }

    /// Writes the buffer, or drops it if that fails.
    pub(super) fn flush(&mut self) -> Result<(), FileError> {
        if self.held.is_empty() {
            return Ok(());
        }
        let written = self.write();
        if written.is_err() {
            self.file = None;
        }
        let lines = std::mem::take(&mut self.lines);
        self.held.clear();
        // The buffer's memory isn't kept after one very long line.
        self.held.shrink_to(2 * HELD_BYTES_MAX);
        written.map_err(|source| FileError { path: self.path.clone(), lines, source })
    }

    fn write(&mut self) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            return file.write_all(&self.held);
        }
        let mut file = open(&self.path)?;
        // If two writers find an unterminated line, only one terminates it.
        let is_locked = file.lock().is_ok();
        if file.metadata()?.is_file() && !ends_with_line_end(&self.path)? {
            self.held.insert(0, b'\n');
        }
        file.write_all(&self.held)?;
        if is_locked {
            file.unlock()?;
        }
        self.file = Some(file);
        Ok(())
    }
}

/// Opens or creates the file, accessible only to the owner.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether the last line is terminated, which it may not be after a full disk or a kill.
fn ends_with_line_end(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
