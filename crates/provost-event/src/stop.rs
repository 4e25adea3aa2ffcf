//! What stop hooks say.

use serde::{Deserialize, Serialize};

/// One stop hook's answer to "may the agent stop?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopHookVerdict {
    /// The agent may stop.
    Allow,
    /// The agent goes on, with this reason.
    Block(String),
    /// The run stops now and doesn't go on, for this reason.
    Halt(String),
    /// The hook gave no answer, for this reason; doesn't block.
    Error(String),
}

/// A stop hook's answer with its name and how long it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// The hook.
    pub name: String,
    /// Its answer.
    pub verdict: StopHookVerdict,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// What a person should know of it: its own message, or what of its answer couldn't be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
