//! Questions for consent, and answers to them.

use provost_event::{AskKind, AskOption, OptionMeaning};
use serde_json::{Value, json};

use super::super::subject::{StreamAsk, changed_files};
use super::super::value::{first_text, text};
use super::items::paths;
use super::shell_words::script_of;

/// Answers to questions about commands and changes.
const ACCEPT: &str = "accept";
pub(super) const DECLINE: &str = "decline";
const CANCEL: &str = "cancel";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Command,
    FileChange,
    /// More rights for the rest of a turn.
    Rights,
    /// A yes to a server that the program uses.
    Elicitation,
}

impl Consent {
    /// By the request; `None` if it asks for something else.
    pub(super) fn of(method: &str, params: &Value) -> Option<Self> {
        match method {
            "item/commandExecution/requestApproval" => Some(Self::Command),
            "item/fileChange/requestApproval" => Some(Self::FileChange),
            "item/permissions/requestApproval" => Some(Self::Rights),
            // Forms with fields need more than a yes.
            "mcpServer/elicitation/request" if wants_yes(params) => Some(Self::Elicitation),
            _ => None,
        }
    }
}

fn wants_yes(params: &Value) -> bool {
    let fields = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
    text(params, "/mode") != Some("url") && fields.is_none_or(serde_json::Map::is_empty)
}

/// An open question.
pub(super) struct OpenAsk {
    /// The request's id, as the server gave it.
    pub(super) id: Value,
    consent: Consent,
    rights: Value,
}

impl OpenAsk {
    pub(super) fn new(id: Value, consent: Consent, params: &Value) -> Self {
        let rights = params.get("permissions").filter(|_| consent == Consent::Rights);
        Self { id, consent, rights: rights.cloned().unwrap_or_else(|| json!({})) }
    }

    /// Consents for this time.
    pub(super) fn approval(&self) -> String {
        self.answer(match self.consent {
            Consent::Command | Consent::FileChange => json!({"decision": ACCEPT}),
            Consent::Rights => json!({"permissions": self.rights, "scope": "turn"}),
            Consent::Elicitation => json!({"action": ACCEPT, "content": {}, "_meta": null}),
        })
    }

    /// The chosen option of [`approval`](Self::approval).
    pub(super) const fn approval_name(&self) -> &'static str {
        match self.consent {
            Consent::Rights => "accept for this turn",
            Consent::Command | Consent::FileChange | Consent::Elicitation => ACCEPT,
        }
    }

    /// Refuses; the turn goes on.
    pub(super) fn refusal(&self) -> String {
        self.refused(DECLINE)
    }

    /// Refuses; the turn ends.
    pub(super) fn cancelled(&self) -> String {
        self.refused(CANCEL)
    }

    fn refused(&self, how: &str) -> String {
        self.answer(match self.consent {
            Consent::Command | Consent::FileChange => json!({"decision": how}),
            Consent::Rights => json!({"permissions": {}, "scope": "turn"}),
            Consent::Elicitation => json!({"action": how, "content": null, "_meta": null}),
        })
    }

    fn answer(&self, result: Value) -> String {
        json!({"id": self.id, "result": result}).to_string()
    }
}

/// The question, with what is known of the item that it is about.
pub(super) fn ask(
    fingerprint: String,
    consent: Consent,
    params: &Value,
    item: Option<&Value>,
    folder: &str,
) -> StreamAsk {
    let reason = first_text(params, &["/reason", "/message"]).unwrap_or_default().to_owned();
    let About { kind, subject, hint } = match consent {
        Consent::Command => command(params, folder),
        Consent::FileChange => file_change(params, item),
        Consent::Rights => About::unread(params.get("permissions").map(Value::to_string)),
        Consent::Elicitation => About::unread(text(params, "/serverName").map(str::to_owned)),
    };
    let unsaid = match kind {
        AskKind::Command => "Run this command?",
        AskKind::Network => "Let it use the network?",
        AskKind::Edit | AskKind::Edits => "Make these changes?",
        AskKind::Read | AskKind::Tool | AskKind::Trust | AskKind::Other => "",
    };
    let question = if reason.is_empty() { unsaid.to_owned() } else { reason };
    let options = vec![option(ACCEPT, OptionMeaning::ApproveOnce), option(DECLINE, OptionMeaning::Deny)];
    StreamAsk { fingerprint, kind, question, subject, hint, options }
}

/// What a question is about.
struct About {
    kind: AskKind,
    subject: Option<String>,
    hint: Option<String>,
}

impl About {
    /// It is known for people only.
    fn unread(hint: Option<String>) -> Self {
        Self { kind: AskKind::Other, subject: None, hint }
    }
}

/// A command in another folder than the program's own is one behind `cd`: its relative paths are others.
fn command(params: &Value, folder: &str) -> About {
    let command = first_text(params, &["/command"]);
    let network = params.get("networkApprovalContext").filter(|context| context.is_object());
    if let Some(context) = network {
        let host = text(context, "/host").unwrap_or_default();
        let protocol = text(context, "/protocol").unwrap_or_default();
        let address = format!("{protocol}://{host}");
        let is_web = matches!(protocol, "http" | "https") && !host.is_empty();
        let subject = is_web.then(|| address.clone());
        return About { kind: AskKind::Network, subject, hint: Some(address) };
    }
    // Input for a running program, and what a person is to run, aren't commands that a rule knows.
    if !matches!(text(params, "/kind"), Some("command") | None) {
        return About::unread(command.map(str::to_owned));
    }
    let script = command.map(script_of);
    let script = match (script, text(params, "/cwd").filter(|cwd| *cwd != folder)) {
        (Some(script), Some(cwd)) => Some(format!("cd {} && {script}", quoted(cwd))),
        (script, _) => script.map(std::borrow::Cow::into_owned),
    };
    About { kind: AskKind::Command, subject: script, hint: None }
}

fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// Consent to more changes below a folder is a question for a person.
fn file_change(params: &Value, item: Option<&Value>) -> About {
    let paths = item.map(paths).unwrap_or_default();
    let all = paths.join(", ");
    if let Some(root) = first_text(params, &["/grantRoot"]) {
        let hint = Some(format!("{all} (and later changes below {root})"));
        return About { kind: AskKind::Edit, subject: None, hint };
    }
    let (kind, subject) = changed_files(paths);
    About { kind, subject, hint: (!all.is_empty()).then_some(all) }
}

fn option(name: &str, meaning: OptionMeaning) -> AskOption {
    AskOption { label: name.to_owned(), keys: name.to_owned(), meaning }
}
