//! A model call.

use opentelemetry::trace::{SpanId, SpanKind};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use provost_event::{
    AssistantMessage, BudgetCharged, MicroDollars, ModelCalled, Record, Retry, RetryCause, SessionId,
    Timestamp, Usage,
};

use crate::content::{Messages, Sieve};
use crate::ids::span_id;
use crate::names::{self, ModelName};
use crate::session::Context;
use crate::span::{OpenSpan, dollars, set_usage};

/// A model call from its beginning until it is paid. Which model was asked and what a discarded answer cost, only
/// the bill tells for certain; it comes right after the answer.
#[derive(Debug)]
pub(crate) struct Chat {
    span: OpenSpan,
    call: u32,
    ended: Option<Timestamp>,
    error: Option<String>,
    answered_by: Option<String>,
    usage: Usage,
    cost: Option<MicroDollars>,
    is_charged: bool,
}

impl Chat {
    pub(crate) fn begin(record: &Record, called: &ModelCalled, session: SessionId, parent: SpanId) -> Self {
        let mut span = OpenSpan::new(span_id(record.actor, record.seq), parent, record.at);
        span.kind = SpanKind::Client;
        span.set(names::OPERATION, names::CHAT);
        span.set(names::CONVERSATION, session.to_string());
        span.set(names::AGENT_ID, session.to_string());
        span.set(names::AGENT_NAME, names::agent_name(session));
        span.set(names::REQUEST_MAX_TOKENS, i64::from(called.output_tokens_max));
        span.set(names::TURN, i64::from(called.turn));
        span.set(names::ATTEMPT, i64::from(called.attempt));
        Self {
            span,
            call: called.call,
            ended: None,
            error: None,
            answered_by: None,
            usage: Usage::default(),
            cost: None,
            is_charged: false,
        }
    }

    /// Tells what the model was sent, as far as it is new.
    pub(crate) fn sent(&mut self, input: &mut Messages) {
        if let Some(messages) = input.take() {
            self.span.set(names::INPUT_MESSAGES, messages);
        }
    }

    pub(crate) fn answered(&mut self, message: &AssistantMessage, at: Timestamp, sieve: &Sieve) {
        let finish = names::finish_reason(message.stop);
        self.ended = Some(at);
        self.span.set(names::FINISH_REASONS, Value::Array(Array::String(vec![StringValue::from(finish)])));
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

    pub(crate) fn discarded(&mut self, retry: &Retry, at: Timestamp) {
        if let RetryCause::Failed { status: Some(status), .. } = &retry.cause {
            self.span.set(names::HTTP_STATUS, i64::from(*status));
        }
        self.failed(names::retry_error(&retry.cause), at);
        self.consumed(retry.usage, None);
    }

    /// It came to nothing, in this way.
    pub(crate) fn failed(&mut self, kind: String, at: Timestamp) {
        self.ended = Some(at);
        self.span.fail(kind.clone());
        self.error = Some(kind);
    }

    pub(crate) fn charged(&mut self, charged: &BudgetCharged) {
        self.usage = charged.usage;
        self.cost = charged.cost;
        self.is_charged = true;
    }

    fn consumed(&mut self, usage: Usage, cost: Option<MicroDollars>) {
        if !self.is_charged {
            self.usage = usage;
            self.cost = cost;
        }
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

    /// Exports it; one whose end isn't known ends at `at`.
    pub(crate) fn export(mut self, model: Option<&ModelName>, at: Timestamp, context: &Context) {
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

    /// What its measurements are told apart by.
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
