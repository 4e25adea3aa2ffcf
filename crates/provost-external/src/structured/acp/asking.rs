//! Questions for consent, and answers to them.

use provost_event::{AskKind, AskOption, OptionMeaning, TerminalAsk};
use serde_json::{Value, json};

use super::super::format::Reply;
use super::super::value::{first_text, text};

/// The protocol's kinds of options.
const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";

/// An open question.
pub(super) struct OpenAsk {
    id: Value,
    options: Value,
}

impl OpenAsk {
    pub(super) fn new(id: Value, options: &Value) -> Self {
        Self { id, options: options.clone() }
    }

    /// Consents for this time, if the agent offers that.
    pub(super) fn approval(&self) -> Option<Reply> {
        self.choose(ALLOW_ONCE)
    }

    /// Refuses: for this time if that is offered, else for good, else by cancelling the whole prompt.
    pub(super) fn refusal(&self) -> Reply {
        let chosen = self.choose(REJECT_ONCE).or_else(|| self.choose(REJECT_ALWAYS));
        chosen.unwrap_or_else(|| Reply { line: self.cancelled(), choice: "cancelled".to_owned() })
    }

    /// The reply when the whole prompt is cancelled.
    pub(super) fn cancelled(&self) -> String {
        self.answer(&json!({"outcome": "cancelled"}))
    }

    fn choose(&self, kind: &str) -> Option<Reply> {
        let options = self.options.as_array()?;
        let option = options.iter().find(|option| text(option, "/kind") == Some(kind))?;
        let id = text(option, "/optionId")?;
        let choice = first_text(option, &["/name"]).unwrap_or(id).to_owned();
        Some(Reply { line: self.answer(&json!({"outcome": "selected", "optionId": id})), choice })
    }

    fn answer(&self, outcome: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.id, "result": {"outcome": outcome}}).to_string()
    }
}

/// The question about a call, with the details that the agent has given.
pub(super) fn ask(fingerprint: String, call: &Value, options: &Value) -> TerminalAsk {
    let title = first_text(call, &["/title"]);
    let (kind, subject) = match text(call, "/kind") {
        // Without arguments, the title is the command.
        Some("execute") => (AskKind::Command, first_text(call, &["/rawInput/command"]).or(title)),
        Some("edit" | "delete" | "move") => (AskKind::Edit, path(call)),
        Some("read") => (AskKind::Read, path(call)),
        Some("fetch") => (AskKind::Network, first_text(call, &["/rawInput/url"])),
        Some("switch_mode") => (AskKind::Other, None),
        _ => (AskKind::Tool, title),
    };
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    TerminalAsk {
        fingerprint,
        kind,
        question: title.unwrap_or("It asks for consent, and doesn't say to what.").to_owned(),
        subject: subject.map(str::to_owned),
        options: options.iter().filter_map(option).collect(),
        default: None,
    }
}

fn path(call: &Value) -> Option<&str> {
    first_text(
        call,
        &[
            "/locations/0/path",
            "/rawInput/file_path",
            "/rawInput/filePath",
            "/rawInput/filepath",
            "/rawInput/path",
        ],
    )
    .or_else(|| {
        let content = call.get("content")?.as_array()?;
        content.iter().find_map(|part| text(part, "/path"))
    })
}

fn option(option: &Value) -> Option<AskOption> {
    let id = text(option, "/optionId")?;
    let meaning = match text(option, "/kind") {
        Some(ALLOW_ONCE) => OptionMeaning::ApproveOnce,
        Some(ALLOW_ALWAYS) => OptionMeaning::ApproveAlways,
        Some(REJECT_ONCE | REJECT_ALWAYS) => OptionMeaning::Deny,
        _ => OptionMeaning::Other,
    };
    let label = first_text(option, &["/name"]).unwrap_or(id).to_owned();
    Some(AskOption { label, keys: id.to_owned(), meaning })
}
