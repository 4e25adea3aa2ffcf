//! How a child ends by itself, and how it is ended.

use std::time::Duration;

use provost_process::Ending;
use tokio_util::sync::CancellationToken;

use crate::support::{Shell, until, zombies};

const STUBBORN: &str = "trap '' TERM; touch ready; while :; do sleep 1000; done";

#[tokio::test]
async fn the_exit_code_is_told() {
    assert_eq!(Shell::new().script("exit 0").await.ending, Ending::Exited(0));
    assert_eq!(Shell::new().script("exit 77").await.ending, Ending::Exited(77));
}

#[tokio::test]
async fn a_signal_from_elsewhere_is_told() {
    assert_eq!(Shell::new().script("kill -USR1 $$").await.ending, Ending::Signalled(10));
    assert_eq!(Shell::new().script("kill -KILL $$").await.ending, Ending::Signalled(9));
}

#[tokio::test]
async fn the_timeout_ends_a_child_that_would_not_end() {
    let shell = Shell::new();
    let mut spec = shell.spec("sleep 1000");
    spec.timeout = Some(Duration::from_millis(100));
    let finished = shell.run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.ending, Ending::TimedOut);
    assert!(finished.duration >= Duration::from_millis(100));
    assert!(finished.duration < Duration::from_secs(5), "{:?}", finished.duration);
}

#[tokio::test]
async fn a_timeout_of_zero_ends_the_child_as_soon_as_it_runs() {
    let shell = Shell::new();
    let mut spec = shell.spec("sleep 1000");
    spec.timeout = Some(Duration::ZERO);
    assert_eq!(shell.run(spec, &CancellationToken::new()).await.ending, Ending::TimedOut);
}

#[tokio::test]
async fn a_timeout_too_long_for_any_clock_is_no_timeout() {
    let shell = Shell::new();
    let mut spec = shell.spec("exit 4");
    spec.timeout = Some(Duration::MAX);
    spec.grace = Duration::MAX;
    assert_eq!(shell.run(spec, &CancellationToken::new()).await.ending, Ending::Exited(4));
}

#[tokio::test]
async fn the_timeout_covers_input_that_is_not_read() {
    let shell = Shell::new();
    let mut spec = shell.spec("sleep 1000");
    spec.launch.stdio.input = vec![b'x'; 1 << 20];
    spec.timeout = Some(Duration::from_millis(100));
    assert_eq!(shell.run(spec, &CancellationToken::new()).await.ending, Ending::TimedOut);
}

#[tokio::test]
async fn cancelled_before_the_start_nothing_is_started() {
    let (shell, cancel) = (Shell::new(), CancellationToken::new());
    cancel.cancel();
    let mut spec = shell.spec("");
    spec.launch.program = "no-such-program".into();
    let finished = shell.run(spec, &cancel).await;
    assert_eq!(finished.ending, Ending::Cancelled);
    assert!(finished.stdout.is_empty());
}

#[tokio::test]
async fn cancelling_lets_the_child_clean_up_and_keeps_its_final_summary() {
    let shell = Shell::new();
    let (running, cancel) = shell
        .in_background(shell.spec("trap 'echo bye; exit 0' TERM; touch ready; while :; do sleep 0.01; done"));
    shell.until_file("ready").await;
    cancel.cancel();
    let finished = running.await.unwrap();
    shell.assert_nothing_left();
    assert_eq!(finished.ending, Ending::Cancelled);
    assert_eq!(finished.stdout.to_text_lossy(), "bye\n");
    assert!(finished.duration < Duration::from_secs(15), "grace was waited for: {:?}", finished.duration);
}

#[tokio::test]
async fn a_child_is_asked_once_only() {
    let shell = Shell::new();
    let mut spec = shell.spec("trap 'echo asked' TERM; touch ready; while :; do sleep 0.01; done");
    spec.grace = Duration::from_millis(300);
    let (running, cancel) = shell.in_background(spec);
    shell.until_file("ready").await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().stdout.to_text_lossy(), "asked\n");
    shell.assert_nothing_left();
}

