//! `provost profile`: profiles, and the detector over recordings.

use std::fs;

use crate::support::{Scene, json};

/// A prompt that is painted, answered, and the end.
const RAW: &str = concat!(
    "{\"t\": 0.1, \"d\": \"o\", \"b64\": \"Q29udGludWU/IFt5L05dIA==\"}\n",
    "{\"t\": 2.0, \"d\": \"i\", \"b64\": \"eQ0=\", \"src\": \"user\"}\n",
    "{\"t\": 2.1, \"d\": \"o\", \"b64\": \"eQ0KZG9uZQ0K\"}\n",
);
const ABOUT: &str = r#"{"argv": ["installer"], "rows": 24, "cols": 80, "t_exit": 2.5, "exit_status": 0, "events": [
    {"kind": "approval_request", "t": 0.1, "t_end": 2.0, "accept": ["approval_request"]},
    {"kind": "completion", "t": 2.5, "accept": ["completion"]}]}"#;

fn recorded() -> Scene {
    let scene = Scene::new();
    scene.write("tapes/one.raw.jsonl", RAW);
    scene.write("tapes/one.json", ABOUT);
    scene
}

#[test]
fn profiles_are_listed_and_shown_and_ones_own_come_first() {
    let scene = Scene::new();
    let listed = scene.provost(&["profile", "list"]).stdout;
    for name in [
        "codex",
        "claude",
        "gemini",
        "qwen",
        "opencode",
        "aider",
        "pi",
        "copilot",
        "cline",
        "vibe",
        "openhands",
        "generic",
    ] {
        assert!(listed.contains(name), "{name}: {listed}");
    }
    let codex = listed.lines().find(|line| line.starts_with("codex")).expect("a line");
    assert!(codex.contains("version 4, checked with 0.171.0"), "{codex}");
    let shown = scene.provost(&["profile", "show", "codex"]);
    assert_eq!(shown.status, 0, "{shown:?}");
    scene.write("home/.config/provost/profiles/codex.toml", &shown.stdout);
    let listed = scene.provost(&["profile", "list", "--json"]).stdout;
    let own = listed.lines().map(json).find(|profile| profile["name"] == "codex").unwrap();
    assert!(own["from"].as_str().unwrap().ends_with("profiles/codex.toml"), "{listed}");
    assert_eq!(listed.lines().filter(|line| line.contains("\"codex\"")).count(), 1, "{listed}");
}

#[test]
fn a_profile_that_is_none_is_told_with_file_and_line() {
    let scene = Scene::new();
    scene.write(
        "home/.config/provost/profiles/mine.toml",
        "name = \"mine\"\nkind = \"agent\"\ncolour = \"red\"\n",
    );
    for args in [&["profile", "list"][..], &["check"], &["exec", "--unattended", "--", "true"]] {
        let done = scene.provost(args);
        assert_eq!(done.status, 2, "{args:?}: {done:?}");
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(told.contains("profiles/mine.toml"), "{args:?}: {told}");
        assert!(told.contains("colour"), "{args:?}: {told}");
    }
    let scene = Scene::new();
    let shown = scene.provost(&["profile", "show", "codx"]);
    assert_eq!(shown.status, 2);
    assert!(shown.stderr.contains("did you mean `codex`?"), "{shown:?}");
}

