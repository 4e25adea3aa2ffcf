//! Permissions for tool calls, and approvals.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{CallId, Json, Seq, Timestamp};

/// The decision on a tool call, the most restrictive last.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// The call may be made.
    #[default]
    Allow,
    /// The call needs approval.
    Ask,
    /// The call is not made.
    Deny,
}

/// What an agent may do without approval, with approval, and never. Patterns are `tool` or `tool(PATTERN)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionPolicy {
    /// Calls that need no approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Calls that need approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Calls that are never made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Calls that were approved permanently: they need no further approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<String>,
    /// The folders, absolute, that permissions without a path cover besides the workspace: reading a file or folder
    /// elsewhere needs a pattern with its path, or approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<PathBuf>,
    /// The decision on a call that matches no pattern.
    #[serde(default)]
    pub default: Permission,
    /// The decision on a call that reads outside of the workspace and the roots, where no pattern with the path
    /// allows it and other calls are allowed: nobody may be there to be asked.
    #[serde(
        default = "PermissionPolicy::default_elsewhere",
        skip_serializing_if = "PermissionPolicy::is_denial"
    )]
    pub elsewhere: Permission,
    /// The decision on a command that is to go on after the run and that no `keep_running` pattern matches: never
    /// `Allow`.
    #[serde(
        default = "PermissionPolicy::default_keeping",
        skip_serializing_if = "PermissionPolicy::is_default_keeping"
    )]
    pub keeping: Permission,
    /// The decision on a command that is to run outside of the sandbox: never `Allow`, whatever patterns say, and `Deny`
    /// where no one can be asked.
    #[serde(
        default = "PermissionPolicy::default_leaving",
        skip_serializing_if = "PermissionPolicy::is_denial"
    )]
    pub leaving: Permission,
    /// Time limit of an approval, in milliseconds.
    #[serde(default = "PermissionPolicy::default_timeout_ms")]
    pub approval_timeout_ms: u64,
    /// What happens to a call whose approval times out.
    #[serde(default)]
    pub unanswered: Unanswered,
}

impl PermissionPolicy {
    const fn default_keeping() -> Permission {
        Permission::Deny
    }

    fn is_default_keeping(keeping: &Permission) -> bool {
        *keeping == Self::default_keeping()
    }

    const fn default_timeout_ms() -> u64 {
        60 * 60 * 1_000
    }

    const fn default_leaving() -> Permission {
        Permission::Deny
    }

    const fn default_elsewhere() -> Permission {
        Permission::Deny
    }

    fn is_denial(permission: &Permission) -> bool {
        *permission == Permission::Deny
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it allows everything without a check, except what goes on after the run.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ask.is_empty() && self.deny.is_empty() && self.default == Permission::Allow
    }
}

impl Default for PermissionPolicy {
    /// Everything is allowed in the workspace; approvals time out after an hour.
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            approved: Vec::new(),
            roots: Vec::new(),
            default: Permission::Allow,
            elsewhere: Permission::Deny,
            keeping: Self::default_keeping(),
            leaving: Self::default_leaving(),
            approval_timeout_ms: Self::default_timeout_ms(),
            unanswered: Unanswered::Deny,
        }
    }
}

/// What happens to a call whose approval times out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unanswered {
    /// The call isn't made; the agent continues without it.
    #[default]
    Deny,
    /// The run is suspended; the question stays open.
    Pause,
}

/// The permissions' decision on a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionDecided {
    /// The call.
    pub call: CallId,
    /// The decision.
    pub permission: Permission,
    /// The pattern that decided, with its kind, such as `deny shell(rm *)`; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether no pattern applies. Without a rule and not by default: the call's text doesn't tell what it does,
    /// and patterns may apply.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_default: bool,
    /// Whether the call is to run outside of the agent's sandbox.
    #[serde(default, skip_serializing_if = "is_default")]
    pub leaves_sandbox: bool,
    /// The reason, in words.
    pub why: String,
}

/// A tool call needs approval. The entry's number is the question's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequested {
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// Its arguments; the answer applies to exactly these.
    pub input: Json,
    /// Why it needs approval.
    pub why: String,
    /// The narrowest pattern that covers it, for an approval with a wider scope.
    pub pattern: String,
    /// When it times out.
    pub due: Timestamp,
    /// The scripts that it names; the answer applies to exactly their current content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<NamedScript>,
    /// Whether it may run files that its text doesn't name: the answer applies to this call only, whatever they
    /// contain.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unnamed: bool,
    /// Present if the call is to run outside of the agent's sandbox: the answer applies to this call only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideSandbox>,
    /// Present if the call has begun, and its tool asks something: the answer is for the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<CallQuestion>>,
}

/// What a tool asks the user before it can go on with a call: an MCP server's question, for example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallQuestion {
    /// The question.
    pub message: String,
    /// The JSON Schema of the answer, an object.
    pub schema: Json,
    /// What the tool gets back with the answer.
    pub state: Json,
}

/// The answer to a tool's question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswer {
    /// What the tool wanted back.
    pub state: Json,
    /// The fields of the answer; absent if the user only agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Json>,
}

/// A call that is to run outside of the agent's sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutsideSandbox {
    /// What the sandbox denied last to a call of the agent, each as a sentence; empty if it denied nothing before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

/// A file of the workspace that a command names as a script to run, in its state at the approval request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct NamedScript {
    /// Its path in the workspace, as the command resolves it.
    pub path: String,
    /// The target of a symbolic link on the path; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<String>,
    /// The BLAKE3 hash of its content, in hexadecimal digits; absent if it can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
}

/// The answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResolved {
    /// The entry of the request.
    pub asked: Seq,
    /// The answer.
    pub answer: ApprovalAnswer,
    /// Who gave it.
    pub by: String,
}

impl ApprovalResolved {
    /// The `by` of an approval that timed out.
    pub const BY_TIMEOUT: &str = "timeout";
    /// The `by` of an answer to a question that the agent's end made obsolete.
    pub const BY_PROVOST: &str = "Provost";
}

/// The answer of an approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// The call may be made.
    Allow {
        /// The scope of the approval.
        scope: ApprovalScope,
        /// The calls that it applies to, if more than this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
    /// The tool's question has this answer. To any other question it is the approval of this call.
    Answered {
        /// The fields of the answer.
        content: Json,
    },
    /// The call is denied.
    Deny {
        /// The reason for the model; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// The scope of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    Once,
    /// This run.
    Run,
    /// All runs of this user; this one immediately.
    Always,
}
