//! Calls as the scripts of other programs know them, where Provost's tool has another shape: a command at a terminal is a
//! command, a patch is a change of each of its files.
//!
//! What a call is about says its tool (`ToolSubject`), not its name. A hook is asked once about each face of a call, and the
//! strictest answer counts.

mod patch;

use provost_engine::CallDetails;
use provost_event::{HookContract, HookPolicy, Json, ToolIdentity, ToolSubject};
use serde_json::{Map, Value, json};

use crate::matcher::{matches_any, names_one_of};
use crate::question::value_of;
use crate::tool;
use patch::{PatchedFile, patched_files};

/// The most questions about one call, each a process of its own at the same time.
pub(crate) const FACES_MAX: usize = 32;

/// The names of tools in scripts.
const BASH: &str = "Bash";
/// Provost's own tool for commands.
const SHELL: &str = "shell";
const WRITE: &str = "Write";
const EDIT: &str = "Edit";
const MULTI_EDIT: &str = "MultiEdit";
/// The only tool with which Codex changes files, and its argument.
const CODEX_PATCH: &str = "apply_patch";
const CODEX_FIELD: &str = "command";

/// A call in the shape that a script knows.
#[derive(Debug)]
pub(crate) struct Face {
    /// The call as if it had been made in that shape.
    pub(crate) call: CallDetails,
    /// Arguments that scripts are told besides.
    pub(crate) more: Map<String, Value>,
    pub(crate) change: FaceChange,
}

/// How other arguments that a script proposes for a face become other arguments of the call.
#[derive(Debug)]
pub(crate) enum FaceChange {
    /// They are the call's own.
    Whole,
    /// Their command takes the place of this argument.
    Command(String),
    /// They don't: the face is a part of the call.
    Impossible,
}

