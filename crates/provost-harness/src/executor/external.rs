//! Continues an external agent's program, answers its questions, and ends it.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use provost_engine::{Answer, CallModel, ToolResult, ToolRun};
use provost_event::{ErrorClass, Exit, ExternalPolicy, ModelFailure, SessionId};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use crate::output::cut_middle;
use crate::session_cache::Opening;
use crate::{Exchange, PromptQueue, TerminalLog, ToolOutput};

impl HarnessExecutor {
    pub(super) async fn exchange(
        &self,
        model_call: &CallModel,
        opening: &Opening,
        policy: &ExternalPolicy,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let session = model_call.session;
        let mut words =
            self.known.take_words(session).unwrap_or_else(|| PromptQueue::of(self.backend(), session));
        words.catch_up(model_call.through).await.map_err(|error| super::call_model::storage(&error))?;
        let exchange = Exchange {
            session,
            policy,
            workspace: &opening.workspace,
            words: &mut words,
            log: TerminalLog::new(self.deps.backend.clone(), session),
            redactor: self.deps.redactor.clone(),
            is_verified: opening.policy.goal.is_some() || !opening.policy.stop_hooks.is_empty(),
            sandbox: self.sandbox_of(session, opening),
        };
        let answer = AssertUnwindSafe(self.deps.external.exchange(exchange, cancel)).catch_unwind().await;
        self.known.give_words_back(session, words);
        answer.unwrap_or_else(|_| {
            let message = format!("what drives `{}` failed inside Provost (it panicked)", policy.program);
            Err(ModelFailure::new(ErrorClass::Program, message))
        })
    }

    pub(super) async fn answer_program(&self, run: &ToolRun, cancel: &CancellationToken) -> ToolResult {
        let started = self.deps.clock.monotonic();
        let answer = AssertUnwindSafe(self.deps.external.answer(run.session, &run.call, cancel));
        let output = answer.catch_unwind().await.unwrap_or_else(|_| {
            ToolOutput::error("The answer couldn't be given: what drives the program panicked.")
        });
        let text = match cut_middle(&output.text, run.output_bytes_max) {
            Some(cut) => cut.with_note(None),
            None => output.text,
        };
        ToolResult {
            tools: Vec::new(),
            asks: None,
            status: output.status,
            output: text,
            images: Vec::new(),
            whole: None,
            duration_ms: self.deps.clock.monotonic().since_ms(started),
            memory: None,
            plan: None,
            facts: output.facts,
        }
    }

    /// Ends the program of an external agent. After half of `limit` it is killed, as that takes a moment too.
    pub(super) async fn close_terminal(
        &self,
        session: SessionId,
        limit: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Option<Exit> {
        let hurry = cancel.child_token();
        let mut closing = pin!(AssertUnwindSafe(self.deps.external.close(session, &hurry)).catch_unwind());
        let closed = match limit {
            None => closing.await,
            Some(limit) => tokio::select! {
                biased;
                closed = &mut closing => closed,
                () = self.deps.clock.sleep(limit / 2) => {
                    hurry.cancel();
                    closing.await
                }
            },
        };
        closed.unwrap_or_else(|_| {
            tracing::warn!(%session, "what drives the program of an external agent panicked");
            None
        })
    }
}
