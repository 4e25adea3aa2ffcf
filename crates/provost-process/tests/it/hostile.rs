//! Programs that attack their guard. Each is started by a helper that acts as Provost, as root and as an ordinary
//! user, with pipes and at a terminal; afterwards no process is left, and its reported end is true.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use provost_process::{ChildSpec, PtySupervisor, adopt_orphans, end_leftovers, keep_ledger, run};
use tokio_util::sync::CancellationToken;

use crate::pty::{command_in, options, quit};
use crate::support::{MARKER_NAME, Shell, is_root, path, spec_in, until};

const SCRIPT_NAME: &str = "PROVOST_PROCESS_HOSTILE_SCRIPT";
const WAY_NAME: &str = "PROVOST_PROCESS_HOSTILE_WAY";

/// The grace of each: the least, as all but a few ignore the request to end.
const GRACE: Duration = Duration::from_millis(1);

/// See the file's first lines.
const PROGRAMS: &str = include_str!("hostile_programs.txt");

fn hostile() -> Vec<(&'static str, String)> {
    let rows = PROGRAMS.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| line.split_once('\t').expect("a tab"));
    rows.map(|(what, script)| (what, script.replace('␤', "\n"))).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Root,
    Nobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Pipes,
    Terminal,
}

impl Way {
    /// Its entries in the ledger: one of the guard, and one of the terminal.
    const fn entries(self) -> usize {
        match self {
            Self::Pipes => 1,
            Self::Terminal => 2,
        }
    }
}

/// This test program again, acting as Provost.
fn start_provost(shell: &Shell, script: &str, user: User, way: Way) -> Child {
    fs::set_permissions(shell.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (name, value) = shell.marker.split_once('=').unwrap();
    let me = std::env::current_exe().unwrap();
    let mut command = match user {
        User::Root => Command::new(me),
        User::Nobody => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(me);
            command
        }
    };
    command
        .args(["hostile::provost", "--exact", "--ignored"])
        .env(name, value)
        .env(SCRIPT_NAME, script)
        .env(WAY_NAME, format!("{way:?}"))
        .current_dir(shell.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs the script for a moment, ends it, and writes to the file `said` whether it ended.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "only a helper of other tests"]
async fn provost() {
    let (Ok(marker), Ok(script)) = (std::env::var(MARKER_NAME), std::env::var(SCRIPT_NAME)) else { return };
    assert!(adopt_orphans());
    let folder = std::env::current_dir().unwrap();
    keep_ledger(folder.join("ledger"));
    let done_its_worst = until("it has done its worst", || folder.join("up").exists());
    let said = if std::env::var(WAY_NAME).is_ok_and(|way| way == "Pipes") {
        let env = vec![("PATH".into(), path()), (MARKER_NAME.into(), marker.into())];
        let spec = ChildSpec { grace: GRACE, ..spec_in(&folder, &script, env) };
        let cancel = CancellationToken::new();
        let mut running = std::pin::pin!(run(spec, &cancel));
        let finished = tokio::select! {
            finished = &mut running => finished,
            () = done_its_worst => {
                cancel.cancel();
                running.await
            }
        };
        finished.unwrap().is_all_ended
    } else {
        let command = command_in(&folder, &format!("{MARKER_NAME}={marker}"), &script);
        let mut options = options();
        (options.ledger, options.grace) = (Some(folder.join("ledger")), GRACE);
        let terminal = PtySupervisor::spawn(command, options).await.unwrap();
        tokio::select! {
            _ = terminal.gone() => {}
            () = done_its_worst => drop(terminal.end(quit(GRACE)).await),
        }
        terminal.is_all_ended()
    };
    fs::write("said", format!("{said}\n")).unwrap();
    // The test looks for leftovers while this process still exists.
    until("it was seen", || folder.join("seen").exists()).await;
}

/// Its processes beside `provost`: with the marker, or in the folder, which finds processes that have removed the
/// marker, or its children, which finds guards.
fn left(shell: &Shell, provost: u32) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let is_of_it = |folder: &Path| {
        let environ = fs::read(folder.join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == shell.marker.as_bytes())
            || fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd == shell.path())
            || fs::read_to_string(folder.join("stat")).is_ok_and(|stat| {
                let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
                fields.split_whitespace().nth(1) == Some(provost.to_string().as_str())
            })
    };
    let is_number =
        |folder: &Path| folder.file_name().is_some_and(|name| name.to_str().unwrap().parse::<u32>().is_ok());
    let found = all.map(|entry| entry.path()).filter(|folder| is_number(folder) && is_of_it(folder));
    let others = found.filter(|folder| !folder.ends_with(provost.to_string()));
    others.map(|folder| fs::read_to_string(folder.join("stat")).unwrap_or_default()).collect()
}

