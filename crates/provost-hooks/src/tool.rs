//! Tools by the names that scripts use: maps names, arguments and results in both directions.

mod agent;
mod path;
mod response;

use std::path::Path;

use provost_event::{HookContract, ToolIdentity, ToolSubject};
use serde_json::{Map, Value, json};

pub(crate) use agent::{call_changed, call_input, call_name, call_names, kind, kind_names};
use path::{absolute, relative};
pub(crate) use response::{error_text, response};

/// How the arguments of a tool differ in scripts. It applies to every tool with that alias.
struct Mapping {
    /// The tool's name in scripts.
    name: &'static str,
    fields: &'static [Field],
    /// Fields that Provost's tool doesn't have, with their constant values.
    fixed: &'static [(&'static str, Fixed)],
}

struct Field {
    own: &'static str,
    claude: &'static str,
    form: Form,
}

/// How a field's value differs.
#[derive(Clone, Copy)]
enum Form {
    Same,
    /// Absolute there.
    Path,
    /// Seconds here, milliseconds there.
    Seconds,
    /// Steps of a plan.
    Steps,
    /// What a search shows.
    SearchMode,
    /// Several edits.
    Edits,
}

#[derive(Clone, Copy)]
enum Fixed {
    False,
    Text(&'static str),
}

impl Fixed {
    fn value(self) -> Value {
        match self {
            Self::False => Value::Bool(false),
            Self::Text(text) => text.into(),
        }
    }
}

const fn field(own: &'static str, claude: &'static str, form: Form) -> Field {
    Field { own, claude, form }
}

/// Scripts' nearest tool to a listing of a folder.
const FILES_BY_PATTERN: &str = "Glob";

const MAPPINGS: &[Mapping] = &[
    Mapping {
        name: "Bash",
        fields: &[
            field("command", "command", Form::Same),
            field("description", "description", Form::Same),
            field("timeout_secs", "timeout", Form::Seconds),
            field("background", "run_in_background", Form::Same),
        ],
        fixed: &[("run_in_background", Fixed::False)],
    },
    Mapping {
        name: "Read",
        fields: &[
            field("path", "file_path", Form::Path),
            field("offset", "offset", Form::Same),
            field("limit", "limit", Form::Same),
        ],
        fixed: &[],
    },
    Mapping {
        name: "Write",
        fields: &[field("path", "file_path", Form::Path), field("content", "content", Form::Same)],
        fixed: &[],
    },
    Mapping {
        name: "Edit",
        fields: &[
            field("path", "file_path", Form::Path),
            field("old_text", "old_string", Form::Same),
            field("new_text", "new_string", Form::Same),
            field("replace_all", "replace_all", Form::Same),
            field("edits", "edits", Form::Edits),
        ],
        fixed: &[("replace_all", Fixed::False)],
    },
    Mapping {
        name: "Grep",
        fields: &[
            field("pattern", "pattern", Form::Same),
            field("path", "path", Form::Path),
            field("glob", "glob", Form::Same),
            field("case_insensitive", "-i", Form::Same),
            field("context_lines", "-C", Form::Same),
            field("max_results", "head_limit", Form::Same),
            field("mode", "output_mode", Form::SearchMode),
        ],
        fixed: &[("output_mode", Fixed::Text("content")), ("-i", Fixed::False), ("multiline", Fixed::False)],
    },
    Mapping {
        name: FILES_BY_PATTERN,
        fields: &[
            field("path", "path", Form::Path),
            field("depth", "depth", Form::Same),
            field("glob", "pattern", Form::Same),
        ],
        fixed: &[("pattern", Fixed::Text("*"))],
    },
    Mapping { name: "TodoWrite", fields: &[field("items", "todos", Form::Steps)], fixed: &[] },
    Mapping {
        name: "Agent",
        fields: &[field("goal", "prompt", Form::Same), field("name", "description", Form::Same)],
        fixed: &[],
    },
];

/// Whether the tool with this name in scripts is about a path.
pub(crate) fn takes_paths(name: &str) -> bool {
    let has_path = |mapping: &Mapping| mapping.fields.iter().any(|field| matches!(field.form, Form::Path));
    // Older names of the tools that edit files.
    matches!(name, "MultiEdit" | "NotebookEdit")
        || MAPPINGS.iter().any(|mapping| mapping.name == name && has_path(mapping))
}

fn mapping(tool: &ToolIdentity) -> Option<&'static Mapping> {
    // Several edits have the fields of one.
    let name = match name_elsewhere(tool) {
        "MultiEdit" => "Edit",
        name => name,
    };
    MAPPINGS.iter().find(|mapping| mapping.name == name)
}

/// The tool's name in scripts.
fn name_elsewhere(tool: &ToolIdentity) -> &str {
    tool.aliases.first().map_or(&tool.name, String::as_str)
}

/// All names that a matcher may use: the one in scripts first, or the tool's own.
fn names(tool: &ToolIdentity, contract: HookContract) -> Vec<&str> {
    let first = match contract {
        HookContract::Claude | HookContract::Codex => name_elsewhere(tool),
        HookContract::Provost => &tool.name,
    };
    std::iter::once(first).chain(tool.names().filter(|name| *name != first)).collect()
}

