//! Questions for consent, and answers to them.

use provost_event::{AskKind, AskOption, OptionMeaning};
use serde_json::{Value, json};

use super::super::format::Reply;
use super::super::subject::{StreamAsk, changed_files};
use super::super::value::{first_text, text};

/// The protocol's kinds of options.
const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";

/// The fields of a call's arguments that name a file.
const PATH_FIELDS: [&str; 4] = ["/file_path", "/filePath", "/filepath", "/path"];

/// An open question.
pub(super) struct OpenAsk {
    /// The request's id, as the agent gave it.
    pub(super) id: Value,
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
        chosen.unwrap_or_else(|| Reply::new(self.cancelled(), "cancelled"))
    }

    /// The reply when the whole prompt is cancelled.
    pub(super) fn cancelled(&self) -> String {
        self.answer(&json!({"outcome": "cancelled"}))
    }

    /// Chooses the first option of this kind whose id no other option has: else it could mean both.
    fn choose(&self, kind: &str) -> Option<Reply> {
        let options = self.options.as_array()?;
        let option = options.iter().find(|option| text(option, "/kind") == Some(kind))?;
        let id = text(option, "/optionId")?;
        if options.iter().filter(|option| text(option, "/optionId") == Some(id)).count() != 1 {
            return None;
        }
        let choice = first_text(option, &["/name"]).unwrap_or(id);
        Some(Reply::new(self.answer(&json!({"outcome": "selected", "optionId": id})), choice))
    }

    fn answer(&self, outcome: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.id, "result": {"outcome": outcome}}).to_string()
    }
}

/// A call that consent is asked for.
pub(super) struct AskedCall<'a> {
    pub(super) fingerprint: String,
    pub(super) call: &'a Value,
    pub(super) options: &'a Value,
    pub(super) folder: &'a str,
    pub(super) command_titles: bool,
}

/// The question about a call, with the details that the agent has given. `command_titles` says that the title of a call that
/// runs a command is that command: titles are for people, and others may leave a part of it out.
pub(super) fn ask(asked: AskedCall<'_>) -> StreamAsk {
    let AskedCall { fingerprint, call, options, folder, command_titles } = asked;
    let title = first_text(call, &["/title"]);
    let (kind, changed) = match kind_of(call) {
        AskKind::Edit => changed_files(paths(call, folder)),
        kind => (kind, None),
    };
    let subject = match kind {
        AskKind::Command => {
            first_text(call, &["/rawInput/command"]).or(title.filter(|_| command_titles)).map(str::to_owned)
        }
        AskKind::Edit | AskKind::Edits => changed,
        AskKind::Read => only(paths(call, folder)),
        AskKind::Network => first_text(call, &["/rawInput/url"]).map(str::to_owned),
        // A title may be the model's own words.
        AskKind::Tool => first_text(call, &["/_meta/toolName"]).map(str::to_owned),
        AskKind::Trust | AskKind::Other => None,
    };
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    StreamAsk {
        fingerprint,
        kind,
        question: title.unwrap_or_default().to_owned(),
        subject,
        hint: hint(call, folder),
        options: options.iter().filter_map(option).collect(),
    }
}

/// The kind of action of a call.
pub(super) fn kind_of(call: &Value) -> AskKind {
    match text(call, "/kind") {
        Some("execute") => AskKind::Command,
        Some("edit" | "delete" | "move") => AskKind::Edit,
        Some("read") => AskKind::Read,
        Some("fetch") => AskKind::Network,
        Some("switch_mode") => AskKind::Other,
        _ => AskKind::Tool,
    }
}

/// The files that a call names, each once: in its changes, its locations and its arguments. A relative path is one in
/// `folder`.
pub(super) fn paths(call: &Value, folder: &str) -> Vec<String> {
    let lists = ["/content", "/locations"].into_iter().filter_map(|list| call.pointer(list)?.as_array());
    let listed = lists.flatten().filter_map(|item| text(item, "/path"));
    let arguments = PATH_FIELDS.iter().filter_map(|field| text(call, &format!("/rawInput{field}")));
    let mut paths: Vec<String> = Vec::new();
    for path in listed.chain(arguments).filter(|path| !path.is_empty()) {
        if !paths.iter().any(|known| absolute(known, folder) == absolute(path, folder)) {
            paths.push(path.to_owned());
        }
    }
    paths
}

fn absolute(path: &str, folder: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") }
}

/// The path, if there is one only: permissions to read are checked for a single file.
fn only(mut paths: Vec<String>) -> Option<String> {
    (paths.len() == 1).then(|| paths.pop()).flatten()
}

/// What the call seems to be about: its files or its arguments.
fn hint(call: &Value, folder: &str) -> Option<String> {
    let paths = paths(call, folder);
    if !paths.is_empty() {
        return Some(paths.join(", "));
    }
    let input = call.get("rawInput").filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
    input.map(Value::to_string)
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
