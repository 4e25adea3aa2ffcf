//! Where Provost keeps only a part of an output, no part of a key is left at the cut.

use crate::exec::holding;
use crate::support::{Done, Scene, done};

const KEY: &str = "hx7Qm2Zt9Lw4Vb6Rk1Np8Yc3Df5Gj0As";
/// Characters of a key that may be left.
const PART_CHARS: usize = 8;

fn with_key(scene: &Scene, args: &[&str]) -> Done {
    done(&scene.command(args).env("ANTHROPIC_API_KEY", KEY).output().unwrap())
}

/// A command that prints the key, which is nowhere in one piece of more than 7 characters.
fn printing_key() -> String {
    let pieces = KEY.as_bytes().chunks(7).map(|piece| String::from_utf8(piece.to_vec()).unwrap());
    format!("printf '{}' {}", "%s".repeat(KEY.len().div_ceil(7)), pieces.collect::<Vec<_>>().join(" "))
}

fn filling(bytes: usize) -> String {
    format!("head -c {bytes} /dev/zero | tr '\\\\0' y")
}

/// No part of the key is in the state folder, nor in the output about the run.
#[track_caller]
fn check_gone(what: &str, scene: &Scene, ran: &Done) {
    let log = scene.provost(&["export", "last"]).stdout;
    let masked = holding(&scene.path("state"), "[secret]");
    assert!(!masked.is_empty(), "{what}: else this shows nothing: {ran:?}");
    for part in KEY.as_bytes().windows(PART_CHARS).map(|part| std::str::from_utf8(part).unwrap()) {
        assert_eq!(holding(&scene.path("state"), part), Vec::<String>::new(), "{what}: {part}");
        for printed in [&ran.stdout, &ran.stderr, &log] {
            assert!(!printed.contains(part), "{what}: {part}");
        }
    }
}

/// Shell commands that print the key so that each of the places where output is cut divides it.
fn cuts(kept: usize) -> Vec<(&'static str, String)> {
    let (key, half) = (printing_key(), kept / 2);
    let mut cuts = Vec::new();
    for (what, part) in [("eight", 8), ("half", 16), ("all but one", KEY.len() - 1)] {
        cuts.push((what, format!("{}; {key}; {}", filling(half - part), filling(kept))));
        cuts.push((what, format!("{}; {key}; {}", filling(kept), filling(half - part))));
    }
    cuts
}

#[test]
fn no_part_of_a_key_is_left_where_a_stop_hooks_output_is_cut() {
    let key = printing_key();
    let mut commands = vec![
        ("tail", 1, format!("{key}; {}", filling(4_096 - 8))),
        ("tail", 1, format!("{key}; {}", filling(4_096 - 31))),
        ("tail on standard error", 1, format!("({key}; {}) >&2", filling(4_096 - 20))),
        ("tail, broken", 127, format!("({key}; {}) >&2", filling(4_096 - 20))),
    ];
    commands.extend(cuts(64 * 1024).into_iter().map(|(what, command)| (what, 2, command)));
    for (what, status, command) in commands {
        let scene = Scene::scripted("answers: [{ text: done }, { text: done }, { text: done }]");
        let check = format!("[[stop_hooks]]\nname = \"check\"\ncommand = \"{command}; exit {status}\"\n");
        let scene = scene.with_settings(&check).trusted();
        let ran = with_key(&scene, &["run", "x"]);
        assert_ne!(ran.status, 0, "{what}: {ran:?}");
        check_gone(&format!("{what}: {command}"), &scene, &ran);
    }
}

#[test]
fn no_part_of_a_key_is_left_where_a_hooks_output_is_cut() {
    let mut commands: Vec<(&str, String)> = cuts(64 * 1024);
    commands.push((
        "the first line",
        format!("{}; {}; {}", filling(32 * 1024 - 16), printing_key(), filling(99_999)),
    ));
    for (what, command) in commands {
        for status in [1, 2] {
            let answers = "answers: [{ tools: [list_dir] }, { text: done }, { text: done }, { text: done }]";
            let hook = format!(
                "[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"({command}) >&2; exit {status}\"\n"
            );
            let scene = Scene::scripted(answers).with_settings(&hook).trusted();
            let ran = with_key(&scene, &["run", "x"]);
            // The beginning of a hook's output is in the log, and all of it in a file beside it.
            check_gone(&format!("{what}: {command}"), &scene, &ran);
        }
    }
}

#[test]
fn no_part_of_a_key_is_left_where_a_tool_cuts_what_it_gives() {
    let key = printing_key();
    for (what, part) in [("eight", 8), ("half", 16), ("all but one", KEY.len() - 1)] {
        let made = format!("({}; {key}; {}) > long", filling(2_000 - part), filling(9_999));
        let made = made.replace('\'', "''").replace("\\\\", "\\");
        let answers = format!(
            "answers: [{{ tools: [{{ shell: {{ command: '{made}' }} }}] }}, {{ tools: [{{ read_file: {{ path: long }} }}] }}, {{ text: done }}]"
        );
        let scene = Scene::scripted(&answers);
        let ran = with_key(&scene, &["run", "x"]);
        assert_eq!(ran.status, 0, "{what}: {ran:?}");
        check_gone(what, &scene, &ran);
    }
}
