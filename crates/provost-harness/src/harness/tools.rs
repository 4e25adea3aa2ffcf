//! The tools of a run, which may change while it lives.

use std::sync::{Arc, PoisonError, RwLock};

use provost_engine::{Event, RunEvent};
use provost_event::{RunId, ToolsChanged};

use super::Harness;
use crate::{Backend, HarnessError, Tool, ToolRegistry};

/// The tools that the executor of a run can call. A removed one stays: calls of it may be in flight.
pub(crate) struct LiveTools(RwLock<ToolRegistry>);

impl LiveTools {
    pub(super) const fn new(tools: ToolRegistry) -> Self {
        Self(RwLock::new(tools))
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn add(&self, tool: Arc<dyn Tool>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(tool);
    }

    pub(super) fn session_over(&self, session: provost_event::SessionId) {
        let tools = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        tools.session_over(session);
    }
}

/// Changes the tools of a run while it lives; from [`Harness::tools`]. Cheap to clone, and usable from any task.
#[derive(Clone)]
pub struct RunTools {
    run: RunId,
    backend: Arc<dyn Backend>,
    live: Arc<LiveTools>,
}

impl RunTools {
    /// Adds the tools `add`, each of which replaces a tool of the same name, and removes the tools named in
    /// `remove`. Names that the run's agent doesn't have are ignored; a name that is in both is added. `by` is who
    /// changes them, for the log.
    ///
    /// The change applies to the run's own agent and to every agent that has its tools from there, also to those
    /// that are spawned later. A configured sub-agent with tools of its own keeps those, except for removed ones. An
    /// external agent has the tools of its program and is left as it is.
    ///
    /// It is durable when this returns, and a run that another process opens later has the same tools: that
    /// process must have them in [`HarnessDeps::tools`](crate::HarnessDeps::tools), or add them again before they are
    /// called. Every model call from then on offers the new tools; one that is being made may still offer the old
    /// ones. An answer that was already given has its calls made as if nothing had changed, except that a replaced tool
    /// is called in its new version. A later call of a removed tool isn't made, and its result says so. Permissions,
    /// hooks and approvals apply to a new tool by its [`subject`](provost_event::ToolSpec::subject) and its names.
    /// Nothing is recorded if nothing changes.
    ///
    /// A policy that replaces the run's ([`Harness::change_policy`]) replaces its tools too.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn change(
        &self,
        add: Vec<Arc<dyn Tool>>,
        remove: &[&str],
        by: &str,
    ) -> Result<(), HarnessError> {
        let changed = ToolsChanged {
            added: add.iter().map(|tool| tool.spec().clone()).collect(),
            removed: remove.iter().map(|name| (*name).to_owned()).collect(),
            by: by.to_owned(),
        };
        // They can be called as soon as the change is recorded.
        add.into_iter().for_each(|tool| self.live.add(tool));
        let event = Event::Run(RunEvent::ChangeTools(Box::new(changed)));
        self.backend.post(self.run.into(), event, None).await?;
        Ok(())
    }
}

impl Harness {
    /// The handle with which the run's tools are changed while it lives.
    #[must_use]
    pub fn tools(&self) -> RunTools {
        RunTools { run: self.run, backend: self.deps.backend.clone(), live: self.tools.clone() }
    }
}
