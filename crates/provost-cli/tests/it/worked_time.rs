//! The time worked on a run: while it works, after its process was killed, and while it waits for a person.

use std::time::Instant;

use serde_json::Value;

use crate::control::{entries, log};
use crate::support::{Running, Scene, json, until};

const SLEEPS: &str = "answers: [{ tools: [{ shell: { command: sleep 600 } }] }, { text: done }]";
/// Far more than a run needs to start its first tool.
const LATER_MS: u64 = 3_500;
/// Worked time that a killed process may lose: notes are made every second.
const LOST_MS_MAX: u64 = 2_500;

fn shown(scene: &Scene) -> Value {
    json(&scene.provost(&["show", "last", "--json"]).stdout)
}

fn worked_ms(scene: &Scene) -> u64 {
    shown(scene)["active_ms"].as_u64().unwrap()
}

/// The time that the limit counts, as `explain` has it.
fn counted_ms(scene: &Scene) -> u64 {
    let explained = json(&scene.provost(&["explain", "last", "--json"]).stdout);
    let limits = explained["limits"].as_array().unwrap();
    let time = limits.iter().find(|limit| limit["name"] == "wall_time").unwrap();
    time["most"].as_u64().unwrap()
}

/// A run whose only tool call sleeps; it has worked for [`LATER_MS`] and written no entry since the call began.
fn sleeping(scene: &Scene) -> Running {
    let running = scene.start(&["run", "x", "--wall-time", "10m"]);
    until("the tool runs and time is shown as worked", || {
        let has_begun = !entries(&log(scene), "tool_started").is_empty();
        (has_begun && worked_ms(scene) >= LATER_MS).then_some(())
    });
    let last = log(scene).iter().filter_map(|entry| entry["elapsed_ms"].as_u64()).max();
    assert!(last < Some(LATER_MS), "the log has no entry of that time: {last:?}");
    running
}

#[test]
fn the_time_of_a_live_run_goes_on_while_a_tool_runs() {
    let scene = Scene::scripted(SLEEPS);
    let began = Instant::now();
    let running = sleeping(&scene);
    let counted = counted_ms(&scene);
    assert!(counted >= LATER_MS, "explain has {counted}");
    let agent = shown(&scene)["agents"][0]["worked_ms"].as_u64().unwrap();
    assert!(agent >= LATER_MS, "the agent has worked {agent} ms");
    let page = scene.provost(&["show", "last"]).stdout;
    let time = page.lines().find(|line| line.starts_with("time ")).unwrap();
    assert!(!time.contains("ms") && time.ends_with("s of 10m00s"), "{time}");
    let (worked, passed) = (worked_ms(&scene), began.elapsed().as_millis());
    assert!(u128::from(worked) <= passed, "{worked} ms worked in {passed}");
    drop(running);
}

#[test]
fn the_time_worked_before_a_kill_is_counted() {
    let scene = Scene::scripted(SLEEPS);
    let running = sleeping(&scene);
    let before = worked_ms(&scene);
    running.kill();
    let interrupted = shown(&scene);
    assert_eq!(interrupted["status"], "interrupted");
    let kept = interrupted["active_ms"].as_u64().unwrap();
    assert!(kept >= before, "{kept} of at least {before}");
    // No process holds it now, and no time passes.
    assert_eq!((worked_ms(&scene), counted_ms(&scene)), (kept, kept));
    let cancelled = scene.provost(&["cancel", "last"]);
    assert_eq!(cancelled.status, 0, "{cancelled:?}");
    let after = worked_ms(&scene);
    assert!((kept..kept + LOST_MS_MAX).contains(&after), "{after} after {kept}");
    let left = std::fs::read_dir(scene.path("state/locks")).unwrap().count();
    assert_eq!(left, 0, "a run that has ended leaves no note");
}
