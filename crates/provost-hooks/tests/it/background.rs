//! Hooks that the turn doesn't wait for.

use std::time::Duration;

use provost_event::{HookPolicy, HookSetup, HookWaiting};
use provost_harness::HookPrograms as _;

use crate::stage::{Stage, claude, shown};

fn background(event: &str, command: &str) -> HookPolicy {
    let setup = HookSetup { waiting: HookWaiting::Background, ..HookSetup::default() };
    HookPolicy { setup, ..claude(event, command) }
}

/// Waits until `is_so`, at most ten seconds.
async fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never is");
}

#[tokio::test]
async fn it_runs_beside_the_turn_and_its_denial_decides_nothing() {
    let stage = Stage::new();
    let logger = background("PostToolUse", "cat > logged; touch done; exit 2");
    assert_eq!(shown(&stage.ask(&logger).await), "continue");
    wait_until(|| stage.work().join("done").exists()).await;
    assert!(stage.file("logged").contains("PostToolUse"));
}

#[tokio::test]
async fn what_a_hook_leaves_behind_goes_on_with_its_output_and_ends_with_the_session() {
    let stage = Stage::new();
    let notifier = "(while ! test -e go; do sleep 0.05; done; echo told; touch notified; exec sleep 600) & echo no >&2; exit 2";
    assert_eq!(shown(&stage.ask(&claude("PreToolUse", notifier)).await), "deny: no");
    assert!(stage.left_running() > 0);
    std::fs::write(stage.work().join("go"), "").expect("written");
    wait_until(|| stage.work().join("notified").exists()).await;
    stage.hooks.session_over(Stage::root());
    wait_until(|| stage.left_running() == 0).await;
}

#[tokio::test]
async fn beyond_a_number_no_more_are_started_and_that_is_told_and_all_end_with_the_session() {
    let stage = Stage::new();
    let sleeper = background("PostToolUse", "exec sleep 600");
    for _ in 0..16 {
        assert_eq!(shown(&stage.ask(&sleeper).await), "continue");
    }
    let told = shown(&stage.ask(&sleeper).await);
    assert_eq!(told, "continue | note: it isn't run: 16 hooks run in the background");
    stage.hooks.session_over(Stage::root());
    wait_until(|| stage.left_running() == 0).await;
    assert_eq!(shown(&stage.ask(&background("PostToolUse", "exit 0")).await), "continue");
}
