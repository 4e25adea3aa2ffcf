//! The keys to type to a program.

use serde::Deserialize;

/// The keys to type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// After a prompt's text, in a separate write.
    pub submit: String,
    /// For a line end inside a prompt, without bracketed paste.
    pub newline: Option<String>,
    /// Before and after a prompt of several lines, without bracketed paste.
    pub multiline: Option<[String; 2]>,
    /// Interrupts the work.
    pub interrupt: String,
    /// Yes, this time; for a question whose options couldn't be parsed.
    pub approve_once: Option<String>,
    /// Yes, and don't ask again; likewise.
    pub approve_always: Option<String>,
    /// No; likewise.
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

/// One step of ending a program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuitStep {
    /// The keys.
    pub keys: String,
    /// How long to wait for the end before the next step, in milliseconds.
    pub wait_ms: u64,
}
