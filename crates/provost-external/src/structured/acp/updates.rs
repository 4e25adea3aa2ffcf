//! An agent's updates while it works on a prompt.

use std::collections::BTreeMap;

use provost_event::{
    AskKind, Certainty, Plan, PlanItem, PlanStatus, ProgramActivity, ProgramCall, ProgramChange, Usage,
};
use serde_json::{Map, Value};

use super::super::stream_item::{Cost, PLAN_ITEMS_MAX, ParsedLine, StreamItem, Used};
use super::super::value::{count, dollars, first_text, text};
use super::asking::{kind_of, paths};

/// Calls whose details are kept; a question about a further call has only its own details.
const CALLS_MAX: usize = 64;

/// The field with a call's changes and its output.
const CONTENT: &str = "content";

/// The fields of a call that a question may need.
const PARTICULARS: [&str; 6] = ["title", "kind", "rawInput", "locations", "_meta", CONTENT];

/// The agent's calls of its own tools, as far as it reported them: a question may refer to one without its
/// details.
#[derive(Default)]
pub(super) struct ToolCalls(BTreeMap<String, Map<String, Value>>);

impl ToolCalls {
    /// Notes a report; returns the whole call once it has ended.
    fn note(&mut self, update: &Value) -> Option<Value> {
        let id = text(update, "/toolCallId")?;
        if matches!(text(update, "/status"), Some("completed" | "failed")) {
            let merged = self.merged(update);
            self.0.remove(id);
            return Some(merged);
        }
        if self.0.contains_key(id) || self.0.len() < CALLS_MAX {
            extend(self.0.entry(id.to_owned()).or_default(), update);
        }
        None
    }

    /// Notes what a question says of its call, and returns the call with the fields that earlier updates had.
    pub(super) fn asked(&mut self, call: &Value) -> Value {
        let merged = self.merged(call);
        self.note(call);
        merged
    }

    fn merged(&self, call: &Value) -> Value {
        let known = text(call, "/toolCallId").and_then(|id| self.0.get(id));
        let mut merged = known.cloned().unwrap_or_default();
        extend(&mut merged, call);
        Value::Object(merged)
    }
}

/// Adds the fields that `call` has; the output of a call doesn't take the place of its changes.
fn extend(known: &mut Map<String, Value>, call: &Value) {
    let has_changes =
        |content: Option<&Value>| content.is_some_and(|content| diffs(content).next().is_some());
    let keeps_content = has_changes(known.get(CONTENT)) && !has_changes(call.get(CONTENT));
    known.extend(told(call).filter(|(name, _)| !(keeps_content && name == CONTENT)));
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

fn diffs(content: &Value) -> impl Iterator<Item = &Value> {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter(|part| text(part, "/type") == Some("diff"))
}

/// The events of an update. Relative paths are those of `folder`.
pub(super) fn read(update: &Value, calls: &mut ToolCalls, folder: &str) -> ParsedLine {
    match text(update, "/sessionUpdate") {
        Some("agent_message_chunk") => {
            let words = text(update, "/content/text").filter(|words| !words.is_empty());
            let used = update.pointer("/_meta/usage").and_then(usage);
            let used = used.map(|usage| StreamItem::Used(Used::Call(usage)));
            let words = words.map(|words| StreamItem::Text(words.to_owned()));
            std::iter::once(StreamItem::Begun).chain(words).chain(used).collect()
        }
        Some("tool_call" | "tool_call_update") => {
            let succeeded = text(update, "/status") == Some("completed");
            let ended = calls.note(update).map(|call| ended(&call, succeeded, folder));
            [StreamItem::Begun, StreamItem::Break].into_iter().chain(ended).collect()
        }
        Some("usage_update") if text(update, "/cost/currency") == Some("USD") => {
            dollars(update, "/cost/amount")
                .map(|money| StreamItem::Cost(Cost::Session(money)))
                .into_iter()
                .collect()
        }
        Some("plan") => [StreamItem::Begun, plan(update)].into_iter().collect(),
        Some("agent_thought_chunk") => StreamItem::Begun.into(),
        _ => ParsedLine::default(),
    }
}

/// A call that has ended, by the agent's report.
fn ended(call: &Value, succeeded: bool, folder: &str) -> StreamItem {
    let kind = kind_of(call);
    let title = first_text(call, &["/title"]).unwrap_or("unnamed");
    let subject = match kind {
        AskKind::Command => first_text(call, &["/rawInput/command"]).unwrap_or(title).to_owned(),
        AskKind::Network => first_text(call, &["/rawInput/url"]).unwrap_or(title).to_owned(),
        AskKind::Edit | AskKind::Edits | AskKind::Read => match paths(call, folder) {
            paths if paths.is_empty() => title.to_owned(),
            paths => paths.join(", "),
        },
        AskKind::Tool | AskKind::Trust | AskKind::Other => title.to_owned(),
    };
    let content = call.get(CONTENT).unwrap_or(&Value::Null);
    let changes = if succeeded { diffs(content).map(change).collect() } else { Vec::new() };
    StreamItem::Activity(ProgramActivity::Call(ProgramCall { kind, subject, succeeded, changes }))
}

/// A change by the two versions of the text: the lines between those that are the same at both ends.
fn change(diff: &Value) -> ProgramChange {
    let lines = |pointer: &str| text(diff, pointer).unwrap_or_default().lines().collect::<Vec<_>>();
    let old = lines("/oldText");
    let new = lines("/newText");
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let ends = old.iter().skip(head).rev().zip(new.iter().skip(head).rev());
    let tail = ends.take_while(|(old, new)| old == new).count();
    let differ = |lines: &[&str]| (lines.len() - head).saturating_sub(tail).try_into().unwrap_or(u64::MAX);
    ProgramChange {
        path: text(diff, "/path").unwrap_or_default().to_owned(),
        added: differ(&new),
        removed: differ(&old),
    }
}

fn plan(update: &Value) -> StreamItem {
    let entries = update.get("entries").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let item = |entry: &Value| PlanItem {
        text: text(entry, "/content").unwrap_or_default().to_owned(),
        status: match text(entry, "/status") {
            Some("completed") => PlanStatus::Done,
            Some("in_progress") => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        },
    };
    let items = entries.iter().take(PLAN_ITEMS_MAX).map(item).collect();
    StreamItem::Activity(ProgramActivity::Plan(Plan { items }))
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
