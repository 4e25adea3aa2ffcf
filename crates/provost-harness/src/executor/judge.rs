//! Calls a judge to verify a goal.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use provost_engine::{JudgeCall, JudgeReport};
use provost_event::{ErrorClass, JudgeAnswer, ModelPolicy, SupervisorError, Usage};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;
use super::stop::evidence;
use crate::session_cache::Opening;
use crate::supervisor::{Sources, gather};
use crate::{GoalSupervisor, Inquiry, Judgement};

impl HarnessExecutor {
    /// Calls a judge; every error is part of its answer.
    pub(super) async fn judge(&self, call: &JudgeCall, cancel: &CancellationToken) -> JudgeReport {
        let started = self.deps.clock.monotonic();
        let asked = AssertUnwindSafe(self.judged(call, cancel)).catch_unwind().await;
        let (judgement, evidence) = asked.unwrap_or_else(|_| {
            (failed(ErrorClass::Storage, "what gathers the evidence panicked".to_owned()), String::new())
        });
        let Judgement { answer, usage, model } = judgement;
        let duration_ms = self.deps.clock.monotonic().since_ms(started);
        JudgeReport { answer, usage, model, duration_ms, evidence }
    }

    /// The judgement, and the workspace's fingerprint. A cancelled judge needs no fingerprint.
    async fn judged(&self, call: &JudgeCall, cancel: &CancellationToken) -> (Judgement, String) {
        let opening = match self.known.opening(self.backend(), call.session).await {
            Ok(opening) => opening,
            Err(error) => return (failed(ErrorClass::Storage, error.to_string()), String::new()),
        };
        let judgement = self.judgement(call, &opening, cancel).await;
        let evidence = if cancel.is_cancelled() { String::new() } else { evidence(&opening).await };
        (judgement, evidence)
    }

    async fn judgement(&self, call: &JudgeCall, opening: &Opening, cancel: &CancellationToken) -> Judgement {
        let goal = opening.policy.goal.as_deref();
        let index = usize::try_from(call.judge).unwrap_or(usize::MAX);
        let Some((goal, judge)) = goal.and_then(|goal| Some((goal, goal.judges.get(index)?))) else {
            return failed(ErrorClass::NotFound, "the policy has no such judge".to_owned());
        };
        let ModelPolicy { name, effort, .. } = judge;
        let model = match self.deps.models.get(name) {
            Ok(model) => model.clone(),
            Err(error) => return failed(ErrorClass::NotFound, error.to_string()),
        };
        let redactor = &self.deps.redactor;
        let sources = Sources { backend: self.backend(), opening, redactor };
        let gathered = tokio::select! {
            biased;
            () = cancel.cancelled() => return failed(ErrorClass::Aborted, "it was told to stop".to_owned()),
            gathered = gather(sources, call, cancel) => gathered,
        };
        let evidence = match gathered {
            Ok(evidence) => evidence,
            Err(error) => return failed(ErrorClass::Storage, error.to_string()),
        };
        let supervisor = GoalSupervisor::new(model, self.deps.clock.clone())
            .with_timeout(Duration::from_millis(goal.timeout_ms))
            .with_output(call.output_tokens_max, *effort);
        let inquiry = Inquiry {
            session: call.session,
            turn: call.turn,
            asked_before: call.asked_before,
            condition: &redactor.redact(&goal.condition),
            evidence: &evidence,
            again: call.again,
        };
        supervisor.ask(&inquiry, cancel).await
    }
}

fn failed(class: ErrorClass, message: String) -> Judgement {
    let answer = JudgeAnswer::Failed(SupervisorError::Llm { class, message, hint: String::new() });
    Judgement { answer, usage: Usage::default(), model: String::new() }
}
