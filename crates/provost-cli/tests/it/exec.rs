//! `provost exec --unattended`: external agents, from outside.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Done, Scene, gone, json, line_in, until};

const KEY: &str = "sk-test-0123456789abcdef0123456789abcdef";

impl Scene {
    fn exec(&self, args: &[&str]) -> Done {
        self.provost(&[&["exec", "--unattended"], args].concat())
    }
}

/// A program that asks for consent to create a file.
fn asker(scene: &Scene) -> String {
    scene.write(
        "asker.sh",
        "#!/bin/sh\nprintf 'Make the file? [y/N] '\nread answer\n\
         if [ \"$answer\" = y ]; then echo made > made; echo I made it; else echo I made nothing; fi\n",
    );
    let path = scene.path("asker.sh");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[track_caller]
fn question(scene: &Scene) -> Value {
    until("it asks", || {
        let listed = scene.provost(&["approvals", "--json"]);
        listed.stdout.lines().next().map(json)
    })
}

/// Every file below `folder` that holds `text`.
pub(crate) fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.windows(text.len()).any(|part| part == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_programs_final_summary_are_the_runs_and_show_tells_of_the_program() {
    let scene = Scene::new();
    let ran = scene.exec(&["--", "sh", "-c", "echo hello"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "hello\n"), "{ran:?}");
    assert!(ran.stderr.contains("external/sh"), "{ran:?}");
    let shown = scene.provost(&["show", "last"]).stdout;
    for part in [
        "goal        sh -c 'echo hello'",
        "program     sh -c echo hello, at a terminal, profile generic",
        "state       exited (exit status 0)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = json(&scene.provost(&["show", "last", "--json"]).stdout);
    let recording = shown["program"]["recording"].as_str().unwrap();
    assert!(Path::new(recording).is_file(), "{recording}");
    let explained = scene.provost(&["explain", "last"]).stdout;
    assert!(explained.contains("noted at the terminal"), "{explained}");
    assert!(explained.contains("exit: exit status 0"), "{explained}");
    assert_eq!(json(scene.provost(&["ps", "--json"]).stdout.trim())["model"], "external/sh");
    let cost = scene.provost(&["cost", "last"]);
    assert_eq!(cost.status, 0, "{cost:?}");
}

#[test]
fn a_program_that_fails_fails_its_run() {
    let scene = Scene::new();
    let ran = scene.exec(&["--", "sh", "-c", "echo oh no; exit 3"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("exit status 3"), "{ran:?}");
}

#[test]
fn what_cant_be_run_is_told_with_what_would_be_right() {
    let scene = Scene::new();
    for (args, part) in [
        (&["exec", "--unattended"][..], "<PROGRAM>"),
        (&["exec", "--unattended", "--", "no-such-program"], "there is no program `no-such-program`"),
        (&["exec", "--unattended", "--", "./no-such"], "there is no program `./no-such`"),
        (&["exec", "--unattended", "--", ""], "there is no program to run"),
        (&["exec", "--unattended", "--profile", "codx", "--", "sh"], "did you mean `codex`?"),
        (
            &["exec", "--unattended", "--size", "0x80", "--", "sh"],
            "--size: exec.size: must be rows and columns",
        ),
        (
            &["exec", "--unattended", "--idle-time", "5", "--", "sh"],
            "--idle-time: exec.idle_time: must be a time",
        ),
        (&["exec", "--unattended", "--prompt", " ", "--", "sh"], "the prompt is empty"),
        (&["exec", "--unattended", "--channel", "structured", "--", "sh"], "names no structured stream"),
        (&["exec", "--unattended", "--usd", "1", "--", "sh"], "--allow-unpriced"),
        (&["exec", "--", "sh"], "--unattended"),
        (&["exec", "--json", "--", "sh"], "--json prints to standard output"),
    ] {
        let ran = scene.provost(args);
        assert_eq!(ran.status, 2, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(part), "{args:?}: {part}: {ran:?}");
    }
    assert!(scene.provost(&["ps", "--json"]).stdout.is_empty(), "nothing was begun");
}

#[test]
fn a_programs_question_waits_for_approval_and_the_answer_is_typed() {
    let scene = Scene::new();
    let asker = asker(&scene);
    let running = scene.start(&["exec", "--unattended", "--", &asker]);
    let asked = question(&scene);
    assert_eq!(asked["tool"], "consent", "{asked}");
    assert!(asked.to_string().contains("Make the file? [y/N]"), "{asked}");
    assert_eq!(asked["program"], asker.as_str(), "{asked}");
    assert!(!asked["options"].as_array().unwrap().is_empty(), "{asked}");
    assert!(!scene.path("work/made").exists());
    let approved = scene.provost(&["approve"]);
    assert_eq!(approved.status, 0, "{approved:?}");
    let ran = running.end();
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stdout.contains("I made it"), "{ran:?}");
    assert!(scene.path("work/made").exists());
}

#[test]
fn a_refused_question_is_answered_with_no() {
    let scene = Scene::new();
    let asker = asker(&scene);
    let running = scene.start(&["exec", "--unattended", "--", &asker]);
    question(&scene);
    assert_eq!(scene.provost(&["deny", "", "not now"]).status, 2);
    let run = scene.last_run();
    assert_eq!(scene.provost(&["deny", &run, "not", "now"]).status, 0);
    let ran = running.end();
    assert!(ran.stdout.contains("I made nothing"), "{ran:?}");
    assert!(!scene.path("work/made").exists());
}

#[test]
fn what_couldnt_be_read_is_asked_whatever_is_allowed() {
    let scene = Scene::new();
    scene.write(
        "home/.config/provost/config.toml",
        "[permissions]\nallow = [\"consent\"]\ndefault = \"allow\"\n",
    );
    let asker = asker(&scene);
    let running = scene.start(&["exec", "--unattended", "--", &asker]);
    question(&scene);
    assert_eq!(scene.provost(&["approve"]).status, 0);
    assert_eq!(running.end().status, 0);
}

#[test]
fn a_prompt_is_typed_once_the_program_reads() {
    let scene = Scene::new();
    let script = "printf 'name: '; read name; echo \"hello $name\"";
    let ran = scene.exec(&["--prompt", "world", "--", "sh", "-c", script]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stdout.contains("hello world"), "{ran:?}");
}

#[test]
fn an_idle_program_is_suspended_after_the_idle_time() {
    let scene = Scene::new();
    let ran = scene.exec(&["--idle-time", "1s", "--", "sh", "-c", "printf 'name: '; read name"]);
    assert_eq!(ran.status, 4, "{ran:?}");
    assert!(ran.stderr.contains("provost resume"), "{ran:?}");
}

#[test]
fn a_key_reaches_a_program_only_by_name_and_no_file_of_the_state() {
    let scene = Scene::new();
    let run = |args: &[&str]| {
        let script = "printf '%s\\n' \"${OPENAI_API_KEY:-none}\" > got; cat got";
        let args = [&["exec", "--unattended"], args, &["--", "sh", "-c", script]].concat();
        let output = scene.command(&args).env("OPENAI_API_KEY", KEY).output().unwrap();
        (crate::support::done(&output), line_in(&scene.path("work/got")))
    };
    let (ran, got) = run(&[]);
    assert_eq!((ran.status, got.as_str()), (0, "none"), "{ran:?}");
    scene.write("home/.config/provost/config.toml", "[exec]\nenv = [\"OPENAI_API_KEY\"]\n");
    let (ran, got) = run(&[]);
    assert_eq!((ran.status, got.as_str()), (0, KEY), "{ran:?}");
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:?}");
    assert_eq!(holding(&scene.path("state"), KEY), Vec::<String>::new());
}

#[test]
fn a_projects_file_that_names_programs_or_variables_needs_trust() {
    for file in [
        "[exec]\nenv = [\"OPENAI_API_KEY\"]\n",
        "[[agents]]\nkind = \"external\"\nname = \"x\"\ndescription = \"y\"\nprogram = \"sh\"\n",
    ] {
        let scene = Scene::new();
        scene.write("work/provost.toml", file);
        let ran = scene.exec(&["--", "true"]);
        assert_eq!(ran.status, 2, "{ran:?}");
        assert!(ran.stderr.contains("provost trust"), "{ran:?}");
        assert_eq!(scene.provost(&["trust", "--yes"]).status, 0);
        assert_eq!(scene.exec(&["--", "true"]).status, 0);
    }
}

#[test]
fn an_agent_that_is_a_program_works_for_a_native_one() {
    let scene = Scene::scripted(
        "answers:\n  - tools: [{ greeter: { goal: \"say hello\" } }]\n  - text: done\n",
    )
    .with_settings(
        "[[agents]]\nkind = \"external\"\nname = \"greeter\"\ndescription = \"Greets.\"\nprogram = \"sh\"\n\
         args = [\"-c\", \"printf 'task: '; read task; echo did $task > did; echo did it\"]\n",
    )
    .trusted();
    let ran = scene.provost(&["run", "greet"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(line_in(&scene.path("work/did")).contains("say hello"), "{ran:?}");
    let checked = scene.provost(&["check"]).stdout;
    assert!(checked.contains("agent greeter"), "{checked}");
    assert!(checked.contains("runs sh -c"), "{checked}");
}

#[test]
fn ctrl_c_rests_a_run_and_nothing_of_the_program_is_left() {
    let scene = Scene::new();
    let script = "echo $$ > pid; (setsid sleep 300 & echo $! > daemon); printf 'name: '; read name";
    let running = scene.start(&["exec", "--unattended", "--", "sh", "-c", script]);
    let (pid, daemon) = (line_in(&scene.path("work/pid")), line_in(&scene.path("work/daemon")));
    running.signal("INT");
    let ran = running.end();
    assert_eq!(ran.status, 130, "{ran:?}");
    gone(&pid);
    gone(&daemon);
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains("state       exited"), "{shown}");
}

#[test]
fn nothing_is_recorded_unasked() {
    let scene = Scene::new();
    let ran = scene.exec(&["--no-record", "--", "sh", "-c", "echo hi"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!scene.provost(&["show", "last"]).stdout.contains("recording"));
    let replayed = scene.provost(&["replay", "last"]);
    assert_eq!(replayed.status, 2, "{replayed:?}");
    assert!(replayed.stderr.contains("nothing was recorded"), "{replayed:?}");
}

#[test]
fn a_run_of_a_program_goes_into_a_file_and_comes_back() {
    let scene = Scene::new();
    assert_eq!(scene.exec(&["--", "sh", "-c", "echo hi"]).status, 0);
    assert_eq!(scene.provost(&["export", "last", "-o", "run.jsonl"]).status, 0);
    let other = Scene::new();
    let file = scene.path("work/run.jsonl").display().to_string();
    let imported = other.provost(&["import", &file]);
    assert_eq!(imported.status, 0, "{imported:?}");
    assert!(other.provost(&["show", "last", "--global"]).stdout.contains("at a terminal"));
}

#[test]
fn a_rule_for_one_file_lets_a_program_remove_that_file_and_none_whose_name_imitates_it() {
    let scene = Scene::new();
    let rules = "[permissions]\nallow = [\"edit_file(ok.txt)\"]\ndeny = [\"consent\"]\n";
    scene.write("home/.config/provost/config.toml", rules);
    for name in ["ok.txt' important data", "ok.txt", "ok.txt\" x", "ok.txt\nimportant"] {
        scene.write(&format!("work/{name}"), "");
    }
    for name in ["ok.txt' important data", "ok.txt\" x", "ok.txt\nimportant"] {
        let ran = scene.exec(&["--", "rm", "-i", name]);
        assert!(scene.path("work").join(name).exists(), "{name}: {ran:?}");
    }
    let ran = scene.exec(&["--", "rm", "-i", "ok.txt"]);
    assert!(!scene.path("work/ok.txt").exists(), "{ran:?}");
}
