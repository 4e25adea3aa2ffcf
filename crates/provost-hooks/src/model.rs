//! Hooks that are models: what they are asked, and what their answer means.

use provost_event::{HookDecision, HookModel, HookPoint, HookPolicy};
use serde::Deserialize;
use serde_json::Value;

use crate::meaning::{Meaning, NO_REASON, refusal};
use crate::point::rules;
use crate::question::HookQuery;
use crate::reply::text_of;

/// Stands for the input in a prompt.
const ARGUMENTS: &str = "$ARGUMENTS";
/// Characters of an answer that can't be read, for its note.
const SHOWN_CHARS_MAX: usize = 200;

/// The prompt with the hook's input in it: in the place of each `$ARGUMENTS` without a backslash before it, or else at
/// the end.
pub(crate) fn filled(prompt: &str, input: &Value) -> String {
    let input = input.to_string();
    let mut out = String::with_capacity(prompt.len().saturating_add(input.len()));
    let mut has_input = false;
    let mut rest = prompt;
    while let Some((before, after)) = rest.split_once(ARGUMENTS) {
        match before.strip_suffix('\\') {
            Some(escaped) => {
                out.push_str(escaped);
                out.push_str(ARGUMENTS);
            }
            None => {
                out.push_str(before);
                out.push_str(&input);
                has_input = true;
            }
        }
        rest = after;
    }
    out.push_str(rest);
    if !has_input {
        out.push_str("\n\n");
        out.push_str(&input);
    }
    out
}

/// The answer of a model.
#[derive(Debug, Deserialize)]
struct Judged {
    ok: bool,
    #[serde(default)]
    reason: Option<String>,
    /// At a stop: what the hook asks for can't be reached, so the agent may stop.
    #[serde(default)]
    impossible: Option<bool>,
}

/// The meaning of a model's answer.
pub(crate) fn of_model(hook: &HookPolicy, model: &HookModel, asked: HookQuery<'_>, text: &str) -> Meaning {
    let Some(Judged { ok, reason, impossible }) = judged(text) else {
        let shown = text.trim().chars().take(SHOWN_CHARS_MAX).collect::<String>();
        return Meaning::failed(format!("its answer is no {{\"ok\": true}} or {{\"ok\": false}}: {shown}"));
    };
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    if ok {
        return Meaning::nothing();
    }
    let reason = reason.unwrap_or_else(|| NO_REASON.to_owned());
    if impossible == Some(true) && matches!(asked.point, HookPoint::Stop | HookPoint::SubagentStop) {
        return Meaning::nothing().note(format!("it lets the agent stop, since it can't be met: {reason}"));
    }
    // A failed call is told of in any case; after one that succeeded the work stops, unless the hook says otherwise.
    let suspends = matches!(asked.point, HookPoint::PostToolSuccess | HookPoint::PostToolCall);
    if suspends && rules(asked.point).call_was_made && !asked.failed() && !model.continue_on_block {
        return Meaning::pause(reason);
    }
    refusal(asked, hook.contract, reason)
}

/// The object that is the answer, also in a code fence or after some words. Two of them are none: one may be quoted.
fn judged(text: &str) -> Option<Judged> {
    let text = text_of(text);
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    let object = serde_json::from_str::<Value>(text.get(start..=end)?).ok()?;
    Judged::deserialize(object).ok()
}

/// No answer, for a hook that can't be asked.
pub(crate) fn is_no_model() -> HookDecision {
    HookDecision::Broken("its policy names no model".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{filled, judged};

    #[test]
    fn the_input_takes_the_place_of_its_word_or_stands_at_the_end() {
        let input = json!({ "a": "$ARGUMENTS" });
        assert_eq!(filled("Is $ARGUMENTS fine?", &input), r#"Is {"a":"$ARGUMENTS"} fine?"#);
        assert_eq!(filled("Is it fine?", &input), "Is it fine?\n\n{\"a\":\"$ARGUMENTS\"}");
        assert_eq!(filled("\\$ARGUMENTS is a word", &json!(1)), "$ARGUMENTS is a word\n\n1");
    }

    #[test]
    fn an_answer_is_one_object_with_ok() {
        assert!(judged("{\"ok\": true}").is_some_and(|said| said.ok));
        assert!(judged("```json\n{\"ok\": false, \"reason\": \"no\"}\n```").is_some_and(|said| !said.ok));
        for none in ["", "ok", "{\"ok\": \"yes\"}", "{\"ok\":true} {\"ok\":false}", "{\"reason\":\"x\"}"] {
            assert!(judged(none).is_none(), "{none}");
        }
    }
}
