//! The time limit from outside, with real processes.

use crate::control::{entries, log};
use crate::support::{Scene, json, sealed};

/// Ignores the request to end, and so do its children.
const STUBBORN: &str = r#"
answers: [{ tools: [{ shell: { command: "trap '' TERM; while :; do sleep 1; done" } }] }, { text: done }]
final_summary: { text: so far }
"#;
const LIMIT_MS: u64 = 20_000;

fn elapsed_ms(entry: &serde_json::Value) -> u64 {
    entry["elapsed_ms"].as_u64().expect("every record has it")
}

#[test]
fn a_tool_that_ignores_sigterm_is_ended_within_the_limit() {
    let scene = Scene::scripted(STUBBORN);
    let ran = scene.provost(&["run", "x", "--wall-time", "20s"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    assert!(ran.stderr.contains("Time budget used up: 18."), "{ran:?}");
    let log = log(&scene);
    let finished = &entries(&log, "tool_finished")[0];
    assert_eq!(finished["status"], "cancelled", "{finished}");
    assert!(elapsed_ms(finished) < LIMIT_MS, "{finished}");
    let summary = &entries(&log, "final_summary_finished")[0];
    assert_eq!(summary["text"], "so far", "there is time left for the final summary");
}

#[test]
fn a_stop_hook_that_ignores_sigterm_is_ended_within_the_limit() {
    let command = "trap '' TERM; while :; do sleep 1; done";
    let hook =
        format!("[[stop_hooks]]\nname = \"tests\"\ncommand = \"{command}\"\n[budget]\nwall_time = \"20s\"\n");
    let scene = Scene::scripted("answers: [{ text: done }]").with_settings(&hook).trusted();
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    let log = log(&scene);
    let over = entries(&log, "paused").into_iter().map(elapsed_ms).max();
    assert!(over.expect("it is suspended") < LIMIT_MS, "{log:?}");
}

/// Ignores every request to end.
const DEAF: &str = "trap '' TERM HUP INT QUIT; while :; do sleep 1; done";

/// When the run was suspended, by its own time.
fn suspended_ms(scene: &Scene) -> u64 {
    let log = log(scene);
    entries(&log, "paused")
        .into_iter()
        .map(elapsed_ms)
        .max()
        .unwrap_or_else(|| panic!("it isn't suspended: {log:?}"))
}

#[test]
fn a_hook_that_ignores_sigterm_is_ended_within_the_limit() {
    let hook = format!(
        "[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"{DEAF}\"\ntimeout_secs = 4\n[budget]\nwall_time = \"4s\"\n"
    );
    let script = "answers: [{ tools: [{ shell: { command: 'true' } }] }, { text: done }]";
    let scene = Scene::scripted(script).with_settings(&hook).trusted();
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    // Without the limit it had half a second more from 3.6 s on.
    assert!(suspended_ms(&scene) < 4_000, "{ran:?}");
}

#[test]
fn an_external_agent_that_ignores_sigterm_is_ended_within_the_limit() {
    let scene = Scene::new();
    let ran = scene.provost(&["exec", "--unattended", "--wall-time", "8s", "--", "sh", "-c", DEAF]);
    assert_eq!(ran.status, 3, "{ran:?}");
    assert!(suspended_ms(&scene) < 8_000, "{ran:?}");
}

/// Without the limit its program would have 2 seconds to end.
#[test]
fn a_program_at_the_terminal_tool_that_ignores_its_end_is_ended_within_the_limit() {
    let script = format!(
        "answers: [{{ tools: [{{ terminal: {{ action: start, command: \"{DEAF}\", wait_ms: 50 }} }}] }}, {{ tools: [{{ terminal: {{ action: stop }} }}] }}, {{ text: done }}]"
    );
    let scene = Scene::scripted(&script);
    let ran = scene.provost(&["run", "x", "--wall-time", "2s"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    assert_eq!(ran.stderr.matches("ok: terminal").count(), 2, "{ran:?}");
}

/// The log of a run with a tool call, if the wall clock is set by this much before the tool's result.
fn with_the_wall_clock_set(log: &str, by_ms: i64) -> String {
    let mut is_set = false;
    let lines = log.lines().map(|line| {
        let mut entry = json(line);
        is_set |= entry["type"] == "tool_finished";
        if is_set && entry["type"] != "end" {
            let at = entry["at_ms"].as_u64().expect("every record has it");
            entry["at_ms"] = at.saturating_add_signed(by_ms).into();
        }
        entry.as_object_mut().expect("a record").remove("chain");
        format!("{entry}\n")
    });
    sealed(&lines.collect::<String>())
}

#[test]
fn a_wall_clock_that_was_set_changes_no_time_that_is_shown() {
    let scene = Scene::scripted("answers: [{ tools: [{ shell: { command: sleep 0.2 } }] }, { text: done }]");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let unset = scene.provost(&["export", "last"]).stdout;
    let worked = |scene: &Scene| {
        json(&scene.provost(&["show", "last", "--global", "--json"]).stdout)["active_ms"].clone()
    };
    let expected = worked(&scene);
    assert!(expected.as_u64() >= Some(200), "{expected}");
    for by_ms in [-3_600_000, 3_600_000] {
        let there = Scene::new();
        there.write("work/set.jsonl", &with_the_wall_clock_set(&unset, by_ms));
        assert_eq!(there.provost(&["import", "set.jsonl"]).status, 0);
        assert_eq!(worked(&there), expected, "set by {by_ms} ms");
        for command in [
            &["show", "last", "--global"][..],
            &["cost", "last", "--global"],
            &["explain", "last", "--global"],
            &["ps", "--all"],
        ] {
            let shown = there.provost(command);
            assert_eq!((shown.status, shown.stderr.as_str()), (0, ""), "{command:?} {shown:?}");
        }
        let seqs = |scene: &Scene| log(scene).iter().map(|entry| entry["seq"].clone()).collect::<Vec<_>>();
        let kinds = |scene: &Scene| log(scene).iter().map(|entry| entry["type"].clone()).collect::<Vec<_>>();
        assert_eq!((seqs(&there), kinds(&there)), (seqs(&scene), kinds(&scene)), "the order is the numbers'");
    }
}
