//! Existing scripts, and their results by their contract.

use provost_event::{HookContract, HookPolicy};
use serde_json::json;

use crate::stage::{Stage, check, claude, shown};

#[tokio::test]
async fn exit_statuses_decide_as_scripts_expect() {
    let cases = [
        ("PreToolUse", "exit 0", "continue"),
        ("PreToolUse", "echo hello; echo more >&2", "continue"),
        ("PreToolUse", "echo 'no rm' >&2; exit 2", "deny: no rm"),
        ("PreToolUse", "exit 2", "deny: it gave no reason"),
        ("PreToolUse", "echo 'only this'; exit 2", "deny: only this"),
        (
            "PreToolUse",
            "printf '\\n first\\nsecond\\n' >&2; exit 1",
            "continue | note: exit status 1, which decides nothing: first",
        ),
        (
            "PreToolUse",
            "exit 7",
            "continue | note: exit status 7, which decides nothing: nothing on standard error",
        ),
        ("PreToolUse", "kill -9 $$", "broken: it was ended by signal 9"),
        ("UserPromptSubmit", "echo 'not that' >&2; exit 2", "deny: not that"),
        ("Stop", "echo 'tests fail' >&2; exit 2", "deny: tests fail"),
        ("PreCompact", "echo 'not now' >&2; exit 2", "deny: not now"),
        ("PostToolUse", "echo 'lint: x' >&2; exit 2", "continue | remind: lint: x"),
        ("PostToolUseFailure", "echo 'try y' >&2; exit 2", "continue | remind: try y"),
        ("PostToolBatch", "echo 'look first' >&2; exit 2", "pause: look first"),
        ("PermissionRequest", "echo no >&2; exit 2", "continue | note: it can't refuse at this point: no"),
        ("SessionStart", "echo no >&2; exit 2", "continue | note: it can't refuse at this point: no"),
        ("Notification", "echo no >&2; exit 2", "continue | note: it can't refuse at this point: no"),
        ("PostCompact", "echo no >&2; exit 2", "continue | note: it can't refuse at this point: no"),
        ("SessionEnd", "echo no >&2; exit 2", "continue | note: it can't refuse at this point: no"),
        ("StopFailure", "echo no >&2; exit 2", "continue | note: it can't refuse at this point: no"),
        ("pre_llm_request", "echo enough >&2; exit 2", "abort: enough"),
        ("turn_end", "echo wait >&2; exit 2", "pause: wait"),
        ("abort", "echo no >&2; exit 2", "continue | note: it can't refuse at this point: no"),
    ];
    check(&cases, claude).await;
}

#[tokio::test]
async fn plain_output_reaches_the_model_at_two_events_only() {
    let cases = [
        ("SessionStart", "echo ' branch: main '", "continue | remind: branch: main"),
        ("UserPromptSubmit", "echo 'today is Monday'", "continue | remind: today is Monday"),
        ("UserPromptSubmit", "echo '[1,2]'", "continue | remind: [1,2]"),
        (
            "SessionStart",
            "echo lost; exit 1",
            "continue | note: exit status 1, which decides nothing: nothing on standard error",
        ),
        ("PostToolUse", "echo 'hello'", "continue"),
        ("Stop", "echo 'hello'", "continue"),
        ("Stop", "true", "continue"),
        ("PreToolUse", "echo '\"deny\"'", "continue"),
    ];
    check(&cases, claude).await;
}

const DENY: &str = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no rm"}}'"#;
const ALLOW: &str =
    r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;

