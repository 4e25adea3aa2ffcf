//! A store that goes away under a run ends it; one that can't be written can still be read.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Done, Scene, json, until};

/// The agent waits for the file `go`, then continues.
const WAITS: &str = "answers:\n  - tools: [{ shell: { command: \"touch started; until test -e go; do sleep 0.02; done\" } }]\n  - tools: [{ shell: { command: touch more } }]\n  - text: done\n";

/// A run whose store is removed by `lose` while its agent works.
#[track_caller]
fn ran_while(scene: &Scene, args: &[&str], lose: impl FnOnce(&Path)) -> Done {
    let running = scene.start(args);
    until("the agent works", || scene.path("work/started").exists().then_some(()));
    lose(&scene.path("state"));
    scene.write("work/go", "");
    running.end()
}

#[track_caller]
fn is_failed(ran: &Done, said: &str, hint: &str) {
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("error: can't write to the log: "), "{ran:?}");
    assert!(ran.stderr.contains(said), "{said} isn't in {}", ran.stderr);
    assert!(ran.stderr.contains(hint), "{hint} isn't in {}", ran.stderr);
    assert!(!ran.stdout.contains("done"), "{ran:?}");
}

const HINT: &str = "put it back where it was, then `provost resume`; what was deleted is lost";

#[test]
fn a_store_that_is_deleted_ends_the_run() {
    for flags in
        [&["run", "x"][..], &["run", "x", "--json"], &["exec", "--unattended", "--", "sh", "wait.sh"]]
    {
        let scene = Scene::scripted(WAITS);
        scene.write("work/wait.sh", "touch started; until test -e go; do sleep 0.02; done; echo over");
        // Files may be made beside the store meanwhile.
        let ran = ran_while(&scene, flags, |state| {
            until("its folder is deleted", || {
                let _ = fs::remove_dir_all(state);
                (!state.exists()).then_some(())
            });
        });
        assert_eq!(ran.status, 1, "{flags:?}: {ran:?}");
        assert!(
            ran.stderr.contains("provost.db is gone: it was deleted, moved, or its file system unmounted")
        );
        assert!(ran.stderr.contains(HINT), "{ran:?}");
        assert!(!scene.path("work/more").exists(), "nothing is begun that isn't recorded");
    }
}

#[test]
fn a_store_that_is_moved_and_put_back_goes_on() {
    let scene = Scene::scripted(WAITS);
    let aside = scene.path("aside");
    let ran = ran_while(&scene, &["run", "x"], |state| fs::rename(state, &aside).unwrap());
    is_failed(&ran, "is gone", HINT);
    fs::rename(&aside, scene.path("state")).unwrap();
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
}

#[test]
fn another_store_in_its_place_or_a_log_without_its_file_is_no_store() {
    for files in
        [&["provost.db"][..], &["provost.db-wal"], &["provost.db", "provost.db-wal", "provost.db-shm"]]
    {
        let scene = Scene::scripted(WAITS);
        let ran = ran_while(&scene, &["run", "x"], |state| {
            files.iter().for_each(|file| fs::remove_file(state.join(file)).unwrap());
            if files.len() > 1 {
                assert_eq!(scene.provost(&["ps"]).status, 0, "makes a new one");
            }
        });
        let said = if files == ["provost.db"] { "is gone" } else { "is no longer what it was" };
        is_failed(&ran, said, HINT);
    }
}

/// A file system of its own for the state; `None` where this user may not have one.
struct Mounted<'a>(&'a Scene);

impl<'a> Mounted<'a> {
    fn new(scene: &'a Scene) -> Option<Self> {
        let is_mounted = mount(scene, &["-t", "tmpfs", "-o", "size=2m", "none"]);
        is_mounted.then_some(Self(scene))
    }

    fn read_only(&self) -> bool {
        mount(self.0, &["-o", "remount,ro"])
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path("state")).output());
    }
}

fn mount(scene: &Scene, args: &[&str]) -> bool {
    let done = Command::new("mount").args(args).arg(scene.path("state")).output();
    done.is_ok_and(|done| done.status.success())
}

