//! One agent of a run: its span, and those of its model and tool calls.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use opentelemetry::trace::SpanId;
use provost_event::{
    AssistantMessage, BudgetCharged, CallId, ChainContext, ConversationEntry, Entry, GoalEntry,
    LifecycleEntry, MicroDollars, ModelCalled, ModelEntry, Outcome, Record, Retry, SessionId, SessionStarted,
    Timestamp, ToolEntry, ToolFinished, ToolStarted, Usage,
};

use crate::chat::Chat;
use crate::content::{Messages, Sieve};
use crate::decisions;
use crate::goal::{self, Found};
use crate::ids::{span_id, stand_in_id};
use crate::names::{self, ModelName};
use crate::span::{OpenSpan, SpanScope, dollars, set_usage};
use crate::telemetry::Shared;
use crate::tool::ToolSpan;

/// Maximum charges kept for calls whose beginning wasn't passed yet.
const BILLS_MAX: usize = 1_000;

/// The context of every span of a run.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: SpanScope,
}

impl Context {
    pub(crate) fn ended(&self, span: OpenSpan, name: impl Into<Cow<'static, str>>, at: Timestamp) {
        self.shared.pipeline.ended(span.end(name, at, &self.place));
    }

    fn sieve(&self) -> &Sieve {
        &self.shared.sieve
    }
}

/// The agent of a call.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    session: SessionId,
    chain: ChainContext,
    /// The agent's span.
    pub(crate) span: SpanId,
}

impl Caller {
    /// Sets the agent's attributes on `span`.
    pub(crate) fn named(&self, span: &mut OpenSpan) {
        named(span, self.session, &self.chain);
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    id: SessionId,
    chain: ChainContext,
    span: Option<OpenSpan>,
    /// When it was suspended or ended.
    stopped_at: Option<Timestamp>,
    /// Unknown for a resumed agent until its first charge.
    model: Option<ModelName>,
    /// The present call, or the last one until it is charged.
    chat: Option<Chat>,
    /// Charges that came before their calls: the run's log may be passed ahead of the agent's.
    bills: BTreeMap<u32, BudgetCharged>,
    tools: BTreeMap<CallId, ToolSpan>,
    usage: Usage,
    cost: MicroDollars,
    /// The messages to the model since its last call.
    input: Messages,
    found: Found,
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Self {
        Self {
            id,
            chain: ChainContext::root(id.run),
            span: None,
            stopped_at: None,
            model: None,
            chat: None,
            bills: BTreeMap::new(),
            tools: BTreeMap::new(),
            usage: Usage::default(),
            cost: MicroDollars::default(),
            input: Messages::default(),
            found: Found::default(),
        }
    }

    /// Sets its position in the chain.
    pub(crate) fn stands(&mut self, chain: ChainContext) {
        self.chain = chain;
    }

    /// Replaces the id of its span's parent.
    pub(crate) fn moved(&mut self, from: SpanId, to: SpanId) {
        if let Some(span) = self.span.as_mut().filter(|span| span.parent == from) {
            span.parent = to;
        }
    }

    pub(crate) const fn is_suspended(&self) -> bool {
        self.stopped_at.is_some()
    }

    /// Its span, while it is open.
    pub(crate) fn span_id(&self) -> Option<SpanId> {
        self.span.as_ref().map(|span| span.id)
    }

    pub(crate) fn on(&mut self, record: &Record, parent: SpanId, context: &Context) {
        let at = record.at;
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                self.started(record, started, parent, context)
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => {
                self.goes_on(at, context);
                self.open(record, parent);
            }
            Entry::Model(ModelEntry::Called(called)) => self.model_called(record, called, parent, context),
            Entry::Conversation(ConversationEntry::AssistantMessage(message)) => {
                self.answered(message, at, context)
            }
            Entry::Model(ModelEntry::Retried(retry)) => self.discarded(retry, at, context),
            Entry::Tool(ToolEntry::Started(started)) => self.tool_started(record, started, parent, context),
            Entry::Tool(ToolEntry::Finished(finished)) => {
                self.tool_finished(record, finished, parent, context)
            }
            Entry::Conversation(ConversationEntry::UserMessage(said)) => {
                let parts = self.input.parts(&said.content, context.sieve());
                self.input.add("user", parts);
            }
            Entry::Conversation(ConversationEntry::SystemItem(item)) => {
                let part = self.input.text(&item.body, context.sieve());
                self.input.add("system", part.into_iter().collect());
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                self.segment_ended(&paused.outcome, at, context)
            }
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.segment_ended(&ended.outcome, at, context),
            entry => {
                self.answered_aside(entry, at, context.sieve());
                self.export_complete(context);
                match entry {
                    Entry::Goal(GoalEntry::Judged(judged)) => self.found.judged(judged),
                    Entry::Goal(GoalEntry::Verdict(verdict)) => self.found.hear(verdict),
                    _ => {}
                }
                let told = decisions::told(entry, context.sieve(), &context.shared.pipeline.instruments);
                for (name, attributes) in told {
                    self.open_span(record, parent).event(name, at, attributes);
                }
            }
        }
    }

