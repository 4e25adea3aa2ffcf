//! Calls as models know them from other programs: each is a call of one of the tools, and that tool takes it.

use provost_engine::{OwnCall, own_call};
use provost_event::{CallId, Json, ToolCall, ToolSpec, ToolStatus};
use provost_tools::builtin;
use serde_json::{Value, json};

use crate::fixture::Fixture;

fn own(name: &str, input: &Value) -> OwnCall {
    let call = ToolCall {
        id: CallId::from("1"),
        name: name.to_owned(),
        input: Json::of(input).unwrap(),
        malformed: None,
    };
    own_call(&call, &builtin().specs())
}

/// The call `name` with `input` is the same as that of `tool` with `expected`, and the tool doesn't reject it.
async fn check(name: &str, input: Value, tool: &str, expected: Value) {
    let OwnCall { tool: meant, input: got, ambiguous } = own(name, &input);
    assert_eq!(ambiguous, None, "{name} {input}");
    assert_eq!(meant, tool, "{name} {input}");
    assert_eq!(got.read::<Value>().unwrap(), expected, "{name} {input}");
    let fixture = Fixture::new().file("a.rs", "old\nmore\n").file("src/b.rs", "x\n");
    let output = fixture.call(tool, expected).await;
    assert_ne!(output.status, ToolStatus::Rejected, "{name} {input}: {}", output.text);
}

#[tokio::test]
async fn files_are_read_in_every_form() {
    let whole = json!({ "path": "a.rs" });
    for name in ["read_file", "Read", "read", "view"] {
        check(name, whole.clone(), "read_file", whole.clone()).await;
    }
    for path in ["file_path", "filePath", "filepath", "filename", "file", "absolute_path", "target_file"] {
        check("read_file", json!({ path: "a.rs" }), "read_file", whole.clone()).await;
    }
    let part = json!({ "path": "a.rs", "offset": 2, "limit": 1 });
    check("Read", json!({ "file_path": "a.rs", "offset": "2", "limit": "1" }), "read_file", part.clone())
        .await;
    check("read_file", json!({ "path": "a.rs", "offset": 2.0, "limit": 1 }), "read_file", part.clone()).await;
    check("read_file", json!({ "path": "a.rs", "offset": 0, "limit": 0 }), "read_file", whole.clone()).await;
    check("read_file", json!({ "path": "a.rs", "offset": "0" }), "read_file", whole.clone()).await;
    for name in ["str_replace_based_edit_tool", "str_replace_editor"] {
        check(name, json!({ "command": "view", "path": "a.rs" }), "read_file", whole.clone()).await;
        let range = json!({ "command": "view", "path": "a.rs", "view_range": [2, 2] });
        check(name, range, "read_file", part.clone()).await;
        let to_end = json!({ "command": "view", "path": "a.rs", "view_range": [2, -1] });
        check(name, to_end, "read_file", json!({ "path": "a.rs", "offset": 2 })).await;
    }
}

#[tokio::test]
async fn files_are_written_in_every_form() {
    let expected = json!({ "path": "new.rs", "content": "x" });
    for name in ["write_file", "Write", "write", "create_file"] {
        let given = json!({ "file_path": "new.rs", "content": "x" });
        check(name, given, "write_file", expected.clone()).await;
    }
    for content in ["file_text", "contents"] {
        let given = json!({ "path": "new.rs", content: "x" });
        check("write_file", given, "write_file", expected.clone()).await;
    }
    let editor = json!({ "command": "create", "path": "new.rs", "file_text": "x" });
    check("str_replace_based_edit_tool", editor, "write_file", expected).await;
}