#[test]
fn a_store_whose_disk_is_full_or_unmounted_ends_the_run() {
    let scene = Scene::scripted(WAITS);
    let Some(_mounted) = Mounted::new(&scene) else { return };
    let ran = ran_while(&scene, &["run", "x"], |state| {
        let mut fill = fs::File::create(state.join("fill")).unwrap();
        drop(std::io::copy(&mut std::io::repeat(0), &mut fill));
    });
    is_failed(&ran, "database or disk is full", "free some space, then `provost resume`");
    fs::remove_file(scene.path("state/fill")).unwrap();
    assert_eq!(scene.provost(&["resume", "last"]).status, 0);

    let scene = Scene::scripted(WAITS);
    let Some(_mounted) = Mounted::new(&scene) else { return };
    let ran = ran_while(&scene, &["run", "x"], |state| {
        assert!(Command::new("umount").arg("-l").arg(state).status().unwrap().success());
    });
    is_failed(&ran, "is gone", HINT);
}

/// Files may have a megabyte: `ulimit -f` counts blocks of 512 bytes.
fn with_small_files(scene: &Scene, args: &[&str]) -> Command {
    let provost = scene.command(args);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -f 2048; exec \"$0\" \"$@\""]).arg(provost.get_program()).args(args);
    command.current_dir(scene.path("work")).stdin(std::process::Stdio::null()).env_clear();
    command.envs(provost.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_store_that_reaches_the_limit_on_the_size_of_files_ends_the_run() {
    let noise = |number: usize| {
        let command = format!("head -c 50000 /dev/urandom | od -An -v -tx1; echo {number}");
        format!("  - tools: [{{ shell: {{ command: \"{command}\" }} }}]\n")
    };
    let script = format!("answers:\n{}  - text: done\n", (0..12).map(noise).collect::<String>());
    let scene = Scene::scripted(&script);
    let ran = Scene::spawn(with_small_files(&scene, &["run", "x"])).end();
    is_failed(&ran, "disk I/O error", "the limit on the size of files (`ulimit -f`), then `provost resume`");
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!(resumed.status, 0, "{resumed:?}");
}

#[test]
fn a_command_that_reaches_the_limit_on_the_size_of_files_is_ended_by_its_signal() {
    let writes = "answers:\n  - tools: [{ shell: { command: \"head -c 3000000 /dev/zero > big; echo it was $?\" } }]\n  - text: done\n";
    let scene = Scene::scripted(writes);
    let ran = Scene::spawn(with_small_files(&scene, &["run", "x"])).end();
    assert_eq!(ran.status, 0, "{ran:?}");
    let shown = scene.provost(&["logs", "last", "--json"]).stdout;
    // 128 and SIGXFSZ: a program that ignored the signal would have an error to report, with status 1.
    assert!(shown.contains("it was 153"), "{shown}");
}

#[test]
fn a_store_on_a_read_only_file_system_is_read() {
    let looks = [
        "ps",
        "ps --json",
        "show last",
        "show last --json",
        "logs last",
        "logs last -f",
        "cost",
        "explain last",
        "approvals",
        "export last",
        "goal show last",
    ];
    // Left by a run that was killed, and by one that ended.
    for is_killed in [false, true] {
        let scene = Scene::scripted(WAITS);
        let Some(mounted) = Mounted::new(&scene) else { return };
        if is_killed {
            let running = scene.start(&["run", "x"]);
            until("the agent works", || scene.path("work/started").exists().then_some(()));
            running.kill();
        } else {
            scene.write("work/go", "");
            assert_eq!(scene.provost(&["run", "x"]).status, 0);
        }
        until("nothing writes there any more", || mounted.read_only().then_some(()));
        for look in looks.iter().filter(|look| !(is_killed && look.ends_with("-f"))) {
            let looked = scene.provost(&look.split(' ').collect::<Vec<_>>());
            let status = if *look == "goal show last" { 2 } else { 0 };
            assert_eq!(looked.status, status, "{look}: {looked:?}");
        }
        let listed = json(scene.provost(&["ps", "--json"]).stdout.trim());
        assert_eq!(listed["status"], if is_killed { "interrupted" } else { "completed" });
        for act in ["run x", "resume last", "say last hi", "cancel last", "import -", "approve"] {
            let acted = scene.provost(&act.split(' ').collect::<Vec<_>>());
            assert_eq!(acted.status, 1, "{act}: {acted:?}");
            assert!(acted.stderr.contains("provost.db is on a read-only file system"), "{act}: {acted:?}");
            assert!(acted.stderr.contains("ps, show, logs, cost and export read it as it is"), "{acted:?}");
        }
    }
}