#[tokio::test]
async fn json_decides_on_every_exit_status_but_two_always_blocks() {
    let with = |json: &str, end: &str| format!("{json}; {end}");
    let cases = [
        (with(DENY, "exit 0"), "deny: no rm"),
        (with(DENY, "exit 1"), "deny: no rm"),
        (with(DENY, "exit 127"), "deny: no rm"),
        (with(DENY, "echo other >&2; exit 2"), "deny: no rm"),
        (with(DENY, "kill -9 $$"), "deny: no rm"),
        (with(ALLOW, "exit 1"), "allow"),
        (with(ALLOW, "echo 'no after all' >&2; exit 2"), "deny: no after all"),
        (with(ALLOW, "exit 2"), "deny: it gave no reason"),
        (with("echo '{broken'", "echo why >&2; exit 2"), "deny: why"),
        (
            with(r#"echo '{"decision":"deny"}'"#, "echo why >&2; exit 2"),
            "deny: why | note: its JSON answer counts for nothing: unknown variant `deny`, expected `approve` or `block`",
        ),
        (with(&format!("echo; echo '  '; {DENY}"), "true"), "deny: no rm"),
        (
            with(&format!("echo 'welcome'; {DENY}"), "true"),
            "continue | note: its output has other text before its JSON answer, so that the answer counts for nothing: only an answer that its output begins with counts",
        ),
    ];
    for (script, expected) in cases {
        assert_eq!(shown(&Stage::new().ask(&claude("PreToolUse", &script)).await), expected, "{script}");
    }
}

#[tokio::test]
async fn permission_decisions_become_provosts() {
    let cases = [
        (r#""permissionDecision":"allow""#, "allow"),
        (r#""permissionDecision":"allow","permissionDecisionReason":"known""#, "allow | note: known"),
        (r#""permissionDecision":"ask","permissionDecisionReason":"sure?""#, "ask: sure?"),
        (r#""permissionDecision":"deny""#, "deny: it gave no reason"),
        (
            r#""permissionDecision":"defer""#,
            "pause: deferred | note: it defers the call: the run is suspended, and the call is asked about again when it goes on",
        ),
        (r#""additionalContext":"mind the tests""#, "continue | remind: mind the tests"),
        (
            r#""permissionDecision":"deny","permissionDecisionReason":"x","additionalContext":"c""#,
            "deny: x | remind: c",
        ),
        (
            r#""permissionDecision":"block""#,
            "continue | note: its JSON answer counts for nothing: in `hookSpecificOutput`: unknown variant `block`, expected one of `allow`, `deny`, `ask`, `defer`",
        ),
        (r#""permissionDecision":null"#, "continue"),
    ];
    for (fields, expected) in cases {
        let script = format!(r#"echo '{{"hookSpecificOutput":{{"hookEventName":"PreToolUse",{fields}}}}}'"#);
        assert_eq!(shown(&Stage::new().ask(&claude("PreToolUse", &script)).await), expected, "{fields}");
    }
}

#[tokio::test]
async fn fields_at_the_top_do_what_they_do_for_every_event() {
    let cases = [
        ("PreToolUse", r#"echo '{"decision":"approve","reason":"ok"}'"#, "allow | note: ok"),
        ("PreToolUse", r#"echo '{"decision":"block","reason":"no"}'"#, "deny: no"),
        ("PreToolUse", r#"echo '{"continue":false,"stopReason":"enough"}'"#, "abort: enough"),
        ("PreToolUse", r#"echo '{"continue":false,"decision":"approve"}'"#, "abort: the hook ended the run"),
        ("PreToolUse", r#"echo '{"systemMessage":"look","suppressOutput":true}'"#, "continue | note: look"),
        (
            "PreToolUse",
            r#"echo '{"continue":"false"}'"#,
            "continue | note: its JSON answer counts for nothing: invalid type: string \"false\", expected a boolean",
        ),
        ("PreToolUse", "echo '{}'", "continue"),
        ("SessionStart", r#"echo '{"continue":false,"stopReason":"closed"}'"#, "abort: closed"),
        ("PreCompact", r#"echo '{"decision":"block","reason":"keep it"}'"#, "deny: keep it"),
        (
            "PreCompact",
            r#"echo '{"continue":false,"systemMessage":"x"}'"#,
            "continue | note: its `continue: false` isn't taken at this point",
        ),
        ("UserPromptSubmit", r#"echo '{"decision":"block","reason":"secret"}'"#, "deny: secret"),
        (
            "UserPromptSubmit",
            r#"echo '{"decision":"approve"}'"#,
            "continue | note: its `decision: approve` isn't taken at this point",
        ),
        (
            "PostToolUse",
            r#"echo '{"decision":"block","reason":"format it"}'"#,
            "continue | remind: format it",
        ),
        ("PostToolUse", r#"echo '{"continue":false,"stopReason":"broken"}'"#, "abort: broken"),
        ("PostToolBatch", r#"echo '{"decision":"block","reason":"wait"}'"#, "pause: wait"),
        ("Stop", r#"echo '{"continue":true}'"#, "continue"),
        ("Stop", r#"echo '{"continue":false,"stopReason":"over"}'"#, "abort: over"),
        ("Stop", r#"echo '{"decision":"block","reason":"run the tests"}'"#, "deny: run the tests"),
        ("Stop", r#"echo '{"decision":"block"}'"#, "deny: it gave no reason"),
        (
            "SessionEnd",
            r#"echo '{"decision":"block","reason":"no"}'"#,
            "continue | note: it can't refuse at this point: no",
        ),
    ];
    check(&cases, claude).await;
}

#[tokio::test]
async fn what_stands_where_it_does_not_count_is_said_loudly() {
    let cases = [
        (
            "PreToolUse",
            r#"echo '{"permissionDecision":"deny"}'"#,
            "continue | note: `permissionDecision` at the top of its answer counts for nothing: it belongs into `hookSpecificOutput`",
        ),
        (
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'"#,
            "continue | note: its JSON answer counts for nothing: `hookSpecificOutput` lacks `\"hookEventName\": \"PreToolUse\"`",
        ),
        (
            "PreToolUse",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"deny"}}'; echo x >&2; exit 1"#,
            "continue | note: its JSON answer counts for nothing: `hookSpecificOutput` is for the event \"PostToolUse\", but this is \"PreToolUse\"\\nexit status 1, which decides nothing: x",
        ),
        (
            "PreToolUse",
            r#"echo '{"decision":"block"} trailing'"#,
            "continue | note: its output begins like a JSON object, but isn't one: trailing characters at line 1 column 22",
        ),
        (
            "PostToolUse",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"x","additionalContext":"c"}}'"#,
            "continue | remind: c | note: its `updatedToolOutput` isn't taken: hooks decide, they don't change what others see or may do",
        ),
        (
            "Notification",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"Notification","additionalContext":"c"}}'"#,
            "continue | note: its `additionalContext` isn't taken at this point",
        ),
    ];
    check(&cases, claude).await;
}

#[tokio::test]
async fn context_reaches_the_model_and_sends_a_stopping_agent_on() {
    let cases = [
        (
            "SessionStart",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"c"}}'"#,
            "continue | remind: c",
        ),
        (
            "UserPromptSubmit",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"c"}}'"#,
            "continue | remind: c",
        ),
        (
            "Stop",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"also the docs"}}'"#,
            "deny: also the docs",
        ),
        (
            "Stop",
            r#"echo '{"decision":"block","reason":"tests","hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"docs"}}'"#,
            "deny: tests\\n\\ndocs",
        ),
        (
            "Stop",
            r#"echo '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":" "}}'"#,
            "continue",
        ),
    ];
    check(&cases, claude).await;
}

#[tokio::test]
async fn a_hook_can_answer_for_a_person() {
    let cases = [
        (r#"{"behavior":"allow"}"#, "allow"),
        (r#"{"behavior":"deny","message":"never"}"#, "deny: never"),
        (r#"{"behavior":"deny"}"#, "deny: it gave no reason"),
        (r#"{"behavior":"deny","message":"stop it","interrupt":true}"#, "abort: stop it"),
        (
            r#"{"behavior":"allow","updatedPermissions":[]}"#,
            "allow | note: its `updatedPermissions` isn't taken: hooks decide, they don't change what others see or may do",
        ),
        (
            r#"{"behavior":"perhaps"}"#,
            "continue | note: its JSON answer counts for nothing: in `hookSpecificOutput`: unknown variant `perhaps`, expected `allow` or `deny`",
        ),
    ];
    for (decision, expected) in cases {
        let script = format!(
            r#"echo '{{"hookSpecificOutput":{{"hookEventName":"PermissionRequest","decision":{decision}}}}}'"#
        );
        assert_eq!(shown(&Stage::new().ask(&claude("PermissionRequest", &script)).await), expected);
    }
}

#[tokio::test]
async fn a_changed_input_proposes_another_call() {
    let answer = |event: &'static str, fields: &str| {
        let script = format!(r#"echo '{{"hookSpecificOutput":{{"hookEventName":"{event}",{fields}}}}}'"#);
        async move {
            let mut stage = Stage::new();
            stage.input = json!({ "command": "rm -rf build", "timeout_secs": 5, "description": "cleans" });
            shown(&stage.ask(&claude(event, &script)).await)
        }
    };
    let proposed = "replace: {\"command\":\"trash build\",\"timeout_secs\":6}";
    let wanted = r#""updatedInput":{"command":"trash build","timeout":6000,"run_in_background":false}"#;
    assert_eq!(answer("PreToolUse", wanted).await, format!("continue | {proposed}"));
    let allowed = answer("PreToolUse", &format!(r#""permissionDecision":"allow",{wanted}"#)).await;
    assert_eq!(allowed, format!("allow | {proposed}"));
    let asked = answer("PreToolUse", &format!(r#""permissionDecision":"ask",{wanted}"#)).await;
    assert_eq!(asked, format!("ask: it gave no reason | {proposed}"));
    let for_person = format!(r#""decision":{{"behavior":"allow",{wanted}}}"#);
    assert_eq!(answer("PermissionRequest", &for_person).await, format!("allow | {proposed}"));
    let same = r#""permissionDecision":"allow","updatedInput":{"command":"rm -rf build","timeout":5000}"#;
    assert_eq!(answer("PreToolUse", same).await, "allow", "nothing but the description is gone");
    let denied = format!(r#""permissionDecision":"deny","permissionDecisionReason":"no",{wanted}"#);
    assert_eq!(answer("PreToolUse", &denied).await, "deny: no");
}

#[tokio::test]
async fn texts_over_ten_thousand_characters_are_kept_in_a_file() {
    let stage = Stage::new();
    let fits = "head -c 10000 /dev/zero | tr '\\0' x >&2; exit 2";
    let answer = shown(&stage.ask(&claude("PreToolUse", fits)).await);
    assert_eq!(answer.len(), "deny: ".len() + 10_000);
    assert!(!stage.spill().exists());

    let longer = "head -c 10001 /dev/zero | tr '\\0' x >&2; exit 2";
    let answer = shown(&stage.ask(&claude("PreToolUse", longer)).await);
    assert!(
        answer.len() < 2_500 && answer.contains("8,001 characters more; all that was kept is in "),
        "{answer}"
    );
    let path = answer.split(" is in ").nth(1).expect("a path").trim_end_matches(']');
    assert_eq!(std::fs::read_to_string(path).expect("the file"), "x".repeat(10_001));

    let answer = shown(&stage.ask(&claude("SessionStart", "head -c 20000 /dev/zero | tr '\\0' y")).await);
    assert!(answer.contains("remind: yyy") && answer.contains("18,000 characters more"), "{answer}");
}

#[tokio::test]
async fn a_patch_is_an_edit_for_matchers_and_each_contract_finds_its_files() {
    let mut stage = Stage::new();
    stage.input = json!({ "input": "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Delete File: sub/.env\n*** End Patch" });
    stage.tool = "apply_patch";
    let guard = "jq -r .tool_input.file_path | grep -q '\\.env$' && { echo no secrets >&2; exit 2; }; exit 0";
    let by_claude = HookPolicy { matcher: Some("Write|Edit".to_owned()), ..claude("PreToolUse", guard) };
    assert!(stage.wants(&by_claude));
    assert_eq!(shown(&stage.ask(&by_claude).await), "deny: no secrets");

    let guard = "cat > told; test \"$(jq -r .tool_name told)\" = apply_patch && jq -r .tool_input.command told >&2; exit 2";
    let contract = HookContract::Codex;
    let by_codex =
        HookPolicy { contract, matcher: Some("Write|Edit".to_owned()), ..claude("PreToolUse", guard) };
    assert!(stage.wants(&by_codex));
    assert!(shown(&stage.ask(&by_codex).await).starts_with("deny: *** Begin Patch"));
    let other = HookPolicy { matcher: Some("Bash".to_owned()), ..by_codex };
    assert!(!stage.wants(&other));
}
