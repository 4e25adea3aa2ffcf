//! What a model sees of a log: what was left out of its view, and what stands for a long log as a whole.

use serde::{Deserialize, Serialize};

use crate::{Json, MicroDollars, Seq, Usage};

/// How a conversation was shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// By rule: old results and pictures became a line each.
    Trim,
    /// The model was asked for a summary.
    Summary,
    /// By rule, because a summary wasn't to be had or there was no room for one.
    Emergency,
}

/// A part of the log that the model doesn't see as it was from here on. The log itself keeps all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// How.
    pub how: CompactionKind,
    /// The last entry that `summary` stands for; the first is the log's first. 0: it stands for nothing.
    #[serde(default, skip_serializing_if = "Seq::is_start")]
    pub through: Seq,
    /// What stands for the range.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Results and pictures up to this entry are a line each.
    #[serde(default, skip_serializing_if = "Seq::is_start")]
    pub lines_through: Seq,
    /// Entries behind that with results that were asked for once more since: a line each too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<Seq>,
    /// Results behind these up to this entry are cut to their beginning and their end.
    #[serde(default, skip_serializing_if = "Seq::is_start")]
    pub cut_through: Seq,
    /// The model call that gave the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<AsideCall>,
    /// Estimated tokens of the conversation before.
    pub tokens_before: u64,
    /// Estimated tokens of the conversation after.
    pub tokens_after: u64,
}

impl Compacted {
    /// One that leaves nothing out yet.
    #[must_use]
    pub const fn new(how: CompactionKind) -> Self {
        Self {
            how,
            through: Seq::START,
            summary: String::new(),
            lines_through: Seq::START,
            superseded: Vec::new(),
            cut_through: Seq::START,
            call: None,
            tokens_before: 0,
            tokens_after: 0,
        }
    }
}

/// What a model call took whose answer is no part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsideCall {
    /// The call.
    pub call: u32,
    /// What it consumed.
    pub usage: Usage,
    /// What that cost; absent where the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The model that answered, by its own name; empty if it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
}

/// An agent's last words at a limit. They are no part of the conversation: one that goes on doesn't see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrappedUp {
    /// How far the work has come, in the agent's words; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The model call that gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<AsideCall>,
    /// Why there are none, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What a log comes to up to this entry. Whoever knows its layout may read the log back from here; nobody has to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The state's layout; one that a program doesn't know is passed over.
    pub layout: u32,
    /// The state, but for what the log's first entry says.
    pub state: Json,
}
