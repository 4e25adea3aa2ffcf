//! Tool calls as an editor shows them. What a call is about, its tool says.

use std::collections::HashMap;
use std::path::PathBuf;

use provost_event::{
    AgentPolicy, CallId, Json, Seq, SessionId, ToolCall, ToolFinished, ToolSpec, ToolStarted, ToolStatus,
    ToolSubject, ToolsChanged,
};
use provost_view::{safe, visible};
use serde_json::{Value, json};

use crate::diff::{ChangedFile, hunks};
use crate::editor::{Call, CallChange, CallKind, CallState, Content};

/// Characters of a title.
const TITLE_CHARS_MAX: usize = 160;

/// The tools of an agent, and its calls that have no result.
pub(crate) struct AgentCalls {
    session: SessionId,
    workspace: PathBuf,
    tools: Vec<ToolSpec>,
    open: HashMap<CallId, Call>,
}

impl AgentCalls {
    pub(crate) fn new(session: SessionId, policy: &AgentPolicy) -> Self {
        let mut calls = Self { session, workspace: PathBuf::new(), tools: Vec::new(), open: HashMap::new() };
        calls.under(policy);
        calls
    }

    /// From here on this policy counts.
    pub(crate) fn under(&mut self, policy: &AgentPolicy) {
        self.workspace.clone_from(&policy.workspace);
        self.tools.clone_from(&policy.tools);
    }

    pub(crate) fn change_tools(&mut self, change: &ToolsChanged) {
        self.tools = change.applied_to(&self.tools);
    }

    /// Takes in the call that stands at `number` in the answer of entry `seq`. `by` is the agent's name; absent for the
    /// root.
    pub(crate) fn begin(&mut self, call: &ToolCall, seq: Seq, number: usize, by: Option<&str>) -> Call {
        let id = format!("{}.{seq}.{number}", self.session.agent);
        let begun = self.call(id, &call.name, &call.input, by);
        self.open.insert(call.id.clone(), begun.clone());
        begun
    }

    /// The call as it is asked about: with the arguments of the question.
    pub(crate) fn asked(&self, call: &CallId, input: &Json) -> Option<Call> {
        let known = self.open.get(call)?;
        Some(Call { input: value(input), ..known.clone() })
    }

    pub(crate) fn started(&mut self, started: &ToolStarted) -> Option<CallChange> {
        let call = self.open.get_mut(&started.call)?;
        let is_other = started.replaced_by.is_some();
        if is_other {
            call.input = value(&started.input);
        }
        Some(CallChange {
            id: call.id.clone(),
            state: CallState::Running,
            input: is_other.then(|| call.input.clone()),
            content: None,
            output: None,
        })
    }

    pub(crate) fn finished(&mut self, finished: &ToolFinished) -> Option<CallChange> {
        let call = self.open.remove(&finished.call)?;
        let state = if finished.status == ToolStatus::Ok { CallState::Done } else { CallState::Failed };
        let changes = hunks(&finished.output, &self.changed_files(&call));
        let content = if changes.is_empty() {
            let text = safe(&finished.output);
            Vec::from_iter((!text.is_empty()).then_some(Content::Text(text)))
        } else {
            changes.into_iter().map(Content::Diff).collect()
        };
        let mut output = json!({ "status": finished.status, "duration_ms": finished.duration_ms });
        if let (Some(fields), Some(status)) = (output.as_object_mut(), finished.facts.exit_status) {
            fields.insert("exit_status".to_owned(), status.into());
        }
        Some(CallChange { id: call.id, state, input: None, content: Some(content), output: Some(output) })
    }

    fn spec(&self, tool: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|spec| spec.identity().names().any(|name| name == tool))
    }

    fn call(&self, id: String, tool: &str, input: &Json, by: Option<&str>) -> Call {
        let spec = self.spec(tool);
        let input = value(input);
        let summary = spec.and_then(ToolSpec::summary_field).and_then(|field| input.get(field)?.as_str());
        let summary = summary.or_else(|| only_text(&input)).unwrap_or_default();
        let said = [by.map(|by| format!("{by}:")), Some(tool.to_owned()), Some(summary.to_owned())];
        let said = said.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let subject = spec.map(|spec| &spec.subject);
        Call {
            id,
            title: one_line(&said.join(" ")),
            tool: visible(tool),
            kind: subject.map_or(CallKind::Other, kind),
            paths: subject.map(|subject| self.paths(subject, &input)).unwrap_or_default(),
            input,
        }
    }

    fn paths(&self, subject: &ToolSubject, input: &Value) -> Vec<PathBuf> {
        let text = |field: &str| input.get(field).and_then(Value::as_str).map(str::to_owned);
        let given = match subject {
            ToolSubject::Path { field, .. } => text(field).into_iter().collect(),
            ToolSubject::Patch { .. } => written(subject, input),
            _ => Vec::new(),
        };
        given.iter().map(|path| self.workspace.join(path)).collect()
    }

    fn changed_files(&self, call: &Call) -> Vec<ChangedFile> {
        let Some(spec) = self.spec(&call.tool) else { return Vec::new() };
        let given = written(&spec.subject, &call.input).into_iter();
        given.map(|given| ChangedFile { path: self.workspace.join(&given), given }).collect()
    }
}

fn written(subject: &ToolSubject, input: &Value) -> Vec<String> {
    Json::parse(input.to_string()).map(|input| subject.written_paths_in(&input)).unwrap_or_default()
}

fn kind(subject: &ToolSubject) -> CallKind {
    match subject {
        ToolSubject::Command { .. } | ToolSubject::Typed { .. } => CallKind::Runs,
        ToolSubject::Path { writes: true, .. } | ToolSubject::Patch { .. } => CallKind::Edits,
        ToolSubject::Path { walks: true, .. } => CallKind::Searches,
        ToolSubject::Path { .. } => CallKind::Reads,
        ToolSubject::Url { .. } => CallKind::Fetches,
        ToolSubject::Own | ToolSubject::Opaque => CallKind::Other,
    }
}

fn value(input: &Json) -> Value {
    input.read().unwrap_or_default()
}

/// The text of the only argument.
fn only_text(input: &Value) -> Option<&str> {
    let fields = input.as_object().filter(|fields| fields.len() == 1)?;
    fields.values().next()?.as_str()
}

/// The first line, in which nothing is hidden and nothing is obeyed by a terminal.
pub(crate) fn one_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let shown = visible(lines.next().unwrap_or_default());
    let is_whole = lines.next().is_none() && shown.chars().count() <= TITLE_CHARS_MAX;
    let kept = shown.chars().take(TITLE_CHARS_MAX).collect::<String>();
    if is_whole { kept } else { format!("{} …", kept.trim_end()) }
}
