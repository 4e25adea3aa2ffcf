//! Writes a recording durably.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use provost_event::{ErrorClass, ModelFailure, RunId};

use super::format::{HEADER_BEGINNING, HEADER_BYTES_MAX, Header, NoHeader};

/// A recording's file; opened for each call only, so no handle is held in between.
pub(super) struct Tape {
    path: PathBuf,
    /// Lines that couldn't be written yet.
    waiting: Mutex<Vec<u8>>,
}

impl Tape {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, waiting: Mutex::new(Vec::new()) }
    }

    /// Checks that the file is the recording of `header` and can be written, and appends `lines` durably. Lines
    /// that couldn't be written are kept and written with the next ones.
    ///
    /// # Errors
    /// `InvalidRequest` if the file has other content, which is left unchanged; `Storage` if it can't be written.
    /// With the file and a remedy.
    pub(super) fn append(&self, header: &Header, lines: &[u8]) -> Result<(), ModelFailure> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend_from_slice(lines);
        let mut file = open(&self.path).map_err(|error| self.unwritable(&error))?;
        let end = self.end_of_whole_lines(&file, header)?;
        let mut bytes = Vec::new();
        if end == 0 {
            bytes.extend(line(header).map_err(|error| self.unwritable(&error))?);
        }
        bytes.extend_from_slice(&waiting);
        put(&mut file, end, &bytes).map_err(|error| self.unwritable(&error))?;
        waiting.clear();
        Ok(())
    }

    /// The position of the next line: after the last complete one, since a line that was being written when its
    /// process was killed has no end.
    fn end_of_whole_lines(&self, file: &File, header: &Header) -> Result<u64, ModelFailure> {
        let mut reader = BufReader::new(file);
        let mut first = Vec::new();
        let read = reader.by_ref().take(HEADER_BYTES_MAX).read_until(b'\n', &mut first);
        let is_cut = bytes(read.map_err(|error| self.unwritable(&error))?) == HEADER_BYTES_MAX;
        if !first.ends_with(b"\n") {
            let is_begun = first.starts_with(HEADER_BEGINNING) || HEADER_BEGINNING.starts_with(&first);
            let is_begun = is_begun && !is_cut;
            return if is_begun { Ok(0) } else { Err(self.foreign()) };
        }
        self.check(&Header::read(&first), header)?;
        whole_lines(reader, first.len()).map_err(|error| self.unwritable(&error))
    }

    fn check(&self, found: &Result<Header, NoHeader>, wanted: &Header) -> Result<(), ModelFailure> {
        match found {
            Ok(found) if found.run != wanted.run => Err(self.of_another_run(found.run, wanted.run)),
            Ok(found) if found.model != wanted.model => {
                let (found, wanted) = (&found.model, &wanted.model);
                Err(self.refused(&format!("is a recording of the model `{found}`, and this is `{wanted}`")))
            }
            Ok(_) => Ok(()),
            Err(NoHeader::Foreign) => Err(self.foreign()),
            Err(NoHeader::Newer { needs }) => {
                Err(self.refused(&format!("is a recording of format {needs}, which a newer Provost wrote")))
            }
        }
    }

    fn of_another_run(&self, found: RunId, wanted: RunId) -> ModelFailure {
        self.refused(&format!("is the recording of run {found}, and this is run {wanted}"))
    }

    fn foreign(&self) -> ModelFailure {
        self.refused("is there already and is no recording")
    }

    fn refused(&self, what: &str) -> ModelFailure {
        let file = self.path.display();
        let message = format!("{file} {what}: record to a file of another name, or delete this one");
        ModelFailure::new(ErrorClass::InvalidRequest, message)
    }

    pub(super) fn unwritable(&self, error: &io::Error) -> ModelFailure {
        let file = self.path.display();
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "make the folder",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "make it writable for you",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space",
            _ => "check its path",
        };
        let message =
            format!("can't write the recording {file}: {error}; {remedy}, or record to another file");
        ModelFailure::new(ErrorClass::Storage, message)
    }
}

/// `value` as one line.
pub(super) fn line<T: serde::Serialize>(value: &T) -> io::Result<Vec<u8>> {
    // Raw JSON may have line ends, which in JSON can only be between tokens.
    let mut line = serde_json::to_vec(value)?;
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
    Ok(line)
}

/// Opens or makes the file, readable by its owner only, and locks it for writing until it is closed.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    #[cfg(unix)]
    if file.metadata()?.len() == 0 {
        // It may have been there with another mode.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    match file.lock() {
        // Some network file systems have no locks.
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    }
}

/// Writes `bytes` at `end`, replacing what follows; removes a partial write on failure.
fn put(file: &mut File, end: u64, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    if file.metadata()?.len() > end {
        file.set_len(end)?;
    }
    file.seek(SeekFrom::Start(end))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_data());
    if written.is_err() {
        // If this fails too, the next write begins by truncating it.
        let _ = file.set_len(end);
    }
    written
}

/// Bytes of the complete lines, the first of which was read already and has `first` bytes.
fn whole_lines(mut reader: BufReader<&File>, first: usize) -> io::Result<u64> {
    let len = reader.get_ref().metadata()?.len();
    let mut last = [b'\n'];
    reader.get_mut().seek(SeekFrom::Start(len.saturating_sub(1)))?;
    reader.get_mut().read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(len);
    }
    let mut end = bytes(first);
    reader.seek(SeekFrom::Start(end))?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Ok(end);
        }
        end = end.saturating_add(bytes(read));
    }
}

fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
