//! `update_plan`: the agent's plan and its progress.

use async_trait::async_trait;
use provost_event::{Access, CallForm, Json, Plan, PlanItem, PlanStatus, ToolSpec, ToolSubject, ValueForm};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::form::{form, ignoring, named, owned, renamed, valued};
use crate::spec::{About, FILE_TIMEOUT};

/// Maximum steps of a plan.
const ITEMS_MAX: usize = 50;

/// Maximum bytes of a step's text.
const TEXT_BYTES_MAX: usize = 500;

const DESCRIPTION: &str = "Keeps your plan for longer work: replaces all of its steps. Call it when you begin, and \
again whenever a step begins or is done. At most one step is in progress.";

/// Replaces the agent's plan as a whole.
#[derive(Debug, Clone)]
pub struct UpdatePlan {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole plan in order, at most 50 steps; empty to drop it.
    items: Vec<Item>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    /// The step, in a few words.
    text: String,
    /// How far it is.
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Done,
}

impl From<Arguments> for Plan {
    fn from(arguments: Arguments) -> Self {
        let item = |item: Item| PlanItem {
            text: item.text,
            status: match item.status {
                Status::Pending => PlanStatus::Pending,
                Status::InProgress => PlanStatus::InProgress,
                Status::Done => PlanStatus::Done,
            },
        };
        Self { items: arguments.items.into_iter().map(item).collect() }
    }
}

impl UpdatePlan {
    /// The default tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "update_plan",
            description: DESCRIPTION,
            access: Access::Reads,
            subject: ToolSubject::Opaque,
            aliases: &["TodoWrite"],
            forms: forms(),
            grammar: None,
            summary_field: Some("items"),
            idempotent: true,
            timeout: FILE_TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>() }
    }
}

/// Its calls elsewhere.
fn forms() -> Vec<CallForm> {
    let words = [
        ("completed", "done"),
        ("complete", "done"),
        ("in-progress", "in_progress"),
        ("todo", "pending"),
        ("not_started", "pending"),
    ];
    let items = ValueForm::Items {
        fields: vec![
            named("text", &["step", "content", "title", "task"]),
            valued("status", &[], renamed(&words)),
        ],
        ignored: owned(&["activeForm", "id", "priority"]),
    };
    let fields = vec![valued("items", &["plan", "todos", "steps"], items)];
    vec![ignoring(form(&["todowrite", "todo_write", "write_todos"], fields), &["explanation"])]
}

impl Default for UpdatePlan {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for UpdatePlan {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, _: &ToolContext) -> ToolOutput {
        let plan: Arguments = match arguments::read(&self.spec.name, input) {
            Ok(plan) => plan,
            Err(misfit) => return misfit,
        };
        if let Some(complaint) = complaint(&plan.items) {
            return ToolOutput::rejected(format!("{complaint}; the plan stays as it was"));
        }
        let text = render(&plan.items);
        ToolOutput { plan: Some(plan.into()), ..ToolOutput::ok(text) }
    }
}

/// The error in an invalid plan.
fn complaint(items: &[Item]) -> Option<String> {
    if items.len() > ITEMS_MAX {
        return Some(format!("a plan has at most {ITEMS_MAX} steps, not {}: sum some up", items.len()));
    }
    if let Some(at) = items.iter().position(|item| item.text.trim().is_empty()) {
        return Some(format!("`items[{at}].text` is empty"));
    }
    if let Some(at) = items.iter().position(|item| item.text.len() > TEXT_BYTES_MAX) {
        return Some(format!("`items[{at}].text` is longer than {TEXT_BYTES_MAX} bytes"));
    }
    let current = items.iter().filter(|item| item.status == Status::InProgress).count();
    (current > 1).then(|| format!("{current} steps are in_progress, at most one may be"))
}

fn render(items: &[Item]) -> String {
    if items.is_empty() {
        return "[the plan is empty]".to_owned();
    }
    let mark = |status| match status {
        Status::Pending => ' ',
        Status::InProgress => '>',
        Status::Done => 'x',
    };
    let lines: String =
        items.iter().map(|item| format!("[{}] {}\n", mark(item.status), item.text.trim())).collect();
    let done = items.iter().filter(|item| item.status == Status::Done).count();
    format!("{lines}[{done} of {} done]", items.len())
}