/// A call's arguments in scripts' form. Fields without a counterpart stay unchanged.
fn input_elsewhere(tool: &ToolIdentity, input: &Value, workspace: &Path) -> Value {
    let (Some(mapping), Value::Object(input)) = (mapping(tool), input) else { return input.clone() };
    let mut out = Map::new();
    for (name, value) in input {
        match mapping.fields.iter().find(|field| field.own == name) {
            Some(field) => out.insert(field.claude.to_owned(), there(field.form, value, workspace)),
            None => out.insert(name.clone(), value.clone()),
        };
    }
    for (name, value) in mapping.fixed {
        if out.get(*name).is_none_or(Value::is_null) {
            out.insert((*name).to_owned(), value.value());
        }
    }
    if mapping.name == FILES_BY_PATTERN
        && !input.contains_key("glob")
        && input.get("depth").and_then(Value::as_u64).is_some_and(|depth| depth > 1)
    {
        out.insert("pattern".to_owned(), "**/*".into());
    }
    Value::Object(out)
}

/// A script's arguments in the tool's form.
fn input_here(tool: &ToolIdentity, input: &Value, workspace: &Path) -> Value {
    let (Some(mapping), Value::Object(input)) = (mapping(tool), input) else { return input.clone() };
    let mut out = Map::new();
    for (name, value) in input {
        let is_fixed = mapping.fixed.iter().any(|(fixed, it)| fixed == name && it.value() == *value);
        let is_depth = mapping.name == FILES_BY_PATTERN && name == "pattern" && value == "**/*";
        if is_fixed || is_depth {
            continue;
        }
        match mapping.fields.iter().find(|field| field.claude == name) {
            Some(field) => out.insert(field.own.to_owned(), here(field.form, value, workspace)),
            None => out.insert(name.clone(), value.clone()),
        };
    }
    Value::Object(out)
}

/// The changed arguments that a script wants for a call, in the tool's form; `None` if they are equal. A call's
/// description makes no difference.
fn changed(tool: &ToolIdentity, input: &Value, wanted: &Value, workspace: &Path) -> Option<Value> {
    let wanted = input_here(tool, wanted, workspace);
    let as_it_is = input_here(tool, &input_elsewhere(tool, input, workspace), workspace);
    (essence(tool, &wanted) != essence(tool, &as_it_is)).then_some(wanted)
}

