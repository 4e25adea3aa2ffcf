//! A program's question as a tool call, which is checked like any other.

use provost_engine::Answer;
use provost_event::{AskKind, Block, CallId, Json, StopReason, TerminalAsk, ToolCall, Usage};
use serde_json::json;

/// The question as a call with this id, of one of the tools in [`provost_harness::consent_tools`].
pub(crate) fn call_of(ask: &TerminalAsk, id: CallId) -> ToolCall {
    let (name, field) = match (ask.kind, &ask.subject) {
        // A question that couldn't be parsed is asked as a generic consent.
        (AskKind::Other, _) | (_, None) => ("consent", None),
        (AskKind::Command, Some(_)) => ("shell", Some("command")),
        (AskKind::Edit, Some(_)) => ("edit_file", Some("path")),
        (AskKind::Read, Some(_)) => ("read_file", Some("path")),
        (AskKind::Network, Some(_)) => ("fetch", Some("url")),
        (AskKind::Tool, Some(_)) => ("call_tool", Some("name")),
        (AskKind::Trust, Some(_)) => ("trust_folder", Some("path")),
    };
    let input = match (field, &ask.subject) {
        (Some(field), Some(subject)) => json!({ field: subject, "question": ask.question }),
        _ => json!({ "question": ask.question }),
    };
    ToolCall {
        id,
        name: name.to_owned(),
        input: Json::parse(input.to_string()).unwrap_or_else(|_| Json::empty_object()),
        malformed: None,
    }
}

/// The answer of an exchange that ends with a question.
pub(crate) fn question(ask: &TerminalAsk, id: CallId, program: &str) -> Answer {
    answer(vec![Block::ToolCall(call_of(ask, id))], StopReason::ToolUse, program)
}

/// The answer of an exchange that ends with the program's text.
pub(crate) fn text(text: String, program: &str) -> Answer {
    answer(vec![Block::Text(text)], StopReason::EndTurn, program)
}

fn answer(content: Vec<Block>, stop: StopReason, program: &str) -> Answer {
    Answer { content, usage: Usage::default(), cost: None, model: program.to_owned(), stop }
}
