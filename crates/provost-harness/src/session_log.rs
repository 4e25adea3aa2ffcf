//! A tool's view of its session's log: only what the model was shown or wrote itself.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use provost_event::{
    ActorKey, AssistantMessage, BlobId, Block, ConversationEntry, EffectId, Entry, Image, LifecycleEntry,
    ModelEntry, Record, Seq, ToolCall, ToolEntry, ToolFinished,
};
use tokio::sync::OnceCell;

use crate::lineage::read_conversation;
use crate::{Backend, BackendError};

/// Entries read at a time, shown or not: the maximum held in memory.
const PAGE_ENTRIES: u64 = 128;

/// The conversation of one session, from its goal to the model call that led to the tool call which reads it.
/// Cheap to clone.
///
/// It has the content of [`Transcript`](crate::Transcript) in its original form, without reasoning: goal,
/// messages, answers with their calls, results, reminders, summaries. It lacks the entries of hooks, permissions
/// and limits, and everything after that model call, as the model may still be denied access to it.
#[derive(Clone, Default)]
pub struct SessionLog(Option<Arc<Source>>);

struct Source {
    backend: Arc<dyn Backend>,
    call: EffectId,
    end: OnceCell<Seq>,
}

/// A piece of a log.
#[derive(Debug, Clone)]
pub struct LogPage {
    /// Its first entry; older entries precede it.
    pub from: Seq,
    /// The entries in it that the model was shown or wrote, in order.
    pub shown: Vec<LogItem>,
}

impl LogPage {
    /// Whether no entries precede it.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.from.0 <= 1
    }
}

impl SessionLog {
    /// A log without entries.
    #[must_use]
    pub const fn empty() -> Self {
        Self(None)
    }

    /// The log of the session whose tool call has the effect `call`. Nothing is read yet.
    #[must_use]
    pub fn of(backend: Arc<dyn Backend>, call: EffectId) -> Self {
        Self(Some(Arc::new(Source { backend, call, end: OnceCell::new() })))
    }

    /// The newest entries before `until`: 128 of them, shown or not, or as many as exist. An `until` after the end
    /// of what the model was shown is replaced by that end.
    ///
    /// # Errors
    /// When the log can't be read.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn before(&self, until: Seq) -> Result<LogPage, BackendError> {
        let Some(source) = &self.0 else { return Ok(LogPage { from: Seq::START, shown: Vec::new() }) };
        let end = *source.end.get_or_try_init(|| source.find_end()).await?;
        let until = until.min(end);
        let from = start_before(until);
        let records = source.records(from, until).await?;
        Ok(LogPage { from, shown: records.into_iter().filter_map(LogItem::of).collect() })
    }
}

impl SessionLog {
    /// The blob with the whole output of the call that the entry `started` began, if the model was shown only part of
    /// it. Only of calls that the model has seen the results of.
    ///
    /// # Errors
    /// When the log can't be read.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn whole_output(&self, started: Seq) -> Result<Option<BlobId>, BackendError> {
        let Some(source) = &self.0 else { return Ok(None) };
        let end = *source.end.get_or_try_init(|| source.find_end()).await?;
        let (mut from, mut call) = (started, None);
        while from < end {
            let until = Seq(from.0.saturating_add(PAGE_ENTRIES)).min(end);
            for record in source.records(from, until).await? {
                match &record.entry {
                    Entry::Tool(ToolEntry::Started(entry)) if record.seq == started => {
                        call = Some(entry.call.clone());
                    }
                    Entry::Tool(ToolEntry::Finished(entry)) if call.as_ref() == Some(&entry.call) => {
                        return Ok(entry.whole.clone());
                    }
                    _ => {}
                }
            }
            if call.is_none() {
                return Ok(None);
            }
            from = until;
        }
        Ok(None)
    }
}

impl fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionLog").field(&self.0.as_ref().map(|source| source.call)).finish()
    }
}

/// The first entry of the piece that ends before `until`.
fn start_before(until: Seq) -> Seq {
    Seq(until.0.saturating_sub(PAGE_ENTRIES).max(1))
}

impl Source {
    /// The model call whose answer has the tool call.
    async fn find_end(&self) -> Result<Seq, BackendError> {
        let mut until = self.call.seq;
        while until.0 > 1 {
            let from = start_before(until);
            let records = self.records(from, until).await?;
            let is_model_call =
                |record: &&Arc<Record>| matches!(record.entry, Entry::Model(ModelEntry::Called(_)));
            if let Some(called) = records.iter().rfind(is_model_call) {
                return Ok(called.seq);
            }
            until = from;
        }
        Ok(Seq::START)
    }

    /// The records from `from` to before `until`. A backend may return fewer at a time than requested.
    async fn records(&self, from: Seq, until: Seq) -> Result<Vec<Arc<Record>>, BackendError> {
        let key: ActorKey = self.call.actor;
        let mut records = Vec::new();
        let mut next = from;
        while next < until {
            let missing = usize::try_from(until.0.saturating_sub(next.0)).unwrap_or(usize::MAX);
            let before = Seq(next.0.saturating_sub(1));
            let more = match key {
                ActorKey::Session(session) => {
                    read_conversation(&*self.backend, session, before, missing).await?
                }
                ActorKey::Run(_) => self.backend.read(key, before, missing).await?,
            };
            let Some(last) = more.last() else { break };
            next = last.seq.next();
            records.extend(more);
        }
        Ok(records)
    }
}

/// An entry that the model was shown or wrote.
#[derive(Debug, Clone)]
pub struct LogItem(Arc<Record>);

