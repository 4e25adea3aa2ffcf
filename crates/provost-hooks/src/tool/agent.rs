//! Calls that spawn agents: scripts have one tool for all of them, whatever Provost's tool is called.

use std::path::Path;

use std::borrow::Cow;

use provost_engine::{CallDetails, SPAWN_ALIASES, SPAWN_TOOL, WantedAgent, agent_names};
use provost_event::{HookContract, ToolIdentity, ToolSubject};
use serde_json::Value;

use super::{changed, input_elsewhere, name_elsewhere, names};

/// The field with the kind of agent in scripts.
const KIND: &str = "subagent_type";
/// The call's short description.
const LABEL: &str = "description";

/// The tool that a call counts as: scripts have one for all agents.
fn tool_of(call: &CallDetails) -> Cow<'_, ToolIdentity> {
    if call.wanted.is_none() {
        return Cow::Borrowed(&call.tool);
    }
    let aliases = SPAWN_ALIASES.map(str::to_owned).to_vec();
    Cow::Owned(ToolIdentity { name: SPAWN_TOOL.to_owned(), aliases, subject: ToolSubject::Opaque })
}

/// The name of a call's tool in scripts.
pub(crate) fn call_name(call: &CallDetails) -> &str {
    let [spawn, ..] = SPAWN_ALIASES;
    if call.wanted.is_some() { spawn } else { name_elsewhere(&call.tool) }
}

/// All names of a call's tool that a matcher may use: the one in scripts first, or the tool's own.
pub(crate) fn call_names(call: &CallDetails, contract: HookContract) -> Vec<&str> {
    let Some(wanted) = &call.wanted else { return names(&call.tool, contract) };
    let own_name = [SPAWN_TOOL].into_iter().filter(|_| wanted.agent.is_none());
    let own = [call.tool.name.as_str()];
    let elsewhere = own_name.chain(SPAWN_ALIASES).filter(|name| *name != call.tool.name);
    match contract {
        HookContract::Provost => own.into_iter().chain(elsewhere).collect(),
        HookContract::Claude | HookContract::Codex => elsewhere.chain(own).collect(),
    }
}

/// All names that a matcher may use at hook points about the agent itself: its kind's first, then its call's.
pub(crate) fn kind_names(call: &CallDetails, contract: HookContract) -> Vec<&str> {
    let configured = call.wanted.as_ref().and_then(|wanted| wanted.agent.as_deref());
    let mut all = agent_names(configured);
    let more = call_names(call, contract).into_iter().filter(|name| !all.contains(name)).collect::<Vec<_>>();
    all.extend(more);
    all
}

/// The name of a kind of agent in scripts.
pub(crate) fn kind(configured: Option<&str>) -> &str {
    agent_names(configured).first().copied().unwrap_or_default()
}

/// A call's arguments in scripts' form.
pub(crate) fn call_input(call: &CallDetails, input: &Value, workspace: &Path) -> Value {
    let mut told = input_elsewhere(&tool_of(call), input, workspace);
    if let (Some(WantedAgent { agent, name, .. }), Value::Object(fields)) =
        (call.wanted.as_deref(), &mut told)
    {
        let kind = kind(agent.as_deref());
        let label = if name.is_empty() { kind } else { name };
        fields.entry(LABEL).or_insert_with(|| label.into());
        fields.insert(KIND.to_owned(), kind.into());
    }
    told
}

/// The changed arguments that a script wants for a call, in its tool's form; `None` if they are equal.
pub(crate) fn call_changed(
    call: &CallDetails,
    input: &Value,
    wanted: &Value,
    workspace: &Path,
) -> Option<Value> {
    let mut wanted = wanted.clone();
    if let (Some(_), Value::Object(fields)) = (&call.wanted, &mut wanted) {
        let told = call_input(call, input, workspace);
        let is_added = |name: &str, value: &Value| {
            matches!(name, KIND | LABEL) && told.get(name) == Some(value) && input.get("name") != Some(value)
        };
        fields.retain(|name, value| !is_added(name, value));
    }
    changed(&tool_of(call), input, &wanted, workspace)
}
