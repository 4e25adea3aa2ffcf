//! A model whose answers are recorded.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{ErrorClass, ModelFailure, ModelPolicy, RunId};
use provost_harness::{DeltaSink, Model, ModelRequest, Redactor};
use tokio_util::sync::CancellationToken;

use super::conversation::digest;
use super::file::{Tape, line};
use super::format::{Call, Header, Outcome, VERSION};

/// A model that records another model's answers in a file, for [`ReplayModel`](super::ReplayModel).
///
/// The file belongs to one run: it is made at the run's first call, readable by its owner only, and grows by a
/// line with each finished call, including failed ones, before the answer is returned. A resumed run appends to
/// its file. The model's input isn't recorded; secrets in its answers are recorded as `[secret]`, and returned
/// unchanged. A cancelled call isn't recorded, except a judge's, which is cancelled when it takes too long.
///
/// The file is checked for writing before each call of the model. If an answer can't be written anyway (the disk
/// is full), the answer counts, and the next call fails unless it can be written then.
pub struct RecordingModel {
    inner: Arc<dyn Model>,
    policy: ModelPolicy,
    tape: Arc<Tape>,
    redactor: Arc<Redactor>,
}

impl RecordingModel {
    /// Records the answers of `inner`, which has the policy `policy`, in `file`. Doesn't access the file yet.
    #[must_use]
    pub fn new(
        file: impl Into<PathBuf>,
        inner: Arc<dyn Model>,
        policy: &ModelPolicy,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self { inner, policy: policy.clone(), tape: Arc::new(Tape::new(file.into())), redactor }
    }

    fn header(&self, run: RunId) -> Header {
        Header {
            provost_recording: VERSION,
            run,
            model: self.redactor.redact(&self.policy.name).into_owned(),
            window_tokens: self.policy.window_tokens,
            output_tokens_max: self.policy.output_tokens_max,
            images: self.policy.images,
        }
    }

    /// Writes `lines`; once begun, it finishes even if the caller is dropped.
    async fn append(&self, run: RunId, lines: Vec<u8>) -> Result<(), ModelFailure> {
        let (tape, header) = (Arc::clone(&self.tape), self.header(run));
        let written = tokio::task::spawn_blocking(move || tape.append(&header, &lines)).await;
        written.unwrap_or_else(|error| Err(self.tape.unwritable(&error.into())))
    }

    async fn keep(&self, request: &ModelRequest<'_>, outcome: Outcome) -> Result<(), ModelFailure> {
        let call = Call {
            session: request.session.agent,
            answers_before: request.answers_before,
            turn: request.turn,
            purpose: request.purpose,
            summaries_before: request.summaries_before,
            messages: request.messages.len(),
            digest: digest(request),
            outcome,
        };
        let line = line(&call).map_err(|error| self.tape.unwritable(&error))?;
        self.append(request.session.run, line).await
    }
}

#[async_trait]
impl Model for RecordingModel {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let message = "cancelled before the model was asked";
                return Err(ModelFailure::new(ErrorClass::Aborted, message));
            }
            ready = self.append(request.session.run, Vec::new()) => ready?,
        }
        let outcome = self.inner.answer(request, deltas, cancel).await;
        if let Some(kept) = Outcome::of(&outcome, request.purpose, &self.redactor)
            && let Err(failure) = self.keep(&request, kept).await
        {
            // It is paid for: it counts, and the next call fails before it costs anything.
            tracing::warn!(session = %request.session, "an answer isn't recorded: {}", failure.message);
        }
        outcome
    }
}

impl fmt::Debug for RecordingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingModel").field("policy", &self.policy).finish_non_exhaustive()
    }
}
