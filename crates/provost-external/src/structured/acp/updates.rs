//! An agent's updates while it works on a prompt.

use std::collections::BTreeMap;

use provost_event::{Certainty, Usage};
use serde_json::{Map, Value};

use super::super::stream_item::{Cost, ParsedLine, StreamItem, Used};
use super::super::value::{count, dollars, text};

/// Calls whose details are kept; a question about a further call has only its own details.
const CALLS_MAX: usize = 64;

/// The fields of a call that a question may need.
const PARTICULARS: [&str; 5] = ["title", "kind", "rawInput", "locations", "content"];

/// The agent's calls of its own tools, as far as it reported them: a question may refer to one without its
/// details.
#[derive(Default)]
pub(super) struct ToolCalls(BTreeMap<String, Map<String, Value>>);

impl ToolCalls {
    fn note(&mut self, update: &Value) {
        let Some(id) = text(update, "/toolCallId") else { return };
        if !self.0.contains_key(id) && self.0.len() >= CALLS_MAX {
            return;
        }
        if matches!(text(update, "/status"), Some("completed" | "failed")) {
            self.0.remove(id);
            return;
        }
        let known = self.0.entry(id.to_owned()).or_default();
        known.extend(told(update));
    }

    /// The question's call, with missing fields filled from earlier updates.
    pub(super) fn merged(&self, call: &Value) -> Value {
        let known = text(call, "/toolCallId").and_then(|id| self.0.get(id));
        let mut merged = known.cloned().unwrap_or_default();
        merged.extend(told(call));
        Value::Object(merged)
    }
}

fn told(call: &Value) -> impl Iterator<Item = (String, Value)> {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    PARTICULARS.iter().filter_map(move |name| {
        Some(((*name).to_owned(), call.get(*name).filter(|value| says(value))?.clone()))
    })
}

pub(super) fn read(update: &Value, calls: &mut ToolCalls) -> ParsedLine {
    match text(update, "/sessionUpdate") {
        Some("agent_message_chunk") => {
            let words = text(update, "/content/text").filter(|words| !words.is_empty());
            let used = update.pointer("/_meta/usage").and_then(usage);
            let used = used.map(|usage| StreamItem::Used(Used::Call(usage)));
            let words = words.map(|words| StreamItem::Text(words.to_owned()));
            std::iter::once(StreamItem::Begun).chain(words).chain(used).collect()
        }
        Some("tool_call" | "tool_call_update") => {
            calls.note(update);
            [StreamItem::Begun, StreamItem::Break].into_iter().collect()
        }
        Some("usage_update") if text(update, "/cost/currency") == Some("USD") => {
            dollars(update, "/cost/amount")
                .map(|money| StreamItem::Cost(Cost::Session(money)))
                .into_iter()
                .collect()
        }
        Some("agent_thought_chunk" | "plan") => StreamItem::Begun.into(),
        _ => ParsedLine::default(),
    }
}

/// Usage, by the names that the protocol's drafts and the agents use.
pub(super) fn usage(figures: &Value) -> Option<Usage> {
    if !figures.is_object() {
        return None;
    }
    let of = |names: [&str; 2]| count(figures, names[0]).max(count(figures, names[1]));
    let input = of(["/inputTokens", "/input_tokens"]);
    let output = of(["/outputTokens", "/output_tokens"]);
    let thought = of(["/thoughtTokens", "/thought_tokens"]);
    let read = of(["/cachedReadTokens", "/cached_read_tokens"]);
    let written = of(["/cachedWriteTokens", "/cached_write_tokens"]);
    let total = of(["/totalTokens", "/total_tokens"]);
    // Some agents count cached tokens as input, or thoughts as output; the total shows which.
    let (base, cached) = (input.saturating_add(output), read.saturating_add(written));
    let (cached_among, thought_among) = match total {
        _ if total == base => (cached, thought),
        _ if total == base.saturating_add(thought) => (cached, 0),
        _ if total == base.saturating_add(cached) => (0, thought),
        _ => (0, 0),
    };
    Some(Usage {
        input_tokens: input.saturating_sub(cached_among),
        output_tokens: output.saturating_add(thought.saturating_sub(thought_among)),
        cache_read_tokens: read,
        cache_write_tokens: written,
        reasoning_tokens: thought,
        certainty: Certainty::Reported,
    })
}
