//! The model's view of a log: compactions, and snapshots of a session's state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Json, MicroDollars, Seq, Usage};

/// How a conversation was shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// By rule: old results and pictures are shortened to a line each.
    Trim,
    /// By a model's summary.
    Summary,
    /// By rule, because no summary was available or there was no room for one.
    Emergency,
}

/// A compaction: how the model sees the log from here on. The log itself keeps everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compacted {
    /// How.
    pub how: CompactionKind,
    /// The last entry that `summary` replaces, counted from the log's first entry. 0: it replaces nothing.
    #[serde(default, skip_serializing_if = "Seq::is_start")]
    pub through: Seq,
    /// The summary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Results and pictures up to this entry are a line each.
    #[serde(default, skip_serializing_if = "Seq::is_start")]
    pub lines_through: Seq,
    /// Later entries whose results were requested again since: a line each too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<Seq>,
    /// Results after these, up to this entry, are cut to their beginning and their end.
    #[serde(default, skip_serializing_if = "Seq::is_start")]
    pub cut_through: Seq,
    /// The model call that wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<AsideCall>,
    /// Estimated tokens of the conversation before.
    pub tokens_before: u64,
    /// Estimated tokens of the conversation after.
    pub tokens_after: u64,
}

impl Compacted {
    /// A compaction that leaves nothing out yet.
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

/// A model call whose answer isn't part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AsideCall {
    /// The call.
    pub call: u32,
    /// Its usage.
    pub usage: Usage,
    /// Its cost; absent if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The model that answered, by its own name; empty if the call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
}

/// An agent's final summary at a limit. It isn't part of the conversation: a resumed agent doesn't see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinalSummaryFinished {
    /// The progress of the work, in the agent's words; empty if there is no summary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The model call that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<AsideCall>,
    /// Why there is no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A session's state as of this entry. A reader that knows the layout can restore the log from here; it is
/// optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The state's layout; a snapshot of an unknown layout is ignored.
    pub layout: u32,
    /// The state, without the content of the log's first entry.
    pub state: Json,
}
