//! Provost's own contract: an answer that isn't understood counts as none.

use crate::stage::{Stage, check, own, shown};

#[tokio::test]
async fn zero_goes_on_two_refuses_three_ends_and_the_rest_is_no_answer() {
    let cases = [
        ("pre_tool_call", "echo 'whatever'", "continue"),
        ("pre_tool_call", "echo why; echo not >&2; exit 2", "deny: why"),
        ("pre_tool_call", "echo why >&2; exit 2", "deny: why"),
        ("pre_tool_call", "exit 2", "deny: it gave no reason"),
        ("pre_tool_call", "echo over; exit 3", "abort: over"),
        ("post_tool_call", "echo over >&2; exit 3", "abort: over"),
        (
            "pre_tool_call",
            "echo oops >&2; exit 1",
            "failed: exit status 1, which means neither yes nor no: oops",
        ),
        (
            "pre_tool_call",
            "/no/such/program 2>/dev/null",
            "failed: it can't be run: exit status 127: nothing on standard error",
        ),
        ("pre_tool_call", "kill -15 $$", "broken: it was ended by signal 15"),
        ("stop", "echo tests; exit 2", "deny: tests"),
        ("approval", "echo no; exit 2", "deny: no"),
        ("session_start", "echo closed; exit 2", "abort: closed"),
        ("session_start", "echo 'no context'", "continue"),
        ("pre_llm_request", "echo enough; exit 2", "abort: enough"),
        ("turn_end", "echo wait; exit 2", "pause: wait"),
        ("post_tool_call", "echo lint; exit 2", "continue | remind: lint | note: lint"),
        ("notification", "echo no; exit 2", "continue | note: it can't refuse at this point: no"),
    ];
    check(&cases, own).await;
}

#[tokio::test]
async fn json_counts_on_zero_and_two_only_and_must_make_sense() {
    let cases = [
        ("pre_tool_call", r#"echo '{"decision":"block","reason":"no"}'"#, "deny: no"),
        (
            "pre_tool_call",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"sure?"}}'"#,
            "ask: sure?",
        ),
        ("pre_tool_call", r#"echo '{"decision":"block","reason":"no"}'; exit 2"#, "deny: no"),
        ("pre_tool_call", r#"echo '{"decision":"approve"}'; echo but >&2; exit 2"#, "deny: but"),
        (
            "pre_tool_call",
            r#"echo '{"decision":"approve"}'; exit 1"#,
            "failed: exit status 1, which means neither yes nor no: {\"decision\":\"approve\"}",
        ),
        (
            "pre_tool_call",
            r#"echo '{"decision":"no"}'"#,
            "failed: its JSON answer counts for nothing: unknown variant `no`, expected `approve` or `block`",
        ),
        (
            "pre_tool_call",
            "echo '{broken'",
            "failed: its output begins like a JSON object, but isn't one: key must be a string at line 1 column 2",
        ),
    ];
    check(&cases, own).await;
}

#[tokio::test]
async fn a_hook_of_all_results_is_told_of_both_kinds_by_their_names() {
    let stage = Stage::new();
    let script = r#"python3 -c 'import json,sys; d=json.load(sys.stdin); print(json.dumps({"systemMessage": d["hook_event_name"]}))'"#;
    let hook = own("post_tool_call", script);
    assert_eq!(shown(&stage.ask_about(&hook, false).await), "continue | note: PostToolUse");
    assert_eq!(shown(&stage.ask_about(&hook, true).await), "continue | note: PostToolUseFailure");
}
