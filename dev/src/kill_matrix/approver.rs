//! Another process that answers approval requests: it approves all but forbidden calls.

use std::sync::Arc;

use anyhow::Result;
use provost_backend::EmbeddedBackend;
use provost_engine::{Actor, PendingApproval, SessionEvent};
use provost_event::{ApprovalAnswer, ApprovalScope};
use provost_harness::{Log, SystemClock};
use provost_sqlite::SqliteStore;
use tokio::runtime::Runtime;

use super::files::Files;
use super::scenario::ROOT;

pub(super) struct Approver {
    runtime: Runtime,
    backend: Arc<dyn Log>,
}

impl Approver {
    pub(super) fn new(files: &Files) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let backend: Arc<dyn Log> = match files.engine()? {
            Some(engine) => Arc::new(runtime.block_on(engine.connect(files))?),
            None => {
                Arc::new(EmbeddedBackend::new(SqliteStore::open(files.database())?, Arc::new(SystemClock))?)
            }
        };
        Ok(Self { runtime, backend })
    }

    /// The oldest open question.
    pub(super) fn question(&self) -> Result<Option<PendingApproval>> {
        match self.runtime.block_on(self.backend.state(ROOT.into()))? {
            Actor::Session(state) => Ok(state.approvals().next().cloned()),
            Actor::Run(_) => Ok(None),
        }
    }

    /// Answers, and then answers the opposite, which must not count.
    pub(super) fn answer(&self, question: &PendingApproval) -> Result<()> {
        let yes = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };
        let no = ApprovalAnswer::Deny { reason: "not that one".to_owned() };
        let is_forbidden = question.input.text().contains("forbidden");
        let answers = if is_forbidden { [no, yes] } else { [yes, no] };
        for answer in answers {
            let event = SessionEvent::Resolve { asked: question.asked, answer, by: "ann".to_owned() };
            self.runtime.block_on(self.backend.post(ROOT.into(), event.into(), None))?;
        }
        Ok(())
    }
}
