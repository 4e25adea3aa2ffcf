//! Hooks' decisions, as the log has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HookPoint, HookTrigger, Json, NamedScript, Seq, StopHookVerdict};

/// A hook call is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HooksAsked {
    /// Its trigger.
    pub about: HookTrigger,
}

/// The hooks' decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HooksDecided {
    /// The entry of the hook call.
    pub asked: Seq,
    /// The report of each hook, in the order of the calls.
    pub reports: Vec<HookReport>,
    /// The current scripts that a call names, if it needs approval: the approval is bound to them. Absent if the
    /// call names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<NamedScript>>,
}

/// One hook's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookReport {
    /// The hook.
    pub hook: String,
    /// Its hook point.
    pub point: HookPoint,
    /// Its decision.
    pub decision: HookDecision,
    /// Its reminders to the model; empty unless its policy allows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reminders: Vec<String>,
    /// A note for the user: the hook's own message, or the part of its answer that was ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The arguments that the call is to be made with instead of its own: hooks of other programs' contracts may
    /// propose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Json>,
    /// How long it took, in microseconds.
    pub duration_us: u64,
}

impl HookReport {
    /// A report without reminders, note and replacement, of a hook that took no time.
    pub fn new(hook: impl Into<String>, point: HookPoint, decision: impl Into<HookDecision>) -> Self {
        Self {
            hook: hook.into(),
            point,
            decision: decision.into(),
            reminders: Vec::new(),
            note: None,
            replacement: None,
            duration_us: 0,
        }
    }

    /// Its texts that come from the hook, for changes: the decision's reason, the reminders, the note.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.decision.reason_mut().into_iter().chain(&mut self.reminders).chain(&mut self.note)
    }

    /// The meaning of its decision where an agent is about to stop.
    #[must_use]
    pub fn stop_verdict(&self) -> StopHookVerdict {
        self.decision.clone().into()
    }
}

/// A hook's decision. The types of the events restrict which decisions are possible for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// No objection.
    Continue,
    /// No approval is needed, as far as this hook is concerned.
    Allow,
    /// An approval is needed, for this reason.
    Ask(String),
    /// The call, prompt or stop is denied, for this reason.
    Deny(String),
    /// The session is suspended, for this reason.
    Pause(String),
    /// The run ends now, for this reason.
    Abort(String),
    /// It ran and gave no valid answer, for this reason; the hook's policy says what that means.
    Failed(String),
    /// It couldn't be run or was killed, for this reason. Counts as no answer.
    Broken(String),
    /// It exceeded its time limit of this many milliseconds, and was terminated. Counts as no answer.
    TimedOut(u64),
}

impl HookDecision {
    /// Why the hook gave no answer; `None` if it gave one.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Continue | Self::Allow | Self::Ask(_) | Self::Deny(_) | Self::Pause(_) | Self::Abort(_) => {
                None
            }
            Self::Failed(why) | Self::Broken(why) => Some(why.clone()),
            #[expect(clippy::cast_precision_loss, reason = "it is only shown")]
            Self::TimedOut(ms) => Some(format!("timed out after {} s", *ms as f64 / 1_000.0)),
        }
    }

    /// Its reason, for changes; `None` for decisions without one.
    pub const fn reason_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Continue | Self::Allow | Self::TimedOut(_) => None,
            Self::Ask(reason)
            | Self::Deny(reason)
            | Self::Pause(reason)
            | Self::Abort(reason)
            | Self::Failed(reason)
            | Self::Broken(reason) => Some(reason),
        }
    }
}
