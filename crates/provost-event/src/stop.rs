//! Verdicts of stop hooks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One stop hook's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopHookVerdict {
    /// The agent may stop.
    Allow,
    /// The agent continues, for this reason.
    Block(String),
    /// The run stops now, for this reason.
    Halt(String),
    /// The hook ran and gave no valid answer, for this reason. The policy's
    /// [`on_error`](crate::StopHookPolicy::on_error) says what happens.
    Error(String),
    /// The hook couldn't be run or was killed, for this reason: it says nothing about the agent's work.
    Broken(String),
    /// The hook exceeded its time limit of this many milliseconds, and was terminated.
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

    /// Its reason, for changes; `None` for verdicts without one.
    pub const fn reason_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Allow | Self::TimedOut(_) => None,
            Self::Block(reason) | Self::Halt(reason) | Self::Error(reason) | Self::Broken(reason) => {
                Some(reason)
            }
        }
    }

    /// Whether the hook couldn't be run, or not in time: neither yes nor no.
    #[must_use]
    pub const fn is_unanswered(&self) -> bool {
        match self {
            Self::Broken(_) | Self::TimedOut(_) => true,
            Self::Allow | Self::Block(_) | Self::Halt(_) | Self::Error(_) => false,
        }
    }
}

/// A stop hook's verdict with its name and duration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopReport {
    /// The hook.
    pub name: String,
    /// Its verdict.
    pub verdict: StopHookVerdict,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// A note for the user: the hook's own message, or the part of its answer that was ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The stop hooks' verdicts on one stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopVerdicts {
    /// The turn that ended with the stop.
    pub turn: u32,
    /// Each hook's answer, in configured order.
    pub reports: Vec<StopReport>,
    /// A fingerprint of the workspace at that time; equal if nothing changed.
    pub evidence: String,
}

/// Verdicts of stop hooks that a stop interrupted. They decide nothing: a resume asks the hooks again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopCheckCutShort {
    /// The turn that ended with the stop.
    pub turn: u32,
    /// Each hook's answer, in configured order.
    pub reports: Vec<StopReport>,
}
