//! Hooks' input: the names and types that scripts probe.

use expect_test::{Expect, expect};
use provost_event::Effort;
use serde_json::{Value, json};

use crate::stage::Stage;

/// The question of `event`, without the common fields, a line each.
async fn check(stage: &Stage, event: &str, failed: bool, expected: Expect) {
    let mut told = stage.told(event, failed).await;
    let fields = told.as_object_mut().expect("an object");
    for (name, value) in [
        ("session_id", json!("70704c3d-e0a7-4852-8a07-397036fb52d4")),
        ("provost_session", json!("000000000007.0")),
        ("run_id", json!("000000000007")),
        ("transcript_path", json!("/logs/session.jsonl")),
        ("cwd", json!(stage.work())),
    ] {
        assert_eq!(fields.remove(name), Some(value), "{name}");
    }
    let mut fields = fields.iter().collect::<Vec<_>>();
    fields.sort_by_key(|(name, _)| *name);
    let lines = fields.into_iter().map(|(name, value)| format!("{name}: {value}\n"));
    let work = stage.work().display().to_string();
    expected.assert_eq(&lines.collect::<String>().replace(&work, "WORK"));
}

#[tokio::test]
async fn tool_calls_come_under_the_names_that_scripts_know() {
    let mut stage = Stage::new();
    stage.effort = Some(Effort::Minimal);
    stage.input = json!({ "command": "rm -rf build", "timeout_secs": 5, "description": "cleans" });
    check(
        &stage,
        "PreToolUse",
        false,
        expect![[r#"
            effort: {"level":"low"}
            hook_event_name: "PreToolUse"
            permission_mode: "default"
            provost_input: {"command":"rm -rf build","timeout_secs":5,"description":"cleans"}
            provost_tool: "shell"
            tool_input: {"command":"rm -rf build","timeout":5000,"description":"cleans","run_in_background":false}
            tool_name: "Bash"
            tool_use_id: "call-1"
            turn: 3
        "#]],
    )
    .await;
    check(
        &stage,
        "PermissionRequest",
        false,
        expect![[r#"
            effort: {"level":"low"}
            hook_event_name: "PermissionRequest"
            permission_mode: "default"
            provost_input: {"command":"rm -rf build","timeout_secs":5,"description":"cleans"}
            provost_tool: "shell"
            provost_why: "rule ask shell"
            tool_input: {"command":"rm -rf build","timeout":5000,"description":"cleans","run_in_background":false}
            tool_name: "Bash"
            turn: 3
        "#]],
    )
    .await;
    check(
        &stage,
        "PostToolUse",
        false,
        expect![[r#"
            duration_ms: 12
            effort: {"level":"low"}
            hook_event_name: "PostToolUse"
            permission_mode: "default"
            provost_input: {"command":"rm -rf build","timeout_secs":5,"description":"cleans"}
            provost_tool: "shell"
            tool_input: {"command":"rm -rf build","timeout":5000,"description":"cleans","run_in_background":false}
            tool_name: "Bash"
            tool_response: {"stdout":"fine\n","stderr":"","interrupted":false,"isImage":false}
            tool_use_id: "call-1"
            turn: 3
        "#]],
    )
    .await;
}

#[tokio::test]
async fn failures_begin_with_the_exit_status_and_batches_have_what_the_model_sees() {
    let mut stage = Stage::new();
    stage.output = "no such file\nexit status 3".into();
    check(
        &stage,
        "PostToolUseFailure",
        true,
        expect![[r#"
        duration_ms: 12
        error: "Exit code 3\nno such file"
        hook_event_name: "PostToolUseFailure"
        is_interrupt: false
        permission_mode: "default"
        provost_input: {"command":"rm -rf build"}
        provost_tool: "shell"
        tool_input: {"command":"rm -rf build","run_in_background":false}
        tool_name: "Bash"
        tool_use_id: "call-1"
        turn: 3
    "#]],
    )
    .await;
    check(&stage, "PostToolBatch", true, expect![[r#"
        hook_event_name: "PostToolBatch"
        permission_mode: "default"
        tool_calls: [{"tool_name":"Bash","tool_input":{"command":"rm -rf build","run_in_background":false},"provost_tool":"shell","provost_input":{"command":"rm -rf build"},"tool_use_id":"call-1","tool_response":"no such file\nexit status 3"}]
        turn: 3
    "#]]).await;
}

#[tokio::test]
async fn sessions_prompts_and_ends_come_with_their_fields() {
    let stage = Stage::new();
    check(
        &stage,
        "SessionStart",
        false,
        expect![[r#"
        hook_event_name: "SessionStart"
        model: "anthropic/claude-sonnet-4-5"
        source: "startup"
        turn: 3
    "#]],
    )
    .await;
    check(
        &stage,
        "UserPromptSubmit",
        false,
        expect![[r#"
        hook_event_name: "UserPromptSubmit"
        permission_mode: "default"
        prompt: "do it"
        prompt_by: "user"
        turn: 3
    "#]],
    )
    .await;
    check(
        &stage,
        "Notification",
        false,
        expect![[r#"
        hook_event_name: "Notification"
        message: "Provost needs permission to use Bash"
        notification_type: "permission_prompt"
        provost_input: {"command":"rm -rf build"}
        provost_tool: "shell"
        title: "Permission needed"
        tool_input: {"command":"rm -rf build","run_in_background":false}
        tool_name: "Bash"
        turn: 3
    "#]],
    )
    .await;
}

#[tokio::test]
async fn stops_and_failures_come_with_the_final_summary() {
    let stage = Stage::new();
    check(
        &stage,
        "Stop",
        false,
        expect![[r#"
        background_tasks: []
        final_text: "All done."
        hook_event_name: "Stop"
        iterations: 3
        last_assistant_message: "All done."
        permission_mode: "default"
        session_crons: []
        stop_hook_active: true
        stop_reason: "end_turn"
        tool_calls: 5
        tool_calls_made: 5
    "#]],
    )
    .await;
    check(
        &stage,
        "StopFailure",
        false,
        expect![[r#"
            error: "overloaded"
            error_details: "no room"
            hook_event_name: "StopFailure"
            last_assistant_message: "no room"
            last_text: "All done."
            outcome: {"kind":"failed","class":"overloaded","message":"no room"}
            tool_calls: 5
            turn: 3
        "#]],
    )
    .await;
}

#[tokio::test]
async fn compactions_and_ends_come_with_their_reasons() {
    let stage = Stage::new();
    check(
        &stage,
        "PreCompact",
        false,
        expect![[r#"
        custom_instructions: ""
        hook_event_name: "PreCompact"
        trigger: "auto"
        turn: 3
    "#]],
    )
    .await;
    check(
        &stage,
        "PostCompact",
        false,
        expect![[r#"
        compact_summary: "short"
        hook_event_name: "PostCompact"
        trigger: "auto"
        turn: 3
    "#]],
    )
    .await;
    check(
        &stage,
        "SessionEnd",
        false,
        expect![[r#"
            hook_event_name: "SessionEnd"
            last_assistant_message: "All done."
            last_text: "All done."
            outcome: {"kind":"completed","verdict":null,"verification":"none"}
            reason: "other"
            tool_calls: 5
            turn: 3
        "#]],
    )
    .await;
}

#[tokio::test]
async fn moments_of_provosts_own_come_with_what_is_known() {
    let stage = Stage::new();
    check(
        &stage,
        "pre_llm_request",
        false,
        expect![[r#"
        call: 2
        hook_event_name: "PreLlmRequest"
        input_tokens: 99
        items: 4
        model: "anthropic/claude-sonnet-4-5"
        tool_calls: 1
        turn: 3
    "#]],
    )
    .await;
    check(
        &stage,
        "turn_end",
        false,
        expect![[r#"
        hook_event_name: "TurnEnd"
        last_assistant_message: "All done."
        last_text: "All done."
        tool_calls: 5
        turn: 3
    "#]],
    )
    .await;
    check(
        &stage,
        "abort",
        false,
        expect![[r#"
            hook_event_name: "Abort"
            last_assistant_message: "All done."
            last_text: "All done."
            outcome: {"kind":"failed","class":"overloaded","message":"no room"}
            tool_calls: 5
            turn: 3
        "#]],
    )
    .await;
}

#[tokio::test]
async fn files_are_absolute_and_results_have_the_form_of_their_tool() {
    let mut stage = Stage::new();
    for (tool, input, response) in [
        (
            "write_file",
            json!({ "path": "a/../b.txt", "content": "x" }),
            json!({ "filePath": "/b.txt", "success": true }),
        ),
        (
            "edit_file",
            json!({ "path": "b.txt", "old_text": "x", "new_text": "y" }),
            json!({ "filePath": "/b.txt", "oldString": "x", "newString": "y", "replaceAll": false, "success": true }),
        ),
        (
            "read_file",
            json!({ "path": "b.txt" }),
            json!({ "type": "text", "file": { "filePath": "/b.txt", "content": "fine\n" } }),
        ),
        ("mcp__db__query", json!({ "sql": "x" }), json!({ "content": "fine\n", "success": true })),
    ] {
        (stage.tool, stage.input) = (tool, input.clone());
        let told = stage.told("PostToolUse", false).await;
        let work = stage.work().display().to_string();
        let shown: Value =
            serde_json::from_str(&told["tool_response"].to_string().replace(&work, "")).expect("JSON");
        assert_eq!(shown, response, "{tool}");
        assert_eq!(told["provost_tool"], tool);
        assert_eq!(told["provost_input"], input);
        if tool.starts_with("mcp__") {
            assert_eq!(told["tool_name"], tool);
            assert_eq!(told["tool_input"], input);
        } else {
            assert_eq!(told["tool_input"]["file_path"], format!("{work}/b.txt"));
        }
    }
}

#[tokio::test]
async fn the_final_text_is_null_where_the_agent_said_nothing() {
    let mut stage = Stage::new();
    stage.final_text = String::new();
    let told = stage.told("Stop", false).await;
    assert_eq!((&told["final_text"], &told["last_assistant_message"]), (&Value::Null, &json!("")));
}
