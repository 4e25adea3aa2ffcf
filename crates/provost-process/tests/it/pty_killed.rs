//! Sudden death of Provost while it supervises a terminal.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use provost_process::{PtyOptions, PtySupervisor, end_leftovers};

use crate::pty::{command_in, in_time, options, quit, start_with};
use crate::support::{MARKER_NAME, Shell, until};

const SCRIPT_NAME: &str = "PROVOST_PROCESS_PTY_SCRIPT";

const TANGLE: &str = "trap '' TERM HUP INT
    setsid sh -c 'trap \"\" TERM HUP; setsid sleep 1000 & touch ready-1; sleep 1000' &
    (setsid sh -c '(touch ready-2; exec sleep 1000 </dev/null >/dev/null 2>&1) &' &)
    sleep 1000 &
    until [ -e ready-1 ] && [ -e ready-2 ]; do sleep 0.01; done
    echo $$ > pid; echo $PPID > guard; touch ready; sleep 1000";

/// This test program again, acting as a Provost that supervises a terminal.
fn start_helper(shell: &Shell, script: &str) -> Child {
    let (name, value) = shell.marker.split_once('=').unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args(["pty_killed::helper", "--exact", "--ignored"])
        .env(name, value)
        .env(SCRIPT_NAME, script)
        .current_dir(shell.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn with_ledger(folder: &Path) -> PtyOptions {
    let mut options = options();
    options.ledger = Some(folder.join("ledger"));
    options
}

#[tokio::test]
#[ignore = "only a helper of other tests"]
async fn helper() {
    let (Ok(marker), Ok(script)) = (std::env::var(MARKER_NAME), std::env::var(SCRIPT_NAME)) else { return };
    let folder = std::env::current_dir().unwrap();
    let command = command_in(&folder, &format!("{MARKER_NAME}={marker}"), &script);
    let terminal = PtySupervisor::spawn(command, with_ledger(&folder)).await.unwrap();
    until("all is up", || folder.join("ready").exists()).await;
    // Processes that have left the session are listed when the kernel is sampled.
    terminal.sample().await.unwrap();
    std::fs::write(folder.join("sampled"), "").unwrap();
    terminal.wait().await;
}

#[tokio::test]
async fn killing_provost_with_kill_9_leaves_nothing() {
    let shell = Shell::new();
    let mut provost = start_helper(&shell, TANGLE);
    shell.until_file("sampled").await;
    assert!(shell.processes().len() >= 7, "{:#?}", shell.processes());
    provost.kill().unwrap();
    provost.wait().unwrap();
    shell.until_nothing_left().await;
}

#[tokio::test]
async fn what_is_left_when_provost_and_guard_are_killed_at_once_is_ended_later() {
    let shell = Shell::new();
    let ledger = shell.path().join("ledger");
    let mut provost = start_helper(&shell, TANGLE);
    shell.until_file("sampled").await;
    // It is alive: none of its processes is a leftover.
    assert_eq!(end_leftovers(&ledger).unwrap(), 0);
    assert!(shell.processes().len() >= 7, "{:#?}", shell.processes());
    let guard = guard_of(shell.number_here(&shell.line("pid").await));
    // Stopped first, so that it can't do its work in between.
    Command::new("kill").args(["-STOP", &guard]).status().unwrap();
    provost.kill().unwrap();
    provost.wait().unwrap();
    Command::new("kill").args(["-KILL", &guard]).status().unwrap();
    if provost_process::guards_are_out_of_reach() {
        // The kernel has ended all.
        return shell.until_nothing_left().await;
    }
    let pid = shell.line("pid").await;
    until("the program has died with its guard", || {
        !shell.processes().iter().any(|line| line.contains(&pid))
    })
    .await;
    assert!(!shell.processes().is_empty());
    assert!(end_leftovers(&ledger).unwrap() > 0);
    shell.assert_nothing_left();
    assert_eq!(std::fs::read_dir(&ledger).unwrap().count(), 0);
    assert_eq!(end_leftovers(&ledger).unwrap(), 0);
}

/// The process below the helper that is the program's ancestor.
fn guard_of(program: u32) -> String {
    let stat = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let parent =
        |pid: &str| stat(pid).rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().to_owned();
    let mut guard = parent(&program.to_string());
    while stat(&parent(&guard)).contains("(child-guard)") {
        guard = parent(&guard);
    }
    guard
}

#[tokio::test]
async fn entries_of_others_and_of_other_boots_end_no_process() {
    let shell = Shell::new();
    let ledger = shell.path().join("ledger");
    assert_eq!(end_leftovers(&ledger).unwrap(), 0);
    std::fs::create_dir(&ledger).unwrap();
    let terminal = start_with(&shell, "touch up; sleep 1000", options()).await;
    shell.until_file("up").await;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", terminal.pid())).unwrap();
    let started: u64 = stat.split(' ').nth(21).unwrap().parse().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let pid = terminal.pid();
    for (name, text) in [
        ("1", format!("another boot\n{pid} {started} {pid}\n")),
        ("2", format!("{boot}{pid} {} {pid}\n", started - 1)),
        ("3", format!("{boot}{pid} {} {pid}\n", started + 1)),
        ("4", format!("{boot}nonsense\n1 2\n")),
    ] {
        std::fs::write(ledger.join(name).with_extension("terminal"), text).unwrap();
    }
    assert_eq!(end_leftovers(&ledger).unwrap(), 0);
    assert!(terminal.is_running());
    std::fs::write(ledger.join("5.terminal"), format!("{boot}{pid} {started} {pid}\n")).unwrap();
    assert!(end_leftovers(&ledger).unwrap() > 0);
    in_time("the exit", terminal.gone()).await;
    shell.assert_nothing_left();
}

#[tokio::test]
async fn an_entry_goes_with_its_terminal() {
    let shell = Shell::new();
    let ledger = shell.path().join("ledger");
    let terminal = start_with(&shell, "echo ready; sleep 1000", with_ledger(shell.path())).await;
    assert_eq!(std::fs::read_dir(&ledger).unwrap().count(), 1);
    in_time("the end", terminal.end(quit(std::time::Duration::ZERO))).await;
    until("it is removed", || std::fs::read_dir(&ledger).unwrap().count() == 0).await;
}
