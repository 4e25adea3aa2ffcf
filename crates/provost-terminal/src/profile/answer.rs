//! What is typed to a program, and by what else it is spoken to.

use serde::Deserialize;

/// What to type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// After a prompt's text, in a write of its own.
    pub submit: String,
    /// For a line's end inside a prompt, where pasted text isn't bracketed.
    pub newline: Option<String>,
    /// What is typed before and after a prompt of several lines, where pasted text isn't bracketed.
    pub multiline: Option<[String; 2]>,
    /// Stops what it does.
    pub interrupt: String,
    /// Yes, this time; for a question whose options couldn't be read.
    pub approve_once: Option<String>,
    /// Yes, and don't ask again; the same.
    pub approve_always: Option<String>,
    /// No; the same.
    pub deny: Option<String>,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            submit: "\r".to_owned(),
            newline: None,
            multiline: None,
            interrupt: "\u{3}".to_owned(),
            approve_once: None,
            approve_always: None,
            deny: None,
        }
    }
}

/// One step of asking a program to end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuitStep {
    /// What is typed.
    pub keys: String,
    /// How long to wait for its end before the next step, in milliseconds.
    pub wait_ms: u64,
}

/// A stream that says what a program does without a screen.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructuredChannel {
    /// What it is written in.
    pub format: StreamFormat,
    /// The arguments that make the program speak it.
    pub args: Vec<String>,
}

/// What a structured stream is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamFormat {
    /// The JSON lines of `codex exec --json`.
    CodexExec,
    /// The Agent Client Protocol: JSON-RPC over standard input and output.
    Acp,
    /// The JSON lines that Claude Code calls `stream-json`.
    StreamJson,
}
