//! What a program reports of its work, where it has a structured stream.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AskKind;
use crate::{Plan, PlanStatus};

/// A report of a program about its work: its own account, without proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramActivity {
    /// One of its own tools has ended.
    Call(ProgramCall),
    /// Its plan, as it is now.
    Plan(Plan),
}

/// A call of one of the program's own tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramCall {
    /// The kind of action.
    pub kind: AskKind,
    /// The command, path, address or tool; its title if it names none of them.
    pub subject: String,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// The files that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ProgramChange>,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramChange {
    /// The file's path, as the program names it.
    pub path: String,
    /// Lines that were added.
    pub added: u64,
    /// Lines that were removed.
    pub removed: u64,
}

impl fmt::Display for ProgramActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call) => write!(f, "{call}"),
            Self::Plan(plan) => {
                let done = plan.items.iter().filter(|item| item.status == PlanStatus::Done).count();
                write!(f, "its plan: {done} of {} steps done", plan.items.len())
            }
        }
    }
}

impl fmt::Display for ProgramCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            AskKind::Command => "command",
            AskKind::Edit | AskKind::Edits => "change",
            AskKind::Read => "read",
            AskKind::Network => "fetch",
            AskKind::Tool | AskKind::Trust | AskKind::Other => "tool",
        };
        let how = if self.succeeded { "" } else { "failed " };
        write!(f, "{how}{what}: {}", self.subject)?;
        for change in &self.changes {
            write!(f, " [{} +{} -{}]", change.path, change.added, change.removed)?;
        }
        Ok(())
    }
}
