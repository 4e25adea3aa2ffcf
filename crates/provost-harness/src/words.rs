//! What an external agent is yet to be told, as its log has it.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use provost_event::{
    AgentPolicy, Block, Entry, ItemKind, Record, Seq, SessionId, TerminalEvent, ToolStatus, UserMessage,
};

use crate::transcript::untagged;
use crate::{Home, HomeError};

/// What is said before words that may have been typed in already.
const MAYBE_TOLD: &str =
    "(You may have been told this before and have begun with it: look at what is there first.)";

/// What is to be typed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The words.
    pub text: String,
    /// The last entry that they come from; goes into the note that they were taken.
    pub through: Seq,
    /// Whoever typed them in before was interrupted: they may have been taken then, and begun with.
    pub is_uncertain: bool,
}

impl Prompt {
    /// The words as an agent is told them: where they are uncertain, with a word about that before.
    #[must_use]
    pub fn for_agent(&self) -> String {
        if self.is_uncertain { format!("{MAYBE_TOLD}\n\n{}", self.text) } else { self.text.clone() }
    }
}

/// A session's log, looked at for words to its agent. It goes along with the log, also while an exchange is going on.
pub struct Words {
    records: BoxStream<'static, Result<std::sync::Arc<Record>, HomeError>>,
    head: Seq,
    pending: VecDeque<(Seq, String)>,
    told: Vec<(Seq, String)>,
    has_begun: bool,
    refusal: Option<String>,
    /// The last exchange's beginning: what was pending then may have been typed in.
    offered: Seq,
    is_uncertain: bool,
}

impl Words {
    /// The words in the log of `session`, from its first entry on.
    pub(crate) fn of(home: &dyn Home, session: SessionId) -> Self {
        Self {
            records: home.subscribe(session.into(), Seq::START),
            head: Seq::START,
            pending: VecDeque::new(),
            told: Vec::new(),
            has_begun: false,
            refusal: None,
            offered: Seq::START,
            is_uncertain: false,
        }
    }

    /// Takes in the log through entry `through`.
    pub(crate) async fn catch_up(&mut self, through: Seq) -> Result<(), HomeError> {
        while self.head < through {
            self.next().await?;
        }
        Ok(())
    }

    /// Waits until there is something to be told; returns at once where there is.
    ///
    /// # Errors
    /// When the log can't be read.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn wait(&mut self) -> Result<(), HomeError> {
        while self.pending.is_empty() {
            self.next().await?;
        }
        Ok(())
    }

    /// All that is to be told, as one text. It stays pending until a note in the log says that it was submitted.
    #[must_use]
    pub fn prompt(&self) -> Option<Prompt> {
        let (through, _) = self.pending.back()?;
        let texts = self.pending.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>();
        let is_uncertain = self.is_uncertain;
        Some(Prompt { text: texts.join("\n\n"), through: *through, is_uncertain })
    }

    /// Forgets what `prompt` has; for whoever has just noted that it was submitted.
    pub fn told(&mut self, prompt: &Prompt) {
        self.submitted(prompt.through);
    }

    /// Whether the agent was ever told something: a program that is started now goes on with earlier work.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Why what the program asked for last was refused, if it was.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    async fn next(&mut self) -> Result<(), HomeError> {
        match self.records.next().await {
            Some(record) => {
                let record = record?;
                self.fold(&record);
                Ok(())
            }
            None => Err(HomeError::Closed),
        }
    }

    fn fold(&mut self, record: &Record) {
        self.head = record.seq;
        match &record.entry {
            Entry::SessionStarted(started) => self.opened(record.seq, &started.policy, &started.goal),
            Entry::UserMessage(message) => self.push(record.seq, text_of(message)),
            Entry::SystemItem(item) => match item.item {
                ItemKind::StopBlocked
                | ItemKind::StopSuspended
                | ItemKind::GoalNotReached
                | ItemKind::Reminder
                | ItemKind::GoalGiven
                | ItemKind::Resumed => {
                    self.push(record.seq, own_words(&item.body));
                }
                ItemKind::Continue
                | ItemKind::AnswerAgain
                | ItemKind::RepeatedCallNotice
                | ItemKind::FailedCallsNotice
                | ItemKind::NoProgressNotice
                | ItemKind::LastTurn
                | ItemKind::LimitNotice { .. } => {}
            },
            Entry::ModelCalled(_) => self.offered = record.seq,
            Entry::Resumed(_) => {
                self.is_uncertain |= self.pending.iter().any(|(seq, _)| *seq < self.offered);
            }
            Entry::AssistantMessage(_) => self.refusal = None,
            Entry::ToolFinished(finished) => {
                self.refusal = match finished.status {
                    ToolStatus::Denied | ToolStatus::Rejected | ToolStatus::Cancelled => {
                        Some(finished.output.clone())
                    }
                    ToolStatus::Ok | ToolStatus::Error | ToolStatus::TimedOut | ToolStatus::Unknown => None,
                };
            }
            Entry::TerminalNoted(noted) => {
                if let TerminalEvent::Submitted { through, .. } = noted.event {
                    self.submitted(through);
                }
            }
            _ => {}
        }
    }

    /// Has all that was ever told told again: to a program that was started anew and remembers nothing.
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

/// Provost's own words for a program. They quote what checks and judges print, which isn't to pose as the program's own
/// reminders to its model, or as anybody's.
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
