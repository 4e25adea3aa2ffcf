//! The pending messages to an external agent, from its log.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use provost_engine::untagged;
use provost_event::{
    AgentPolicy, Block, ConversationEntry, Entry, ItemKind, LifecycleEntry, ModelEntry, Record, Seq,
    SessionId, TerminalEntry, TerminalEvent, ToolEntry, ToolStatus, UserMessage,
};

use crate::{BackendError, Log};

/// The note before messages that may have been typed in already.
const MAYBE_TOLD: &str =
    "(You may have been told this before and have begun with it: look at what is there first.)";

/// A prompt to type in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// The last entry that it includes; part of the entry that it was submitted.
    pub through: Seq,
    /// The process that typed it before was interrupted: it may have been submitted then.
    pub is_uncertain: bool,
}

impl Prompt {
    /// The text for the agent: with a note before it if it is uncertain.
    #[must_use]
    pub fn for_agent(&self) -> String {
        if self.is_uncertain { format!("{MAYBE_TOLD}\n\n{}", self.text) } else { self.text.clone() }
    }
}

/// The pending messages in a session's log. It follows the log, also during an exchange.
pub struct PromptQueue {
    records: BoxStream<'static, Result<std::sync::Arc<Record>, BackendError>>,
    head: Seq,
    pending: VecDeque<(Seq, String)>,
    told: Vec<(Seq, String)>,
    has_begun: bool,
    refusal: Option<String>,
    /// The start of the last exchange: what was pending then may have been typed in.
    offered: Seq,
    is_uncertain: bool,
}

impl PromptQueue {
    /// The messages in the log of `session`, from its first entry on.
    pub(crate) fn of(backend: &dyn Log, session: SessionId) -> Self {
        Self {
            records: backend.subscribe(session.into(), Seq::START),
            head: Seq::START,
            pending: VecDeque::new(),
            told: Vec::new(),
            has_begun: false,
            refusal: None,
            offered: Seq::START,
            is_uncertain: false,
        }
    }

    /// Reads the log through entry `through`.
    pub(crate) async fn catch_up(&mut self, through: Seq) -> Result<(), BackendError> {
        while self.head < through {
            self.next().await?;
        }
        Ok(())
    }

    /// Waits until there is a pending message; returns at once if there is one.
    ///
    /// # Errors
    /// When the log can't be read.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn wait(&mut self) -> Result<(), BackendError> {
        while self.pending.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    /// All pending messages as one text. They stay pending until an entry in the log says that they were
    /// submitted.
    #[must_use]
    pub fn prompt(&self) -> Option<Prompt> {
        let (through, _) = self.pending.back()?;
        let texts = self.pending.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>();
        let is_uncertain = self.is_uncertain;
        Some(Prompt { text: texts.join("\n\n"), through: *through, is_uncertain })
    }

    /// Removes the messages of `prompt`, after the entry that it was submitted.
    pub fn told(&mut self, prompt: &Prompt) {
        self.submitted(prompt.through);
    }

    /// Whether the agent ever got a message: a program that is started now continues earlier work.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Why the program's last request was denied, if it was.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    async fn next(&mut self) -> Result<(), BackendError> {
        match self.records.next().await {
            Some(record) => {
                let record = record?;
                self.fold(&record);
                Ok(())
            }
            None => Err(BackendError::Closed),
        }
    }

    fn fold(&mut self, record: &Record) {
        self.head = record.seq;
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                self.opened(record.seq, &started.policy, &started.goal)
            }
            Entry::Conversation(ConversationEntry::UserMessage(message)) => {
                self.push(record.seq, text_of(message))
            }
            Entry::Conversation(ConversationEntry::SystemItem(item)) => match item.item {
                ItemKind::StopBlocked
                | ItemKind::StopSuspended
                | ItemKind::GoalNotReached
                | ItemKind::Reminder
                | ItemKind::HookWoke
                | ItemKind::GoalGiven
                | ItemKind::GoalRemoved
                | ItemKind::ServiceEnded
                | ItemKind::Continue
                | ItemKind::Resumed => {
                    self.push(record.seq, own_words(&item.body));
                }
                ItemKind::FolderRules
                | ItemKind::AnswerAgain
                | ItemKind::RepeatedCallNotice
                | ItemKind::FailedCallsNotice
                | ItemKind::NoProgressNotice
                | ItemKind::EndQuestion
                | ItemKind::FinalCheck
                | ItemKind::LastTurn
                | ItemKind::LimitNotice { .. } => {}
            },
            Entry::Model(ModelEntry::Called(_)) => self.offered = record.seq,
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => {
                self.is_uncertain |= self.pending.iter().any(|(seq, _)| *seq < self.offered);
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(_)) => self.refusal = None,
            Entry::Tool(ToolEntry::Finished(finished)) => {
                self.refusal = match finished.status {
                    ToolStatus::Denied | ToolStatus::Rejected | ToolStatus::Cancelled => {
                        Some(finished.output.clone())
                    }
                    ToolStatus::Ok | ToolStatus::Error | ToolStatus::TimedOut | ToolStatus::Unknown => None,
                };
            }
            Entry::Terminal(TerminalEntry::Noted(noted)) => {
                if let TerminalEvent::Submitted { through, .. } = noted.event {
                    self.submitted(through);
                }
            }
            _ => {}
        }
    }

    /// Makes all messages pending again, for a program that was restarted without its state.
    pub fn start_over(&mut self) {
        self.is_uncertain |= !self.told.is_empty();
        self.pending.extend(self.told.drain(..));
        self.pending.make_contiguous().sort_by_key(|(seq, _)| *seq);
    }

    fn submitted(&mut self, through: Seq) {
        let told = self.pending.iter().filter(|(seq, _)| *seq <= through).cloned();
        self.told.extend(told);
        self.pending.retain(|(seq, _)| *seq > through);
        (self.has_begun, self.is_uncertain) = (true, false);
    }

    fn opened(&mut self, seq: Seq, policy: &AgentPolicy, goal: &str) {
        if !policy.external.as_ref().is_some_and(|external| external.submits_goal) {
            return;
        }
        let text = match &policy.goal {
            Some(wanted) => {
                format!("{goal}\n\nYou are done once this is true, which is verified: {}", wanted.condition)
            }
            None => goal.to_owned(),
        };
        self.push(seq, text);
    }

    fn push(&mut self, seq: Seq, text: String) {
        if !text.trim().is_empty() {
            self.pending.push_back((seq, text));
        }
    }
}

/// A message by Provost for a program. It quotes the output of checks and judges, which must not look like the
/// program's own reminders to its model, or like a person's message.
fn own_words(body: &str) -> String {
    untagged(body)
}

fn text_of(message: &UserMessage) -> String {
    let texts = message.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
