//! Permissions: which tool calls may be made, and who was asked.

use serde::{Deserialize, Serialize};

use crate::{CallId, Json, Seq, Timestamp};

/// What is to be done about a tool call, the most restrictive last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// It may be made.
    #[default]
    Allow,
    /// Somebody is asked first.
    Ask,
    /// It is not made.
    Deny,
}

/// What an agent may do without asking, after asking, and never. Patterns are `tool` or `tool(PATTERN)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionPolicy {
    /// Calls that may be made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Calls that somebody must agree to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Calls that are never made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Calls that somebody has agreed to for always: they aren't asked about again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<String>,
    /// What becomes of a call that no pattern speaks of.
    #[serde(default)]
    pub otherwise: Permission,
    /// How long somebody is waited for, in milliseconds.
    #[serde(default = "PermissionPolicy::default_timeout_ms")]
    pub approval_timeout_ms: u64,
    /// What becomes of a call that nobody has answered for.
    #[serde(default)]
    pub unanswered: Unanswered,
}

impl PermissionPolicy {
    const fn default_timeout_ms() -> u64 {
        60 * 60 * 1_000
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it lets everything pass without looking.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ask.is_empty() && self.deny.is_empty() && self.otherwise == Permission::Allow
    }
}

impl Default for PermissionPolicy {
    /// Everything is allowed; whoever is asked has an hour.
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            approved: Vec::new(),
            otherwise: Permission::Allow,
            approval_timeout_ms: Self::default_timeout_ms(),
            unanswered: Unanswered::Deny,
        }
    }
}

/// What becomes of a call that nobody has answered for in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unanswered {
    /// It isn't made; the agent goes on without it.
    #[default]
    Deny,
    /// The run rests; the question stays.
    Pause,
}

/// What the permissions say of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionDecided {
    /// Which call.
    pub call: CallId,
    /// What is to be done.
    pub permission: Permission,
    /// The pattern that decided, with its kind, such as `deny shell(rm *)`; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether no pattern has anything to do with it. Without a rule and not by default: what the call does can't be
    /// told from its text, and patterns may mean it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_default: bool,
    /// Why, in words.
    pub why: String,
}

/// Somebody is asked whether a tool call may be made. The entry's number names the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    /// Which call.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// Its arguments; the answer counts for exactly these.
    pub input: Json,
    /// Why it is asked.
    pub why: String,
    /// The narrowest pattern that covers it, for whoever wants to agree for longer.
    pub pattern: String,
    /// When it counts as not answered.
    pub due: Timestamp,
    /// The scripts that it names; the answer counts for exactly what they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<NamedScript>,
    /// Whether it may run files that its text doesn't name: the answer counts for this call only, whatever they hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unnamed: bool,
}

/// A file of the workspace that a command names as what is to be run, as it was when somebody was to be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamedScript {
    /// Its path in the workspace, as the command leads to it.
    pub path: String,
    /// Where a link leads that the path goes over; absent where it goes over none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// The BLAKE3 hash of what it holds, in hexadecimal digits; absent where it can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
}

/// The one answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalResolved {
    /// The entry that asked.
    pub asked: Seq,
    /// The answer.
    pub answer: ApprovalAnswer,
    /// Who gave it.
    pub by: String,
}

impl ApprovalResolved {
    /// Who gave the answer that stands for none in time.
    pub const BY_NOBODY: &str = "nobody (timeout)";
    /// Who gave the answer to a question that the agent's end made needless.
    pub const BY_PROVOST: &str = "Provost";
}

/// What somebody answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// It may be made.
    Allow {
        /// For how long that counts.
        scope: ApprovalScope,
        /// The calls that it counts for, where it counts for more than this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
    /// It may not be made.
    Deny {
        /// What the model shall be told; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// For how long a consent counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// For this call.
    Once,
    /// For this run.
    Run,
    /// For all runs of this user; for this one at once.
    Always,
}
