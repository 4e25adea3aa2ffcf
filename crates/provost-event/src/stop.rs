//! Verdicts of stop hooks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HookDecision, HookReport};

/// What a stop hook answers: the hook decisions that are possible where an agent is about to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl From<StopHookVerdict> for HookDecision {
    fn from(verdict: StopHookVerdict) -> Self {
        match verdict {
            StopHookVerdict::Allow => Self::Continue,
            StopHookVerdict::Block(reason) => Self::Deny(reason),
            StopHookVerdict::Halt(reason) => Self::Abort(reason),
            StopHookVerdict::Error(why) => Self::Failed(why),
            StopHookVerdict::Broken(why) => Self::Broken(why),
            StopHookVerdict::TimedOut(ms) => Self::TimedOut(ms),
        }
    }
}

impl From<HookDecision> for StopHookVerdict {
    fn from(decision: HookDecision) -> Self {
        match decision {
            HookDecision::Continue | HookDecision::Allow => Self::Allow,
            HookDecision::Ask(reason) | HookDecision::Deny(reason) | HookDecision::Pause(reason) => {
                Self::Block(reason)
            }
            HookDecision::Abort(reason) => Self::Halt(reason),
            HookDecision::Failed(why) => Self::Error(why),
            HookDecision::Broken(why) => Self::Broken(why),
            HookDecision::TimedOut(ms) => Self::TimedOut(ms),
        }
    }
}

impl StopHookVerdict {
    /// Why the hook gave no answer; `None` if it gave one.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        HookDecision::from(self.clone()).failure()
    }

    /// Whether the agent is kept from stopping, or the run is stopped.
    #[must_use]
    pub const fn objects(&self) -> bool {
        matches!(self, Self::Block(_) | Self::Halt(_))
    }

    /// Whether the hook couldn't be run, or not in time: neither yes nor no.
    #[must_use]
    pub const fn is_unanswered(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::TimedOut(_))
    }
}

/// The stop hooks' verdicts on one stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopVerdicts {
    /// The turn that ended with the stop.
    pub turn: u32,
    /// Each hook's answer, in configured order.
    pub reports: Vec<HookReport>,
    /// A fingerprint of the workspace at that time; equal if nothing changed.
    pub evidence: String,
}

/// Verdicts of stop hooks that a stop interrupted. They decide nothing: a resume asks the hooks again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopCheckCutShort {
    /// The turn that ended with the stop.
    pub turn: u32,
    /// Each hook's answer, in configured order.
    pub reports: Vec<HookReport>,
}
