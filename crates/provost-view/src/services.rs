//! Services: commands of agents that go on after their runs.

use std::path::PathBuf;

use provost_event::{RunId, SessionId, Timestamp};
use provost_harness::{ServiceRecord, ServiceState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;

/// A service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceView {
    /// The version of the view.
    pub v: ViewVersion,
    /// Its name, unique among the services that run.
    pub name: String,
    /// What is known of it now.
    pub state: ServiceStateView,
    /// How it ended, in words; null while it runs.
    pub how: Option<String>,
    /// When its supervisor saw it end; null while it runs, and where its supervisor was killed.
    pub ended_at_ms: Option<Timestamp>,
    /// The command line.
    pub command: String,
    /// The run that started it.
    pub run: RunId,
    /// The agent that did.
    pub session: SessionId,
    /// That agent's workspace.
    pub workspace: PathBuf,
    /// The folder that it was started in.
    pub cwd: PathBuf,
    /// The process id of its supervisor; null until that runs.
    pub pid: Option<u32>,
    /// The start time of that process, in the kernel's ticks since boot; null until it runs.
    pub pid_started: Option<u64>,
    /// The file with the newest part of its output.
    pub log: PathBuf,
    /// When it was started.
    pub started_at_ms: Timestamp,
    /// When it is ended at the latest, if the machine isn't suspended meanwhile.
    pub expires_at_ms: Timestamp,
}

/// What is known of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceStateView {
    /// It is being started.
    Starting,
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

impl ServiceView {
    /// The view of a record, as its processes are now.
    #[must_use]
    pub fn new(record: &ServiceRecord) -> Self {
        let state = record.state();
        let (view, how) = match &state {
            ServiceState::Starting => (ServiceStateView::Starting, None),
            ServiceState::Running => (ServiceStateView::Running, None),
            ServiceState::Unseen => (ServiceStateView::Running, Some(state.to_string())),
            ServiceState::Ended(_) | ServiceState::Lost => (ServiceStateView::Ended, Some(state.to_string())),
        };
        Self {
            v: ViewVersion,
            name: record.name.clone(),
            state: view,
            how,
            ended_at_ms: record.end.as_ref().map(|end| end.at),
            command: record.command.clone(),
            run: record.session.run,
            session: record.session,
            workspace: record.workspace.clone(),
            cwd: record.cwd.clone(),
            pid: record.supervisor.map(|process| process.pid),
            pid_started: record.supervisor.map(|process| process.started),
            log: record.log.clone(),
            started_at_ms: record.since,
            expires_at_ms: record.expires,
        }
    }

    /// The views of all of a run's services.
    #[must_use]
    pub fn all(records: &[ServiceRecord]) -> Vec<Self> {
        records.iter().map(Self::new).collect()
    }
}
