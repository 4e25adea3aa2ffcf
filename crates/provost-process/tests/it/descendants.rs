//! Leftovers of a child. `Shell::run` checks that no process is left at the moment of the return.

use std::time::Duration;

use provost_process::Ending;
use tokio_util::sync::CancellationToken;

use crate::support::Shell;

/// Far below the limits: a call that waits for any of them fails.
const PROMPTLY: Duration = Duration::from_secs(10);

async fn check_left_behind(script: &str) {
    let shell = Shell::new();
    let finished = shell.script(&format!("{script}\necho done; exit 3")).await;
    assert_eq!(finished.ending, Ending::Exited(3));
    assert_eq!(finished.stdout.to_text_lossy(), "done\n");
    assert!(finished.duration < PROMPTLY, "{:?}", finished.duration);
}

#[tokio::test]
async fn a_fork_that_holds_the_output_open_is_ended() {
    check_left_behind("sleep 1000 &").await;
}

#[tokio::test]
async fn a_child_in_a_session_of_its_own_is_ended() {
    check_left_behind("setsid sh -c 'touch up; sleep 1000' & until [ -e up ]; do sleep 0.01; done").await;
}

#[tokio::test]
async fn a_daemon_forked_twice_is_ended() {
    let daemon = "setsid sh -c '(touch up; exec sleep 1000 </dev/null >/dev/null 2>&1) &'";
    check_left_behind(&format!("{daemon} & until [ -e up ]; do sleep 0.01; done")).await;
}

#[tokio::test]
async fn a_tree_of_sessions_is_ended() {
    let tree =
        "setsid sh -c 'setsid sh -c \"setsid sh -c \\\"touch up; sleep 1000\\\" & sleep 1000\" & sleep 1000'";
    check_left_behind(&format!("{tree} & until [ -e up ]; do sleep 0.01; done")).await;
}

#[tokio::test]
async fn three_hundred_leftovers_are_ended() {
    check_left_behind(
        "i=0; while [ $i -lt 100 ]; do sleep 1000 & setsid sleep 1000 & (sleep 1000 &); i=$((i+1)); done",
    )
    .await;
}

#[tokio::test]
async fn a_stopped_leftover_is_killed_after_the_grace() {
    let shell = Shell::new();
    let mut spec = shell.spec("sleep 1000 & kill -STOP $!; exit 3");
    spec.grace = Duration::from_millis(100);
    assert_eq!(shell.run(spec, &CancellationToken::new()).await.ending, Ending::Exited(3));
}

#[tokio::test]
async fn leftovers_that_ignore_sigterm_are_killed_after_the_grace() {
    let shell = Shell::new();
    let stubborn = "(trap '' TERM; touch up; while :; do sleep 1000; done) &";
    let mut spec = shell.spec(&format!("{stubborn} until [ -e up ]; do sleep 0.01; done; exit 3"));
    spec.grace = Duration::from_millis(200);
    let finished = shell.run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.ending, Ending::Exited(3));
    assert!(finished.duration >= Duration::from_millis(200), "{:?}", finished.duration);
}

#[tokio::test]
async fn what_a_leftover_writes_when_asked_to_end_is_kept() {
    let shell = Shell::new();
    let mut spec = shell.spec(
        "(trap 'head -c 500000 /dev/zero; exit' TERM; touch up; while :; do sleep 0.01; done) &
         until [ -e up ]; do sleep 0.01; done",
    );
    spec.keep_bytes_max = 1 << 20;
    let finished = shell.run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.ending, Ending::Exited(0));
    assert_eq!(finished.stdout.total_bytes(), 500_000);
}

#[tokio::test]
async fn cancelling_while_leftovers_have_their_grace_kills_them_at_once() {
    let shell = Shell::new();
    let stubborn = "(trap 'touch asked' TERM; touch up; while :; do sleep 0.01; done) &";
    let script = format!("{stubborn} until [ -e up ]; do sleep 0.01; done; exit 3");
    let (running, cancel) = shell.in_background(shell.spec(&script));
    // The grace begins with it.
    shell.until_file("asked").await;
    cancel.cancel();
    let finished = running.await.unwrap();
    shell.assert_nothing_left();
    assert!(matches!(finished.ending, Ending::Exited(3)), "{:?}", finished.ending);
    assert!(finished.duration < PROMPTLY, "{:?}", finished.duration);
}

#[tokio::test]
async fn cancelling_asks_a_session_below_the_child_to_end_too() {
    let shell = Shell::new();
    let daemon = "trap \"touch asked; exit\" TERM; touch ready; while :; do sleep 0.01; done";
    let (running, cancel) = shell.in_background(shell.spec(&format!("setsid sh -c '{daemon}' & wait")));
    shell.until_file("ready").await;
    cancel.cancel();
    let finished = running.await.unwrap();
    shell.assert_nothing_left();
    assert_eq!(finished.ending, Ending::Cancelled);
    assert!(shell.path().join("asked").exists());
    assert!(finished.duration < PROMPTLY, "{:?}", finished.duration);
}

#[tokio::test]
async fn processes_that_keep_forking_into_new_sessions_are_ended() {
    let shell = Shell::new();
    let mut spec = shell
        .spec("echo 'touch up; trap \"\" TERM; setsid sh runner & exit' > runner; sh runner; sleep 1000");
    spec.grace = Duration::ZERO;
    let (running, cancel) = shell.in_background(spec);
    shell.until_file("up").await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().ending, Ending::Cancelled);
    shell.assert_nothing_left();
}
