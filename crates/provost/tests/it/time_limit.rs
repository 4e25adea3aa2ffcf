//! The time limit from outside: what a run's programs do when it is over, real processes and all.

use crate::control::{entries, log};
use crate::support::Scene;

/// Ignores the request to end, and so does what it starts.
const STUBBORN: &str = r#"
answers: [{ tools: [{ shell: { command: "trap '' TERM; while :; do sleep 1; done" } }] }, { text: done }]
last_words: { text: so far }
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
    let summary = &entries(&log, "wrapped_up")[0];
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
