//! The sandbox of this machine, and the boxes of its agents.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use provost_event::{RunId, SandboxMode, SandboxPolicy, SessionId};
use provost_harness::{AgentSandbox, Inspection, NoSandbox, Sandbox, SandboxRequest};

use crate::Places;
use crate::agent_box::{AgentBox, Shared};
use crate::probe::Probe;

/// What the sandbox of this machine is made with.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// The program whose `main` calls [`run_step_if_asked`](crate::run_step_if_asked).
    pub helper: PathBuf,
    /// The user and the folders.
    pub places: Places,
}

/// Sandboxes on this machine.
pub struct LocalSandbox {
    options: SandboxOptions,
    probe: Probe,
    shared: Mutex<Option<Result<Arc<Shared>, String>>>,
    boxes: Mutex<HashMap<SessionId, Arc<AgentBox>>>,
}

impl LocalSandbox {
    /// The sandbox of this machine. Starts nothing, and makes no folder.
    #[must_use]
    pub fn new(options: SandboxOptions) -> Self {
        let search = options.places.variables.get("PATH").cloned().unwrap_or_default();
        let probe = crate::linux::probe(search.as_ref());
        Self { options, probe, shared: Mutex::default(), boxes: Mutex::default() }
    }

    /// What this machine can do.
    #[must_use]
    pub const fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Tries a box with a program that does nothing. Blocks.
    ///
    /// # Errors
    /// Why no sandbox is possible, with the remedy as far as it is known.
    pub fn try_it(&self) -> Result<(), String> {
        self.shared().and_then(|shared| shared.tried()).map(drop)
    }

    fn shared(&self) -> Result<Arc<Shared>, String> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Shared::new(&self.options, &self.probe).map(Arc::new);
        shared.get_or_insert_with(made).clone()
    }

    fn boxed(&self, request: SandboxRequest<'_>) -> Result<Arc<AgentBox>, String> {
        let shared = self.shared()?;
        if !request.policy.require {
            // Where nothing is required, a box that can't be made must not fail each program.
            shared.tried()?;
        }
        let mut boxes = self.boxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = boxes.get(&request.session).filter(|known| known.is_for(request)) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(AgentBox::new(request, shared)?);
        boxes.insert(request.session, Arc::clone(&made));
        Ok(made)
    }
}

impl Sandbox for LocalSandbox {
    fn of_agent(&self, request: SandboxRequest<'_>) -> Result<Arc<dyn AgentSandbox>, String> {
        if request.policy.is_off() {
            return Ok(Arc::new(NoSandbox));
        }
        match self.boxed(request) {
            Ok(made) => Ok(made),
            Err(why) if request.policy.require => Err(format!(
                "the sandbox is required and can't be made: {why}. `provost doctor` says more; mode = \"off\" in \
                 [sandbox] does without"
            )),
            Err(why) => {
                tracing::warn!(%why, "nothing is confined: no sandbox is possible");
                Ok(Arc::new(NoSandbox))
            }
        }
    }

    fn of_inspection(&self, inspection: Inspection<'_>) -> Option<Arc<dyn AgentSandbox>> {
        let shared = self.shared().and_then(|shared| shared.tried().map(|()| shared)).ok()?;
        let policy = SandboxPolicy { mode: SandboxMode::ReadOnly, ..SandboxPolicy::default() };
        // No agent has it: it goes with the look.
        let session = SessionId::root(RunId::from_entropy(0));
        let request = SandboxRequest { policy: &policy, session, workspace: inspection.folder };
        let made = AgentBox::new(request, shared).ok()?;
        inspection.granted.iter().cloned().for_each(|folder| made.grant(folder));
        Some(Arc::new(made))
    }

    fn session_over(&self, session: SessionId) {
        let ended = self.boxes.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        if let Some(ended) = ended {
            ended.release();
            // Removing its folder may take a while.
            std::thread::spawn(move || drop(ended));
        }
    }
}