    /// The charge of one of its calls; only now the cost is certain.
    pub(crate) fn charged(&mut self, charged: &BudgetCharged, context: &Context) {
        match self.chat.as_mut().filter(|chat| chat.is(charged.call)) {
            Some(chat) => self.model = chat.charged(charged).or_else(|| self.model.take()),
            None if self.bills.len() < BILLS_MAX => {
                self.bills.insert(charged.call, charged.clone());
            }
            None => {}
        }
        self.export_complete(context);
        self.end_when_paid(context);
    }

    /// Closes all open spans as unfinished.
    pub(crate) fn close_all(&mut self, at: Timestamp, context: &Context) {
        self.close_calls(at, context);
        self.close_span(at, context);
    }

    /// Ends its earlier spans. Calls that wait for other agents continue while it is suspended.
    fn goes_on(&mut self, at: Timestamp, context: &Context) {
        self.export_chat(at, context);
        self.close_span(at, context);
    }

    fn close_span(&mut self, at: Timestamp, context: &Context) {
        self.end_when_paid(context);
        if let Some(mut span) = self.span.take() {
            span.set(names::UNFINISHED, true);
            self.end(span, at, context);
        }
    }

    fn started(&mut self, record: &Record, started: &SessionStarted, parent: SpanId, context: &Context) {
        self.close_all(record.at, context);
        self.model = ModelName::of(&started.policy.model.name);
        if let Some(goal) = &started.policy.goal {
            self.found.asks(goal);
        }
        let sieve = context.sieve();
        let goal = self.input.text(&started.goal, sieve);
        self.input.add("user", goal.into_iter().collect());
        let prompt = Messages::default().text(&started.policy.system_prompt, sieve);
        let kind = started.agent.as_ref().map(|kind| sieve.label(kind));
        let span = self.open(record, parent);
        if let Some(kind) = kind {
            span.set(names::AGENT_KIND, kind);
        }
        if let Some(prompt) = prompt {
            span.set(names::SYSTEM_INSTRUCTIONS, serde_json::Value::Array(vec![prompt]).to_string());
        }
    }

    fn open(&mut self, record: &Record, parent: SpanId) -> &mut OpenSpan {
        let span = OpenSpan::new(span_id(record.actor, record.seq), parent, record.at);
        self.stopped_at = None;
        self.span.insert(agent_span(self.id, &self.chain, span))
    }

    /// Its span; one that begins here if its beginning wasn't seen.
    fn open_span(&mut self, record: &Record, parent: SpanId) -> &mut OpenSpan {
        // The entry may open a span of its own, with its own id.
        let id = || stand_in_id(record.actor, record.seq);
        let new = || agent_span(self.id, &self.chain, OpenSpan::new(id(), parent, record.at));
        self.span.get_or_insert_with(new)
    }

    fn model_called(&mut self, record: &Record, called: &ModelCalled, parent: SpanId, context: &Context) {
        self.export_chat(record.at, context);
        let mut chat = Chat::begin(record, called, self.caller(record, parent));
        chat.sent(&mut self.input);
        if let Some(bill) = self.bills.remove(&called.call) {
            self.model = chat.charged(&bill).or_else(|| self.model.take());
        }
        // Charges of earlier calls aren't needed any more.
        self.bills = self.bills.split_off(&called.call);
        self.chat = Some(chat);
    }

    fn answered(&mut self, message: &AssistantMessage, at: Timestamp, context: &Context) {
        match self.chat.as_mut().filter(|chat| chat.is(message.call)) {
            Some(chat) => chat.answered(message, at, context.sieve()),
            None => self.took(message.usage, message.cost.unwrap_or_default()),
        }
        self.export_complete(context);
    }

    /// The end of a call whose answer isn't part of the conversation.
    fn answered_aside(&mut self, entry: &Entry, at: Timestamp, sieve: &Sieve) {
        let call = match entry {
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => compacted.call.as_ref(),
            Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => wrapped.call.as_ref(),
            Entry::Goal(GoalEntry::Judged(judged)) => Some(&judged.call),
            _ => None,
        };
        let Some(call) = call else { return };
        match (entry, self.chat.as_mut().filter(|chat| chat.is(call.call))) {
            (Entry::Conversation(ConversationEntry::FinalSummary(wrapped)), Some(chat)) => {
                chat.final_summary_finished(wrapped, call, at, sieve)
            }
            (Entry::Goal(GoalEntry::Judged(judged)), Some(chat)) => chat.judged(judged, at, sieve),
            (_, Some(chat)) => chat.summed_up(call, at, sieve),
            (_, None) => self.took(call.usage, call.cost.unwrap_or_default()),
        }
    }

    fn discarded(&mut self, retry: &Retry, at: Timestamp, context: &Context) {
        match self.chat.as_mut().filter(|chat| chat.is(retry.call)) {
            Some(chat) => chat.discarded(retry, at),
            None => self.took(retry.usage, MicroDollars::default()),
        }
        self.export_complete(context);
    }

