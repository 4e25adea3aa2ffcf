//! How a service is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_event::{SandboxPolicy, SessionId, Timestamp};
use provost_process::{Confinement, FirstLine, Launch, boot_id, start_detached};

use super::record::{own_namespace, own_stamp};
use super::{ServiceError, ServiceRecord, Services};
use crate::{Clock, SystemClock};

/// Maximum services of one run that run at once.
const RUNNING_MAX: usize = 8;
/// How long a supervisor may take to say that the service runs.
const START_MAX: Duration = Duration::from_secs(15);

/// Starts services under a supervisor: a program that calls [`supervise_service`](super::supervise_service) with the
/// path of a record, its last argument, and then writes a line to its standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceStarter {
    /// Where they are recorded.
    pub services: Services,
    /// The supervisor's program.
    pub program: PathBuf,
    /// Its arguments before the record's path.
    pub args: Vec<OsString>,
    /// How long a service may run at most.
    pub keep: Duration,
}

/// A service to start.
#[derive(Clone)]
pub struct ServiceRequest<'a> {
    /// Its name; otherwise one that follows from its command.
    pub name: Option<&'a str>,
    /// The command line.
    pub command: &'a str,
    /// The shell that runs it.
    pub shell: PathBuf,
    /// Its environment.
    pub env: Vec<(OsString, OsString)>,
    /// The folder that it is started in.
    pub cwd: PathBuf,
    /// The agent's workspace.
    pub workspace: &'a Path,
    /// The agent.
    pub session: SessionId,
    /// What confines it: the agent's policy.
    pub sandbox: SandboxPolicy,
}

impl ServiceStarter {
    /// Starts a service and returns its record, once it runs or has ended at once.
    ///
    /// # Errors
    /// When its name is taken, the run has too many, or it can't be recorded or supervised.
    ///
    /// # Cancellation
    /// Not cancel safe: it may be started.
    pub async fn start(&self, request: ServiceRequest<'_>) -> Result<ServiceRecord, ServiceError> {
        let running = self.services.running_of_run(request.session.run);
        if running.len() >= RUNNING_MAX {
            let names = running.into_iter().map(|service| service.name).collect();
            return Err(ServiceError::TooMany { max: RUNNING_MAX, names });
        }
        let (boot, starter) = boot_id().zip(own_stamp()).ok_or(ServiceError::Unsupported)?;
        let since = SystemClock.now();
        let keep_ms = u64::try_from(self.keep.as_millis()).unwrap_or(u64::MAX);
        let record = ServiceRecord {
            name: String::new(),
            command: request.command.to_owned(),
            shell: request.shell,
            session: request.session,
            workspace: request.workspace.to_owned(),
            cwd: request.cwd.clone(),
            sandbox: request.sandbox,
            log: PathBuf::new(),
            since,
            expires: Timestamp(since.0.saturating_add(keep_ms)),
            keep_ms,
            boot,
            namespace: own_namespace(),
            starter,
            supervisor: None,
            end: None,
        };
        let record = self.services.files.add(request.name, record)?;
        let path = self.services.files.record(&record.name);
        let launch = Launch {
            program: self.program.clone().into(),
            args: self.args.iter().cloned().chain([path.into_os_string()]).collect(),
            env: request.env,
            cwd: request.cwd,
            stdio: FirstLine { within: START_MAX },
            confinement: Confinement::Strongest,
        };
        if let Err(source) = start_detached(launch).await {
            self.services.files.remove(&record);
            return Err(ServiceError::Supervisor { source });
        }
        self.services.files.read(&record.name)
    }
}
