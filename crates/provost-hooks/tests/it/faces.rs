//! Calls whose tools scripts know under other shapes: commands at a terminal, patches, lists of edits.

use provost_event::{HookContract, HookPolicy};
use serde_json::{Value, json};

use crate::stage::{Stage, claude, own, shown};

/// A stage with a call of `tool`.
fn stage(tool: &'static str, input: Value) -> Stage {
    let mut stage = Stage::new();
    stage.tool = tool;
    stage.input = input;
    stage
}

fn guard(matcher: &str, script: &str) -> HookPolicy {
    HookPolicy { matcher: Some(matcher.to_owned()), ..claude("PreToolUse", script) }
}

const PATCH: &str = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** Update File: f.txt\n@@\n-a\n+SECRET\n@@\n-b\n+B\n\
    *** Delete File: gone.txt\n*** End Patch\n";

#[tokio::test]
async fn a_command_at_a_terminal_is_a_command() {
    let start = || stage("terminal", json!({ "action": "start", "command": "touch made" }));
    for contract in [HookContract::Claude, HookContract::Codex] {
        for matcher in ["Bash", "^Bash$", "Bash|Edit|Write", "terminal", "*"] {
            let script = "jq -r '[.tool_name, .tool_input.command, .provost_tool, .provost_input.action] | @csv' >&2; exit 2";
            let hook = HookPolicy { contract, ..guard(matcher, script) };
            assert!(start().wants(&hook), "{contract:?} {matcher}");
            let answer = shown(&start().ask(&hook).await);
            assert_eq!(answer, r#"deny: "Bash","touch made","terminal","start""#, "{matcher}");
        }
    }
    let touches =
        |condition: &str| HookPolicy { condition: Some(condition.to_owned()), ..guard("Bash", "exit 2") };
    assert!(start().wants(&touches("Bash(touch *)")) && !start().wants(&touches("Bash(rm *)")));
    let typed = stage("terminal", json!({ "action": "send", "text": "touch made" }));
    assert!(typed.wants(&guard("Bash", "exit 2")) && !typed.wants(&guard("Edit", "exit 2")));
    let read = stage("terminal", json!({ "action": "read" }));
    assert!(!read.wants(&guard("Bash", "exit 2")) && read.wants(&guard("terminal", "exit 2")));
}

#[tokio::test]
async fn a_hook_of_ones_own_that_names_the_shell_is_asked_about_commands_at_a_terminal() {
    let start = || stage("terminal", json!({ "action": "start", "command": "touch made" }));
    let script = "jq -r '[.tool_input.command, .provost_tool] | @csv'; exit 2";
    let hook = |matcher: &str| HookPolicy { matcher: Some(matcher.to_owned()), ..own("PreToolUse", script) };
    for matcher in ["shell", "Bash", "shell|write_file", "^shell$"] {
        assert!(start().wants(&hook(matcher)), "{matcher}");
        let answer = shown(&start().ask(&hook(matcher)).await);
        assert_eq!(answer, r#"deny: "touch made","terminal""#, "{matcher}");
    }
    for matcher in ["write_file", "^(?!terminal$)"] {
        assert!(!start().wants(&hook(matcher)), "{matcher}");
    }
    let as_it_is = HookPolicy { matcher: None, ..own("PreToolUse", "jq -r .tool_input.action; exit 2") };
    assert_eq!(shown(&start().ask(&as_it_is).await), "deny: start");
}

#[tokio::test]
async fn another_command_that_a_hook_proposes_is_typed_at_the_terminal() {
    let hook = guard(
        "Bash",
        r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"true"}}}'"#,
    );
    let stage = stage("terminal", json!({ "action": "start", "command": "touch made", "rows": 9 }));
    let answer = shown(&stage.ask(&hook).await);
    assert_eq!(answer, r#"continue | replace: {"action":"start","command":"true","rows":9}"#);
}