    fn tool_started(&mut self, record: &Record, started: &ToolStarted, parent: SpanId, context: &Context) {
        let caller = self.caller(record, parent);
        let tool = ToolSpan::begin(record, started, caller, context.sieve());
        if let Some(lost) = self.tools.insert(started.call.clone(), tool) {
            lost.unfinished(record.at, context);
        }
    }

    fn tool_finished(&mut self, record: &Record, finished: &ToolFinished, parent: SpanId, context: &Context) {
        let part = self.input.result(&finished.call.0, &finished.output, context.sieve());
        self.input.add("tool", part.into_iter().collect());
        let tool = match self.tools.remove(&finished.call) {
            Some(tool) => tool,
            None => ToolSpan::unseen(record, finished, self.caller(record, parent), context.sieve()),
        };
        tool.finish(finished, record.at, context);
    }

    fn caller(&mut self, record: &Record, parent: SpanId) -> Caller {
        let span = self.open_span(record, parent).id;
        Caller { session: self.id, chain: self.chain.clone(), span }
    }

    /// It is suspended or ends. A model call in progress has failed; its charge follows.
    pub(crate) fn segment_ended(&mut self, outcome: &Outcome, at: Timestamp, context: &Context) {
        if self.stopped_at.is_some() {
            return;
        }
        if let Some(chat) = self.chat.as_mut().filter(|chat| !chat.has_ended()) {
            let kind = match outcome {
                Outcome::Failed { class, .. } => names::word(class),
                _ => "cancelled".to_owned(),
            };
            chat.failed(kind, at);
        }
        self.export_complete(context);
        if outcome.is_final() {
            self.close_tools(at, context);
        }
        let found = matches!(outcome, Outcome::Completed { .. }).then(|| self.found.is_done()).flatten();
        if let Some(span) = &mut self.span {
            if let Some((name, attributes)) = found {
                span.event(name, at, attributes);
                context.shared.pipeline.instruments.verified(goal::ACHIEVED);
            }
            set_outcome(span, outcome, context.sieve());
        }
        self.stopped_at = Some(at);
        self.end_when_paid(context);
    }

    /// Ends its span if it is suspended or ended and its cost is complete.
    fn end_when_paid(&mut self, context: &Context) {
        if self.chat.is_none()
            && let Some(at) = self.stopped_at
            && let Some(span) = self.span.take()
        {
            self.end(span, at, context);
        }
    }

    fn took(&mut self, usage: Usage, cost: MicroDollars) {
        self.usage += usage;
        self.cost += cost;
    }

    fn end(&mut self, mut span: OpenSpan, at: Timestamp, context: &Context) {
        set_usage(&mut span, std::mem::take(&mut self.usage));
        self.found.tell(&mut span);
        span.set(names::COST, dollars(std::mem::take(&mut self.cost)));
        if let Some(model) = &self.model {
            span.set(names::PROVIDER, context.sieve().label(&model.provider));
            span.set(names::REQUEST_MODEL, context.sieve().label(&model.model));
        }
        context.ended(span, format!("{} {}", names::INVOKE_AGENT, names::agent_name(self.id)), at);
    }

    fn export_complete(&mut self, context: &Context) {
        if self.chat.as_ref().is_some_and(Chat::is_complete) {
            self.export_chat(Timestamp::default(), context);
        }
    }

    fn export_chat(&mut self, at: Timestamp, context: &Context) {
        if let Some(chat) = self.chat.take() {
            let (usage, cost) = chat.took();
            self.took(usage, cost);
            chat.export(self.model.as_ref(), at, context);
        }
    }

    fn close_calls(&mut self, at: Timestamp, context: &Context) {
        self.export_chat(at, context);
        self.close_tools(at, context);
    }

    fn close_tools(&mut self, at: Timestamp, context: &Context) {
        for tool in std::mem::take(&mut self.tools).into_values() {
            tool.unfinished(at, context);
        }
    }
}

fn agent_span(session: SessionId, chain: &ChainContext, mut span: OpenSpan) -> OpenSpan {
    span.set(names::OPERATION, names::INVOKE_AGENT);
    named(&mut span, session, chain);
    span
}

/// Sets the agent's id and its position in the chain.
fn named(span: &mut OpenSpan, session: SessionId, chain: &ChainContext) {
    span.set(names::AGENT_ID, session.to_string());
    span.set(names::AGENT_NAME, names::agent_name(session));
    span.set(names::CONVERSATION, session.to_string());
    span.stands(chain);
}

/// Sets how a segment of work ended.
pub(crate) fn set_outcome(span: &mut OpenSpan, outcome: &Outcome, sieve: &Sieve) {
    span.set(names::OUTCOME, outcome.word());
    if let Some(words) = sieve.text(&outcome.to_string()) {
        span.set(names::OUTCOME_REASON, words);
    }
    if let Outcome::Failed { class, .. } = outcome {
        span.fail(names::word(class));
    }
}
