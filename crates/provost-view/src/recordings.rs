//! Where the recordings of an external agent's terminal are.

use std::path::PathBuf;

use provost_event::{Entry, LifecycleEntry, Seq, SessionId, TerminalEntry, TerminalEvent};
use provost_harness::{Backend, BackendError};

use crate::status::READ_MAX;

/// What was recorded of an agent's terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRecordings {
    /// Whether the agent is a program.
    pub is_program: bool,
    /// The files, one for each time that its program was started; some may be gone. They are as the log has them: one
    /// that was imported may name any file.
    pub files: Vec<PathBuf>,
}

impl AgentRecordings {
    /// Reads an agent's log for them.
    ///
    /// # Errors
    /// When it can't be read.
    pub async fn read(backend: &dyn Backend, session: SessionId) -> Result<Self, BackendError> {
        let (mut after, mut found) = (Seq::START, Self::default());
        loop {
            let records = backend.read(session.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { return Ok(found) };
            after = last.seq;
            for record in &records {
                match &record.entry {
                    Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                        found.is_program = started.policy.external.is_some();
                    }
                    Entry::Terminal(TerminalEntry::Noted(noted)) => {
                        if let TerminalEvent::Started { recording: Some(file), .. } = &noted.event {
                            found.files.push(file.clone());
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}
