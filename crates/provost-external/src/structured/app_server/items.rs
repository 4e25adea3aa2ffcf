//! A thread's items: what the server did, and what its questions are about.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{AskKind, Plan, PlanItem, PlanStatus, ProgramActivity, ProgramCall, ProgramChange};
use serde_json::Value;

use super::super::stream_item::{PLAN_ITEMS_MAX, ParsedLine, StreamItem};
use super::super::value::{first_text, text};
use super::shell_words::script_of;

/// Items whose details are kept; a question about a further one has only its own details.
const ITEMS_MAX: usize = 256;

/// The items that have begun, by their ids.
#[derive(Default)]
pub(super) struct Items {
    known: BTreeMap<String, Value>,
    /// The commands of the prompt's own thread that run.
    running: BTreeSet<String>,
}

impl Items {
    pub(super) fn get(&self, id: &str) -> Option<&Value> {
        self.known.get(id)
    }

    /// Whether a command runs: a turn may end before its commands do.
    pub(super) fn are_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Notes that a command of the prompt's own thread has begun.
    pub(super) fn begun(&mut self, params: &Value) {
        let item = params.get("item").filter(|item| text(item, "/type") == Some("commandExecution"));
        if let Some(id) = item.and_then(|item| text(item, "/id")).filter(|_| self.running.len() < ITEMS_MAX) {
            self.running.insert(id.to_owned());
        }
    }

    /// Notes an item that has begun, or the changes of one that goes on.
    pub(super) fn note(&mut self, params: &Value) {
        let item = params.get("item");
        let id = item.and_then(|item| text(item, "/id")).or_else(|| text(params, "/itemId"));
        let Some(id) = id.filter(|id| self.known.contains_key(*id) || self.known.len() < ITEMS_MAX) else {
            return;
        };
        match (item, params.get("changes"), self.known.get_mut(id)) {
            (Some(item), _, _) => _ = self.known.insert(id.to_owned(), item.clone()),
            (None, Some(changes), Some(Value::Object(known))) => {
                known.insert("changes".to_owned(), changes.clone());
            }
            _ => {}
        }
    }

    /// The events of an item that has ended. Messages count only if the item is of the prompt itself.
    pub(super) fn completed(&mut self, params: &Value, is_of_prompt: bool) -> ParsedLine {
        let item = params.get("item").unwrap_or(&Value::Null);
        if let Some(id) = text(item, "/id") {
            self.known.remove(id);
            self.running.remove(id);
        }
        if !is_of_prompt {
            return ParsedLine::default();
        }
        let event = match text(item, "/type") {
            Some("userMessage") | None => return ParsedLine::default(),
            Some("agentMessage") => {
                let words = first_text(item, &["/text"]).map(|words| StreamItem::Text(words.to_owned()));
                return [StreamItem::Begun, StreamItem::Break].into_iter().chain(words).collect();
            }
            Some("commandExecution") => Some((
                AskKind::Command,
                text(item, "/command").map(|command| script_of(command).into_owned()),
            )),
            Some("fileChange") => Some((AskKind::Edit, Some(paths(item).join(", ")))),
            Some("mcpToolCall") => Some((AskKind::Tool, tool_name(item, "/server"))),
            Some("dynamicToolCall") => Some((AskKind::Tool, tool_name(item, "/namespace"))),
            Some("webSearch") => Some((AskKind::Network, text(item, "/query").map(str::to_owned))),
            Some(_) => None,
        };
        let activity = event.map(|(kind, subject)| {
            let succeeded = has_succeeded(item);
            let changes = if succeeded { changes(item).map(change).collect() } else { Vec::new() };
            let subject =
                subject.filter(|subject| !subject.is_empty()).unwrap_or_else(|| "unnamed".to_owned());
            StreamItem::Activity(ProgramActivity::Call(ProgramCall { kind, subject, succeeded, changes }))
        });
        std::iter::once(StreamItem::Begun).chain(activity).collect()
    }
}

fn has_succeeded(item: &Value) -> bool {
    let exit = item.get("exitCode").and_then(Value::as_i64).unwrap_or(0);
    exit == 0 && matches!(text(item, "/status"), Some("completed") | None)
}

fn tool_name(item: &Value, group: &str) -> Option<String> {
    let tool = text(item, "/tool")?;
    Some(text(item, group).map_or_else(|| tool.to_owned(), |group| format!("{group}/{tool}")))
}

fn changes(item: &Value) -> impl Iterator<Item = &Value> {
    item.get("changes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
}

/// The files that an item changes, each once, also those that files are moved to.
pub(super) fn paths(item: &Value) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for change in changes(item) {
        for path in [text(change, "/path"), text(change, "/kind/move_path")].into_iter().flatten() {
            if !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        }
    }
    paths
}

/// A change: a new file's and a deleted file's text as it is, else a unified diff.
fn change(change: &Value) -> ProgramChange {
    let diff = text(change, "/diff").unwrap_or_default();
    let lines = |mark: char, head: &str| {
        let is_counted = |line: &&str| line.starts_with(mark) && !line.starts_with(head);
        diff.lines().filter(is_counted).count().try_into().unwrap_or(u64::MAX)
    };
    let all = || diff.lines().count().try_into().unwrap_or(u64::MAX);
    let path = text(change, "/path").unwrap_or_default().to_owned();
    match text(change, "/kind/type") {
        Some("add") => ProgramChange { path, added: all(), removed: 0 },
        Some("delete") => ProgramChange { path, added: 0, removed: all() },
        _ => ProgramChange { path, added: lines('+', "+++"), removed: lines('-', "---") },
    }
}

/// The plan that a turn has now.
pub(super) fn plan(params: &Value) -> StreamItem {
    let steps = params.get("plan").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let item = |step: &Value| PlanItem {
        text: text(step, "/step").unwrap_or_default().to_owned(),
        status: match text(step, "/status") {
            Some("completed") => PlanStatus::Done,
            Some("inProgress") => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        },
    };
    let items = steps.iter().take(PLAN_ITEMS_MAX).map(item).collect();
    StreamItem::Activity(ProgramActivity::Plan(Plan { items }))
}
