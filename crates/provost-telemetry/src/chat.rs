//! A model call.

use opentelemetry::trace::SpanKind;
use opentelemetry::{Array, KeyValue, StringValue, Value};
use provost_event::{
    AsideCall, AssistantMessage, BudgetCharged, FinalSummaryFinished, GoalJudged, JudgeAnswer, MicroDollars,
    ModelCalled, Purpose, Record, Retry, RetryCause, StopReason, SupervisorError, Timestamp, Usage,
};

use crate::content::{Messages, Sieve};
use crate::goal;
use crate::ids::span_id;
use crate::names::{self, ModelName};
use crate::session::{Caller, Context};
use crate::span::{OpenSpan, dollars, set_usage};

/// A model call from its beginning until it is charged. Only the charge, which comes right after the answer, has
/// the requested model and the cost of a discarded answer.
#[derive(Debug)]
pub(crate) struct Chat {
    span: OpenSpan,
    call: u32,
    purpose: Purpose,
    ended: Option<Timestamp>,
    error: Option<String>,
    /// From the charge, or from a judge's answer.
    asked: Option<ModelName>,
    answered_by: Option<String>,
    usage: Usage,
    cost: Option<MicroDollars>,
    is_charged: bool,
}

impl Chat {
    pub(crate) fn begin(record: &Record, called: &ModelCalled, caller: Caller) -> Self {
        let mut span = OpenSpan::new(span_id(record.actor, record.seq), caller.span, record.at);
        span.kind = SpanKind::Client;
        span.set(names::OPERATION, names::CHAT);
        caller.named(&mut span);
        span.set(names::PURPOSE, names::word(&called.purpose));
        span.set(names::REQUEST_MAX_TOKENS, i64::from(called.output_tokens_max));
        span.set(names::TURN, i64::from(called.turn));
        span.set(names::ATTEMPT, i64::from(called.attempt));
        Self {
            span,
            call: called.call,
            purpose: called.purpose,
            ended: None,
            error: None,
            asked: None,
            answered_by: None,
            usage: Usage::default(),
            cost: None,
            is_charged: false,
        }
    }

    /// Records the new part of the model's input. A call outside of the conversation doesn't take its messages,
    /// and its own question isn't in the log.
    pub(crate) fn sent(&mut self, input: &mut Messages) {
        let messages = match self.purpose {
            Purpose::Turn => input.take(),
            Purpose::Summary | Purpose::FinalSummary => input.shown(),
            // A judge's input is the evidence, which isn't in the log.
            // The request of a program or a hook isn't either.
            Purpose::Judge | Purpose::External | Purpose::Hook => None,
        };
        if let Some(messages) = messages {
            self.span.set(names::INPUT_MESSAGES, messages);
        }
    }

    pub(crate) fn answered(&mut self, message: &AssistantMessage, at: Timestamp, sieve: &Sieve) {
        let finish = self.finished(message.stop);
        self.ended = Some(at);
        if sieve.is_open() {
            let mut output = Messages::default();
            let parts = output.parts(&message.content, sieve);
            output.answered(parts, finish);
            if let Some(messages) = output.take() {
                self.span.set(names::OUTPUT_MESSAGES, messages);
            }
        }
        self.answered_by = Some(sieve.label(&message.model));
        self.consumed(message.usage, message.cost);
    }

    /// It returned the summary that replaces the conversation.
    pub(crate) fn summed_up(&mut self, call: &AsideCall, at: Timestamp, sieve: &Sieve) {
        // A call that ended otherwise gives no summary.
        self.finished(StopReason::EndTurn);
        self.ended_aside(call, at, sieve);
    }

    /// It returned an agent's final summary, or should have. The stop reason isn't in the log.
    pub(crate) fn final_summary_finished(
        &mut self,
        wrapped: &FinalSummaryFinished,
        call: &AsideCall,
        at: Timestamp,
        sieve: &Sieve,
    ) {
        if wrapped.problem.is_some() {
            self.failed(names::final_summary_error(call).to_owned(), at);
        }
        let mut output = Messages::default();
        let said = output.text(&wrapped.text, sieve).filter(|_| !wrapped.text.is_empty());
        output.add("assistant", said.into_iter().collect());
        if let Some(messages) = output.take() {
            self.span.set(names::OUTPUT_MESSAGES, messages);
        }
        self.ended_aside(call, at, sieve);
    }

