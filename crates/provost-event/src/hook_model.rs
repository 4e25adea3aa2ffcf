//! Hooks that are models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{HookPoint, ModelPolicy};

/// A hook that is a model: it answers whether what it is asked about is in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookModel {
    /// The question. `$ARGUMENTS` in it stands for the hook's input as JSON, which is appended where it isn't in it.
    pub prompt: String,
    /// The model.
    pub model: ModelPolicy,
    /// What it may do before it answers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub work: HookModelWork,
    /// Whether the agent goes on after an objection to a call that was made, and is told of it; otherwise it is
    /// suspended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub continue_on_block: bool,
}

/// What a hook that is a model may do before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookModelWork {
    /// Nothing: it answers at once.
    #[default]
    Answers,
    /// It may use those of the agent's tools that only read files.
    Reads,
}

impl HookPoint {
    /// Whether a hook here may be a model: the session works, and waits for the decision.
    #[must_use]
    pub const fn takes_models(self) -> bool {
        match self {
            Self::PromptSubmit
            | Self::PreToolCall
            | Self::Spawn
            | Self::Approval
            | Self::ChildEnd
            | Self::PostToolCall
            | Self::PostToolSuccess
            | Self::PostToolFailure
            | Self::PostToolBatch
            | Self::TurnEnd
            | Self::Stop
            | Self::SubagentStop => true,
            Self::SessionStart
            | Self::SubagentStart
            | Self::PreLlmRequest
            | Self::Notification
            | Self::PreCompact
            | Self::PostCompact
            | Self::Abort
            | Self::StopFailure
            | Self::SessionEnd => false,
        }
    }
}
