//! The servers of runs: each is started when it is first needed, shared by the agents of a run, and ends with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use provost_event::{RunId, SessionId};
use provost_harness::{AgentSandbox, NoSandbox, Sandbox, SandboxRequest};

use crate::live::LiveServer;
use crate::{Reach, ServerSetup};

/// The servers of the runs of this process. Cheap to clone.
#[derive(Clone)]
pub struct McpServers(Arc<Shared>);

struct Shared {
    sandbox: Arc<dyn Sandbox>,
    live: Mutex<BTreeMap<(RunId, String), Arc<LiveServer>>>,
}

impl McpServers {
    /// No server runs yet; their programs will run in boxes of `sandbox`.
    #[must_use]
    pub fn new(sandbox: Arc<dyn Sandbox>) -> Self {
        Self(Arc::new(Shared { sandbox, live: Mutex::default() }))
    }

    /// The server of a run; nothing is started.
    ///
    /// # Errors
    /// When its box can't be made.
    pub(crate) fn of_run(&self, run: RunId, setup: &Arc<ServerSetup>) -> Result<Arc<LiveServer>, String> {
        let mut live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (run, setup.name.clone());
        if let Some(known) = live.get(&key) {
            return Ok(Arc::clone(known));
        }
        let number = u32::try_from(live.keys().filter(|(of, _)| *of == run).count()).unwrap_or(u32::MAX);
        let session = SessionId { run, agent: u32::MAX.saturating_sub(number) };
        let program_box = self.box_of(session, setup)?;
        let server = Arc::new(LiveServer::new(Arc::clone(setup), session, program_box));
        live.insert(key, Arc::clone(&server));
        Ok(server)
    }

    /// The box of a server's program. It isn't that of an agent, which ends before the run may: `session` is a number
    /// that no agent has.
    fn box_of(&self, session: SessionId, setup: &ServerSetup) -> Result<Arc<dyn AgentSandbox>, String> {
        match &setup.reach {
            Reach::Http { .. } => Ok(Arc::new(NoSandbox)),
            Reach::Program { cwd, .. } => {
                let workspace: PathBuf = canonical(cwd);
                self.0.sandbox.of_agent(SandboxRequest {
                    policy: &setup.sandbox,
                    session,
                    workspace: &workspace,
                })
            }
        }
    }

    /// Ends the servers of a run whose root session is over. Doesn't block.
    pub(crate) fn session_over(&self, session: SessionId) {
        if session != SessionId::root(session.run) {
            return;
        }
        let mut live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
        let (over, rest) =
            std::mem::take(&mut *live).into_iter().partition(|((run, _), _)| *run == session.run);
        *live = rest;
        drop(live);
        let over: BTreeMap<(RunId, String), Arc<LiveServer>> = over;
        for server in over.into_values() {
            server.leave();
            self.0.sandbox.session_over(server.session());
        }
    }
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