#[tokio::test]
async fn a_patch_is_asked_about_file_by_file_and_the_strictest_answer_counts() {
    let patch = || stage("apply_patch", json!({ "input": PATCH }));
    // They are asked at the same time.
    let tell = "cat > $(mktemp told-XXXXXX)";
    let stage = patch();
    assert_eq!(shown(&stage.ask(&guard("Edit|Write|MultiEdit", tell)).await), "continue");
    let files = std::fs::read_dir(stage.work()).expect("the folder").flatten();
    let read = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path()).expect("the input");
        let told: Value = serde_json::from_str(&text).expect("JSON");
        format!("{} {} {}", told["tool_name"], told["tool_input"], told["provost_tool"])
    };
    let mut told = files.map(read).collect::<Vec<_>>();
    told.sort();
    let work = stage.work().display().to_string();
    let told = told.join("\n").replace(&work, "WORK");
    expect_test::expect![[r#"
        "MultiEdit" {"file_path":"WORK/f.txt","edits":[{"old_string":"a\n","new_string":"SECRET\n"},{"old_string":"b\n","new_string":"B\n"}],"replace_all":false,"old_string":"a\n\nb\n","new_string":"SECRET\n\nB\n"} "apply_patch"
        "Write" {"file_path":"WORK/gone.txt","content":""} "apply_patch"
        "Write" {"file_path":"WORK/new.txt","content":"one\n"} "apply_patch""#]]
    .assert_eq(&told);

    let by_path = "jq -r .tool_input.file_path | grep -q 'f.txt$' && { echo protected >&2; exit 2; }; exit 0";
    let by_text = "jq -r '.tool_input.new_string // .tool_input.content' | grep -q SECRET && { echo secret >&2; exit 2; }; exit 0";
    for (matcher, script, answer) in [
        ("Edit|Write|MultiEdit", by_path, "deny: protected"),
        ("Edit", by_path, "deny: protected"),
        ("Write", by_path, "continue"),
        ("Edit|Write|MultiEdit", by_text, "deny: secret"),
        ("Edit|Write", by_text, "deny: secret"),
        ("apply_patch", by_text, "deny: secret"),
    ] {
        assert_eq!(shown(&patch().ask(&guard(matcher, script)).await), answer, "{matcher} {script}");
    }
    let allow = r#"jq -r .tool_name | grep -q Write && echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'; exit 0"#;
    assert_eq!(shown(&patch().ask(&guard("*", allow)).await), "continue", "not all of it is allowed");
    assert_eq!(
        shown(&patch().ask(&guard("Write", allow)).await),
        "continue",
        "not all of it was asked about"
    );
}

#[tokio::test]
async fn a_patch_of_very_many_files_is_refused() {
    let files = (0..40).map(|number| format!("*** Add File: f{number}\n+x\n")).collect::<String>();
    let patch = stage("apply_patch", json!({ "input": format!("*** Begin Patch\n{files}*** End Patch\n") }));
    let answer = shown(&patch.ask(&guard("Write", "exit 0")).await);
    assert_eq!(
        answer,
        "deny: a call that changes more than 32 files is too large for hooks: make several calls"
    );
}

#[tokio::test]
async fn one_edit_of_a_list_is_an_edit_and_several_are_what_the_script_asks_for() {
    let edit = |texts: &[(&str, &str)]| {
        let edits = texts.iter().map(|(old, new)| json!({ "old_text": old, "new_text": new }));
        stage("edit_file", json!({ "path": "f.txt", "edits": edits.collect::<Value>() }))
    };
    let by_text = "jq -r .tool_input.new_string | grep -q SECRET && { echo secret >&2; exit 2; }; exit 0";
    for texts in [&[("a", "SECRET")][..], &[("b", "B"), ("a", "SECRET")]] {
        for matcher in ["Edit|Write|MultiEdit", "Edit", "MultiEdit"] {
            assert_eq!(shown(&edit(texts).ask(&guard(matcher, by_text)).await), "deny: secret", "{matcher}");
        }
    }
    let name = "jq -r .tool_name >&2; exit 2";
    for (texts, matcher, told) in [
        (&[("a", "A")][..], "Edit|MultiEdit", "deny: Edit"),
        (&[("a", "A"), ("b", "B")], "Edit|MultiEdit", "deny: MultiEdit"),
        (&[("a", "A"), ("b", "B")], "Edit|Write", "deny: Edit"),
    ] {
        assert_eq!(shown(&edit(texts).ask(&guard(matcher, name)).await), told, "{matcher}");
    }
    let proposes = r#"jq '{hookSpecificOutput: {hookEventName: "PreToolUse", updatedInput: (.tool_input | .edits[1].new_string = "C")}}'"#;
    let answer = shown(&edit(&[("a", "A"), ("b", "B")]).ask(&guard("MultiEdit", proposes)).await);
    assert_eq!(
        answer,
        r#"continue | replace: {"path":"f.txt","edits":[{"old_text":"a","new_text":"A"},{"old_text":"b","new_text":"C"}]}"#
    );
}

#[tokio::test]
async fn a_guard_of_codex_on_patches_is_asked_about_every_change_of_a_file() {
    let script = "jq -r '.tool_name, .tool_input.command' >&2; exit 2";
    let hook = HookPolicy { contract: HookContract::Codex, ..guard("apply_patch", script) };
    let write = stage("write_file", json!({ "path": "a.txt", "content": "x\ny" }));
    assert!(write.wants(&hook));
    assert_eq!(
        shown(&write.ask(&hook).await),
        r"deny: apply_patch\n*** Begin Patch\n*** Add File: a.txt\n+x\n+y\n*** End Patch"
    );
    let edit = stage("edit_file", json!({ "path": "a.txt", "old_text": "x", "new_text": "z" }));
    assert_eq!(
        shown(&edit.ask(&hook).await),
        r"deny: apply_patch\n*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+z\n*** End Patch"
    );
    assert!(edit.wants(&HookPolicy { matcher: Some("Edit|Write".to_owned()), ..hook }));
}

#[tokio::test]
async fn a_call_in_the_background_is_told_as_one() {
    let shell = |background: bool| stage("shell", json!({ "command": "serve", "background": background }));
    let hook = guard("Bash", "jq -r .tool_input.run_in_background >&2; exit 2");
    assert_eq!(shown(&shell(true).ask(&hook).await), "deny: true");
    assert_eq!(shown(&shell(false).ask(&hook).await), "deny: false");
}