#[test]
fn recordings_are_scored_and_predictions_written() {
    let scene = recorded();
    let tapes = scene.path("tapes").display().to_string();
    let tested = scene.provost(&["profile", "test", "--predictions", "out", &tapes]);
    assert_eq!(tested.status, 0, "{tested:?}");
    for part in ["1 recording\n", "approval_request", "needs_human", "completion"] {
        assert!(tested.stdout.contains(part), "{part}: {}", tested.stdout);
    }
    let written = fs::read_to_string(scene.path("work/out/one.jsonl")).unwrap();
    let kinds =
        written.lines().map(|line| json(line)["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert!(kinds.contains(&"approval_request".to_owned()), "{written}");
    let first = json(written.lines().next().unwrap());
    assert!(first["t"].is_number() && first.as_object().unwrap().len() == 2, "{written}");
    let scored =
        json(&scene.provost(&["profile", "test", "generic", &tapes, "--json", "--without-signals"]).stdout);
    let row = scored["kinds"].as_array().unwrap().iter().find(|row| row["kind"] == "needs_human").unwrap();
    assert_eq!((row["hits"].as_u64(), row["false_alarms"].as_u64()), (Some(1), Some(0)), "{scored}");
}

#[test]
fn recordings_without_labels_give_predictions_alone() {
    let scene = Scene::new();
    scene.write("work/bare.raw.jsonl", RAW);
    let tested = scene.provost(&["profile", "test", "--predictions", "out", "bare.raw.jsonl"]);
    assert_eq!(tested.status, 0, "{tested:?}");
    assert!(tested.stdout.contains("none with labels"), "{tested:?}");
    assert!(scene.path("work/out/bare.jsonl").is_file());
    let here = scene.provost(&["profile", "test"]);
    assert_eq!(here.status, 0, "the current folder: {here:?}");
}

#[test]
fn what_cant_be_tested_is_told() {
    let scene = Scene::new();
    scene.write("work/bad.raw.jsonl", "nonsense\n");
    scene.write("empty/x.txt", "");
    let empty = scene.path("empty").display().to_string();
    for (args, part) in [
        (&["profile", "test", "nothere"][..], "there is no profile `nothere`"),
        (&["profile", "test", "./nothere.raw.jsonl"], "there is no recording"),
        (&["profile", "test", "generic", "nothere"], "there is no recording nothere"),
        (&["profile", "test", "bad.raw.jsonl"], "line 1"),
        (&["profile", "test", &empty], "there are no recordings in"),
        (&["profile", "test", "nothere.toml"], "can't be read"),
    ] {
        let done = scene.provost(args);
        assert_eq!(done.status, 2, "{args:?}: {done:?}");
        assert!(done.stderr.contains(part), "{args:?}: {part}: {done:?}");
    }
}

/// Records a session of a program that asks for a name and a password, with these answers to what its screens were.
fn record(scene: &Scene, answers: &[&str]) -> crate::terminal::AtTerminal {
    let script = "printf 'Name: '; read name; stty -echo; printf 'Password: '; read secret; stty echo; echo; \
                  echo key ghp_0123456789abcdefghijABCDEFGHIJ012345; exit 3";
    scene.write("work/asks.sh", script);
    let args = ["profile", "record", "--folder", "tapes", "--name", "asks", "--", "sh", "asks.sh"];
    let mut person = crate::terminal::AtTerminal::provost(scene, &args);
    person.sees("Name:");
    let settle = || std::time::Instant::now();
    let shown = settle();
    // A screen counts as a moment once it has stood still for half a second.
    while shown.elapsed() < std::time::Duration::from_millis(800) {
        person.listen();
    }
    person.types("ann\r");
    person.sees("Password:");
    let shown = settle();
    while shown.elapsed() < std::time::Duration::from_millis(800) {
        person.listen();
    }
    person.types("hunter22\r");
    for (number, answer) in answers.iter().enumerate() {
        person.hears(&format!("--- {} of 2", number + 1));
        person.hears("what is it?");
        person.types(&format!("{answer}\r"));
    }
    person
}

#[test]
fn a_program_is_recorded_with_labels_and_without_secrets_and_scores_a_profile() {
    let scene = Scene::new();
    let mut person = record(&scene, &["w", ""]);
    person.hears("2 labels, of which 2 need a person");
    assert_eq!(person.end(), provost_event::Exit::Code(0));
    for ending in ["raw.jsonl", "proc.jsonl", "json", "cast"] {
        let text = fs::read_to_string(scene.path(&format!("work/tapes/asks.{ending}"))).expect(ending);
        assert!(!text.contains("hunter22") && !text.contains("ghp_0123"), "{ending}: {text}");
    }
    let raw = fs::read_to_string(scene.path("work/tapes/asks.raw.jsonl")).unwrap();
    assert!(!raw.contains("aHVudGVyMjI"), "the password in base64: {raw}");
    let kernel = fs::read_to_string(scene.path("work/tapes/asks.proc.jsonl")).unwrap();
    assert!(kernel.contains("\"echo\":false") && kernel.contains("\"tty_read\":true"), "{kernel}");
    let about = json(&fs::read_to_string(scene.path("work/tapes/asks.json")).unwrap());
    let kinds = about["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["waiting_for_input", "password_prompt", "completion"]);
    assert_eq!((about["exit_status"].as_i64(), about["argv"][1].as_str()), (Some(3), Some("asks.sh")));
    let tested = scene.provost(&["profile", "test", "tapes"]);
    assert_eq!(tested.status, 0, "{tested:?}");
    assert!(!tested.stdout.contains("missed") && !tested.stdout.contains("false alarm:"), "{tested:?}");
}

#[test]
fn what_a_recording_shows_is_asked_again() {
    let scene = Scene::new();
    let mut person = record(&scene, &["q"]);
    person.hears("0 labels");
    person.end();
    let mut person = crate::terminal::AtTerminal::provost(&scene, &["profile", "mark", "tapes/asks"]);
    person.hears("--- 1 of 2");
    person.types("x\r");
    person.hears("several letters for several");
    person.types("w\r");
    person.hears("--- 2 of 2");
    person.types("p\r");
    person.hears("2 labels");
    assert_eq!(person.end(), provost_event::Exit::Code(0));
    let without = scene.provost(&["profile", "mark", "tapes/asks"]);
    assert_eq!(without.status, 2, "{without:?}");
}