#[tokio::test]
async fn files_are_edited_in_every_form() {
    let expected = json!({ "path": "a.rs", "old_text": "old", "new_text": "new" });
    for name in ["edit_file", "Edit", "MultiEdit", "edit", "replace", "str_replace"] {
        let given = json!({ "file_path": "a.rs", "old_string": "old", "new_string": "new" });
        check(name, given, "edit_file", expected.clone()).await;
    }
    for (old, new) in [("old_str", "new_str"), ("oldString", "newString"), ("oldText", "newText")] {
        check("edit_file", json!({ "path": "a.rs", old: "old", new: "new" }), "edit_file", expected.clone())
            .await;
    }
    let all = json!({ "path": "a.rs", "old_text": "old", "new_text": "new", "replace_all": true });
    for name in ["replaceAll", "allow_multiple", "replace_all"] {
        let given = json!({ "path": "a.rs", "old_text": "old", "new_text": "new", name: "true" });
        check("edit_file", given, "edit_file", all.clone()).await;
    }
    let several = json!({ "path": "a.rs", "edits": [
        { "old_text": "old", "new_text": "new" }, { "old_text": "more", "new_text": "x", "replace_all": true },
    ] });
    let given = json!({ "file_path": "a.rs", "edits": [
        { "old_string": "old", "new_string": "new" }, { "oldText": "more", "newText": "x", "replaceAll": true },
    ] });
    check("MultiEdit", given, "edit_file", several).await;
    let told = json!({ "file_path": "a.rs", "old_string": "old", "new_string": "new", "instruction": "Do." });
    check("replace", told, "edit_file", expected.clone()).await;
    let editor = json!({ "command": "str_replace", "path": "a.rs", "old_str": "old", "new_str": "new" });
    check("str_replace_based_edit_tool", editor, "edit_file", expected).await;
}

#[tokio::test]
async fn folders_are_listed_in_every_form() {
    for name in ["list_dir", "LS", "ls", "list", "list_directory"] {
        check(name, json!({ "path": "src" }), "list_dir", json!({ "path": "src" })).await;
    }
    for path in ["dir_path", "dirPath", "directory", "folder", "file_path"] {
        check("list_dir", json!({ path: "src" }), "list_dir", json!({ "path": "src" })).await;
    }
    let found = json!({ "path": "src", "glob": "**/*.rs" });
    for name in ["Glob", "glob"] {
        check(name, json!({ "path": "src", "pattern": "**/*.rs" }), "list_dir", found.clone()).await;
    }
    check("list_dir", json!({ "depth": 0 }), "list_dir", json!({})).await;
    check("list_dir", json!({ "depth": "2" }), "list_dir", json!({ "depth": 2 })).await;
}

#[tokio::test]
async fn texts_are_searched_in_every_form() {
    let expected = json!({ "pattern": "old", "path": "src" });
    for name in
        ["search", "Grep", "grep", "rg", "ripgrep", "grep_search", "search_file_content", "grep_files"]
    {
        check(name, json!({ "pattern": "old", "path": "src" }), "search", expected.clone()).await;
    }
    for pattern in ["query", "regex"] {
        check("search", json!({ pattern: "old", "dir_path": "src" }), "search", expected.clone()).await;
    }
    for glob in ["include", "include_pattern"] {
        let expected = json!({ "pattern": "old", "glob": "*.rs" });
        check("grep", json!({ "pattern": "old", glob: "*.rs" }), "search", expected).await;
    }
    for name in ["-i", "ignore_case", "ignoreCase"] {
        let expected = json!({ "pattern": "old", "case_insensitive": true });
        check("Grep", json!({ "pattern": "old", name: true, "-n": true }), "search", expected).await;
    }
    for (elsewhere, here) in [("files_with_matches", "files"), ("count", "count"), ("content", "content")] {
        let expected = json!({ "pattern": "old", "mode": here });
        check("Grep", json!({ "pattern": "old", "output_mode": elsewhere }), "search", expected).await;
    }
    for name in ["-C", "context"] {
        let expected = json!({ "pattern": "old", "context_lines": 3 });
        check("Grep", json!({ "pattern": "old", name: "3" }), "search", expected).await;
    }
    for name in ["head_limit", "limit"] {
        let expected = json!({ "pattern": "old", "max_results": 5 });
        check("Grep", json!({ "pattern": "old", name: 5 }), "search", expected).await;
    }
}

#[tokio::test]
async fn commands_are_run_in_every_form() {
    let expected = json!({ "command": "true" });
    let names = [
        "shell",
        "Bash",
        "bash",
        "sh",
        "run_shell_command",
        "exec_command",
        "local_shell",
        "container.exec",
        "execute_command",
        "run_command",
        "run_terminal_cmd",
    ];
    for name in names {
        check(name, expected.clone(), "shell", expected.clone()).await;
    }
    for command in ["cmd", "script"] {
        check("shell", json!({ command: "true" }), "shell", expected.clone()).await;
    }
    check("shell", json!({ "command": ["bash", "-lc", "true"] }), "shell", expected.clone()).await;
    check("shell", json!({ "command": ["true"] }), "shell", expected.clone()).await;
    let quoted = json!({ "command": "echo 'a b' 'it'\\''s'" });
    check("shell", json!({ "command": ["echo", "a b", "it's"] }), "shell", quoted).await;
    let timed = json!({ "command": "true", "timeout_secs": 2 });
    for name in ["timeout_ms", "timeoutMs"] {
        check("shell", json!({ "command": "true", name: 1500 }), "shell", timed.clone()).await;
        check("bash", json!({ "command": "true", name: "1500" }), "shell", timed.clone()).await;
    }
    check("Bash", json!({ "command": "true", "timeout": 2000 }), "shell", timed.clone()).await;
    check("shell", json!({ "command": "true", "timeout_secs": "2" }), "shell", timed).await;
    for name in ["run_in_background", "is_background"] {
        let foreground = json!({ "command": "true", "background": false });
        check("Bash", json!({ "command": "true", name: false }), "shell", foreground).await;
    }
}

