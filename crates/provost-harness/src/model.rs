//! The port to models.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{DeltaKind, Effort, ModelFailure, Purpose, SessionId, ToolSpec};
use tokio_util::sync::CancellationToken;

use crate::Message;

/// What a model is asked. Everything but the last messages is the same from turn to turn, byte for byte.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// Who asks.
    pub session: SessionId,
    /// In which turn, from 1.
    pub turn: u32,
    /// What for. For anything but a turn the last message ends with the question, which is no part of the conversation.
    pub purpose: Purpose,
    /// Answers committed in this session before this call; compaction doesn't lower it, and a repeated attempt
    /// finds the same number.
    pub answers_before: u32,
    /// Summaries of this session's conversation before this call, those by rule included.
    pub summaries_before: u32,
    /// The system prompt.
    pub system: &'a str,
    /// The tools on offer, in a stable order.
    pub tools: &'a Arc<[ToolSpec]>,
    /// The conversation; each message keeps its serialized form.
    pub messages: &'a [Arc<Message>],
    /// The cap on the answer.
    pub output_tokens_max: u32,
    /// How much it shall think first; as its provider has it if `None`.
    pub effort: Option<Effort>,
    /// Times as long as usual that the provider may say nothing: it has said nothing before.
    pub patience: u32,
    /// Whether it may, must or must not call tools in this answer.
    pub tool_choice: ToolChoice,
}

/// Whether an answer calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model sees fit.
    #[default]
    Auto,
    /// At least one of them.
    Required,
    /// None, though they stay described, so that the request's beginning stays the same.
    None,
}

/// Takes the pieces of an answer while it is being written. Must return quickly.
pub trait DeltaSink: Send + Sync {
    /// One piece.
    fn delta(&self, kind: DeltaKind, text: &str);
}

/// Answers. One call is one attempt: retries are the engine's decision.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks the model once and reads its answer to the end.
    ///
    /// # Errors
    /// What went wrong, with what the provider reported as used up to then. Never contains a key.
    ///
    /// # Cancellation
    /// When `cancel` fires the connection is closed and the call fails as aborted at once, with the usage
    /// reported so far. Dropping the future closes the connection too.
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure>;
}

/// The models a process can reach, by the name a policy gives them.
#[derive(Clone, Default)]
pub struct Models {
    by_name: HashMap<String, Arc<dyn Model>>,
}

impl Models {
    /// No model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With `model` under the policy's `name`, in place of one that had it.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        self.by_name.insert(name.into(), model);
        self
    }

    /// The model a policy names.
    ///
    /// # Errors
    /// When this process has none by that name.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Model>, UnknownModel> {
        self.by_name.get(name).ok_or_else(|| UnknownModel(name.to_owned()))
    }
}

/// A model that this process doesn't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no model `{0}` is configured here")]
pub struct UnknownModel(pub String);
