//! The port to models.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{DeltaKind, Effort, ModelFailure, Purpose, SessionId, ToolSpec};
use tokio_util::sync::CancellationToken;

use crate::Message;

/// A request to a model. Everything but the last messages is the same from turn to turn, byte for byte.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The session that makes it.
    pub session: SessionId,
    /// The turn, from 1.
    pub turn: u32,
    /// The purpose. For anything but a turn the last message ends with the question, which is not part of the
    /// conversation.
    pub purpose: Purpose,
    /// Answers committed in this session before this call; compaction doesn't lower the number, and a retry finds
    /// the same one.
    pub answers_before: u32,
    /// Summaries of this session's conversation before this call, including those by rule.
    pub summaries_before: u32,
    /// The system prompt.
    pub system: &'a str,
    /// The tools on offer, in a stable order.
    pub tools: &'a Arc<[ToolSpec]>,
    /// The conversation; each message keeps its serialized form.
    pub messages: &'a [Arc<Message>],
    /// The cap on the answer.
    pub output_tokens_max: u32,
    /// The effort of its reasoning; the provider's default if `None`.
    pub effort: Option<Effort>,
    /// Factor for the timeouts of a silent provider, raised after earlier silence.
    pub patience: u32,
    /// Whether it may, must or must not call tools in this answer.
    pub tool_choice: ToolChoice,
}

/// Whether the model calls tools in its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// At least one of them.
    Required,
    /// None; their descriptions are still sent, so that the request's beginning stays the same.
    None,
}

/// Receives the pieces of an answer while it streams. Must return quickly.
pub trait DeltaSink: Send + Sync {
    /// One piece.
    fn delta(&self, kind: DeltaKind, text: &str);
}

/// A model. One call is one attempt: retries are the engine's decision.
#[async_trait]
pub trait Model: Send + Sync {
    /// Calls the model once and reads its answer to the end.
    ///
    /// # Errors
    /// The failure, with the usage reported so far. Never contains a key.
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

/// The models of a process, by the policy's names.
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

    /// Adds `model` under the policy's `name`, replacing the previous one.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, model: Arc<dyn Model>) -> Self {
        self.by_name.insert(name.into(), model);
        self
    }

    /// The model with this policy name.
    ///
    /// # Errors
    /// When this process has no such model.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Model>, UnknownModel> {
        self.by_name.get(name).ok_or_else(|| UnknownModel(name.to_owned()))
    }
}

/// A model that this process doesn't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no model `{0}` is configured here")]
pub struct UnknownModel(pub String);