/// The faces of a call for `hook`; none if its own shape is the one to be asked about.
pub(crate) fn faces(hook: &HookPolicy, call: &CallDetails) -> Vec<Face> {
    if call.wanted.is_some() || !(hook.contract.is_foreign() || names_only_the_shell(hook, call)) {
        return Vec::new();
    }
    let input = value_of(&call.input);
    let is_known = call.tool.aliases.iter().any(|alias| alias == BASH);
    match (&call.tool.subject, hook.contract) {
        (ToolSubject::Typed { fields, .. }, _) => {
            fields.iter().filter_map(|field| command(call, &input, field)).collect()
        }
        (ToolSubject::Command { field, .. }, _) if !is_known => {
            command(call, &input, field).into_iter().collect()
        }
        (ToolSubject::Patch { field }, HookContract::Claude) => {
            let patch = input.get(field).and_then(Value::as_str).unwrap_or_default();
            patched_files(patch).iter().filter_map(|file| changed_file(hook, call, file)).collect()
        }
        (ToolSubject::Path { writes: true, .. }, HookContract::Claude) => {
            several_edits(hook, call, &input).into_iter().collect()
        }
        (ToolSubject::Patch { field }, HookContract::Codex) => {
            let patch = input.get(field).and_then(Value::as_str).unwrap_or_default();
            codex_face(call, patch, FaceChange::Command(field.clone())).into_iter().collect()
        }
        (ToolSubject::Path { writes: true, .. }, HookContract::Codex) => {
            codex_patch(call, &input).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a hook names the shell, and by that a call of another tool that runs commands, which it doesn't name.
fn names_only_the_shell(hook: &HookPolicy, call: &CallDetails) -> bool {
    let own = call.tool.names().collect::<Vec<_>>();
    hook.matcher.as_deref().is_some_and(|matcher| {
        names_one_of(hook.point, matcher, &[SHELL, BASH]) && !names_one_of(hook.point, matcher, &own)
    })
}

/// The call with the tool and the arguments of a face.
fn seen_as(
    call: &CallDetails,
    names: &[&str],
    (subject, input): (ToolSubject, &Value),
) -> Option<CallDetails> {
    let known = names.iter().map(|name| (*name).to_owned());
    let own = call.tool.aliases.iter().filter(|alias| !names.contains(&alias.as_str())).cloned();
    // A patch has the names of all changes of files, of which only those of this file count.
    let own = own.filter(|alias| ![EDIT, MULTI_EDIT, WRITE].contains(&alias.as_str()));
    let tool = ToolIdentity { name: call.tool.name.clone(), aliases: known.chain(own).collect(), subject };
    Some(CallDetails { tool: Box::new(tool), input: Json::of(input).ok()?, ..call.clone() })
}

/// A text that a shell may run.
fn command(call: &CallDetails, input: &Value, field: &str) -> Option<Face> {
    let text = input.get(field)?.as_str().filter(|text| !text.trim().is_empty())?;
    let subject = ToolSubject::command("command");
    let call = seen_as(call, &[BASH, SHELL], (subject, &json!({ "command": text })))?;
    Some(Face { call, more: Map::new(), change: FaceChange::Command(field.to_owned()) })
}

/// What a patch does to one file.
fn changed_file(hook: &HookPolicy, call: &CallDetails, file: &PatchedFile) -> Option<Face> {
    let subject = ToolSubject::written_path("path");
    let (names, input, more) = match &file.edits {
        None => (vec![WRITE], json!({ "path": file.path, "content": file.content }), Map::new()),
        Some(edits) => match edits.as_slice() {
            [] => (vec![EDIT], json!({ "path": file.path, "old_text": "", "new_text": "" }), Map::new()),
            [(old, new)] => (
                vec![EDIT, MULTI_EDIT],
                json!({ "path": file.path, "old_text": old, "new_text": new }),
                Map::new(),
            ),
            several => {
                let edits = several.iter().map(|(old, new)| json!({ "old_text": old, "new_text": new }));
                let edits = edits.collect::<Value>();
                let more = joined(&edits);
                (edit_names(hook), json!({ "path": file.path, "edits": edits }), more)
            }
        },
    };
    let call = seen_as(call, &names, (subject, &input))?;
    Some(Face { call, more, change: FaceChange::Impossible })
}

/// A call with a list of edits: in scripts it is one edit, or several with a name of their own.
fn several_edits(hook: &HookPolicy, call: &CallDetails, input: &Value) -> Option<Face> {
    let edits = input.get("edits")?.as_array().filter(|edits| !edits.is_empty())?;
    let subject = call.tool.subject.clone();
    if let [only] = edits.as_slice() {
        let mut one = input.as_object()?.clone();
        one.remove("edits");
        one.extend(only.as_object()?.clone());
        let call = seen_as(call, &[EDIT, MULTI_EDIT], (subject, &Value::Object(one)))?;
        return Some(Face { call, more: Map::new(), change: FaceChange::Whole });
    }
    let more = joined(input.get("edits")?);
    let call = seen_as(call, &edit_names(hook), (subject, input))?;
    Some(Face { call, more, change: FaceChange::Whole })
}

/// The names of a call with several edits. A hook that doesn't ask for such calls by their name knows edits only.
fn edit_names(hook: &HookPolicy) -> Vec<&'static str> {
    let matcher = hook.matcher.as_deref().filter(|matcher| !matches!(*matcher, "" | "*"));
    match matcher.is_some_and(|matcher| matches_any(hook.point, matcher, &[MULTI_EDIT])) {
        true => vec![MULTI_EDIT, EDIT],
        false => vec![EDIT, MULTI_EDIT],
    }
}

/// The texts of several edits, as a script reads those of one.
fn joined(edits: &Value) -> Map<String, Value> {
    let texts = |field: &str| {
        let texts = edits.as_array().into_iter().flatten();
        texts.filter_map(|edit| edit.get(field)?.as_str()).collect::<Vec<_>>().join("\n")
    };
    let fields = [("old_string", texts("old_text")), ("new_string", texts("new_text"))];
    fields.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect()
}

/// The change of one file as Codex makes it.
fn codex_patch(call: &CallDetails, input: &Value) -> Option<Face> {
    let told = tool::call_input(call, input, "".as_ref());
    let text =
        |from: &Value, name: &str| from.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let marked =
        |mark: char, text: &str| text.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
    let edit = |edit: &Value| {
        format!("@@\n{}{}", marked('-', &text(edit, "old_string")), marked('+', &text(edit, "new_string")))
    };
    let path = text(input, call.tool.subject.written_field()?);
    let change =
        match (told.get("content").and_then(Value::as_str), told.get("edits").and_then(Value::as_array)) {
            (Some(content), _) => format!("*** Add File: {path}\n{}", marked('+', content)),
            (None, Some(edits)) => {
                format!("*** Update File: {path}\n{}", edits.iter().map(edit).collect::<String>())
            }
            (None, None) => format!("*** Update File: {path}\n{}", edit(&told)),
        };
    codex_face(call, &format!("*** Begin Patch\n{change}*** End Patch\n"), FaceChange::Impossible)
}

/// A patch as Codex names it.
fn codex_face(call: &CallDetails, patch: &str, change: FaceChange) -> Option<Face> {
    let subject = ToolSubject::Patch { field: "input".to_owned() };
    let mut names = vec![CODEX_PATCH];
    names.extend(call.tool.names());
    let mut call_seen = seen_as(call, &names, (subject, &json!({ "input": patch })))?;
    CODEX_PATCH.clone_into(&mut call_seen.tool.name);
    let more = Map::from_iter([(CODEX_FIELD.to_owned(), patch.into())]);
    Some(Face { call: call_seen, more, change })
}
