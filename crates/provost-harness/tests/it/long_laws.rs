//! Invariants of every request.

use std::collections::HashSet;
use std::sync::Arc;

use provost_event::{Block, CallId};
use provost_harness::{Message, Part, Role};

/// Why a provider would reject `messages`; `None` if it wouldn't.
pub(crate) fn fault_of(messages: &[Arc<Message>]) -> Option<String> {
    if messages.first().is_none_or(|first| first.role != Role::User) {
        return Some("the first message isn't a user's".to_owned());
    }
    if messages.last().is_some_and(|last| last.role != Role::User) {
        return Some("the last message isn't a user's".to_owned());
    }
    let mut known = HashSet::new();
    for (place, message) in messages.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|before| messages.get(before));
        let fault = fault_in(message, before.map(|before| &**before), &mut known);
        if let Some(fault) = fault {
            return Some(format!("message {place}: {fault}"));
        }
    }
    None
}

fn fault_in<'a>(
    message: &'a Message,
    before: Option<&'a Message>,
    known: &mut HashSet<&'a CallId>,
) -> Option<String> {
    if message.parts.is_empty() || message.parts.iter().any(is_empty) {
        return Some("it is empty, or a part of it is".to_owned());
    }
    let (calls, results) = (calls_of(message), results_of(message));
    let open = before.map(calls_of).unwrap_or_default();
    if message.role == Role::Assistant {
        if before.is_some_and(|before| before.role == Role::Assistant) {
            return Some("the model speaks twice in a row".to_owned());
        }
        if !results.is_empty() {
            return Some("the model speaks a tool's result".to_owned());
        }
        return calls.into_iter().find(|id| !known.insert(id)).map(|id| format!("call {id} is there twice"));
    }
    if !calls.is_empty() {
        return Some("a tool call not of the model".to_owned());
    }
    if results != open {
        return Some(format!("the calls are {open:?}, the results {results:?}"));
    }
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    let ends = message.parts.iter().take_while(|part| is_result(part)).count();
    (ends < results.len()).then(|| "a result stands behind something else".to_owned())
}

fn is_empty(part: &Part) -> bool {
    matches!(part, Part::Block(Block::Text(text)) if text.trim().is_empty())
}

/// The calls of a message, in order.
pub(crate) fn calls_of(message: &Message) -> Vec<&CallId> {
    let calls = message.parts.iter().filter_map(|part| match part {
        Part::Block(Block::ToolCall(call)) => Some(&call.id),
        _ => None,
    });
    calls.collect()
}

fn results_of(message: &Message) -> Vec<&CallId> {
    let results = message.parts.iter().filter_map(|part| match part {
        Part::ToolResult { call, .. } => Some(call),
        _ => None,
    });
    results.collect()
}

/// The text of a part, as a search would see it.
pub(crate) fn text_of(part: &Part) -> &str {
    match part {
        Part::Block(Block::Text(text) | Block::Thinking { text, .. }) => text,
        Part::Block(Block::ToolCall(call)) => call.input.text(),
        Part::Block(Block::Opaque { json, .. }) => json.text(),
        Part::ToolResult { output, .. } => output,
        Part::Block(Block::Image(_)) | Part::Image(_) => "",
    }
}

/// Whether `messages` contain `words`.
pub(crate) fn is_said(messages: &[Arc<Message>], words: &str) -> bool {
    messages.iter().flat_map(|message| &message.parts).any(|part| text_of(part).contains(words))
}
