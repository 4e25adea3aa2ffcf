//! MCP servers, as commands show them.

use provost_event::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;

/// An MCP server of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServerView {
    /// The version of the view.
    pub v: ViewVersion,
    /// Its name.
    pub name: String,
    /// Where it is set.
    pub place: String,
    /// How it is reached, a line for each part, as it was written.
    pub written: Vec<String>,
    /// Whether its tools are used.
    pub state: McpServerState,
    /// Why they aren't, and the remedy; null if they are.
    pub why: Option<String>,
    /// The package that is started, with its version; null for none.
    pub package: Option<String>,
    /// The program as it is found now, with a fingerprint of its file, which is shown and is no condition; null where it
    /// isn't found, and for an address.
    pub program: Option<McpProgram>,
    /// What confines its program; null for an address.
    pub sandbox: Option<String>,
    /// The hosts that its program reaches; empty if that is as for agents.
    pub allow_hosts: Vec<String>,
    /// When the user agreed to it; null if they haven't.
    pub trusted_at_ms: Option<Timestamp>,
    /// A fingerprint of what they agreed to; null if they haven't.
    pub fingerprint: Option<String>,
    /// What it called itself then, with its version.
    pub calls_itself: Option<String>,
    /// Whether models see its tools in full, however many tools there are.
    pub always_load: bool,
    /// The login of the user at its address; null without one.
    pub login: Option<McpLogin>,
    /// Its tools, as the user agreed to them.
    pub tools: Vec<McpToolView>,
    /// Tokens of the tools that agents have, by an estimate.
    pub tokens: u64,
}

/// Whether the tools of a server are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// They are, as the user agreed to them.
    Trusted,
    /// The user hasn't agreed to it.
    NotTrusted,
    /// How it is reached has changed since the user agreed to it.
    Changed,
    /// Something else is missing.
    Unusable,
}

impl McpServerState {
    /// It in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::NotTrusted => "not trusted",
            Self::Changed => "changed",
            Self::Unusable => "unusable",
        }
    }
}

/// The program of a server, as it is found now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpProgram {
    /// The file, absolute.
    pub path: String,
    /// The BLAKE3 of its content, in hexadecimal digits.
    pub blake3: String,
}

/// A login of the user at a server, without its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpLogin {
    /// The authorization server; null if it doesn't name itself.
    pub issuer: Option<String>,
    /// The scopes that were granted, as far as known.
    pub scopes: Vec<String>,
    /// When the token came; null if unknown.
    pub at_ms: Option<Timestamp>,
    /// When the token expires; null if unknown.
    pub expires_at_ms: Option<Timestamp>,
    /// Whether it is renewed without the user.
    pub renews: bool,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpToolView {
    /// Its name on the server.
    pub name: String,
    /// Its name for models, permissions and hooks.
    pub known_as: String,
    /// What the server says of it, with hidden characters written out.
    pub description: String,
    /// What the server claims of it, such as `readOnlyHint`. It counts for nothing.
    pub claims: Vec<String>,
    /// Whether agents may have it.
    pub is_offered: bool,
    /// Whether it may be called again after a lost connection.
    pub is_idempotent: bool,
    /// What permissions compare their patterns with, as set; null: all of its arguments.
    pub subject: Option<String>,
    /// Tokens of it in a request, by an estimate.
    pub tokens: u64,
}

/// A look at a server as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpTestView {
    /// The version of the view.
    pub v: ViewVersion,
    /// The server.
    pub server: String,
    /// Why it can't be reached; null if it can.
    pub error: Option<String>,
    /// The revision of the protocol; null if it can't be reached.
    pub protocol: Option<String>,
    /// What it calls itself, with its version.
    pub calls_itself: Option<String>,
    /// Milliseconds from its start to the list of its tools.
    pub took_ms: Option<u64>,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Tokens of its tools in a request, by an estimate.
    pub tokens: u64,
    /// The tools that aren't taken.
    pub refused: Vec<McpRefusedTool>,
    /// What is different from what the user agreed to, in lines; null if nothing is, or nothing was agreed to.
    pub difference: Option<String>,
    /// The result of the call that was asked for; null if none was.
    pub called: Option<McpCallResult>,
    /// What the sandbox denied to it.
    pub denied: Vec<String>,
}

/// A tool that isn't taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpRefusedTool {
    /// Its name, with hidden characters written out.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpCallResult {
    /// Whether it failed.
    pub is_error: bool,
    /// The text.
    pub text: String,
}
