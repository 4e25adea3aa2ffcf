//! Output that can't be written is reported, is no success, and never a panic; the run's outcome stays the same.

use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};

use crate::support::{Done, Scene, done, json};

const DONE: &str = "answers: [{ text: looking, tools: [list_dir] }, { text: done }]";
const FULL: &str = "error: can't write to standard output: No space left on device\n";
const CLOSED: &str = "error: can't write to standard output: it is closed\n";

fn full() -> Option<File> {
    OpenOptions::new().write(true).open("/dev/full").ok()
}

/// The result of a command with these redirections of the shell.
fn in_shell(scene: &Scene, args: &str, streams: &str) -> Done {
    let like = scene.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("'{}' {args} {streams}", env!("CARGO_BIN_EXE_provost"))]);
    shell.current_dir(like.get_current_dir().unwrap()).stdin(Stdio::null()).env_clear();
    shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    done(&shell.output().unwrap())
}

fn outcome(scene: &Scene) -> String {
    let last = scene.provost(&["ps", "--json", "-n", "1"]).stdout;
    json(last.trim())["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_full_standard_output_fails_and_the_run_is_as_it_was() {
    let Some(full) = full() else { return };
    for args in [&["run", "x"][..], &["run", "x", "--json"], &["run", "x", "-q"]] {
        let scene = Scene::scripted(DONE);
        let ran = done(&scene.command(args).stdout(full.try_clone().unwrap()).output().unwrap());
        assert_eq!(ran.status, 1, "{args:?}: {ran:?}");
        assert_eq!(ran.stderr.matches(FULL).count(), 1, "{args:?}: {}", ran.stderr);
        assert_eq!(outcome(&scene), "completed", "{args:?}");
        let run = scene.last_run();
        let hint = match args.contains(&"--json") {
            true => format!("hint: the run goes on; all of it: provost logs {run} --json\n"),
            false => format!("hint: the run isn't touched by that; its text is in: provost show {run}\n"),
        };
        assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    }
}

#[test]
fn every_command_says_that_its_output_is_lost() {
    let Some(full) = full() else { return };
    let scene = Scene::scripted(DONE);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let mut all = vec!["ps", "ps --json", "show last", "show last --json", "logs last", "logs last --json"];
    all.extend([
        "explain last",
        "export last",
        "cost",
        "approvals",
        "check",
        "--help",
        "--version",
        "models",
        "man",
    ]);
    for line in all {
        let args = line.split(' ').collect::<Vec<_>>();
        let ran = done(&scene.command(&args).stdout(full.try_clone().unwrap()).output().unwrap());
        assert_eq!((ran.status, ran.stderr.as_str()), (1, FULL), "{line}");
        let ran = in_shell(&scene, line, ">&-");
        assert_eq!((ran.status, ran.stderr.as_str()), (1, CLOSED), "{line} >&-");
    }
}

/// An exit status other than 0 takes precedence over lost output.
#[test]
fn what_a_run_came_to_is_said_rather_than_that_its_output_is_lost() {
    let Some(full) = full() else { return };
    let scene = Scene::scripted(DONE);
    let args = ["run", "x", "--max-turns", "1"];
    let ran = done(&scene.command(&args).stdout(full).output().unwrap());
    assert_eq!(ran.status, 3, "{ran:?}");
}

#[test]
fn nothing_depends_on_standard_error() {
    for streams in ["2>&-", "2>/dev/full", "2</dev/null"] {
        let scene = Scene::scripted(DONE);
        for (args, status) in [
            ("run x", 0),
            ("run x --json", 0),
            ("run x --max-turns 1", 3),
            ("resume last --max-turns 3", 0),
            ("exec --unattended -- true", 0),
            ("ps", 0),
            ("show last", 0),
            ("logs last", 0),
            ("approvals", 0),
            ("check", 0),
            ("run", 2),
            ("show nothing", 2),
            ("malformed_response", 2),
        ] {
            let ran = in_shell(&scene, args, streams);
            assert_eq!((ran.status, ran.stderr.as_str()), (status, ""), "{args} {streams}: {ran:?}");
        }
        let ran = in_shell(&scene, "run x", &format!("{streams} >&-"));
        assert_eq!(ran.status, 1, "both, {streams}");
        assert_eq!(outcome(&scene), "completed");
    }
    let scene = Scene::scripted(DONE);
    let traced = in_shell(&scene, "run x", "2>/dev/full");
    assert_eq!(traced.status, 0);
    scene.write("work/flow.toml", "[flow]\nname = \"f\"\n[[flow.steps]]\nname = \"a\"\ngoal = \"do it\"\n");
    for streams in ["2>&-", "2>/dev/full"] {
        assert_eq!(in_shell(&scene, "flow run flow.toml", streams).status, 0, "flow run {streams}");
    }
    let mut traced = scene.command(&["run", "x"]);
    traced.env("PROVOST_LOG", "trace").stderr(full().unwrap());
    assert_eq!(done(&traced.output().unwrap()).status, 0, "traces");
}

/// A reader that closes early doesn't end the run, and no error is printed; but unread output is no success.
#[test]
fn a_reader_that_leaves_ends_nothing() {
    let scene = Scene::scripted(DONE);
    for args in ["run x --json", "run x"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let args = args.split(' ').collect::<Vec<_>>();
        let ran = done(&scene.command(&args).stdout(writer).output().unwrap());
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(ran.stderr.contains("error: can't write to standard output: Broken pipe\nhint: "), "{ran:?}");
        assert_eq!(outcome(&scene), "completed");
    }
    for args in [&["ps"][..], &["logs", "last"], &["export", "last"], &["show", "last"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = done(&scene.command(args).stdout(writer).output().unwrap());
        assert_eq!((ran.status, ran.stderr.as_str()), (1, ""), "{args:?}");
    }
}

#[test]
fn a_null_device_that_was_asked_for_is_no_loss() {
    let scene = Scene::scripted(DONE);
    for streams in [">/dev/null", "<>/dev/null 1>&0", ">/dev/null 2>&1"] {
        assert_eq!(in_shell(&scene, "run x", streams).status, 0, "{streams}");
    }
}
