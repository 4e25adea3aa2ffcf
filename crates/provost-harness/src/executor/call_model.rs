//! Calls a model.

use std::borrow::Cow;

use provost_engine::{Answer, CallModel};
use provost_event::{Block, CallId, Delta, DeltaKind, ErrorClass, Json, ModelFailure, Seq, SessionId};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use crate::harness::Deltas;
use crate::model_panic::answer_of;
use crate::{BackendError, DeltaSink, ModelRequest, Redactor, ToolChoice};

impl HarnessExecutor {
    pub(super) async fn call_model(
        &self,
        seq: Seq,
        model_call: &CallModel,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let session = model_call.session;
        let opening = self
            .known
            .opening_since(self.backend(), session, model_call.policy_since)
            .await
            .map_err(|e| storage(&e))?;
        if let Some(external) = &opening.policy.external {
            return self.exchange(model_call, &opening, external, cancel).await;
        }
        let name = if model_call.model.is_empty() { &opening.policy.model.name } else { &model_call.model };
        let model = self
            .deps
            .models
            .get(name)
            .map_err(|error| ModelFailure::new(ErrorClass::NotFound, error.to_string()))?;
        let transcript = self
            .known
            .take_transcript(self.backend(), model_call, opening.policy.model.images)
            .await
            .map_err(|error| storage(&error))?;
        let asked = model_call.question.as_ref().map(|question| transcript.asked(question));
        let request = ModelRequest {
            session,
            turn: model_call.turn,
            purpose: model_call.purpose,
            answers_before: model_call.answers_before,
            summaries_before: model_call.summaries_before,
            system: &opening.policy.system_prompt,
            tools: &opening.tools,
            messages: asked.as_deref().unwrap_or_else(|| transcript.messages()),
            output_tokens_max: model_call.output_tokens_max,
            effort: model_call.effort,
            patience: model_call.patience,
            tool_choice: if model_call.question.is_some() { ToolChoice::None } else { ToolChoice::Auto },
        };
        let deltas = PiecesOfCall { session, call: seq, deltas: &self.deltas };
        let answer = answer_of(&**model, request, &deltas, cancel).await;
        self.known.give_back(session, transcript);
        answer.map(|answer| without_keys(answer, &self.deps.redactor))
    }
}

/// The answer for the log, without known keys. A tool call that contains one is made without it too: what runs is
/// what the log says, and no model needs a key of Provost's. Blocks signed by a provider stay unchanged, as it
/// would reject them otherwise.
fn without_keys(mut answer: Answer, redactor: &Redactor) -> Answer {
    redactor.mask_known(&mut answer.model);
    for block in &mut answer.content {
        match block {
            Block::Text(text) | Block::Thinking { text, signature: None, .. } => {
                if let Cow::Owned(masked) = redactor.redact_known(text) {
                    *text = masked;
                }
            }
            Block::ToolCall(call) => {
                redactor.mask_known(&mut call.name);
                call.malformed.iter_mut().for_each(|text| redactor.mask_known(text));
                if let Cow::Owned(masked) = redactor.redact_known(&call.id.0) {
                    call.id = CallId::from(masked.as_str());
                }
                if let Cow::Owned(masked) = redactor.redact_known_json(call.input.text())
                    && let Ok(masked) = Json::parse(masked)
                {
                    call.input = masked;
                }
            }
            Block::Thinking { signature: Some(_), .. } | Block::Opaque { .. } | Block::Image(_) => {}
        }
    }
    answer
}

pub(super) fn storage(error: &BackendError) -> ModelFailure {
    ModelFailure::new(ErrorClass::Storage, error.to_string())
}

struct PiecesOfCall<'a> {
    session: SessionId,
    call: Seq,
    deltas: &'a Deltas,
}

impl DeltaSink for PiecesOfCall<'_> {
    fn delta(&self, kind: DeltaKind, text: &str) {
        self.deltas.delta(self.call, Delta { session: self.session, kind, text: text.to_owned() });
    }
}
