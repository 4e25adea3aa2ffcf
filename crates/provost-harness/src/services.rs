//! Services: commands of agents that go on after the run, each under a supervisor process of its own.
//!
//! ```text
//! a tool ──start──▶ supervisor (own session, outlives Provost) ──▶ guard ──▶ the command
//!          record                │ writes
//!            └──────▶ NAME.json ◀┘
//! ```
//!
//! A folder has a record for each service. The supervisor alone writes it once it runs, and says there who it is: its
//! process id and start time, and the boot that both belong to. Nothing is signalled that doesn't have all three. A
//! service whose supervisor is gone is ended by its guard, so that a record without an end and without a supervisor is
//! that of a service that was killed.

mod error;
mod files;
mod record;
mod start;
mod supervise;

use std::path::{Path, PathBuf};
use std::time::Duration;

use provost_event::{RunId, ServiceEvent, ServiceNoted, SessionId};
use provost_process::{LogEnd, LogFile};

use crate::{Backend, BackendError};
use files::ServiceFiles;

pub use error::ServiceError;
pub use record::{ServiceEnd, ServiceRecord, ServiceState, StoppedBy};
pub use start::{ServiceRequest, ServiceStarter};
pub use supervise::{SERVICE_GRACE, Supervision, supervise_service};

/// How long a supervisor may take beyond [`SERVICE_GRACE`] to end its service and say so.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The interval at which a supervisor that was asked to end is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The services of a folder. Cheap to clone; what others do in the folder is seen at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Services {
    files: ServiceFiles,
}

impl Services {
    /// The services of this folder, which needn't exist yet.
    #[must_use]
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { files: ServiceFiles::new(folder) }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }

    /// The records, by name; those that can't be read are left out. Blocking.
    #[must_use]
    pub fn all(&self) -> Vec<ServiceRecord> {
        self.files.names().iter().filter_map(|name| self.get(name)).collect()
    }

    /// The services of a run, by name. Blocking.
    #[must_use]
    pub fn of_run(&self, run: RunId) -> Vec<ServiceRecord> {
        let mut all = self.all();
        all.retain(|service| service.session.run == run);
        all
    }

    /// Those of them that run.
    #[must_use]
    pub fn running_of_run(&self, run: RunId) -> Vec<ServiceRecord> {
        let mut all = self.of_run(run);
        all.retain(|service| service.state() == ServiceState::Running);
        all
    }

    /// The record of this name. Blocking.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<ServiceRecord> {
        self.files.read(name).ok()
    }

    /// The end of a service's output, at most this number of bytes. Blocking.
    ///
    /// # Errors
    /// When its log can't be read.
    pub fn output(&self, service: &ServiceRecord, bytes_max: usize) -> std::io::Result<LogEnd> {
        LogFile::read_end(&service.log, bytes_max)
    }

    /// Ends a service and waits for that: its processes are asked to end and killed after [`SERVICE_GRACE`]. A
    /// supervisor that doesn't answer is killed, and with it the service. Returns the record afterwards; that of a
    /// service that doesn't run is returned unchanged.
    ///
    /// # Errors
    /// When there is no such service, it can't be written that it is to end, or it still runs.
    ///
    /// # Cancellation
    /// The service may be ended or not.
    pub async fn stop(&self, name: &str, by: &StoppedBy) -> Result<ServiceRecord, ServiceError> {
        let unknown = || ServiceError::Unknown { name: name.to_owned() };
        let service = self.get(name).ok_or_else(unknown)?;
        if service.state() == ServiceState::Unseen {
            return Err(ServiceError::StillRuns { name: name.to_owned() });
        }
        let Some(supervisor) = service.living_supervisor() else { return Ok(service) };
        self.files.request_stop(name, by)?;
        let is_asked = supervisor.ask_to_end();
        let deadline = tokio::time::Instant::now() + SERVICE_GRACE + ANSWER_MAX;
        while is_asked && supervisor.exists() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(LOOK).await;
        }
        if supervisor.exists() {
            // Whether it helped shows below.
            let _ = tokio::task::spawn_blocking(move || supervisor.end_tree()).await;
        }
        let after = self.get(name).ok_or_else(unknown)?;
        match after.state() {
            ServiceState::Running | ServiceState::Unseen => {
                Err(ServiceError::StillRuns { name: name.to_owned() })
            }
            ServiceState::Starting | ServiceState::Ended(_) | ServiceState::Lost => Ok(after),
        }
    }

    /// Ends the services of a run, or of one of its agents, that run. Returns them, each with what came of it.
    ///
    /// # Cancellation
    /// Some may be ended and others not.
    pub async fn stop_of_run(
        &self,
        run: RunId,
        agent: Option<SessionId>,
        by: &StoppedBy,
    ) -> Vec<Result<ServiceRecord, ServiceError>> {
        let mut stopped = Vec::new();
        for service in self.running_of_run(run) {
            if agent.is_none_or(|agent| agent == service.session) {
                stopped.push(self.stop(&service.name, by).await);
            }
        }
        stopped
    }

    /// Forgets the services of a run that don't run, with their logs. Returns the bytes of these. Blocking.
    pub fn forget_ended_of_run(&self, run: RunId) -> u64 {
        let over = self
            .of_run(run)
            .into_iter()
            .filter(|service| !matches!(service.state(), ServiceState::Running | ServiceState::Unseen));
        over.map(|service| self.files.remove(&service)).sum()
    }

    /// Records in the log of each agent of a run what became of its services; what the log knows already changes
    /// nothing.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn report(&self, backend: &dyn Backend, run: RunId) -> Result<(), BackendError> {
        for service in self.of_run(run) {
            report_service(backend, &service).await?;
        }
        Ok(())
    }
}

/// Records in the log of its agent what became of a service; what the log knows already changes nothing.
///
/// # Errors
/// When that can't be recorded.
pub async fn report_service(backend: &dyn Backend, service: &ServiceRecord) -> Result<(), BackendError> {
    let Some(supervisor) = service.supervisor else { return Ok(()) };
    let event = match service.state() {
        ServiceState::Starting | ServiceState::Unseen => return Ok(()),
        ServiceState::Running => match service.kept() {
            Some(kept) => ServiceEvent::Found(Box::new(kept)),
            None => return Ok(()),
        },
        ServiceState::Ended(end) => ServiceEvent::Ended { how: end.how, by_agent: end.by_agent },
        ServiceState::Lost => ServiceEvent::Ended { how: ServiceState::Lost.to_string(), by_agent: false },
    };
    let noted = ServiceNoted { name: service.name.clone(), supervisor, event };
    let event = provost_engine::SessionEvent::ServiceNoted(Box::new(noted));
    backend.post(service.session.into(), event.into(), None).await.map(drop)
}
