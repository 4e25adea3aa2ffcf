//! What is recorded of a service.

use std::fmt;
use std::path::PathBuf;

use provost_event::{ProcessStamp, SandboxPolicy, ServiceKept, SessionId, Timestamp};
use provost_process::{ProcessIdentity, boot_id};
use serde::{Deserialize, Serialize};

/// The record of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// Its name, unique among the services that run.
    pub name: String,
    /// The command line.
    pub command: String,
    /// The shell that runs it.
    pub shell: PathBuf,
    /// The agent that started it.
    pub session: SessionId,
    /// That agent's workspace.
    pub workspace: PathBuf,
    /// The folder that it was started in.
    pub cwd: PathBuf,
    /// What confines it, in a box of its own.
    #[serde(default, skip_serializing_if = "SandboxPolicy::is_off")]
    pub sandbox: SandboxPolicy,
    /// The file with its output.
    pub log: PathBuf,
    /// When it was started.
    pub since: Timestamp,
    /// When it is ended at the latest, by the wall clock at its start.
    pub expires: Timestamp,
    /// How long it may run, in milliseconds of its supervisor's monotonic clock.
    pub keep_ms: u64,
    /// The boot that the ids and start times of processes belong to.
    pub boot: String,
    /// The process namespace that these ids belong to; absent where the system has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The process that started the supervisor.
    pub starter: ProcessStamp,
    /// Its supervisor; absent until that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<ProcessStamp>,
    /// How it ended; absent until its supervisor has seen it end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ServiceEnd>,
}

/// The end of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceEnd {
    /// How, in words that follow its name.
    pub how: String,
    /// When.
    pub at: Timestamp,
    /// Whether its agent has ended it.
    #[serde(default)]
    pub by_agent: bool,
}

/// What is known of a service now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceState {
    /// Its supervisor is being started.
    Starting,
    /// It runs.
    Running,
    /// Its supervisor has seen it end.
    Ended(ServiceEnd),
    /// It was started in another process namespace, whose processes aren't seen here, and isn't recorded as ended.
    Unseen,
    /// Its supervisor is gone without a word, and the service with it.
    Lost,
}

impl fmt::Display for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "is being started",
            Self::Running => "runs",
            Self::Ended(end) => &end.how,
            Self::Unseen => "isn't recorded as ended; its processes can't be seen from here",
            Self::Lost => "has ended: its supervisor was killed, or the machine was restarted",
        })
    }
}

/// Who ends a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// The agent that started it, or another one of its run.
    Agent,
    /// The user or program that gave this command.
    Command(String),
}

impl ServiceRecord {
    /// What is known of it now. Looks at the system's processes.
    #[must_use]
    pub fn state(&self) -> ServiceState {
        if let Some(end) = &self.end {
            return ServiceState::Ended(end.clone());
        }
        if self.namespace.is_some() && self.namespace != own_namespace() {
            return ServiceState::Unseen;
        }
        let lives = |stamp| self.of_this_boot(stamp).is_some_and(ProcessIdentity::exists);
        match self.supervisor {
            Some(supervisor) if lives(supervisor) => ServiceState::Running,
            None if lives(self.starter) => ServiceState::Starting,
            Some(_) | None => ServiceState::Lost,
        }
    }

    /// What the log says of it; `None` until its supervisor runs.
    #[must_use]
    pub fn kept(&self) -> Option<ServiceKept> {
        Some(ServiceKept {
            name: self.name.clone(),
            command: self.command.clone(),
            supervisor: self.supervisor?,
            log: self.log.display().to_string(),
            expires: self.expires,
        })
    }

    /// Its supervisor, if that still is a process and the service hasn't ended.
    pub(super) fn living_supervisor(&self) -> Option<ProcessIdentity> {
        let supervisor = self.supervisor.filter(|_| self.end.is_none())?;
        self.of_this_boot(supervisor).filter(|process| process.exists())
    }

    /// The process, unless the machine was restarted: then the id and start time may be another one's.
    fn of_this_boot(&self, stamp: ProcessStamp) -> Option<ProcessIdentity> {
        let is_this_boot = boot_id().is_some_and(|boot| boot == self.boot);
        is_this_boot.then_some(ProcessIdentity { pid: stamp.pid, started: stamp.started })
    }
}

/// This process.
pub(super) fn own_stamp() -> Option<ProcessStamp> {
    ProcessIdentity::own().map(|own| ProcessStamp { pid: own.pid, started: own.started })
}

/// The process namespace of this process, where the system has such.
pub(super) fn own_namespace() -> Option<String> {
    std::fs::read_link("/proc/self/ns/pid").ok().map(|name| name.to_string_lossy().into_owned())
}
