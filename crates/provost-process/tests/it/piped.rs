//! Children with a line protocol.

use std::time::Duration;

use provost_event::Exit;
use provost_process::{Confinement, Launch, OpenPipes};
use provost_process::{PipeClosed, Piped, PipedChild, PipedCommand, PipedEnding, SpawnError};
use tokio_util::sync::CancellationToken;

use crate::support::{Shell, path, until};

const FAR: Duration = Duration::from_secs(30);
const PATIENT: PipedEnding = PipedEnding { own: FAR, grace: FAR };

fn command(shell: &Shell, script: &str) -> PipedCommand {
    let (name, value) = shell.marker.split_once('=').unwrap();
    PipedCommand {
        launch: Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PATH".into(), path()), (name.into(), value.into())],
            cwd: shell.path().to_owned(),
            stdio: OpenPipes,
            confinement: Confinement::Strongest,
        },
        line_bytes_max: 100,
        stderr_bytes_max: 40,
    }
}

async fn spawn(shell: &Shell, script: &str) -> PipedChild {
    PipedChild::spawn(command(shell, script)).await.unwrap()
}

fn line(text: &str) -> Piped {
    Piped::Line(text.to_owned())
}

#[tokio::test]
async fn lines_go_in_and_come_out_until_the_input_is_closed() {
    let shell = Shell::new();
    let mut child = spawn(&shell, "while read -r line; do echo \"<$line>\"; done; printf end; exit 3").await;
    assert_eq!(shell.numbers(), [child.pid()]);
    child.send("one").await.unwrap();
    assert_eq!(child.next().await, line("<one>"));
    child.send("two").await.unwrap();
    assert_eq!(child.next().await, line("<two>"));
    child.close_input();
    assert_eq!(child.send("three").await, Err(PipeClosed));
    assert_eq!(child.next().await, line("end"), "what has no end of its own is a line too");
    assert_eq!(child.next().await, Piped::Ended(Exit::Code(3)));
    assert_eq!(child.next().await, Piped::Ended(Exit::Code(3)));
    assert_eq!(child.end(PATIENT, &CancellationToken::new()).await, Exit::Code(3));
    shell.assert_nothing_left();
}

#[tokio::test]
async fn of_a_line_beyond_the_limit_its_length_and_beginning_are_told_and_the_next_is_whole() {
    let shell = Shell::new();
    let script = "head -c 100 /dev/zero | tr '\\0' a; echo; head -c 300000 /dev/zero | tr '\\0' b; echo; printf 'c\\r\\n\\n\\377\\n'";
    let mut child = spawn(&shell, script).await;
    assert_eq!(child.next().await, line(&"a".repeat(100)));
    assert_eq!(child.next().await, Piped::TooLong { bytes: 300_000, begin: "b".repeat(100) });
    assert_eq!(child.next().await, line("c"));
    assert_eq!(child.next().await, line(""));
    assert_eq!(child.next().await, line("\u{fffd}"));
    assert_eq!(child.next().await, Piped::Ended(Exit::Code(0)));
}

#[tokio::test]
async fn asking_for_the_next_line_and_dropping_that_loses_nothing() {
    let shell = Shell::new();
    let mut child = spawn(&shell, "printf ha; read -r go; printf 'lf\\n'; read -r go").await;
    let mut waited = 0;
    while waited < 20 {
        let early = tokio::time::timeout(Duration::from_millis(1), child.next()).await;
        assert!(early.is_err(), "{early:?}");
        waited += 1;
    }
    child.send("").await.unwrap();
    assert_eq!(child.next().await, line("half"));
}

#[tokio::test]
async fn the_end_of_standard_error_is_kept_from_the_beginning_of_a_line() {
    let shell = Shell::new();
    let mut child = spawn(&shell, "seq 1 1000 >&2; echo last >&2; echo done").await;
    assert_eq!(child.next().await, line("done"));
    until("all of it was read", || child.stderr().ends_with("last\n")).await;
    let kept = child.stderr();
    assert!(kept.len() <= 40 && kept.starts_with("99") && kept.contains("\n1000\n"), "{kept:?}");
}

#[tokio::test]
async fn one_that_ignores_its_closed_input_and_the_request_to_end_is_killed_with_all_it_started() {
    let shell = Shell::new();
    let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; touch apart; sleep 1000' & touch ready; while :; do sleep 1000; done";
    let mut child = spawn(&shell, script).await;
    shell.until_file("apart").await;
    shell.until_file("ready").await;
    let soon = PipedEnding { own: Duration::from_millis(20), grace: Duration::from_millis(50) };
    assert_eq!(child.end(soon, &CancellationToken::new()).await, Exit::Signal(9));
    shell.assert_nothing_left();
}

#[tokio::test]
async fn a_cancelled_end_waits_for_nothing() {
    let shell = Shell::new();
    let mut child = spawn(&shell, "trap '' TERM; touch ready; while :; do sleep 1000; done").await;
    shell.until_file("ready").await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(child.end(PATIENT, &cancel).await, Exit::Signal(9));
    shell.assert_nothing_left();
}

#[tokio::test]
async fn the_end_is_told_while_something_it_started_holds_its_output_open() {
    let shell = Shell::new();
    let mut child = spawn(&shell, "echo said; setsid sleep 1000 & exit 4").await;
    assert_eq!(child.next().await, line("said"));
    assert_eq!(child.next().await, Piped::Ended(Exit::Code(4)));
    assert_eq!(child.end(PATIENT, &CancellationToken::new()).await, Exit::Code(4));
    shell.assert_nothing_left();
}

#[tokio::test]
async fn one_that_writes_unasked_and_reads_nothing_can_be_ended() {
    let shell = Shell::new();
    let mut child = spawn(&shell, "touch ready; while :; do seq 1 100000; done").await;
    shell.until_file("ready").await;
    // More than its pipe takes; it never reads.
    for _ in 0..10 {
        child.send(&"x".repeat(50_000)).await.unwrap();
    }
    let soon = PipedEnding { own: Duration::from_millis(20), grace: FAR };
    assert_eq!(child.end(soon, &CancellationToken::new()).await, Exit::Signal(15));
    shell.assert_nothing_left();
}

#[tokio::test]
async fn dropping_it_leaves_nothing() {
    let shell = Shell::new();
    let child = spawn(&shell, "setsid sleep 1000 & touch ready; sleep 1000").await;
    shell.until_file("ready").await;
    drop(child);
    shell.until_nothing_left().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let shell = Shell::new();
    let mut command = command(&shell, "");
    command.launch.program = "no-such-program".into();
    let error = PipedChild::spawn(command).await.err().unwrap();
    assert!(matches!(error, SpawnError::ProgramNotFound { .. }), "{error}");
    shell.assert_nothing_left();
}
