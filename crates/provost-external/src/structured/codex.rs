//! The JSON lines of `codex exec --json`: one process a prompt, `resume` for the next.
//!
//! This mode has no consent requests: Codex itself refuses a command that would need one, and the model gets the
//! refusal. What runs without consent is what its sandbox allows: `--sandbox read-only` (its default),
//! `workspace-write` (files of the workspace, no network) or `danger-full-access`; these are arguments of the
//! program, before or after `exec`. So Provost's permissions, hooks and approvals don't check single actions here;
//! that is why this format is only chosen by name.
//!
//! Usage is counted from the thread's beginning, over all its processes. `resume` of an unknown thread isn't an
//! error: it begins a new one.

use provost_event::{Certainty, Usage};
use serde_json::Value;

use super::format::{Format, NoReply, Opening, Reply};
use super::stream_item::{Done, ParsedLine, StreamItem, Used};
use super::value::{count, text};

pub(super) struct CodexExec {
    wanted: Option<String>,
}

impl CodexExec {
    pub(super) fn new(opening: Opening<'_>) -> Self {
        Self { wanted: opening.session.map(str::to_owned) }
    }

    fn started(&self, event: &Value) -> ParsedLine {
        let Some(thread) = text(event, "/thread_id") else { return ParsedLine::malformed() };
        match &self.wanted {
            Some(wanted) if wanted != thread => {
                StreamItem::Lost(format!("it doesn't know its session {wanted} any more")).into()
            }
            _ => StreamItem::Session(thread.to_owned()).into(),
        }
    }
}

impl Format for CodexExec {
    fn open(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn read(&mut self, line: &str) -> ParsedLine {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return ParsedLine::malformed() };
        let Some(kind) = text(&event, "/type") else { return ParsedLine::malformed() };
        match kind {
            "thread.started" => self.started(&event),
            "turn.started" | "item.started" | "item.updated" => StreamItem::Begun.into(),
            "item.completed" => item(&event),
            "turn.completed" => {
                let used = usage(&event).map(|usage| StreamItem::Used(Used::Session(usage)));
                used.into_iter().chain([StreamItem::Done(Done::Whole)]).collect()
            }
            "turn.failed" => StreamItem::Done(Done::Failed(message(&event, "/error/message"))).into(),
            "error" => StreamItem::Error(message(&event, "/message")).into(),
            _ => ParsedLine::default(),
        }
    }

    fn prompt(&mut self, text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    fn approve(&mut self, _: &str) -> Result<Reply, NoReply> {
        Err(NoReply::NotAsked)
    }

    fn refuse(&mut self, _: &str, _: &str) -> Result<Reply, NoReply> {
        Err(NoReply::NotAsked)
    }

    fn interrupt(&mut self) -> Vec<String> {
        Vec::new()
    }
}

fn item(event: &Value) -> ParsedLine {
    match (text(event, "/item/type"), text(event, "/item/text")) {
        (Some("agent_message"), Some(words)) => {
            [StreamItem::Begun, StreamItem::Break, StreamItem::Text(words.to_owned())].into_iter().collect()
        }
        (Some("error"), _) => StreamItem::Error(message(event, "/item/message")).into(),
        _ => StreamItem::Begun.into(),
    }
}

/// The failure message of the event; the provider's message if it is quoted as JSON.
fn message(event: &Value, pointer: &str) -> String {
    let words = text(event, pointer).unwrap_or("it gave no reason");
    let quoted = serde_json::from_str::<Value>(words).ok();
    quoted.as_ref().and_then(|quoted| text(quoted, "/error/message")).unwrap_or(words).to_owned()
}

fn usage(event: &Value) -> Option<Usage> {
    let usage = event.get("usage")?;
    let cached = count(usage, "/cached_input_tokens");
    let written = count(usage, "/cache_write_input_tokens");
    Some(Usage {
        // Both are included in the input tokens here.
        input_tokens: count(usage, "/input_tokens").saturating_sub(cached).saturating_sub(written),
        output_tokens: count(usage, "/output_tokens"),
        cache_read_tokens: cached,
        cache_write_tokens: written,
        reasoning_tokens: count(usage, "/reasoning_output_tokens"),
        certainty: Certainty::Reported,
    })
}
