//! Hooks that are models: `prompt` and `agent`, of existing files and of `[[hooks]]`.

use serde_json::Value;

use crate::support::{Done, Scene, json, until};

/// One command, then the end; with these answers of hooks.
fn script(hooks: &str) -> String {
    format!(
        "answers:\n  - tools: [{{ shell: {{ command: touch done.txt }} }}]\n  - text: \"over\\nVERDICT: PASS\"\nhooks:\n{hooks}"
    )
}

/// A scene in which a file of Claude Code asks `handler` before each command.
fn claude(hooks: &str, event: &str, handler: &str) -> Scene {
    let scene = Scene::scripted(&script(hooks)).with_settings("[hooks]\nimport = [\"claude\"]\n");
    let matcher = if event == "Stop" { "" } else { r#""matcher":"Bash","# };
    let file = format!(r#"{{"hooks":{{"{event}":[{{{matcher}"hooks":[{handler}]}}]}}}}"#);
    scene.write("work/.claude/settings.json", &file);
    scene.trusted()
}

/// The same for a hook of the settings before each command.
fn own(hooks: &str, field: &str) -> Scene {
    let hook =
        format!("[[hooks]]\nname = \"guard\"\nevent = \"pre_tool_call\"\nmatcher = \"shell\"\n{field}\n");
    Scene::scripted(&script(hooks)).with_settings(&hook).trusted()
}

const PROMPT: &str = r#"{"type":"prompt","prompt":"Is this safe? $ARGUMENTS"}"#;

fn entries(done: &Done, kind: &str) -> Vec<Value> {
    let all = done.stdout.lines().map(json);
    all.filter(|entry| entry["type"] == kind).collect()
}

fn run(scene: &Scene) -> Done {
    scene.provost(&["run", "do it", "--json"])
}

/// What the hooks decided, one report each.
fn reports(done: &Done) -> Vec<Value> {
    let decided = entries(done, "hooks_decided").into_iter();
    decided.flat_map(|entry| entry["reports"].as_array().cloned().unwrap_or_default()).collect()
}

fn is_made(scene: &Scene) -> bool {
    scene.path("work/done.txt").exists()
}

#[test]
fn a_prompt_hook_that_objects_denies_the_call_and_one_that_doesnt_lets_it_pass() {
    let denies =
        "  - text: '{\"ok\": false, \"reason\": \"not today\"}'\n    expect: { contains: touch done.txt }\n";
    let passes = "  - text: '{\"ok\": true}'\n    expect: { contains: Is this safe }\n";
    for (answer, passed) in [(denies, false), (passes, true)] {
        for scene in [claude(answer, "PreToolUse", PROMPT), own(answer, "prompt = \"Is this safe?\"")] {
            let done = run(&scene);
            assert_eq!((done.status, is_made(&scene)), (0, passed), "{done:?}");
            let report = reports(&done).remove(0);
            let said = if passed { value(r#""continue""#) } else { value(r#"{"deny":"not today"}"#) };
            assert_eq!(report["decision"], said, "{report}");
            let results = entries(&done, "tool_finished");
            let told = results[0]["output"].as_str().unwrap().contains("not today");
            assert_eq!(told, !passed, "{results:?}");
        }
    }
}

fn value(text: &str) -> Value {
    json(text)
}

#[test]
fn its_calls_are_in_the_log_and_charged_to_the_run_as_its_own() {
    let scene =
        claude("  - text: '{\"ok\": true}'\n    usage: { input: 70, output: 7 }\n", "PreToolUse", PROMPT);
    let done = run(&scene);
    let (called, answered) =
        (entries(&done, "external_model_called"), entries(&done, "external_model_answered"));
    assert_eq!((called.len(), answered.len()), (1, 1), "{done:?}");
    assert_eq!((&called[0]["purpose"], &answered[0]["purpose"]), (&"hook".into(), &"hook".into()));
    assert_eq!(answered[0]["usage"]["input_tokens"], 70, "{answered:?}");
    let costs = scene.provost(&["cost", "--by", "purpose", "--json"]);
    let costs = json(&costs.stdout);
    let groups = costs["groups"].as_array().unwrap();
    let hooks = groups.iter().find(|group| group["purpose"] == "hook").expect("a group of hooks");
    assert_eq!(hooks["output_tokens"], 7, "{costs}");
}

#[test]
fn an_answer_that_cant_be_read_is_asked_for_once_more_and_then_is_none() {
    let twice =
        "  - text: I think so\n  - text: '{\"ok\": \"yes\"}'\n    expect: { contains: not such an object }\n";
    let scene = claude(twice, "PreToolUse", PROMPT);
    let done = run(&scene);
    assert_eq!(
        (done.status, is_made(&scene)),
        (0, true),
        "by that contract what fails denies nothing: {done:?}"
    );
    let why = reports(&done).remove(0)["decision"]["failed"].as_str().unwrap().to_owned();
    assert!(why.contains(r#"{"ok": "yes"}"#), "{why}");

    let scene = own(twice, "prompt = \"Is this safe?\"");
    let done = run(&scene);
    assert_eq!((done.status, is_made(&scene)), (0, false), "{done:?}");

    let again = "  - text: I think so\n  - text: '{\"ok\": true}'\n";
    let scene = own(again, "prompt = \"Is this safe?\"");
    let done = run(&scene);
    assert_eq!((done.status, is_made(&scene)), (0, true), "{done:?}");
}

#[test]
fn a_model_that_fails_or_takes_too_long_has_given_no_answer() {
    let slow = "  - text: '{\"ok\": true}'\n    delay_ms: 60000\n";
    let scene = own(slow, "prompt = \"Is this safe?\"\ntimeout_secs = 1");
    let done = run(&scene);
    assert_eq!((done.status, is_made(&scene)), (0, false), "{done:?}");
    assert_eq!(reports(&done)[0]["decision"], value(r#"{"timed_out":1000}"#));
    assert_eq!(entries(&done, "external_model_answered")[0]["end"], "aborted", "{done:?}");

    let scene = claude(slow, "PreToolUse", r#"{"type":"prompt","prompt":"x","timeout":1}"#);
    let done = run(&scene);
    assert_eq!((done.status, is_made(&scene)), (0, true), "{done:?}");

    let scene = own("  - fault: overloaded\n", "prompt = \"Is this safe?\"");
    let done = run(&scene);
    assert_eq!((done.status, is_made(&scene)), (0, false), "{done:?}");
}

#[test]
fn without_budget_for_its_model_the_run_is_suspended_before_the_call_and_goes_on_with_more() {
    let scene = claude("  - text: '{\"ok\": true}'\n", "PreToolUse", PROMPT);
    scene.write(
        "work/agent.yaml",
        &script("  - text: '{\"ok\": true}'\n").replace(
            "  - tools:",
            "  - tools: [{ shell: { command: touch done.txt } }]\n    usage: { input: 9000, output: 900 }\n  - tools:",
        ),
    );
    let done = scene.provost(&["run", "do it", "--tokens", "10000", "--json"]);
    assert_eq!((done.status, is_made(&scene)), (3, false), "{done:?}");
    assert_eq!(entries(&done, "external_model_refused").len(), 1, "{done:?}");
    let resumed = scene.provost(&["resume", &scene.last_run(), "--tokens", "+100000", "--json"]);
    assert_eq!((resumed.status, is_made(&scene)), (0, true), "{resumed:?}");
    assert_eq!(reports(&resumed).last().unwrap()["decision"], "continue", "{resumed:?}");
}

#[test]
fn an_agent_hook_reads_files_within_the_agents_permissions_and_changes_nothing() {
    let answers = "  - tools: [{ read_file: { path: plan.txt } }, { read_file: { path: secret.txt } }, { write_file: { path: x, content: y } }]\n  - text: '{\"ok\": false, \"reason\": \"the plan says no\"}'\n    expect:\n      tool_result:\n        - { tool: read_file, contains: be careful }\n        - { tool: read_file, contains: Not permitted }\n        - { tool: write_file, contains: There is no tool }\n";
    let hook = r#"{"type":"agent","prompt":"Does the plan allow it? $ARGUMENTS"}"#;
    let scene = claude(answers, "PreToolUse", hook);
    let scene = scene.with_settings("[permissions]\ndeny = [\"read_file(secret.txt)\"]\n").trusted();
    scene.write("work/plan.txt", "be careful\n");
    scene.write("work/secret.txt", "hidden\n");
    let done = run(&scene);
    assert_eq!((done.status, is_made(&scene)), (0, false), "{done:?}");
    assert_eq!(reports(&done)[0]["decision"], value(r#"{"deny":"the plan says no"}"#), "{done:?}");
    assert!(!scene.path("work/x").exists());
    assert_eq!(entries(&done, "external_model_answered").len(), 2, "each of its calls is charged");
}

#[test]
fn at_a_stop_an_objection_sends_the_agent_back_and_what_cant_be_met_lets_it_go() {
    let once = "  - text: '{\"ok\": false, \"reason\": \"tests are missing\"}'\n  - text: '{\"ok\": true}'\n";
    let scene = claude(once, "Stop", r#"{"type":"prompt","prompt":"Is all done?"}"#);
    scene.write(
        "work/agent.yaml",
        &format!("answers:\n  - text: half\n  - text: whole\n    expect: {{ contains: tests are missing }}\nhooks:\n{once}"),
    );
    let done = scene.provost(&["run", "do it"]);
    assert_eq!((done.status, done.stdout.as_str()), (0, "whole\n"), "{done:?}");

    let cant = "  - text: '{\"ok\": false, \"impossible\": true, \"reason\": \"no network\"}'\n";
    let scene = claude(cant, "Stop", r#"{"type":"prompt","prompt":"Is all done?"}"#);
    let done = run(&scene);
    assert_eq!(done.status, 0, "{done:?}");
    let verdicts = entries(&done, "stop_verdicts");
    assert!(verdicts[0]["reports"][0]["note"].as_str().unwrap().contains("no network"), "{verdicts:?}");
}

#[test]
fn after_a_call_an_objection_suspends_the_agent_or_tells_it() {
    let no = "  - text: '{\"ok\": false, \"reason\": \"undo that\"}'\n";
    let scene = claude(no, "PostToolUse", PROMPT);
    let done = run(&scene);
    assert_eq!((done.status, is_made(&scene)), (4, true), "{done:?}");
    assert_eq!(reports(&done)[0]["decision"], value(r#"{"pause":"undo that"}"#));

    let goes_on = r#"{"type":"prompt","prompt":"x","continueOnBlock":true}"#;
    let scene = claude(no, "PostToolUse", goes_on);
    let done = run(&scene);
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(reports(&done)[0]["reminders"], value(r#"["undo that"]"#), "{done:?}");
}

#[test]
fn a_run_that_is_killed_while_the_model_is_asked_asks_again_and_charges_both() {
    let scene = own("  - text: '{\"ok\": true}'\n    delay_ms: 60000\n", "prompt = \"Is this safe?\"");
    let running = scene.start(&["run", "do it", "--json"]);
    let run = until("the hook is asked", || {
        let run = json(scene.provost(&["ps", "--json", "-n", "1"]).stdout.trim().lines().next()?)["run"]
            .as_str()?
            .to_owned();
        let log = scene.provost(&["logs", &run, "--json"]).stdout;
        log.contains("external_model_called").then_some(run)
    });
    running.kill();
    scene.write("work/agent.yaml", &script("  - text: late\n  - text: '{\"ok\": true}'\n"));
    let resumed = scene.provost(&["resume", &run, "--json"]);
    assert_eq!((resumed.status, is_made(&scene)), (0, true), "{resumed:?}");
    let log = scene.provost(&["logs", &run, "--json", "--agent", "0"]);
    let log = if log.status == 0 { log } else { scene.provost(&["logs", &run, "--json"]) };
    let ends = entries(&log, "external_model_answered");
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert_eq!(ends[0]["end"], "lost", "{ends:?}");
}

#[test]
fn check_and_trust_show_what_a_model_is_asked_and_what_cant_be() {
    let scene =
        Scene::scripted("answers: [{ text: done }]").with_settings("[hooks]\nimport = [\"claude\"]\n");
    let file = r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[
      {"type":"prompt","prompt":"Is this safe?","model":"haiku"},{"type":"mcp_tool","server":"x","tool":"y"}]}],
      "SessionStart":[{"hooks":[{"type":"prompt","prompt":"Hello?"}]}]}}"#;
    scene.write("work/.claude/settings.json", file);
    let trust = scene.provost(&["trust", "--yes"]);
    for words in [
        "is asked at pre_tool_call",
        "asks a model: Is this safe?",
        "not mcp_tool",
        "takes no prompt and agent hooks",
    ] {
        assert!(trust.stdout.contains(words), "{words}: {trust:?}");
    }
    let check = scene.provost(&["check"]);
    assert!(check.stdout.contains("its model `haiku` isn't named as provider/model"), "{check:?}");
}

#[test]
fn a_models_hook_in_the_wrong_place_is_refused() {
    crate::settings_errors::check(
        "[[hooks]]\nevent = \"session_start\"\nprompt = \"x\"\n[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\nmodel = \"a/b\"\n",
        expect_test::expect![[r#"
            provost.toml:3:1: hooks.prompt: no model is asked at session_start: nothing waits for its answer there; use a command, or another event
            provost.toml:7:1: hooks.model: belongs to `prompt` or `agent`, which isn't there; leave it out
        "#]],
    );
}
