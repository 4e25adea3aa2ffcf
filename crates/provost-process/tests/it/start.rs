//! The initial state of a child, and the error when it can't be started.

use std::os::unix::fs::PermissionsExt;

use provost_process::{ChildSpec, Ending, SpawnError, run};
use tokio_util::sync::CancellationToken;

use crate::helper::start_helper;
use crate::support::{Shell, until, zombies};

async fn error_of(spec: ChildSpec) -> SpawnError {
    let error = run(spec, &CancellationToken::new()).await.unwrap_err();
    until("the guard is reaped", || zombies() == 0).await;
    error
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let mut spec = Shell::new().spec("");
    spec.launch.cwd = "/".into();
    spec.launch.program = "no-such-program".into();
    let error = error_of(spec).await;
    assert!(matches!(error, SpawnError::ProgramNotFound { .. }), "{error:?}");
    assert!(error.to_string().contains("\"no-such-program\""), "{error}");
    assert!(!error.may_be_retried());
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let shell = Shell::new();
    let file = shell.path().join("file");
    std::fs::write(&file, "").unwrap();
    for folder in [shell.path().join("nowhere"), file] {
        let mut spec = shell.spec("");
        spec.launch.cwd.clone_from(&folder);
        let error = error_of(spec).await;
        assert!(matches!(error, SpawnError::FolderNotFound { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("{folder:?}")), "{error}");
    }
}

#[tokio::test]
async fn other_failures_name_program_and_folder_and_keep_the_cause() {
    let shell = Shell::new();
    let file = shell.path().join("no-program");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut spec = shell.spec("");
    spec.launch.program = file.into();
    let error = error_of(spec).await;
    let SpawnError::Failed { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(!error.may_be_retried());

    let mut spec = shell.spec("");
    spec.launch.args = vec!["with a\0zero".into()];
    assert!(matches!(error_of(spec).await, SpawnError::Failed { .. }));
}

#[tokio::test]
async fn the_program_is_looked_up_in_the_path_it_is_given() {
    let shell = Shell::new();
    let file = shell.path().join("only-here");
    std::fs::write(&file, "#!/bin/sh\nexit 6\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = shell.spec("");
    spec.launch.program = "only-here".into();
    spec.launch.env = vec![("PATH".into(), shell.path().into())];
    assert_eq!(shell.run(spec, &CancellationToken::new()).await.ending, Ending::Exited(6));
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_nothing_else() {
    let shell = Shell::new();
    let mut spec = shell.spec("");
    spec.launch.program = "/usr/bin/env".into();
    spec.launch.args = vec!["-0".into()];
    spec.launch.env = vec![("ONE".into(), "1".into()), ("TWO".into(), "two\nlines".into())];
    let finished = shell.run(spec, &CancellationToken::new()).await;
    assert_eq!(finished.stdout.to_text_lossy(), "ONE=1\0TWO=two\nlines\0");
}

#[tokio::test]
async fn the_child_leads_a_session_without_a_terminal_in_its_folder() {
    let shell = Shell::new();
    let finished = shell.script("pwd -P; read -r pid _ _ _ group session tty _ < /proc/$$/stat; [ $$ = $pid ] && [ $$ = $group ] && [ $$ = $session ] && echo leads $tty").await;
    let folder = shell.path().canonicalize().unwrap();
    assert_eq!(finished.stdout.to_text_lossy(), format!("{}\nleads 0\n", folder.display()));
}

#[tokio::test]
async fn the_child_inherits_no_descriptors_and_no_ignored_signals() {
    let shell = Shell::new();
    let script = "ls -C /proc/$$/fd; exec grep -E '^Sig(Blk|Ign)' /proc/self/status";
    start_helper(&shell, script, "trap '' HUP TERM; exec 9</dev/null").wait().unwrap();
    let output = std::fs::read_to_string(shell.path().join("output")).unwrap();
    let (descriptors, signals) = output.split_once('\n').unwrap();
    assert_eq!(descriptors, "0  1  2");
    assert_eq!(signals.lines().count(), 2);
    for line in signals.lines() {
        let set = u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap();
        // Signals 32 and 33 belong to the C library, which doesn't let programs change them.
        assert_eq!(set & !(0b11 << 31), 0, "{line}");
    }
}
