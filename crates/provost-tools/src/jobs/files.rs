//! What is kept of each job beside its log, so that it can be told after Provost's process is gone.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use provost_event::{EndedCommand, SessionId};
use provost_process::{Ending, Finished, LogFile, MAYBE_LEFT};
use serde::{Deserialize, Serialize};

/// Maximum characters of a command where jobs are named.
const COMMAND_CHARS_MAX: usize = 80;

const PREFIX: &str = "job";

/// The name of a job: `job` and a number, unique in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobName(pub(super) u32);

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

impl FromStr for JobName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.strip_prefix(PREFIX).and_then(|number| number.parse().ok()).map(Self).ok_or(())
    }
}

/// A job that was started, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownJob {
    pub(super) name: JobName,
    pub(super) record: JobRecord,
}

impl fmt::Display for KnownJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        in_words(f, self.name, &self.record.command)
    }
}

fn in_words(f: &mut impl fmt::Write, name: JobName, command: &str) -> fmt::Result {
    let first = command.trim().lines().next().unwrap_or_default();
    let shown = first.chars().take(COMMAND_CHARS_MAX).collect::<String>();
    let more = if shown.len() < command.trim().len() { " …" } else { "" };
    write!(f, "{name} (`{shown}{more}`)")
}

/// The record of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobRecord {
    pub(super) command: String,
    /// Absent until its end was observed.
    pub(super) end: Option<JobEnd>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobEnd {
    /// In words.
    how: String,
    secs: u64,
    /// How it ended by itself; absent if it was stopped, or couldn't be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by_itself: Option<OwnEnd>,
}

/// How a command ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OwnEnd {
    Exited(i32),
    Signalled,
}

impl JobEnd {
    pub(super) fn of(finished: &Finished, duration: Duration) -> Self {
        let how = match finished.ending {
            Ending::Exited(status) => format!("ended with exit status {status}"),
            Ending::Signalled(signal) => format!("ended by signal {signal}"),
            Ending::Cancelled | Ending::TimedOut => "stopped as you asked".to_owned(),
        };
        let left = if finished.is_all_ended { String::new() } else { format!(" [{MAYBE_LEFT}]") };
        let by_itself = match finished.ending {
            Ending::Exited(status) => Some(OwnEnd::Exited(status)),
            Ending::Signalled(_) => Some(OwnEnd::Signalled),
            Ending::Cancelled | Ending::TimedOut => None,
        };
        Self { how: how + &left, secs: duration.as_secs(), by_itself }
    }

    /// The end of `command`, if it came by itself.
    pub(super) fn of_command(&self, command: &str) -> Option<EndedCommand> {
        let exit_status = match self.by_itself? {
            OwnEnd::Exited(status) => Some(status),
            OwnEnd::Signalled => None,
        };
        Some(EndedCommand { command: command.to_owned(), exit_status })
    }

    /// The same, where it couldn't be recorded.
    pub(super) fn unrecorded(&self, error: &io::Error) -> Self {
        Self { how: format!("{} [this couldn't be recorded: {error}]", self.how), ..self.clone() }
    }

    pub(super) fn not_started(why: String) -> Self {
        Self { how: format!("couldn't be started: {why}"), secs: 0, by_itself: None }
    }
}

/// What is known of a job now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobState {
    Running(Duration),
    Ended(JobEnd),
    /// It ran when its agent was suspended or Provost's process ended, and ended with that.
    EndedWithRun,
}

impl JobState {
    pub(super) const fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(since) => write!(f, "running for {} s", since.as_secs()),
            Self::Ended(JobEnd { how, secs, .. }) => write!(f, "{how}, after {secs} s"),
            Self::EndedWithRun => f.write_str(
                "no longer running: it was not seen to end before you were suspended or interrupted, which ended it",
            ),
        }
    }
}

/// The files of the jobs of one session.
pub(super) struct JobFiles<'f> {
    pub(super) folder: &'f Path,
    pub(super) session: SessionId,
}

impl JobFiles<'_> {
    pub(super) fn log(&self, name: JobName) -> PathBuf {
        self.folder.join(format!("{}-{name}.log", self.session))
    }

    fn record(&self, name: JobName) -> PathBuf {
        self.folder.join(format!("{}-{name}.json", self.session))
    }

    /// Replaces the record as a whole.
    pub(super) fn write(&self, name: JobName, record: &JobRecord) -> io::Result<()> {
        let path = self.record(name);
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_vec(record)?)?;
        fs::rename(new, path)
    }

    pub(super) fn read(&self, name: JobName) -> Option<KnownJob> {
        let text = fs::read(self.record(name)).ok()?;
        let record = serde_json::from_slice(&text).ok()?;
        Some(KnownJob { name, record })
    }

    /// The jobs with a record, oldest first.
    pub(super) fn names(&self) -> Vec<JobName> {
        let prefix = format!("{}-", self.session);
        let entries = fs::read_dir(self.folder).into_iter().flatten().flatten();
        let files = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names = files
            .filter_map(|file| file.strip_prefix(&prefix)?.strip_suffix(".json")?.parse().ok())
            .collect::<Vec<JobName>>();
        names.sort_unstable();
        names
    }

    pub(super) fn remove(&self, name: JobName) {
        LogFile::remove(&self.log(name));
        // One that stays is only listed longer.
        let _ = fs::remove_file(self.record(name));
    }
}