#[tokio::test]
async fn a_timeout_without_its_unit_is_rejected_and_the_fields_are_told() {
    let OwnCall { tool, input, .. } = own("bash", &json!({ "command": "true", "timeout": 30 }));
    let output = Fixture::new().call(&tool, input.read().unwrap()).await;
    assert_eq!(output.status, ToolStatus::Rejected);
    assert!(output.text.contains("`timeout`") && output.text.contains("`timeout_secs`"), "{}", output.text);
}

#[tokio::test]
async fn plans_are_kept_in_every_form() {
    let expected = json!({ "items": [
        { "text": "one", "status": "done" },
        { "text": "two", "status": "in_progress" },
        { "text": "three", "status": "pending" },
    ] });
    let given = |text: &str, words: [&str; 3]| {
        let step = |name: &str, status: &str| json!({ text: name, "status": status });
        json!([step("one", words[0]), step("two", words[1]), step("three", words[2])])
    };
    let codex =
        json!({ "plan": given("step", ["completed", "in_progress", "pending"]), "explanation": "Why." });
    check("update_plan", codex, "update_plan", expected.clone()).await;
    for text in ["content", "title", "task", "text"] {
        let todos = json!({ "todos": given(text, ["complete", "in-progress", "todo"]) });
        check("TodoWrite", todos, "update_plan", expected.clone()).await;
    }
    for name in ["todowrite", "todo_write", "write_todos"] {
        let todos = json!({ "steps": given("content", ["done", "in_progress", "not_started"]) });
        check(name, todos, "update_plan", expected.clone()).await;
    }
    let todo = json!({ "content": "one", "status": "completed", "activeForm": "One", "id": "1", "priority": "high" });
    let one = json!({ "items": [{ "text": "one", "status": "done" }] });
    check("TodoWrite", json!({ "todos": [todo] }), "update_plan", one).await;
}

#[test]
fn jobs_are_asked_for_in_every_form() {
    for (name, field) in [("jobs", "bash_id"), ("BashOutput", "bash_id"), ("bash_output", "shell_id")] {
        let OwnCall { tool, input, .. } = own(name, &json!({ field: "job-1" }));
        assert_eq!((tool.as_str(), input.text()), ("jobs", r#"{"job":"job-1"}"#));
    }
}

#[test]
fn two_paths_in_one_call_are_ambiguous() {
    let call = own("Edit", &json!({ "path": "a", "file_path": "b", "old_string": "x", "new_string": "y" }));
    let told = call.ambiguous.unwrap();
    assert!(told.contains("give only `path`"), "{told}");
}

#[test]
fn no_form_hides_an_argument_or_a_tool() {
    let specs = builtin().specs();
    let properties = |tool: &ToolSpec| {
        let schema: Value = tool.input_schema.read().unwrap();
        schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    let mut names: Vec<(String, String)> = Vec::new();
    for tool in &specs {
        let own = properties(tool);
        for form in &tool.forms {
            let of_command = form.when.as_ref().map_or("", |when| &when.value);
            names.extend(form.names.iter().map(|name| (name.clone(), of_command.to_owned())));
            for field in &form.fields {
                assert!(
                    own.contains(&field.field),
                    "{}: `{}` isn't one of its arguments",
                    tool.name,
                    field.field
                );
                let hidden = field.names.iter().find(|name| own.contains(name));
                assert_eq!(hidden, None, "{}", tool.name);
            }
        }
    }
    let taken = names.iter().find(|(name, _)| specs.iter().any(|tool| tool.name == *name));
    assert_eq!(taken, None, "the name of a tool means that tool");
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "each name means one tool");
}
