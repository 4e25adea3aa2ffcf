//! Results of tool calls in scripts' form.

use std::path::Path;

use provost_engine::CallDetails;
use provost_event::{ToolFinished, ToolStatus};
use serde_json::{Value, json};

use super::{call_input, call_name};

/// The result of `call`, which succeeded. `input` is the argument of Provost's tool.
pub(crate) fn response(
    call: &CallDetails,
    finished: &ToolFinished,
    input: &Value,
    workspace: &Path,
) -> Value {
    let told = call_input(call, input, workspace);
    let told = |name: &str| told.get(name).cloned().unwrap_or_default();
    let output = finished.output.as_str();
    let done = !finished.status.is_error();
    match call_name(call) {
        "Bash" => json!({
            "stdout": output,
            "stderr": "",
            "interrupted": finished.status == ToolStatus::Cancelled,
            "isImage": false,
        }),
        "Write" => json!({ "filePath": told("file_path"), "success": done }),
        "Edit" | "MultiEdit" => json!({
            "filePath": told("file_path"),
            "oldString": told("old_string"),
            "newString": told("new_string"),
            "replaceAll": told("replace_all"),
            "success": done,
        }),
        "Read" => json!({
            "type": "text",
            "file": { "filePath": told("file_path"), "content": output },
        }),
        "Agent" => json!({
            "status": "completed",
            "prompt": told("prompt"),
            "content": [{ "type": "text", "text": output }],
            "totalDurationMs": finished.duration_ms,
        }),
        "TodoWrite" => json!({ "newTodos": told("todos") }),
        _ => json!({ "content": output, "success": done }),
    }
}

/// The error text of a call. A command's exit status comes first, as scripts expect it.
pub(crate) fn error_text(finished: &ToolFinished) -> String {
    let output = finished.output.as_str();
    let last = output.lines().next_back().unwrap_or_default();
    match finished.facts.exit_status {
        Some(code) if last.strip_prefix("exit status ").is_some_and(|said| said == code.to_string()) => {
            let rest = output.strip_suffix(last).unwrap_or_default().trim_end();
            if rest.is_empty() { format!("Exit code {code}") } else { format!("Exit code {code}\n{rest}") }
        }
        _ => output.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use provost_event::{CallFacts, ToolFinished, ToolStatus};

    use super::error_text;

    #[test]
    fn a_shells_exit_status_stands_in_the_first_line() {
        let failed = |exit_status: Option<i32>, output: &str| {
            error_text(&ToolFinished {
                plan: None,
                facts: CallFacts { exit_status, ..CallFacts::default() },
                call: "c".into(),
                tool: "shell".to_owned(),
                status: ToolStatus::Error,
                output: output.to_owned(),
                images: Vec::new(),
                whole: None,
                duration_ms: 1,
                memory: None,
            })
        };
        assert_eq!(failed(Some(3), "oops\nmore\nexit status 3"), "Exit code 3\noops\nmore");
        assert_eq!(failed(Some(3), "exit status 3"), "Exit code 3");
        assert_eq!(failed(Some(3), "exit status unknown"), "exit status unknown");
        assert_eq!(failed(None, "exit status 3"), "exit status 3");
    }
}