async fn check(user: User, way: Way) {
    for (what, script) in hostile() {
        let shell = Shell::new();
        let mut provost = start_provost(&shell, &script, user, way);
        let said = shell.line("said").await;
        assert_eq!(
            said,
            "true",
            "{what}, {user:?}, {way:?}: it says that something may be left: {:?}",
            left(&shell, provost.id())
        );
        assert_eq!(left(&shell, provost.id()), Vec::<String>::new(), "{what}, {user:?}, {way:?}");
        fs::write(shell.path().join("seen"), "").unwrap();
        assert!(provost.wait().unwrap().success(), "{what}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_root_runs() {
    if is_root() {
        check(User::Root, Way::Pipes).await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_root_runs_at_a_terminal() {
    if is_root() {
        check(User::Root, Way::Terminal).await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_an_ordinary_user_runs() {
    check(if is_root() { User::Nobody } else { User::Root }, Way::Pipes).await;
}

#[tokio::test]
async fn nothing_is_left_of_what_an_ordinary_user_runs_at_a_terminal() {
    check(if is_root() { User::Nobody } else { User::Root }, Way::Terminal).await;
}

#[tokio::test]
async fn a_guard_that_is_stopped_before_provost_is_killed_leaves_what_the_next_start_ends() {
    let user = if is_root() { User::Nobody } else { User::Root };
    for way in [Way::Pipes, Way::Terminal] {
        let shell = Shell::new();
        let script = "trap '' TERM HUP; setsid sleep 4243 & echo $PPID > guard; kill -STOP $PPID; touch stopped; sleep 4243";
        let mut provost = start_provost(&shell, script, user, way);
        shell.until_file("stopped").await;
        let is_noted = || {
            fs::read_dir(shell.path().join("ledger")).is_ok_and(|entries| {
                entries
                    .flatten()
                    .filter(|entry| entry.path().extension().is_some_and(|end| end == "terminal"))
                    .count()
                    >= way.entries()
            })
        };
        until("it is written down", is_noted).await;
        provost.kill().unwrap();
        provost.wait().unwrap();
        assert!(!left(&shell, provost.id()).is_empty(), "{way:?}: else this shows nothing");
        assert!(end_leftovers(&shell.path().join("ledger")).unwrap() > 0, "{way:?}");
        assert_eq!(left(&shell, provost.id()), Vec::<String>::new(), "{way:?}");
    }
}

#[tokio::test]
async fn as_root_nothing_outlives_provost_whatever_was_done_to_the_guard() {
    if !is_root() {
        return;
    }
    for way in [Way::Pipes, Way::Terminal] {
        let shell = Shell::new();
        let script = "trap '' TERM HUP; setsid sleep 4243 & kill -STOP $PPID; touch stopped; sleep 4243";
        let mut provost = start_provost(&shell, script, User::Root, way);
        shell.until_file("stopped").await;
        provost.kill().unwrap();
        provost.wait().unwrap();
        shell.until_nothing_left().await;
    }
}
