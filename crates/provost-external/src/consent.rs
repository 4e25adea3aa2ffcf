//! A program's question as a tool call, which is checked like any other.

use provost_engine::Answer;
use provost_event::{AskKind, Block, CallId, Json, StopReason, TerminalAsk, ToolCall, Usage};
use provost_harness::ConsentTool;
use serde_json::json;

/// The question as a call with this id, of one of the tools in [`provost_harness::consent_tools`].
pub(crate) fn call_of(ask: &TerminalAsk, id: CallId) -> ToolCall {
    // A question that couldn't be parsed is asked as a generic consent.
    let kind = if ask.subject.is_some() { ask.kind } else { AskKind::Other };
    let tool = ConsentTool::ALL.into_iter().find(|tool| tool.kind == kind);
    let name = tool.map_or("consent", |tool| tool.name);
    let input = match (tool.filter(|tool| tool.kind != AskKind::Other), &ask.subject) {
        (Some(tool), Some(paths)) if tool.kind == AskKind::Edits => {
            json!({ tool.field: patch_of(paths), "question": ask.question })
        }
        (Some(tool), Some(subject)) => json!({ tool.field: subject, "question": ask.question }),
        _ => json!({ "question": ask.question }),
    };
    ToolCall {
        id,
        name: name.to_owned(),
        input: Json::parse(input.to_string()).unwrap_or_else(|_| Json::empty_object()),
        malformed: None,
    }
}

/// The files, a path a line, as a patch names them. It has no lines of theirs.
fn patch_of(paths: &str) -> String {
    let files = paths.lines().map(|path| format!("*** Update File: {path}\n"));
    format!("*** Begin Patch\n{}*** End Patch", files.collect::<String>())
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