fn essence(tool: &ToolIdentity, input: &Value) -> Value {
    let Value::Object(input) = input else { return input.clone() };
    let is_command = matches!(tool.subject, ToolSubject::Command { .. });
    let says_nothing = |name: &str, value: &Value| {
        value.is_null() || *value == Value::Bool(false) || (is_command && name == "description")
    };
    let kept = input.iter().filter(|(name, value)| !says_nothing(name, value));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn there(form: Form, value: &Value, workspace: &Path) -> Value {
    match (form, value) {
        (Form::Path, Value::String(path)) => absolute(workspace, path).into(),
        (Form::Seconds, Value::Number(_)) => {
            value.as_u64().map_or_else(|| value.clone(), |secs| secs.saturating_mul(1_000).into())
        }
        (Form::Steps, Value::Array(items)) => items.iter().map(todo_of).collect(),
        (Form::SearchMode, Value::String(mode)) if mode == "files" => "files_with_matches".into(),
        (Form::Edits, Value::Array(edits)) => {
            edits.iter().map(|edit| renamed(edit, |(own, there)| (own, there))).collect()
        }
        _ => value.clone(),
    }
}

fn here(form: Form, value: &Value, workspace: &Path) -> Value {
    match (form, value) {
        (Form::Path, Value::String(path)) => relative(workspace, path).into(),
        (Form::Seconds, Value::Number(_)) => match value.as_u64() {
            Some(ms) => ms.div_ceil(1_000).into(),
            None => value.clone(),
        },
        (Form::Steps, Value::Array(todos)) => todos.iter().map(step_of).collect(),
        (Form::SearchMode, Value::String(mode)) if mode == "files_with_matches" => "files".into(),
        (Form::Edits, Value::Array(edits)) => {
            edits.iter().map(|edit| renamed(edit, |(own, there)| (there, own))).collect()
        }
        _ => value.clone(),
    }
}

/// The fields of an edit: here, and there.
const EDIT_FIELDS: [(&str, &str); 2] = [("old_text", "old_string"), ("new_text", "new_string")];

/// An edit with its fields renamed, each from the first name to the second.
fn renamed(edit: &Value, names: fn((&'static str, &'static str)) -> (&'static str, &'static str)) -> Value {
    let Value::Object(fields) = edit else { return edit.clone() };
    let renamed = fields.iter().map(|(name, value)| {
        let other = EDIT_FIELDS.map(names).into_iter().find(|(from, _)| from == name);
        (other.map_or(name.as_str(), |(_, to)| to).to_owned(), value.clone())
    });
    Value::Object(renamed.collect())
}

fn todo_of(step: &Value) -> Value {
    let text = step.get("text").cloned().unwrap_or_default();
    let status = match step.get("status").and_then(Value::as_str) {
        Some("done") => "completed",
        Some(other) => other,
        None => "pending",
    };
    json!({ "content": text, "status": status, "activeForm": text })
}

fn step_of(todo: &Value) -> Value {
    let status = match todo.get("status").and_then(Value::as_str) {
        Some("completed") => "done",
        Some(other) => other,
        None => "pending",
    };
    json!({ "text": todo.get("content").cloned().unwrap_or_default(), "status": status })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use provost_event::{ToolIdentity, ToolSubject};

    use super::{changed, input_elsewhere, input_here};

    const HERE: &str = "/srv/place";

    fn identity(name: &str) -> ToolIdentity {
        let alias = match name {
            "shell" => "Bash",
            "read_file" => "Read",
            "write_file" => "Write",
            "edit_file" => "Edit",
            "search" => "Grep",
            "list_dir" => "Glob",
            "update_plan" => "TodoWrite",
            "spawn_agent" => "Agent",
            _ => return ToolIdentity::unknown(name),
        };
        let subject = match name {
            "shell" => ToolSubject::command("command"),
            "read_file" | "search" | "list_dir" => ToolSubject::read_path("path"),
            "write_file" | "edit_file" => ToolSubject::written_path("path"),
            _ => ToolSubject::Opaque,
        };
        ToolIdentity { name: name.to_owned(), aliases: vec![alias.to_owned()], subject }
    }

    fn inputs() -> Vec<(&'static str, Value)> {
        vec![
            ("shell", json!({ "command": "ls", "timeout_secs": 5, "description": "looks" })),
            ("shell", json!({ "command": "ls", "background": true })),
            ("read_file", json!({ "path": "src/a.rs", "offset": 3, "limit": 4 })),
            ("read_file", json!({ "path": "output:abc" })),
            ("write_file", json!({ "path": "/elsewhere/b", "content": "x" })),
            ("edit_file", json!({ "path": "a", "old_text": "x", "new_text": "y", "replace_all": true })),
            ("search", json!({ "pattern": "x", "case_insensitive": true, "max_results": 3, "path": "src" })),
            ("list_dir", json!({ "path": "src", "depth": 3 })),
            ("list_dir", json!({ "path": "src", "glob": "*.rs" })),
            ("search", json!({ "pattern": "x", "mode": "files" })),
            ("edit_file", json!({ "path": "a", "edits": [{ "old_text": "x", "new_text": "y" }] })),
            ("update_plan", json!({ "items": [{ "text": "one", "status": "done" }] })),
            ("mcp__a__b", json!({ "anything": [1] })),
        ]
    }

    #[test]
    fn arguments_come_back_as_they_went() {
        for (name, input) in inputs() {
            let tool = identity(name);
            let there = input_elsewhere(&tool, &input, Path::new(HERE));
            assert_eq!(input_here(&tool, &there, Path::new(HERE)), input, "{name}: {there}");
            assert_eq!(changed(&tool, &input, &there, Path::new(HERE)), None, "{name}");
        }
    }

    #[test]
    fn arguments_have_the_names_that_scripts_know() {
        let elsewhere = |tool, input| input_elsewhere(&identity(tool), &input, Path::new(HERE));
        assert_eq!(
            elsewhere("shell", json!({ "command": "ls", "timeout_secs": 5 })),
            json!({ "command": "ls", "timeout": 5000, "run_in_background": false })
        );
        assert_eq!(
            elsewhere("edit_file", json!({ "path": "./a/../b", "old_text": "x", "new_text": "y" })),
            json!({ "file_path": "/srv/place/b", "old_string": "x", "new_string": "y", "replace_all": false })
        );
        assert_eq!(elsewhere("read_file", json!({ "path": 7 })), json!({ "file_path": 7 }));
        assert_eq!(elsewhere("read_file", json!("nonsense")), json!("nonsense"));
        assert_eq!(elsewhere("list_dir", json!({ "depth": 2 })), json!({ "depth": 2, "pattern": "**/*" }));
    }

    #[test]
    fn a_change_is_told_in_the_tools_own_words() {
        let here = Path::new(HERE);
        let input = json!({ "command": "rm x", "description": "cleans" });
        assert_eq!(changed(&identity("shell"), &input, &json!({ "command": "rm x" }), here), None);
        assert_eq!(
            changed(&identity("shell"), &input, &json!({ "command": "rm -i x", "timeout": 9000 }), here),
            Some(json!({ "command": "rm -i x", "timeout_secs": 9 }))
        );
        let input = json!({ "path": "a.txt", "content": "x" });
        assert_eq!(
            changed(
                &identity("write_file"),
                &input,
                &json!({ "file_path": "/srv/place/b.txt", "content": "x" }),
                here
            ),
            Some(json!({ "path": "b.txt", "content": "x" }))
        );
        let absolute = json!({ "path": "/srv/place/a.txt", "content": "x" });
        assert_eq!(
            changed(
                &identity("write_file"),
                &absolute,
                &json!({ "file_path": "/srv/place/a.txt", "content": "x" }),
                here
            ),
            None
        );
    }
}
