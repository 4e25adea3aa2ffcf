//! A model whose answers are kept.

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

/// A model that keeps what another one answers in a file, for [`ReplayModel`](super::ReplayModel).
///
/// The file is one run's: it is made at the run's first call, readable by its owner only, and grows by a line with
/// each call that comes to its end, failed ones included, before its answer is handed on. A run that is gone on
/// with goes on with its file. What the model was asked isn't kept; secrets in what it answered are kept as
/// `[secret]`, and handed on as they are. A call that is cancelled isn't kept, but for a judge's, which is cancelled
/// when it takes too long.
///
/// That the file can be written is checked before the model is asked. Should an answer not get into it all the
/// same (the disk is full), the answer counts, and the next call fails unless it gets in then.
pub struct RecordingModel {
    inner: Arc<dyn Model>,
    policy: ModelPolicy,
    tape: Arc<Tape>,
    redactor: Arc<Redactor>,
}

impl RecordingModel {
    /// Keeps what `inner`, of which `policy` tells, answers in `file`. Touches nothing yet.
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

    /// Writes `lines`; once begun, also when nobody waits for it any more.
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
            // It is paid for: it counts, and the next call fails before it is paid.
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
