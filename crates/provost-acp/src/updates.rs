//! From the entries of a run's logs to what an editor shows. The same entries give the same updates, whether they are read
//! as they are committed or later.

use std::collections::HashMap;

use provost_event::{
    ActorKey, AssistantMessage, Block, BudgetEntry, ConversationEntry, EffectId, Entry, GateEntry,
    LifecycleEntry, MicroDollars, ModelEntry, Purpose, Record, RunId, Seq, SessionId, SessionStarted,
    ToolEntry,
};
use provost_view::{AgentNames, safe};

use crate::calls::{AgentCalls, one_line};
use crate::editor::{Call, Text, Update, Used};

/// Characters of an agent's name.
const NAME_CHARS_MAX: usize = 40;

/// Reads the entries of a run in their order.
pub(crate) struct Updates {
    root: SessionId,
    names: AgentNames,
    agents: HashMap<SessionId, AgentCalls>,
    /// The calls that questions are about.
    asked: HashMap<EffectId, Call>,
    /// The entry that called the root's model last.
    called: Seq,
    /// Tokens in the root's window, and its size; absent if that isn't known.
    tokens: u64,
    window: Option<u64>,
    cost: MicroDollars,
}

impl Updates {
    pub(crate) fn new(run: RunId) -> Self {
        Self {
            root: SessionId::root(run),
            names: AgentNames::default(),
            agents: HashMap::new(),
            asked: HashMap::new(),
            called: Seq::START,
            tokens: 0,
            window: None,
            cost: MicroDollars(0),
        }
    }

    /// The call that a question is about.
    pub(crate) fn asked(&self, question: EffectId) -> Option<&Call> {
        self.asked.get(&question)
    }

    /// What is shown of an entry.
    pub(crate) fn take(&mut self, record: &Record) -> Vec<Update> {
        self.names.learn(record);
        match record.actor {
            ActorKey::Run(_) => self.of_run(&record.entry),
            ActorKey::Session(session) => self.of_agent(session, record),
        }
    }

    /// What is shown of an entry of the log that this run's conversation was forked from.
    pub(crate) fn take_inherited(&mut self, record: &Record) -> Vec<Update> {
        self.of_agent(self.root, record)
    }

    fn of_run(&mut self, entry: &Entry) -> Vec<Update> {
        let Entry::Budget(BudgetEntry::Charged(charged)) = entry else { return Vec::new() };
        self.cost = MicroDollars(self.cost.0.saturating_add(charged.cost.map_or(0, |cost| cost.0)));
        let used = |window| Update::Used(Used { tokens: self.tokens, window, cost: self.cost });
        self.window.map(used).into_iter().collect()
    }