    /// It returned a judge's answer, in time or not.
    pub(crate) fn judged(&mut self, judged: &GoalJudged, at: Timestamp, sieve: &Sieve) {
        let said = match &judged.answer {
            JudgeAnswer::Verdict(verdict) => {
                self.finished(StopReason::EndTurn);
                self.span.set(names::GOAL_ACHIEVED, verdict.achieved);
                self.span.set(names::GOAL_CONFIDENCE, verdict.confidence.fraction());
                serde_json::to_string(verdict).ok()
            }
            JudgeAnswer::Failed(error) => {
                self.failed(goal::error(error), at);
                match error {
                    SupervisorError::Parse(said) => Some(said.clone()),
                    _ => None,
                }
            }
        };
        self.span.set(names::GOAL_GENERATION, i64::from(judged.generation));
        if judged.stale {
            self.span.set(names::GOAL_STALE, true);
        }
        let mut output = Messages::default();
        let said = said.filter(|said| !said.is_empty()).and_then(|said| output.text(&said, sieve));
        output.add("assistant", said.into_iter().collect());
        if let Some(messages) = output.take() {
            self.span.set(names::OUTPUT_MESSAGES, messages);
        }
        self.asked = self.asked.take().or_else(|| ModelName::of(&judged.judge));
        self.ended_aside(&judged.call, at, sieve);
    }

    fn ended_aside(&mut self, call: &AsideCall, at: Timestamp, sieve: &Sieve) {
        self.ended = Some(at);
        self.answered_by = (!call.model.is_empty()).then(|| sieve.label(&call.model));
        self.consumed(call.usage, call.cost);
    }

    fn finished(&mut self, stop: StopReason) -> &'static str {
        let finish = names::finish_reason(stop);
        self.span.set(names::FINISH_REASONS, Value::Array(Array::String(vec![StringValue::from(finish)])));
        finish
    }

    pub(crate) fn discarded(&mut self, retry: &Retry, at: Timestamp) {
        if let RetryCause::Failed { status: Some(status), .. } = &retry.cause {
            self.span.set(names::HTTP_STATUS, i64::from(*status));
        }
        self.failed(names::retry_error(&retry.cause), at);
        self.consumed(retry.usage, None);
    }

    /// It failed, with this kind of error.
    pub(crate) fn failed(&mut self, kind: String, at: Timestamp) {
        self.ended = Some(at);
        self.span.fail(kind.clone());
        self.error = Some(kind);
    }

    /// Returns the agent's model, if the charge has it.
    pub(crate) fn charged(&mut self, charged: &BudgetCharged) -> Option<ModelName> {
        self.asked = ModelName::of(&charged.model).or_else(|| self.asked.take());
        self.usage = charged.usage;
        self.cost = charged.cost;
        self.is_charged = true;
        self.asked.clone().filter(|_| !self.is_of_judge())
    }

    const fn is_of_judge(&self) -> bool {
        matches!(self.purpose, Purpose::Judge)
    }

    fn consumed(&mut self, usage: Usage, cost: Option<MicroDollars>) {
        if !self.is_charged {
            self.usage = usage;
            self.cost = cost;
        }
    }

    /// Its usage and cost, as far as known.
    pub(crate) fn took(&self) -> (Usage, MicroDollars) {
        (self.usage, self.cost.unwrap_or_default())
    }

    /// Whether it is the call with this number.
    pub(crate) const fn is(&self, call: u32) -> bool {
        self.call == call
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.ended.is_some() && self.is_charged
    }

    /// Exports it; a call without a known end ends at `at`. `model` is the agent's.
    pub(crate) fn export(mut self, model: Option<&ModelName>, at: Timestamp, context: &Context) {
        let asked = self.asked.take();
        let model = asked.as_ref().or(model.filter(|_| !self.is_of_judge()));
        let model = model.map(|model| ModelName {
            provider: context.shared.sieve.label(&model.provider),
            model: context.shared.sieve.label(&model.model),
        });
        let of = self.dimensions(model.as_ref());
        let instruments = &context.shared.pipeline.instruments;
        instruments.consumed(self.usage, self.cost, &of);
        match self.ended {
            Some(ended) => {
                let error = self.error.take().map(|kind| KeyValue::new(names::ERROR_TYPE, kind));
                let of = of.into_iter().chain(error).collect::<Vec<_>>();
                instruments.call_took(ended.since_ms(self.span.started), &of);
            }
            None => self.span.set(names::UNFINISHED, true),
        }
        if let Some(model) = &model {
            self.span.set(names::PROVIDER, model.provider.clone());
            self.span.set(names::REQUEST_MODEL, model.model.clone());
        }
        if let Some(by) = self.answered_by.take() {
            self.span.set(names::RESPONSE_MODEL, by);
        }
        set_usage(&mut self.span, self.usage);
        if let Some(cost) = self.cost {
            self.span.set(names::COST, dollars(cost));
        }
        let name =
            model.map_or_else(|| names::CHAT.to_owned(), |model| format!("{} {}", names::CHAT, model.model));
        context.ended(self.span, name, self.ended.unwrap_or(at));
    }

    /// The attributes of its measurements.
    fn dimensions(&self, model: Option<&ModelName>) -> Vec<KeyValue> {
        let mut of = vec![KeyValue::new(names::OPERATION, names::CHAT)];
        if let Some(model) = model {
            of.push(KeyValue::new(names::PROVIDER, model.provider.clone()));
            of.push(KeyValue::new(names::REQUEST_MODEL, model.model.clone()));
        }
        if let Some(by) = &self.answered_by {
            of.push(KeyValue::new(names::RESPONSE_MODEL, by.clone()));
        }
        of
    }
}
