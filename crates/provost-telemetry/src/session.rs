//! One agent of a run: its span, and those of its model and tool calls.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use opentelemetry::trace::SpanId;
use provost_event::{
    AssistantMessage, BudgetCharged, CallId, Entry, MicroDollars, ModelCalled, Outcome, Record, Retry,
    SessionId, SessionStarted, Timestamp, ToolFinished, ToolStarted, Usage,
};

use crate::chat::Chat;
use crate::content::{Messages, Sieve};
use crate::decisions;
use crate::ids::{span_id, stand_in_id};
use crate::names::{self, ModelName};
use crate::span::{OpenSpan, Place, dollars, set_usage};
use crate::telemetry::Shared;
use crate::tool::{Caller, ToolSpan};

/// What every span of a run needs.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Place,
}

impl Context {
    pub(crate) fn ended(&self, span: OpenSpan, name: impl Into<Cow<'static, str>>, at: Timestamp) {
        self.shared.pipeline.ended(span.end(name, at, &self.place));
    }

    fn sieve(&self) -> &Sieve {
        &self.shared.sieve
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    id: SessionId,
    span: Option<OpenSpan>,
    /// Not known of one that goes on, until its first call is paid.
    model: Option<ModelName>,
    /// The call that is being made, or has been and isn't paid yet.
    chat: Option<Chat>,
    tools: BTreeMap<CallId, ToolSpan>,
    usage: Usage,
    cost: MicroDollars,
    /// What was said to the model since its last call.
    input: Messages,
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Self {
        Self {
            id,
            span: None,
            model: None,
            chat: None,
            tools: BTreeMap::new(),
            usage: Usage::default(),
            cost: MicroDollars::default(),
            input: Messages::default(),
        }
    }

    /// Its span, while it is open.
    pub(crate) fn span_id(&self) -> Option<SpanId> {
        self.span.as_ref().map(|span| span.id)
    }

    pub(crate) fn on(&mut self, record: &Record, parent: SpanId, context: &Context) {
        let at = record.at;
        match &record.entry {
            Entry::SessionStarted(started) => self.started(record, started, parent, context),
            Entry::Resumed(_) => {
                self.close_all(at, context);
                self.open(record, parent);
            }
            Entry::ModelCalled(called) => self.model_called(record, called, parent, context),
            Entry::AssistantMessage(message) => self.answered(message, at, context),
            Entry::Retry(retry) => self.discarded(retry, at, context),
            Entry::ToolStarted(started) => self.tool_started(record, started, parent, context),
            Entry::ToolFinished(finished) => self.tool_finished(record, finished, parent, context),
            Entry::UserMessage(said) => {
                let parts = self.input.parts(&said.content, context.sieve());
                self.input.add("user", parts);
            }
            Entry::SystemItem(item) => {
                let part = self.input.text(&item.body, context.sieve());
                self.input.add("system", part.into_iter().collect());
            }
            Entry::Paused(paused) => self.rests(&paused.outcome, at, context),
            Entry::Ended(ended) => self.rests(&ended.outcome, at, context),
            entry => {
                let told = decisions::told(entry, context.sieve(), &context.shared.pipeline.instruments);
                for (name, attributes) in told {
                    self.open_span(record, parent).event(name, at, attributes);
                }
            }
        }
    }

    /// What a call of it took; only now it is certain.
    pub(crate) fn charged(&mut self, charged: &BudgetCharged, context: &Context) {
        self.model = ModelName::of(&charged.model).or_else(|| self.model.take());
        if let Some(chat) = self.chat.as_mut().filter(|chat| chat.is(charged.call)) {
            chat.charged(charged);
        }
        self.export_complete(context);
    }

    /// Ends what nothing more is heard of.
    pub(crate) fn close_all(&mut self, at: Timestamp, context: &Context) {
        self.close_calls(at, context);
        if let Some(mut span) = self.span.take() {
            span.set(names::UNFINISHED, true);
            self.end(span, at, context);
        }
    }

    fn started(&mut self, record: &Record, started: &SessionStarted, parent: SpanId, context: &Context) {
        self.close_all(record.at, context);
        self.model = ModelName::of(&started.policy.model.name);
        let sieve = context.sieve();
        let goal = self.input.text(&started.goal, sieve);
        self.input.add("user", goal.into_iter().collect());
        let prompt = Messages::default().text(&started.policy.system_prompt, sieve);
        let span = self.open(record, parent);
        if let Some(prompt) = prompt {
            span.set(names::SYSTEM_INSTRUCTIONS, serde_json::Value::Array(vec![prompt]).to_string());
        }
    }

    fn open(&mut self, record: &Record, parent: SpanId) -> &mut OpenSpan {
        let span = OpenSpan::new(span_id(record.actor, record.seq), parent, record.at);
        self.span.insert(agent_span(self.id, span))
    }

    /// Its span; one that begins here if its beginning wasn't seen.
    fn open_span(&mut self, record: &Record, parent: SpanId) -> &mut OpenSpan {
        // The entry may open a span of its own, which has its name.
        let id = || stand_in_id(record.actor, record.seq);
        self.span.get_or_insert_with(|| agent_span(self.id, OpenSpan::new(id(), parent, record.at)))
    }

    fn model_called(&mut self, record: &Record, called: &ModelCalled, parent: SpanId, context: &Context) {
        self.export_chat(record.at, context);
        let parent = self.open_span(record, parent).id;
        let mut chat = Chat::begin(record, called, self.id, parent);
        chat.sent(&mut self.input);
        self.chat = Some(chat);
    }

    fn answered(&mut self, message: &AssistantMessage, at: Timestamp, context: &Context) {
        self.usage += message.usage;
        self.cost += message.cost.unwrap_or_default();
        if let Some(chat) = self.chat.as_mut().filter(|chat| chat.is(message.call)) {
            chat.answered(message, at, context.sieve());
        }
        self.export_complete(context);
    }

    fn discarded(&mut self, retry: &Retry, at: Timestamp, context: &Context) {
        self.usage += retry.usage;
        if let Some(chat) = self.chat.as_mut().filter(|chat| chat.is(retry.call)) {
            chat.discarded(retry, at);
        }
        self.export_complete(context);
    }

    fn tool_started(&mut self, record: &Record, started: &ToolStarted, parent: SpanId, context: &Context) {
        let caller = Caller { session: self.id, span: self.open_span(record, parent).id };
        let tool = ToolSpan::begin(record, started, caller, context.sieve());
        if let Some(lost) = self.tools.insert(started.call.clone(), tool) {
            lost.unfinished(record.at, context);
        }
    }

    fn tool_finished(&mut self, record: &Record, finished: &ToolFinished, parent: SpanId, context: &Context) {
        let part = self.input.result(&finished.call.0, &finished.output, context.sieve());
        self.input.add("tool", part.into_iter().collect());
        let caller = Caller { session: self.id, span: self.open_span(record, parent).id };
        let refused = || ToolSpan::refused(record, finished, caller, context.sieve());
        let tool = self.tools.remove(&finished.call).unwrap_or_else(refused);
        tool.finish(finished, record.at, context);
    }

    /// It rests or ends. A model call that is still being made came to nothing; its bill follows.
    pub(crate) fn rests(&mut self, outcome: &Outcome, at: Timestamp, context: &Context) {
        if let Some(chat) = self.chat.as_mut().filter(|chat| !chat.has_ended()) {
            let kind = match outcome {
                Outcome::Failed { class, .. } => names::word(class),
                _ => "cancelled".to_owned(),
            };
            chat.failed(kind, at);
        }
        self.export_complete(context);
        for tool in std::mem::take(&mut self.tools).into_values() {
            tool.unfinished(at, context);
        }
        if let Some(mut span) = self.span.take() {
            set_outcome(&mut span, outcome, context.sieve());
            self.end(span, at, context);
        }
    }

    fn end(&mut self, mut span: OpenSpan, at: Timestamp, context: &Context) {
        set_usage(&mut span, std::mem::take(&mut self.usage));
        span.set(names::COST, dollars(std::mem::take(&mut self.cost)));
        if let Some(model) = &self.model {
            span.set(names::PROVIDER, context.sieve().label(&model.provider));
            span.set(names::REQUEST_MODEL, context.sieve().label(&model.model));
        }
        context.ended(span, format!("{} {}", names::INVOKE_AGENT, names::agent_name(self.id)), at);
    }

    fn export_complete(&mut self, context: &Context) {
        if let Some(chat) = self.chat.take_if(|chat| chat.is_complete()) {
            chat.export(self.model.as_ref(), Timestamp::default(), context);
        }
    }

    fn export_chat(&mut self, at: Timestamp, context: &Context) {
        if let Some(chat) = self.chat.take() {
            chat.export(self.model.as_ref(), at, context);
        }
    }

    fn close_calls(&mut self, at: Timestamp, context: &Context) {
        self.export_chat(at, context);
        for tool in std::mem::take(&mut self.tools).into_values() {
            tool.unfinished(at, context);
        }
    }
}

fn agent_span(session: SessionId, mut span: OpenSpan) -> OpenSpan {
    span.set(names::OPERATION, names::INVOKE_AGENT);
    span.set(names::AGENT_ID, session.to_string());
    span.set(names::AGENT_NAME, names::agent_name(session));
    span.set(names::CONVERSATION, session.to_string());
    span
}

/// How a stretch of work ended.
pub(crate) fn set_outcome(span: &mut OpenSpan, outcome: &Outcome, sieve: &Sieve) {
    span.set(names::OUTCOME, outcome.word());
    if let Some(words) = sieve.text(&outcome.to_string()) {
        span.set(names::OUTCOME_REASON, words);
    }
    if let Outcome::Failed { class, .. } = outcome {
        span.fail(names::word(class));
    }
}
