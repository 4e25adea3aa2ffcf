//! A tool call in a few words.

use provost_event::{Json, ToolSpec};
use serde_json::Value;

use super::words::{one_line, plural};
use provost_runtime::known_tool;

/// Columns for the arguments.
const WIDTH_MAX: usize = 100;

/// The tool's name with what matters of its arguments: `shell cargo test`, `edit_file src/lib.rs`.
pub(crate) fn call(tool: &str, input: &Json) -> String {
    let value = input.read::<Value>().unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let spec = known_tool(tool);
    let summary = spec.and_then(ToolSpec::summary_field).and_then(|field| Some((field, value.get(field)?)));
    let arguments = match summary {
        // A sub-agent's tool takes these two.
        _ if !text("agent").is_empty() && !text("goal").is_empty() => {
            format!("agent {}: {}", text("agent"), text("goal"))
        }
        Some(("goal", Value::String(goal))) if !text("name").is_empty() => {
            format!("{}: {goal}", text("name"))
        }
        Some((field, Value::String(summary))) => match spec.and_then(|spec| spec.subject.field()) {
            Some(subject) if subject != field && !text(subject).is_empty() => {
                format!("{summary} in {}", text(subject))
            }
            _ => summary.clone(),
        },
        Some((_, Value::Array(items))) => steps(items),
        _ => others(&value),
    };
    one_line(&format!("{tool} {arguments}"), WIDTH_MAX)
}

/// Items with a status: how many are done, and the one in progress.
fn steps(items: &[Value]) -> String {
    let is = |item: &&Value, status: &str| item.get("status").is_some_and(|found| found == status);
    let now = items.iter().find(|item| is(item, "in_progress")).and_then(|item| item.get("text")?.as_str());
    let done = items.iter().filter(|item| is(item, "done")).count();
    match now {
        Some(now) => format!("{done}/{} {now}", items.len()),
        None => format!("{done}/{} done", items.len()),
    }
}

/// A single text stands for itself; else the JSON does.
fn others(value: &Value) -> String {
    match value.as_object() {
        Some(fields) if fields.is_empty() => String::new(),
        Some(fields) if fields.len() == 1 => match fields.values().next() {
            Some(Value::String(text)) => text.clone(),
            Some(_) | None => value.to_string(),
        },
        Some(fields) if fields.len() > 8 => plural(fields.len() as u64, "argument"),
        Some(_) | None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use provost_event::Json;

    use super::call;

    #[track_caller]
    fn check(tool: &str, input: &str, expected: &str) {
        assert_eq!(call(tool, &Json::parse(input.to_owned()).unwrap()), expected);
    }

    #[test]
    fn what_matters_is_shown() {
        check("shell", r#"{"command":"cargo test\ncargo fmt"}"#, "shell cargo test …");
        check("edit_file", r#"{"path":"src/lib.rs","old":"a","new":"b"}"#, "edit_file src/lib.rs");
        check("search", r#"{"pattern":"fn main","path":"src"}"#, "search fn main in src");
        check("list_dir", "{}", "list_dir");
        check(
            "update_plan",
            r#"{"items":[{"text":"a","status":"done"},{"text":"b","status":"in_progress"}]}"#,
            "update_plan 1/2 b",
        );
        check("lookup", r#"{"word":"otter"}"#, "lookup otter");
        check("coder", r#"{"goal":"and the tests","agent":"2"}"#, "coder agent 2: and the tests");
        check(
            "spawn_agent",
            r#"{"goal":"and the tests","agent":"r.2"}"#,
            "spawn_agent agent r.2: and the tests",
        );
        check("add", r#"{"a":1,"b":2}"#, r#"add {"a":1,"b":2}"#);
        check("shell", r#"{"command":"\u001b[2Jls"}"#, "shell ls");
    }
}
