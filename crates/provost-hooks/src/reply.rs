//! A hook's JSON answer, and other output.

use serde::Deserialize;
use serde_json::Value;

/// A hook's output.
#[derive(Debug)]
pub(crate) enum HookReply {
    /// Only white space.
    Nothing,
    /// Something other than a JSON object; with a complaint if it was probably meant as one.
    Text { text: String, complaint: Option<String> },
    /// An answer.
    Reply(Box<Reply>),
    /// A JSON object that is no valid answer, for this reason: all of it is ignored.
    Misfit(String),
}

/// An answer of a hook.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) top: Top,
    pub(crate) specific: Specific,
    /// Ignored fields, in words.
    pub(crate) strays: Vec<String>,
}

/// The fields for every event.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Top {
    #[serde(rename = "continue")]
    pub(crate) goes_on: Option<bool>,
    pub(crate) stop_reason: Option<String>,
    #[serde(rename = "suppressOutput")]
    _suppress_output: Option<bool>,
    pub(crate) system_message: Option<String>,
    pub(crate) decision: Option<TopDecision>,
    pub(crate) reason: Option<String>,
    hook_specific_output: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TopDecision {
    Approve,
    Block,
}

/// The fields for one event.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Specific {
    pub(crate) permission_decision: Option<PermissionDecision>,
    pub(crate) permission_decision_reason: Option<String>,
    pub(crate) updated_input: Option<Value>,
    pub(crate) additional_context: Option<String>,
    pub(crate) decision: Option<RequestDecision>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PermissionDecision {
    Allow,
    Deny,
    Ask,
    Defer,
}

/// A hook's answer to an approval request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestDecision {
    pub(crate) behavior: Behavior,
    pub(crate) message: Option<String>,
    pub(crate) interrupt: Option<bool>,
    pub(crate) updated_input: Option<Value>,
    pub(crate) updated_permissions: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Behavior {
    Allow,
    Deny,
}

/// Fields that count only within `hookSpecificOutput`.
const ONLY_WITHIN: &[&str] =
    &["permissionDecision", "permissionDecisionReason", "additionalContext", "updatedInput", "hookEventName"];

/// Fields within `hookSpecificOutput` that are never applied.
const NEVER_TAKEN: &[&str] = &[
    "updatedToolOutput",
    "updatedMCPToolOutput",
    "classifierContext",
    "initialUserMessage",
    "suppressOriginalPrompt",
    "sessionTitle",
    "watchPaths",
    "reloadSkills",
];

/// Lines of a text that are tried as the beginning of an answer.
const ANSWERS_TRIED_MAX: usize = 64;

/// The output without white space at its ends and a byte order mark.
pub(crate) fn text_of(output: &str) -> &str {
    output.trim_start_matches('\u{feff}').trim()
}

/// Parses the output of a hook for `event`.
pub(crate) fn read(output: &str, event: &str) -> HookReply {
    let text = text_of(output);
    if text.is_empty() {
        return HookReply::Nothing;
    }
    if !text.starts_with('{') {
        return HookReply::Text { text: text.to_owned(), complaint: answer_within(text) };
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) => read_object(value, event),
        Err(error) => {
            let complaint = Some(format!("its output begins like a JSON object, but isn't one: {error}"));
            HookReply::Text { text: text.to_owned(), complaint }
        }
    }
}

/// Complains about an answer behind other text, which a script that prints both means to count.
fn answer_within(text: &str) -> Option<String> {
    let is_answer = |value: &Value| {
        let names = ONLY_WITHIN.iter().chain(&["hookSpecificOutput", "decision", "continue"]);
        names.into_iter().any(|name| value.get(*name).is_some())
    };
    let mut lines = text.match_indices('\n').map(|(at, _)| text.get(at..).unwrap_or_default().trim_start());
    let mut objects = lines.by_ref().filter(|rest| rest.starts_with('{')).take(ANSWERS_TRIED_MAX);
    let found = objects.any(|rest| {
        let first = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next();
        first.is_some_and(|first| first.is_ok_and(|value| is_answer(&value)))
    });
    found.then(|| {
        "its output has other text before its JSON answer, so that the answer counts for nothing: only an answer that its \
         output begins with counts"
            .to_owned()
    })
}

fn read_object(value: Value, event: &str) -> HookReply {
    let strays = strays(&value);
    let top = match serde_json::from_value::<Top>(value) {
        Ok(top) => top,
        Err(error) => return HookReply::Misfit(format!("its JSON answer counts for nothing: {error}")),
    };
    match specific(top.hook_specific_output.as_ref(), event) {
        Ok(specific) => HookReply::Reply(Box::new(Reply { top, specific, strays })),
        Err(words) => HookReply::Misfit(format!("its JSON answer counts for nothing: {words}")),
    }
}

/// Ignored fields, in words.
fn strays(value: &Value) -> Vec<String> {
    let outside = ONLY_WITHIN.iter().filter(|name| value.get(**name).is_some());
    let outside = outside.map(|name| {
        format!("`{name}` at the top of its answer counts for nothing: it belongs into `hookSpecificOutput`")
    });
    let within = value.get("hookSpecificOutput");
    let untaken = NEVER_TAKEN.iter().filter(|name| within.and_then(|within| within.get(**name)).is_some());
    outside.chain(untaken.map(|name| untaken_words(name))).collect()
}

pub(crate) fn untaken_words(name: &str) -> String {
    format!("its `{name}` isn't taken: hooks decide, they don't change what others see or may do")
}

fn specific(output: Option<&Value>, event: &str) -> Result<Specific, String> {
    let Some(output) = output.filter(|output| !output.is_null()) else { return Ok(Specific::default()) };
    match output.get("hookEventName") {
        Some(Value::String(name)) if name == event => {}
        Some(name) => {
            return Err(format!("`hookSpecificOutput` is for the event {name}, but this is \"{event}\""));
        }
        None => {
            return Err(format!("`hookSpecificOutput` lacks `\"hookEventName\": \"{event}\"`"));
        }
    }
    Specific::deserialize(output).map_err(|error| format!("in `hookSpecificOutput`: {error}"))
}