    fn of_agent(&mut self, session: SessionId, record: &Record) -> Vec<Update> {
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                self.started(session, started, record)
            }
            Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => {
                if let Some(agent) = self.agents.get_mut(&session) {
                    agent.under(&changed.policy);
                }
                if session == self.root {
                    self.window = changed.policy.model.window_tokens;
                }
                Vec::new()
            }
            Entry::Model(ModelEntry::Called(called)) => {
                if session == self.root && called.purpose == Purpose::Turn {
                    self.called = record.seq;
                }
                Vec::new()
            }
            Entry::Conversation(entry) => self.of_conversation(session, entry, record),
            Entry::Tool(entry) => self.of_tool(session, entry),
            Entry::Gate(GateEntry::ApprovalRequested(asked)) => {
                let call = self.agents.get(&session).and_then(|agent| agent.asked(&asked.call, &asked.input));
                let question = EffectId { actor: session.into(), seq: record.seq };
                self.asked.extend(call.map(|call| (question, call)));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn started(&mut self, session: SessionId, started: &SessionStarted, record: &Record) -> Vec<Update> {
        self.agents.insert(session, AgentCalls::new(session, &started.policy));
        if session != self.root {
            return Vec::new();
        }
        self.window = started.policy.model.window_tokens;
        let title = Update::Titled(one_line(&started.goal));
        // A fork's conversation begins in other logs.
        let said = started.fork.is_none().then(|| Update::Said(text(record, 0, &started.goal)));
        [Some(title), said].into_iter().flatten().collect()
    }

    fn of_conversation(
        &mut self,
        session: SessionId,
        entry: &ConversationEntry,
        record: &Record,
    ) -> Vec<Update> {
        let is_root = session == self.root;
        match entry {
            ConversationEntry::AssistantMessage(message) => self.answered(session, message, record),
            ConversationEntry::UserMessage(message) if is_root => {
                let texts = message.content.iter().enumerate();
                let texts = texts.filter_map(|(number, block)| match block {
                    Block::Text(said) => Some(Update::Said(text(record, number, said))),
                    _ => None,
                });
                texts.collect()
            }
            ConversationEntry::FinalSummary(summary) if is_root && !summary.text.is_empty() => {
                vec![Update::Answered(text(record, 0, &summary.text))]
            }
            _ => Vec::new(),
        }
    }

    fn answered(&mut self, session: SessionId, message: &AssistantMessage, record: &Record) -> Vec<Update> {
        let is_root = session == self.root;
        if is_root {
            self.tokens = message.usage.total();
        }
        let by = (!is_root).then(|| labelled(session.agent, self.names.name(session)));
        let text = answer_text(record, self.called);
        let thought = answer_thought(record, self.called);
        let Some(agent) = self.agents.get_mut(&session) else { return Vec::new() };
        let blocks = message.content.iter().enumerate();
        let shown = blocks.filter_map(|(number, block)| match block {
            Block::Text(said) if is_root && !said.is_empty() => {
                Some(Update::Answered(Text { message: text.clone(), text: safe(said) }))
            }
            Block::Thinking { text: said, .. } if is_root && !said.is_empty() => {
                Some(Update::Thought(Text { message: thought.clone(), text: safe(said) }))
            }
            Block::ToolCall(call) => {
                let begun = agent.begin(call, record.seq, number, by.as_deref());
                Some(Update::CallBegun(Box::new(begun)))
            }
            _ => None,
        });
        shown.collect()
    }

    fn of_tool(&mut self, session: SessionId, entry: &ToolEntry) -> Vec<Update> {
        let is_root = session == self.root;
        let Some(agent) = self.agents.get_mut(&session) else { return Vec::new() };
        match entry {
            ToolEntry::Started(started) => {
                let change = agent.started(started);
                change.map(|change| Update::CallChanged(Box::new(change))).into_iter().collect()
            }
            ToolEntry::Finished(finished) => {
                let change = agent.finished(finished);
                let change = change.map(|change| Update::CallChanged(Box::new(change)));
                let plan = finished.plan.as_ref().filter(|_| is_root);
                let plan = plan.map(|plan| Update::Planned(plan.items.clone()));
                change.into_iter().chain(plan).collect()
            }
            ToolEntry::Changed(change) => {
                agent.change_tools(change);
                Vec::new()
            }
            ToolEntry::ServiceNoted(_) => Vec::new(),
        }
    }
}

/// The message with the text of the answer to the call that the entry `called` of the record's log began.
pub(crate) fn answer_text(record: &Record, called: Seq) -> String {
    format!("{}#{called}", record.actor)
}

/// The message with the reasoning of that answer.
pub(crate) fn answer_thought(record: &Record, called: Seq) -> String {
    format!("{}#{called}.thought", record.actor)
}

/// A part of the message of an entry.
fn text(record: &Record, part: usize, text: &str) -> Text {
    let message = match part {
        0 => format!("{}#{}", record.actor, record.seq),
        part => format!("{}#{}.{part}", record.actor, record.seq),
    };
    Text { message, text: safe(text) }
}

/// An agent below the root: its number, and the name that it was given.
fn labelled(number: u32, name: &str) -> String {
    let name = one_line(name).chars().take(NAME_CHARS_MAX).collect::<String>();
    if name.is_empty() { format!("agent {number}") } else { format!("agent {number} {name}") }
}
