//! Services: commands that an agent keeps running after its run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::skip::is_default;

/// The permission that a call needs, besides that of its tool, if its command is to run on after the run.
pub const KEEP_RUNNING: &str = "keep_running";

/// A command that goes on after the run, under a supervisor of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceKept {
    /// Its name, unique among the services that run.
    pub name: String,
    /// The command line.
    pub command: String,
    /// Its supervisor.
    pub supervisor: ProcessStamp,
    /// The file with its output.
    pub log: String,
    /// When it is ended at the latest.
    pub expires: Timestamp,
}

/// A process, by its id and its start time: together unique until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStamp {
    /// The process id.
    pub pid: u32,
    /// The start time, in the kernel's ticks since boot.
    pub started: u64,
}

/// What was seen of a service after the call that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceNoted {
    /// The service.
    pub name: String,
    /// Its supervisor: names may be used again.
    pub supervisor: ProcessStamp,
    /// What was seen.
    pub event: ServiceEvent,
}

/// What may be seen of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceEvent {
    /// It runs, though Provost was interrupted before the call that started it had its result.
    Found(Box<ServiceKept>),
    /// It has ended.
    Ended {
        /// How, in words that follow its name.
        how: String,
        /// Whether the agent itself has ended it.
        #[serde(default, skip_serializing_if = "is_default")]
        by_agent: bool,
    },
}
