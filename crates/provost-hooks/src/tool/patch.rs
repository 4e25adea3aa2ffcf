//! Calls that apply a patch, as hooks are told of them: Codex's scripts know the tool itself, and those for Claude Code look
//! for the file that an edit is about.

use std::path::Path;

use provost_engine::CallDetails;
use provost_event::{HookContract, ToolSubject, patched_paths};
use serde_json::Value;

use super::path::absolute;
use super::{call_input, call_name};

/// The field with a patch in Codex's hooks.
const CODEX_FIELD: &str = "command";
/// The field with the file that an edit is about. Of a patch of several files it has a line for each.
const FILE_FIELD: &str = "file_path";

/// The name of a call's tool in a hook's input.
pub(crate) fn told_name(call: &CallDetails, contract: HookContract) -> &str {
    match (contract, &call.tool.subject) {
        (HookContract::Codex, ToolSubject::Patch { .. }) => &call.tool.name,
        _ => call_name(call),
    }
}

/// A call's arguments in a hook's input.
pub(crate) fn told_input(
    call: &CallDetails,
    input: &Value,
    workspace: &Path,
    contract: HookContract,
) -> Value {
    let mut told = call_input(call, input, workspace);
    let (ToolSubject::Patch { field }, Value::Object(fields)) = (&call.tool.subject, &mut told) else {
        return told;
    };
    let Some(patch) = fields.get(field).and_then(Value::as_str).map(str::to_owned) else { return told };
    match contract {
        HookContract::Codex => {
            fields.remove(field);
            fields.insert(CODEX_FIELD.to_owned(), patch.into());
        }
        HookContract::Claude => {
            let files = patched_paths(&patch).into_iter().map(|path| absolute(workspace, path));
            let files = files.collect::<Vec<_>>().join("\n");
            fields.entry(FILE_FIELD).or_insert_with(|| files.into());
        }
        HookContract::Provost => {}
    }
    told
}

/// The arguments that a hook proposes for a call that applies a patch, with the tool's own field.
pub(super) fn own_input(call: &CallDetails, mut wanted: Value) -> Value {
    if let (ToolSubject::Patch { field }, Value::Object(fields)) = (&call.tool.subject, &mut wanted) {
        fields.remove(FILE_FIELD);
        if let Some(patch) = fields.remove(CODEX_FIELD) {
            fields.entry(field.clone()).or_insert(patch);
        }
    }
    wanted
}