/// One message, call or result in an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance<'a> {
    /// The tool of a call or result.
    pub tool: Option<&'a str>,
    /// The text; for a call, the arguments as the model wrote them.
    pub text: Cow<'a, str>,
}

impl LogItem {
    fn of(record: Arc<Record>) -> Option<Self> {
        let is_shown = match &record.entry {
            // A fork's goal is in the conversation that it continues.
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => started.fork.is_none(),
            Entry::Conversation(
                ConversationEntry::UserMessage(_)
                | ConversationEntry::SystemItem(_)
                | ConversationEntry::AssistantMessage(_),
            )
            | Entry::Tool(ToolEntry::Finished(_)) => true,
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => !compacted.through.is_start(),
            Entry::Lifecycle(
                LifecycleEntry::RunStarted(_)
                | LifecycleEntry::RunPolicyChanged(_)
                | LifecycleEntry::AgentPolicyChanged(_)
                | LifecycleEntry::Forked(_)
                | LifecycleEntry::Snapshot(_)
                | LifecycleEntry::ProcessesLeft(_)
                | LifecycleEntry::StopRequested(_)
                | LifecycleEntry::Paused(_)
                | LifecycleEntry::Resumed(_)
                | LifecycleEntry::Ended(_),
            )
            | Entry::Model(_)
            | Entry::Gate(_)
            | Entry::Tool(ToolEntry::Started(_) | ToolEntry::Changed(_) | ToolEntry::ServiceNoted(_))
            | Entry::Conversation(ConversationEntry::TurnEnded(_) | ConversationEntry::FinalSummary(_))
            | Entry::Terminal(_)
            | Entry::Goal(_)
            | Entry::Budget(_)
            | Entry::Agent(_)
            | Entry::Worktree(_) => false,
        };
        is_shown.then_some(Self(record))
    }

    /// The entry's number.
    #[must_use]
    pub fn entry(&self) -> Seq {
        self.0.seq
    }

    /// The author, in words for the model.
    #[must_use]
    pub fn who(&self) -> String {
        match &self.0.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(_)) => "the goal".to_owned(),
            Entry::Conversation(ConversationEntry::UserMessage(message)) => format!("said by {}", message.by),
            Entry::Conversation(ConversationEntry::SystemItem(_)) => "a reminder".to_owned(),
            Entry::Conversation(ConversationEntry::AssistantMessage(_)) => "said by you".to_owned(),
            Entry::Tool(ToolEntry::Finished(finished)) if finished.status.is_error() => {
                format!("failed call of `{}`", finished.tool)
            }
            Entry::Tool(ToolEntry::Finished(finished)) => format!("result of `{}`", finished.tool),
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => {
                format!("a summary up to entry {}", compacted.through)
            }
            _ => String::new(),
        }
    }

    /// Its parts, in order.
    #[must_use]
    pub fn said(&self) -> Vec<Utterance<'_>> {
        match &self.0.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => vec![words(&started.goal)],
            Entry::Conversation(ConversationEntry::UserMessage(message)) => {
                message.content.iter().filter_map(said_in).collect()
            }
            Entry::Conversation(ConversationEntry::SystemItem(item)) => vec![words(&item.body)],
            Entry::Conversation(ConversationEntry::AssistantMessage(AssistantMessage {
                content, ..
            })) => content.iter().filter_map(said_in).collect(),
            Entry::Tool(ToolEntry::Finished(finished)) => {
                vec![Utterance { tool: Some(&finished.tool), text: Cow::Borrowed(&finished.output) }]
            }
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => vec![words(&compacted.summary)],
            _ => Vec::new(),
        }
    }

    /// All its parts as one text. A result is unchanged, byte for byte.
    #[must_use]
    pub fn text(&self) -> String {
        let is_result = matches!(self.0.entry, Entry::Tool(ToolEntry::Finished(_)));
        let texts = self.said().into_iter().map(|said| match said.tool {
            Some(tool) if !is_result => format!("{}{}", call_mark(tool), said.text),
            _ => said.text.into_owned(),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The offset of each part of [`LogItem::said`] in [`LogItem::text`], in bytes.
    pub(crate) fn places(&self) -> Vec<usize> {
        let is_result = matches!(self.0.entry, Entry::Tool(ToolEntry::Finished(_)));
        let mut at = 0_usize;
        let place = |said: Utterance<'_>| {
            let mark = said.tool.filter(|_| !is_result).map_or(0, |tool| call_mark(tool).len());
            let begin = at.saturating_add(mark);
            at = begin.saturating_add(said.text.len()).saturating_add(1);
            begin
        };
        self.said().into_iter().map(place).collect()
    }

    /// Its pictures, in order.
    #[must_use]
    pub fn images(&self) -> Vec<&Image> {
        self.0.entry.images()
    }

    /// Its tool result, if it is one.
    pub(crate) fn result(&self) -> Option<&ToolFinished> {
        match &self.0.entry {
            Entry::Tool(ToolEntry::Finished(finished)) => Some(finished),
            _ => None,
        }
    }
}

/// The prefix of a call's arguments.
fn call_mark(tool: &str) -> String {
    format!("[call of `{tool}`] ")
}

fn words(text: &str) -> Utterance<'_> {
    Utterance { tool: None, text: Cow::Borrowed(text) }
}

fn said_in(block: &Block) -> Option<Utterance<'_>> {
    match block {
        Block::Text(text) => Some(words(text)),
        Block::ToolCall(ToolCall { name, input, malformed, .. }) => {
            let text = Cow::Borrowed(malformed.as_deref().unwrap_or_else(|| input.text()));
            Some(Utterance { tool: Some(name), text })
        }
        Block::Image(_) | Block::Thinking { .. } | Block::Opaque { .. } => None,
    }
}
