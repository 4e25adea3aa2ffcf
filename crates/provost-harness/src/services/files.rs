//! The files of services.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use provost_process::LogFile;

use super::{ServiceError, ServiceRecord, ServiceState, StoppedBy};

const RECORD: &str = "json";
const LOG: &str = "log";
const STOP: &str = "stop";
/// Locked while a name is chosen.
const LOCK: &str = ".lock";
const NAME_CHARS_MAX: usize = 32;
/// Services of one name that are tried before the name counts as taken.
const NUMBERED_MAX: u32 = 1_000;

/// The folder with the files of services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceFiles {
    folder: PathBuf,
}

impl ServiceFiles {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of all records, in their order.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let records = paths.filter(|path| path.extension().is_some_and(|end| end == RECORD));
        let names = records.filter_map(|path| path.file_stem()?.to_str().map(str::to_owned));
        let mut names = names.filter(|name| is_name(name)).collect::<Vec<_>>();
        names.sort_unstable();
        names
    }

    pub(super) fn record(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{RECORD}"))
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{LOG}"))
    }

    pub(super) fn read(&self, name: &str) -> Result<ServiceRecord, ServiceError> {
        if !is_name(name) {
            return Err(ServiceError::Unknown { name: name.to_owned() });
        }
        read_record(&self.record(name))
    }

    /// Replaces the record as a whole; it is on disk afterwards.
    pub(super) fn write(&self, record: &ServiceRecord) -> Result<(), ServiceError> {
        let path = self.record(&record.name);
        let text = serde_json::to_vec(record)
            .map_err(|source| ServiceError::Record { path: path.clone(), source })?;
        replace(&path, &text).map_err(|source| ServiceError::File { path, source })
    }

    /// Notes who wants a service to end, for its supervisor.
    pub(super) fn request_stop(&self, name: &str, by: &StoppedBy) -> Result<(), ServiceError> {
        let path = self.folder.join(format!("{name}.{STOP}"));
        let text =
            serde_json::to_vec(by).map_err(|source| ServiceError::Record { path: path.clone(), source })?;
        replace(&path, &text).map_err(|source| ServiceError::File { path, source })
    }

    /// Who wants it to end.
    pub(super) fn stop_request(&self, name: &str) -> Option<StoppedBy> {
        serde_json::from_slice(&fs::read(self.folder.join(format!("{name}.{STOP}"))).ok()?).ok()
    }

    /// Records a new service under the name that is asked for, or else one that follows from its command, in place of
    /// an ended one of that name.
    pub(super) fn add(
        &self,
        asked: Option<&str>,
        mut record: ServiceRecord,
    ) -> Result<ServiceRecord, ServiceError> {
        let file = |source| ServiceError::File { path: self.folder.clone(), source };
        private_folder(&self.folder).map_err(file)?;
        let lock = File::create(self.folder.join(LOCK)).map_err(file)?;
        lock.lock().map_err(file)?;
        record.name = match asked {
            Some(name) if !is_name(name) => return Err(ServiceError::Name { name: name.to_owned() }),
            Some(name) => match self.running(name) {
                Some(other) => {
                    let run = other.session.run;
                    return Err(ServiceError::Taken { name: other.name, command: other.command, run });
                }
                None => name.to_owned(),
            },
            None => self.free_name(&record.command),
        };
        record.log = self.log(&record.name);
        LogFile::remove(&record.log);
        // One that isn't there needn't be removed; one that stays would only name the wrong person.
        let _ = fs::remove_file(self.folder.join(format!("{}.{STOP}", record.name)));
        self.write(&record)?;
        Ok(record)
    }

    fn running(&self, name: &str) -> Option<ServiceRecord> {
        let other = self.read(name).ok()?;
        matches!(other.state(), ServiceState::Running | ServiceState::Starting | ServiceState::Unseen)
            .then_some(other)
    }

    fn free_name(&self, command: &str) -> String {
        let base = name_of(command);
        let numbered = (2..NUMBERED_MAX).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        names.find(|name| self.running(name).is_none()).unwrap_or(base)
    }

    /// Removes what is kept of a service. Returns the bytes of its log.
    pub(super) fn remove(&self, record: &ServiceRecord) -> u64 {
        let log = self.log(&record.name);
        let bytes = fs::metadata(&log).map_or(0, |facts| facts.len());
        LogFile::remove(&log);
        for end in [STOP, RECORD] {
            // A record that stays is only listed longer.
            let _ = fs::remove_file(self.folder.join(format!("{}.{end}", record.name)));
        }
        bytes
    }
}

pub(super) fn read_record(path: &Path) -> Result<ServiceRecord, ServiceError> {
    let text = fs::read(path).map_err(|source| ServiceError::File { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|source| ServiceError::Record { path: path.to_owned(), source })
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
        && name.len() <= NAME_CHARS_MAX
}

/// A name for a command: that of its program.
fn name_of(command: &str) -> String {
    let words = command.split_whitespace().filter(|word| !word.contains('='));
    let program = words.map(|word| word.rsplit('/').next().unwrap_or(word)).next().unwrap_or_default();
    let name = program.to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let name = stem.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    // Room for a number.
    let name = name.take(NAME_CHARS_MAX - 4).collect::<String>();
    if is_name(&name) { name } else { "service".to_owned() }
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut new = OsString::from(path);
    new.push(".new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(new, path)
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders.create(folder)
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn a_service_is_named_after_its_program() {
        let cases = [
            ("python3 -m http.server 8000", "python3"),
            ("PORT=3 ./Serve.sh --now", "serve"),
            ("  /usr/bin/npm start", "npm"),
            ("(sleep 1)", "sleep"),
            ("../…", "service"),
            ("", "service"),
            ("7zip", "service"),
        ];
        for (command, name) in cases {
            assert_eq!(name_of(command), name, "{command}");
        }
    }
}
