//! A terminal that is closed, and what is told of a program that no process drives any more.

use std::process::{Command, Stdio};

use crate::support::{Scene, gone, line_in, until};

const ARGS: [&str; 6] = ["exec", "--unattended", "--unmetered", "--", "sh", "-c"];
const WORKS: &str = "echo $$ > pid; while :; do sleep 0.2; done";

#[test]
fn a_closed_terminal_suspends_a_run_and_ends_its_program() {
    let scene = Scene::new();
    let running = scene.start(&[&ARGS[..], &[WORKS]].concat());
    let pid = line_in(&scene.path("work/pid"));
    // The kernel says it, and the shell says it again.
    running.signal("HUP");
    running.signal("HUP");
    let ran = running.end();
    assert_eq!(ran.status, 130, "{ran:?}");
    gone(&pid);
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("paused by SIGHUP"), "{shown}");
    assert!(shown.contains("state       exited"), "{shown}");
}

#[test]
fn a_run_that_was_started_to_outlive_its_terminal_does() {
    let scene = Scene::new();
    let script = "echo $$ > pid; until test -e go; do sleep 0.1; done; echo survived";
    let provost = scene.command(&[&ARGS[..], &[script]].concat());
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(provost.get_program())
        .args(provost.get_args());
    command.current_dir(scene.path("work")).stdin(Stdio::null()).env_clear();
    command.envs(provost.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let running = Scene::spawn(command);
    line_in(&scene.path("work/pid"));
    running.signal("HUP");
    scene.write("work/go", "");
    let ran = running.end();
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "survived\n"), "{ran:?}");
}

#[test]
fn nothing_is_told_of_a_program_that_no_process_drives() {
    let scene = Scene::new();
    let running = scene.start(&[&ARGS[..], &[WORKS]].concat());
    let pid = line_in(&scene.path("work/pid"));
    until("its process is told", || {
        scene.provost(&["show", "last"]).stdout.contains(", process ").then_some(())
    });
    running.kill();
    gone(&pid);
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("interrupted"), "{shown}");
    assert!(shown.contains("state       unknown") && !shown.contains(", process "), "{shown}");
}
