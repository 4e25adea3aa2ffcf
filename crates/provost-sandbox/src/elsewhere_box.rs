//! The box of an agent where there are none: it can't be made.

use std::convert::Infallible;
use std::path::Path;

use provost_harness::{AgentSandbox, SandboxRequest};
use provost_process::Confinement;

use crate::probe::Probe;
use crate::sandbox::SandboxOptions;

#[derive(Debug)]
pub(crate) struct Shared(Infallible);

impl Shared {
    pub(crate) fn new(_options: &SandboxOptions, probe: &Probe) -> Result<Self, String> {
        Err(probe.obstacle().unwrap_or_default())
    }

    pub(crate) fn tried(&self) -> Result<(), String> {
        match self.0 {}
    }
}

pub(crate) struct AgentBox(Infallible);

impl AgentBox {
    pub(crate) fn new(_request: SandboxRequest<'_>, shared: std::sync::Arc<Shared>) -> Result<Self, String> {
        match shared.0 {}
    }

    pub(crate) fn release(&self) {
        match self.0 {}
    }

    pub(crate) fn is_for(&self, _request: SandboxRequest<'_>) -> bool {
        match self.0 {}
    }
}

impl AgentSandbox for AgentBox {
    fn confinement(&self) -> Confinement {
        match self.0 {}
    }

    fn may_read(&self, _path: &Path) -> Result<(), String> {
        match self.0 {}
    }

    fn may_write(&self, _path: &Path) -> Result<(), String> {
        match self.0 {}
    }

    fn denials(&self, _output: &str) -> Vec<String> {
        match self.0 {}
    }

    fn confines(&self) -> bool {
        match self.0 {}
    }
}
