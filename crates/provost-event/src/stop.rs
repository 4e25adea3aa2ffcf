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
    /// The hook ran and gave no valid answer, for this reason. What that means is the policy's
    /// [`on_error`](crate::StopHookPolicy::on_error).
    Error(String),
    /// The hook itself couldn't be run or was killed, for this reason: it says nothing of the agent's work.
    Broken(String),
    /// The hook took longer than so many milliseconds, and was ended.
    TimedOut(u64),
}

impl StopHookVerdict {
    /// Why the hook gave no answer; `None` if it gave one.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Allow | Self::Block(_) | Self::Halt(_) => None,
            Self::Error(why) | Self::Broken(why) => Some(why.clone()),
            #[expect(clippy::cast_precision_loss, reason = "it is only shown")]
            Self::TimedOut(ms) => Some(format!("timed out after {} s", *ms as f64 / 1_000.0)),
        }
    }

    /// Its reason, to be changed; `None` for those that have none.
    pub const fn reason_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Allow | Self::TimedOut(_) => None,
            Self::Block(reason) | Self::Halt(reason) | Self::Error(reason) | Self::Broken(reason) => {
                Some(reason)
            }
        }
    }

    /// Whether the hook couldn't be asked, or not in time: it has said nothing, neither yes nor no.
    #[must_use]
    pub const fn is_unanswered(&self) -> bool {
        match self {
            Self::Broken(_) | Self::TimedOut(_) => true,
            Self::Allow | Self::Block(_) | Self::Halt(_) | Self::Error(_) => false,
        }
    }
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
