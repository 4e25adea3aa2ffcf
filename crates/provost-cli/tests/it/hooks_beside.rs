//! Hooks that run beside the turn, those that are asked once, and what hooks leave behind.

use std::fs;

use crate::support::{Done, Scene, gone, json};

/// A scene with these answers, and these hooks in a file of Claude Code.
fn claude(answers: &str, hooks: &str) -> Scene {
    let scene = Scene::scripted(answers).with_settings("[hooks]\nimport = [\"claude\"]\n");
    scene.write("work/.claude/settings.json", &format!(r#"{{"hooks":{{{hooks}}}}}"#));
    scene.trusted()
}

fn reports(done: &Done) -> Vec<serde_json::Value> {
    let decided = done.stdout.lines().map(json).filter(|entry| entry["type"] == "hooks_decided");
    decided.flat_map(|entry| entry["reports"].as_array().cloned().unwrap_or_default()).collect()
}

#[test]
fn what_a_hook_says_that_no_turn_waits_for_is_in_a_later_request() {
    let answers = "answers:\n  - tools: [{ shell: { command: \"until test -e said; do sleep 0.05; done; sleep 0.5\" } }]\n  - text: over\n    expect: { contains: the build is red }\n";
    let says = r#""PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","async":true,"command":
      "touch said; echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"additionalContext\":\"the build is red\"}}'"}]}]"#;
    let done = claude(answers, says).provost(&["run", "do it"]);
    assert_eq!((done.status, done.stdout.as_str()), (0, "over\n"), "{done:?}");
}

#[test]
fn a_hook_that_wakes_the_agent_is_heard_before_it_ends_and_one_that_has_no_objection_doesnt() {
    for (status, last) in [(2, "fixed\n"), (0, "over\n")] {
        let answers = "answers:\n  - tools: [{ shell: { command: touch x } }]\n  - text: over\n  - text: fixed\n    expect: { contains: tests broke }\n";
        let hooks = format!(
            r#""PostToolUse":[{{"hooks":[{{"type":"command","asyncRewake":true,"command":
              "until test -e go; do sleep 0.05; done; echo tests broke >&2; exit {status}"}}]}}],
            "Stop":[{{"hooks":[{{"type":"command","command":"touch go; sleep 1"}}]}}]"#
        );
        let done = claude(answers, &hooks).provost(&["run", "do it"]);
        assert_eq!((done.status, done.stdout.as_str()), (0, last), "{done:?}");
    }
}

#[test]
fn a_hook_that_is_asked_once_is_not_asked_again_also_after_a_resume() {
    let answers = "answers:\n  - tools: [{ shell: { command: touch one } }]\n  - tools: [{ shell: { command: touch two } }]\n  - text: over\n";
    let hook = "[[hooks]]\nname = \"first\"\nevent = \"pre_tool_call\"\ncommand = \"echo think first; exit 2\"\nonce = true\n";
    let scene = Scene::scripted(answers).with_settings(hook).trusted();
    let done = scene.provost(&["run", "do it", "--json", "--max-turns", "1"]);
    assert_eq!(reports(&done).len(), 1, "{done:?}");
    let resumed = scene.provost(&["resume", &scene.last_run(), "--max-turns", "9", "--json"]);
    assert_eq!((resumed.status, reports(&resumed).len()), (0, 0), "{resumed:?}");
    assert!(!scene.path("work/one").exists() && scene.path("work/two").exists());
}

#[test]
fn a_notifier_that_outlives_its_hook_finishes_within_the_run_and_nothing_outlives_the_run() {
    let answers = "answers:\n  - tools: [{ shell: { command: \"until test -e notified; do sleep 0.1; done\", timeout_secs: 20 } }]\n  - text: over\n";
    let hooks = r#""PreToolUse":[{"hooks":[{"type":"command","command":
      "nohup sh -c 'sleep 5; touch notified' > /dev/null 2>&1 & nohup sh -c 'echo $$ > left; exec sleep 600' > /dev/null 2>&1 & exit 0"}]}]"#;
    let scene = claude(answers, hooks);
    let done = scene.provost(&["run", "do it", "--json"]);
    assert_eq!(done.status, 0, "{done:?}");
    assert!(scene.path("work/notified").exists());
    let took = reports(&done)[0]["duration_us"].as_u64().unwrap();
    assert!(took < 4_000_000, "the call doesn't wait for it: {took} µs");
    let pid = fs::read_to_string(scene.path("work/left")).unwrap();
    gone(pid.trim());
}

#[test]
fn a_model_is_told_that_its_call_was_replaced_and_explain_counts_it() {
    let answers = "answers:\n  - tools: [{ shell: { command: touch one } }]\n  - text: over\n    expect: { tool_result: { contains: had this call made with other arguments } }\n";
    let hooks = r#""PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":
      "echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\",\"updatedInput\":{\"command\":\"touch two\"}}}'"}]}]"#;
    let scene = claude(answers, hooks);
    let done = scene.provost(&["run", "do it", "--json"]);
    assert_eq!(done.status, 0, "{done:?}");
    assert!(!scene.path("work/one").exists() && scene.path("work/two").exists());
    let started = done.stdout.lines().map(json).find(|entry| entry["type"] == "tool_started").unwrap();
    assert_eq!(started["replaced_by"], "echo (PreToolUse Bash)", "{started}");
    let explained = scene.provost(&["explain", &scene.last_run()]);
    assert!(
        explained.stdout.contains("replaced calls 1") || explained.stdout.contains("1 replaced calls"),
        "{explained:?}"
    );
}

#[test]
fn a_hook_that_may_wake_the_agent_is_waited_for_when_it_wants_to_end() {
    let answers = "answers:\n  - tools: [{ shell: { command: touch x } }]\n  - text: over\n  - text: fixed\n    expect: { contains: tests broke }\n";
    let hooks = r#""PostToolUse":[{"hooks":[{"type":"command","asyncRewake":true,"command":
        "sleep 2; echo tests broke >&2; exit 2"}]}]"#;
    let done = claude(answers, hooks).provost(&["run", "do it"]);
    assert_eq!((done.status, done.stdout.as_str()), (0, "fixed\n"), "{done:?}");
}
