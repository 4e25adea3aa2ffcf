//! The port to the editor: what it is shown and asked, in no protocol's types.

use std::path::PathBuf;

use async_trait::async_trait;
use provost_event::{MicroDollars, PlanItem, RunId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// An editor, which shows runs.
#[async_trait]
pub(crate) trait Editor: Send + Sync {
    /// Shows what happened. Waits while too much is on its way to a slow editor.
    async fn show(&self, run: RunId, update: Update);

    /// Asks the user whether a call is to be made; `None` without an answer, or once `withdrawn` is cancelled.
    async fn ask(&self, run: RunId, question: Question, withdrawn: CancellationToken) -> Option<Choice>;
}

/// What is shown of an entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Update {
    /// The run's title.
    Titled(String),
    /// A message to the agent.
    Said(Text),
    /// Text of the agent.
    Answered(Text),
    /// The agent's reasoning.
    Thought(Text),
    /// A tool call that the agent asks for.
    CallBegun(Box<Call>),
    /// What became of one.
    CallChanged(Box<CallChange>),
    /// The agent's plan.
    Planned(Vec<PlanItem>),
    /// What was used.
    Used(Used),
}

/// A message, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// The message.
    pub(crate) message: String,
    /// The text.
    pub(crate) text: String,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    /// Tokens in the window of the root agent's model.
    pub(crate) tokens: u64,
    /// The size of that window.
    pub(crate) window: u64,
    /// The cost of the whole run so far, as far as prices are known.
    pub(crate) cost: MicroDollars,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Its id in the session.
    pub(crate) id: String,
    /// What it does, in a line.
    pub(crate) title: String,
    /// The tool.
    pub(crate) tool: String,
    /// What kind of thing it does.
    pub(crate) kind: CallKind,
    /// The files that it is about, by their absolute paths.
    pub(crate) paths: Vec<PathBuf>,
    /// Its arguments.
    pub(crate) input: Value,
}

/// What kind of thing a tool call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    Reads,
    Edits,
    Searches,
    Runs,
    Fetches,
    Other,
}

/// What became of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallChange {
    /// Its id in the session.
    pub(crate) id: String,
    /// Its state.
    pub(crate) state: CallState,
    /// Its arguments, if they are others than the agent's.
    pub(crate) input: Option<Value>,
    /// What it answered, for people; absent while there is nothing.
    pub(crate) content: Option<Vec<Content>>,
    /// What it answered, for programs.
    pub(crate) output: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallState {
    Running,
    Done,
    Failed,
}

/// A part of what a call answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text.
    Text(String),
    /// A changed part of a file.
    Diff(Diff),
}

/// A changed part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diff {
    /// The file, by its absolute path.
    pub(crate) path: PathBuf,
    /// The part before; absent where there was no such file.
    pub(crate) before: Option<String>,
    /// The part after.
    pub(crate) after: String,
}

/// A call that needs approval.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// The call.
    pub(crate) call: Call,
    /// Why it is asked, and what an answer covers.
    pub(crate) why: String,
    /// The answers.
    pub(crate) options: Vec<AnswerOption>,
}

/// An answer that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerOption {
    /// What it does.
    pub(crate) answer: Answer,
    /// What it does, in words.
    pub(crate) name: String,
}

/// What an answer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The call is made.
    Once,
    /// It is made, and others of this run that the pattern covers.
    Run,
    /// It is made, and others of all runs that the pattern covers.
    Always,
    /// It isn't made.
    Deny,
}

/// The answer that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The answer.
    pub(crate) answer: Answer,
    /// Why, if the editor says so.
    pub(crate) reason: String,
}