#[tokio::test]
async fn a_child_and_forks_that_ignore_sigterm_are_killed_after_the_grace() {
    let shell = Shell::new();
    let mut spec = shell.spec(&format!("({STUBBORN}) & ({STUBBORN}) & {STUBBORN}"));
    spec.grace = Duration::from_millis(300);
    let (running, cancel) = shell.in_background(spec);
    until("three shells and three sleeps", || shell.processes().len() >= 6).await;
    let cancelled = std::time::Instant::now();
    cancel.cancel();
    let finished = running.await.unwrap();
    shell.assert_nothing_left();
    assert_eq!(finished.ending, Ending::Cancelled);
    assert!(cancelled.elapsed() >= Duration::from_millis(300), "{:?}", cancelled.elapsed());
    assert!(cancelled.elapsed() < Duration::from_millis(1300), "{:?}", cancelled.elapsed());
}

#[tokio::test]
async fn without_grace_a_stubborn_child_is_killed_at_once() {
    let shell = Shell::new();
    let mut spec = shell.spec(STUBBORN);
    spec.grace = Duration::ZERO;
    let (running, cancel) = shell.in_background(spec);
    shell.until_file("ready").await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().ending, Ending::Cancelled);
    shell.assert_nothing_left();
}

#[tokio::test]
async fn cancelling_during_the_grace_of_a_timeout_kills_at_once() {
    let shell = Shell::new();
    let mut spec = shell.spec("trap 'touch asked' TERM; touch ready; while :; do sleep 0.01; done");
    spec.timeout = Some(Duration::from_millis(200));
    let (running, cancel) = shell.in_background(spec);
    shell.until_file("asked").await;
    cancel.cancel();
    let finished = running.await.unwrap();
    shell.assert_nothing_left();
    assert_eq!(finished.ending, Ending::TimedOut);
    assert!(finished.duration < Duration::from_secs(15), "{:?}", finished.duration);
}

#[tokio::test]
async fn dropping_the_future_leaves_nothing() {
    let shell = Shell::new();
    let script = format!("setsid sh -c \"{STUBBORN}\" & (sleep 1000 &) ; trap '' TERM; sleep 1000");
    let (running, _cancel) = shell.in_background(shell.spec(&script));
    shell.until_file("ready").await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    shell.until_nothing_left().await;
    until("the guard is reaped", || zombies() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_do_not_mix_and_leave_no_zombies() {
    let shell = Shell::new();
    let running: Vec<_> = (0..50)
        .map(|code| {
            (code, shell.in_background(shell.spec(&format!("echo {code}; sleep 0.05 & exit {code}"))).0)
        })
        .collect();
    for (code, running) in running {
        let finished = running.await.unwrap();
        assert_eq!(finished.ending, Ending::Exited(code));
        assert_eq!(finished.stdout.to_text_lossy(), format!("{code}\n"));
    }
    shell.assert_nothing_left();
    until("all guards are reaped", || zombies() == 0).await;
}

#[tokio::test]
async fn a_grace_is_shortened_to_the_time_that_is_left() {
    let shell = Shell::new();
    let mut spec = shell.spec("trap '' TERM; echo ready; while :; do sleep 0.1; done");
    spec.timeout = Some(Duration::from_secs(1));
    spec.ends_within = Some(Duration::from_secs(2));
    spec.grace = Duration::from_secs(600);
    let (running, _cancel) = shell.in_background(spec);
    let finished = running.await.unwrap();
    assert_eq!(finished.ending, Ending::TimedOut);
    assert_eq!(finished.stdout.to_text_lossy(), "ready\n");
    assert!(finished.duration < Duration::from_secs(60), "{:?}", finished.duration);
    shell.assert_nothing_left();
}

#[tokio::test]
async fn a_bound_that_never_comes_is_none() {
    let shell = Shell::new();
    let mut spec = shell.spec("exit 3");
    spec.ends_within = Some(Duration::MAX);
    let (running, _cancel) = shell.in_background(spec);
    assert_eq!(running.await.unwrap().ending, Ending::Exited(3));
}
