//! Sudden death: of Provost, of the guard.

use std::process::Command;
use std::time::Duration;

use provost_process::Ending;
use tokio_util::sync::CancellationToken;

use crate::helper::start_helper;
use crate::support::{Shell, until};

const TANGLE: &str = "
trap '' TERM HUP INT
setsid sh -c 'trap \"\" TERM; setsid sleep 1000 & touch ready-1; sleep 1000' &
(setsid sh -c '(touch ready-2; exec sleep 1000 </dev/null >/dev/null 2>&1) &' &)
sleep 1000 &
until [ -e ready-1 ] && [ -e ready-2 ]; do sleep 0.01; done
touch ready
sleep 1000
";

#[tokio::test]
async fn killing_provost_with_kill_9_leaves_nothing() {
    let shell = Shell::new();
    let mut provost = start_helper(&shell, TANGLE, "");
    shell.until_file("ready").await;
    // Provost, its guard, three shells and their five sleeps, or almost: some are still about to start.
    assert!(shell.processes().len() >= 7, "{:#?}", shell.processes());
    provost.kill().unwrap();
    provost.wait().unwrap();
    shell.until_nothing_left().await;
}

#[tokio::test]
async fn a_guard_is_not_ended_by_what_ends_others() {
    let shell = Shell::new();
    let finished = shell.script("kill $PPID; kill -HUP $PPID; kill -INT $PPID; sleep 1000 & exit 3").await;
    assert_eq!(finished.ending, Ending::Exited(3));
}

#[tokio::test]
async fn a_stopped_guard_is_done_without() {
    let shell = Shell::new();
    let mut spec = shell.spec("(trap '' TERM; setsid sleep 1000 &) ; touch ready; sleep 1000");
    spec.grace = Duration::from_millis(100);
    let (running, cancel) = shell.in_background(spec);
    shell.until_file("ready").await;
    let guards = children_named("child-guard");
    assert!(!guards.is_empty());
    for guard in guards {
        Command::new("kill").args(["-STOP", &guard]).status().unwrap();
    }
    cancel.cancel();
    let finished = running.await.unwrap();
    shell.assert_nothing_left();
    assert_eq!(finished.ending, Ending::Cancelled);
    assert!(finished.is_all_ended);
    assert!(finished.duration < Duration::from_secs(10), "{:?}", finished.duration);
    until("the guard is reaped", || crate::support::zombies() == 0).await;
}

fn children_named(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children = lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let is_it = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    children.filter(is_it).collect()
}

#[tokio::test]
async fn a_guard_holds_two_descriptors_no_folder_and_not_the_name_of_its_caller() {
    let shell = Shell::new();
    let is = "$(cat /proc/$PPID/comm) $(ls /proc/$PPID/fd | wc -l) $(readlink /proc/$PPID/cwd)";
    let mut spec = shell.spec(&format!("until [ \"{is}\" = 'child-guard 2 /' ]; do sleep 0.01; done"));
    spec.timeout = Some(Duration::from_secs(10));
    assert_eq!(shell.run(spec, &CancellationToken::new()).await.ending, Ending::Exited(0));
}
