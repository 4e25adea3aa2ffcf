//! The models' answers of the night: they depend only on the conversation, so that a repeated call gets the same
//! answer.

use std::time::Duration;

use serde_json::{Value, json};

/// Before the name of an agent in its goal.
pub(super) const NAMED: &str = "Keep the ledger as ";

/// The next piece of the conversation; `is_late` when the work is to end.
pub(super) fn answer(request: &Value, is_late: bool, part: Duration) -> Value {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    if request["model"] == "judge" {
        return judged(messages);
    }
    let said = messages.iter().filter(|message| message["role"] == "assistant").count();
    let Some(name) = name_in(messages) else {
        return json!({"role": "assistant", "content": "There is no name in the goal."});
    };
    if request["tools"].as_array().is_none_or(Vec::is_empty) {
        return json!({"role": "assistant", "content": "The ledger was kept as far as it could be."});
    }
    match (name.as_str(), said) {
        ("root", 0) => calls(&[("spawn_agent", brief("one")), ("spawn_agent", brief("two"))]),
        // A claim that comes too early, which the judge rejects.
        ("root", 1) => done(),
        _ if is_late && said > 2 => done(),
        _ => {
            let seconds = (part.as_secs_f64() / 5.0).min(15.0);
            let command = format!("echo {name}-{said} >> ledger.txt; sleep {seconds:.2}");
            calls(&[("shell", json!({"command": command}))])
        }
    }
}

/// The root's text when it is truly done.
fn done() -> Value {
    json!({"role": "assistant", "content": "The ledger is kept."})
}

fn brief(name: &str) -> Value {
    json!({"goal": format!("{NAMED}{name}, alone."), "name": name})
}

fn calls(calls: &[(&str, Value)]) -> Value {
    let calls = calls.iter().enumerate().map(|(index, (name, arguments))| {
        let id = format!("call_{index}_{:x}", fastrand::u64(..));
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"index": index, "id": id, "type": "function", "function": function})
    });
    json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>()})
}

fn name_in(messages: &[Value]) -> Option<String> {
    let first = messages.iter().find(|message| message["role"] == "user")?;
    let text = first["content"].as_str().map_or_else(|| first["content"].to_string(), str::to_owned);
    let rest = text.split(NAMED).nth(1)?;
    Some(rest.chars().take_while(|letter| letter.is_alphanumeric()).collect())
}

/// The root's first claim comes before it has written anything itself.
fn judged(messages: &[Value]) -> Value {
    let evidence = messages.iter().map(|message| message["content"].to_string()).collect::<String>();
    let achieved = evidence.contains("root-");
    let verdict = json!({
        "achieved": achieved,
        "reasoning": if achieved { "The root agent has written into the ledger." } else { "The root agent has written nothing." },
        "confidence": 0.95,
        "suggestions": [],
    });
    json!({"role": "assistant", "content": verdict.to_string()})
}
