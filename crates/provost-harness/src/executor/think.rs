//! Asking a model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt as _;
use provost_engine::{Answer, Think};
use provost_event::{Delta, DeltaKind, ErrorClass, ModelFailure, SessionId};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use crate::{DeltaSink, HarnessCallback, HomeError, ModelRequest, ToolChoice};

impl HarnessExecutor {
    pub(super) async fn think(
        &self,
        think: &Think,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let session = think.session;
        let opening = self.known.opening(self.home(), session).await.map_err(|e| storage(&e))?;
        let name = &opening.policy.model.name;
        let model = self
            .deps
            .models
            .get(name)
            .map_err(|error| ModelFailure::new(ErrorClass::NotFound, error.to_string()))?;
        let transcript = self
            .known
            .take_transcript(self.home(), session, think.through, opening.policy.model.images)
            .await
            .map_err(|error| storage(&error))?;
        let request = ModelRequest {
            session,
            turn: think.turn,
            answers_before: think.answers_before,
            system: &opening.policy.system_prompt,
            tools: &opening.tools,
            messages: transcript.messages(),
            output_tokens_max: think.output_tokens_max,
            effort: opening.policy.model.effort,
            tool_choice: ToolChoice::Auto,
        };
        let deltas = ToCallback { session, callback: &*self.deps.callback };
        let answer = AssertUnwindSafe(model.answer(request, &deltas, cancel)).catch_unwind().await;
        self.known.give_back(session, transcript);
        answer.unwrap_or_else(|_| {
            Err(ModelFailure::new(ErrorClass::Nonsense, format!("the adapter of model `{name}` panicked")))
        })
    }
}

fn storage(error: &HomeError) -> ModelFailure {
    ModelFailure::new(ErrorClass::Storage, error.to_string())
}

struct ToCallback<'a> {
    session: SessionId,
    callback: &'a dyn HarnessCallback,
}

impl DeltaSink for ToCallback<'_> {
    fn delta(&self, kind: DeltaKind, text: &str) {
        let delta = Delta { session: self.session, kind, text: text.to_owned() };
        if catch_unwind(AssertUnwindSafe(|| self.callback.on_delta(&delta))).is_err() {
            tracing::warn!(session = %self.session, "the callback panicked at a delta");
        }
    }
}
