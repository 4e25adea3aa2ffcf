//! `provost resume`: which run, whether it may go on, and with which limits.

use crate::support::{Scene, line_in};

const TWO_TURNS: &str = "answers: [{ text: looking, tools: [list_dir] }, { text: done }]";

/// A scene with a run that rests because its turns are used up.
fn rested() -> (Scene, String) {
    let scene = Scene::scripted(TWO_TURNS);
    assert_eq!(scene.provost(&["run", "look", "--max-turns", "1"]).status, 3);
    let run = scene.last_run();
    (scene, run)
}

#[track_caller]
fn refused(scene: &Scene, args: &[&str], status: i32, words: &str) {
    let before = scene.provost(&["logs", "last", "--json"]).stdout;
    let resumed = scene.provost(&[&["resume"], args].concat());
    assert_eq!(resumed.status, status, "{resumed:?}");
    assert_eq!(scene.stable(&resumed.stderr), words);
    assert_eq!(scene.provost(&["logs", "last", "--json"]).stdout, before, "nothing has changed");
}

#[test]
fn a_run_is_found_by_its_id_by_a_beginning_and_as_the_last() {
    for word in ["last".to_owned(), rested().1] {
        let (scene, run) = rested();
        let word = if word == "last" { word } else { run[..8].to_owned() };
        let resumed = scene.provost(&["resume", &word, "--max-turns", "5"]);
        assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "done\n"), "{resumed:?}");
    }
}

#[test]
fn unknown_and_ambiguous_ids_are_told() {
    let scene = Scene::scripted(TWO_TURNS);
    let none = scene.provost(&["resume", "last"]);
    assert_eq!(none.status, 2);
    assert_eq!(none.stderr, "error: there are no runs yet\nhint: start one with `provost run`\n");
    // 33 runs, 32 letters: two begin with the same.
    for _ in 0..33 {
        scene.provost(&["run", "look", "--max-turns", "1", "--quiet"]);
    }
    refused(
        &scene,
        &["zzzz-zzzz"],
        2,
        "error: there is no run `zzzz-zzzz`\nhint: `provost ps --all` lists them\n",
    );
    refused(&scene, &[""], 2, "error: there is no run ``\nhint: `provost ps --all` lists them\n");
    let listed = scene.provost(&["ps", "--all"]).stdout;
    let mut firsts = listed.lines().skip(1).map(|line| line[..1].to_owned()).collect::<Vec<_>>();
    firsts.sort_unstable();
    let twice = firsts.windows(2).find(|pair| pair[0] == pair[1]).unwrap();
    let ambiguous = scene.provost(&["resume", &twice[0]]);
    assert_eq!(ambiguous.status, 2);
    assert!(ambiguous.stderr.contains(&format!("runs begin with `{}`:\n", twice[0])), "{}", ambiguous.stderr);
    assert!(ambiguous.stderr.ends_with("look\nhint: write more of the id\n"), "{}", ambiguous.stderr);
}

#[test]
fn a_run_that_has_ended_stays_so() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.provost(&["run", "look"]);
    let words = "error: run RUN has ended: completed, not verified\n\
                 hint: `provost show RUN` shows it; start another with `provost run`\n";
    refused(&scene, &["last"], 2, words);
}

#[test]
fn a_spent_budget_needs_more_of_the_same() {
    let (scene, _) = rested();
    let words = "error: run RUN needs more budget: Turn budget used up: 1 of 1\n\
                 hint: provost resume RUN --max-turns 2\n";
    refused(&scene, &["last"], 2, words);
    refused(&scene, &["last", "--tokens", "100000"], 2, words);
    let words = "error: --max-turns gives run RUN nothing more: it has used 1 turns\n\
                 hint: provost resume RUN --max-turns 2\n";
    refused(&scene, &["last", "--max-turns", "1"], 2, words);
    let words = "error: --max-turns: agent.max_turns: must be at least 1 (is 0); e.g. --max-turns 40\n";
    refused(&scene, &["last", "--max-turns", "0"], 2, words);
}

#[test]
fn the_command_that_is_proposed_works() {
    for flags in [["--max-turns", "1"], ["--tokens", "2000"]] {
        let scene = Scene::scripted(TWO_TURNS);
        let ran = scene.provost(&[&["run", "look"][..], &flags].concat());
        assert_eq!(ran.status, 3, "{ran:?}");
        let mut status = 3;
        let mut said = ran.stderr;
        for _ in 0..5 {
            let command =
                said.lines().last().unwrap().strip_prefix("go on with: provost ").unwrap().to_owned();
            let resumed = scene.provost(&command.split(' ').collect::<Vec<_>>());
            (status, said) = (resumed.status, resumed.stderr);
            if status == 0 {
                break;
            }
        }
        assert_eq!(status, 0, "{said}");
    }
}

#[test]
fn a_run_in_the_hands_of_another_process_stays_there() {
    let scene =
        Scene::scripted("answers: [{ tools: [{ shell: { command: 'echo $$ > child; sleep 600' } }] }]");
    let running = scene.start(&["run", "sleep"]);
    line_in(&scene.path("work/child"));
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!(resumed.status, 1, "{resumed:?}");
    let run = scene.last_run();
    let begin = format!("error: run {run} is being worked on by process {} since ", running.id());
    assert!(resumed.stderr.starts_with(&begin), "{}", resumed.stderr);
    let end = format!("hint: follow it with `provost logs {run} -f`, or stop that process\n");
    assert!(resumed.stderr.ends_with(&end), "{}", resumed.stderr);
    assert!(scene.provost(&["ps"]).stdout.contains("running"));
}

#[test]
fn limits_of_an_interrupted_run_cant_be_changed_silently() {
    let scene =
        Scene::scripted("answers: [{ tools: [{ shell: { command: 'echo $$ > child; sleep 600' } }] }]");
    let running = scene.start(&["run", "sleep"]);
    line_in(&scene.path("work/child"));
    running.kill();
    let words = "error: run RUN was interrupted and goes on with its own limits; --tokens can't change them\n\
                 hint: `provost resume RUN` goes on; at its next rest the limits can be changed\n";
    refused(&scene, &["last", "--tokens", "5000000"], 2, words);
}

#[test]
fn the_model_stays_the_one_of_the_start() {
    let (scene, _) = rested();
    scene.write("work/provost.toml", "[agent]\nmodel = \"nobody/else\"\n");
    let elsewhere =
        scene.command(&["resume", "last", "--max-turns", "5"]).current_dir(scene.path("home")).output();
    let elsewhere = elsewhere.unwrap();
    assert_eq!(elsewhere.status.code(), Some(0), "{}", String::from_utf8_lossy(&elsewhere.stderr));
}

#[test]
fn a_model_that_is_gone_is_told_before_anything_changes() {
    let (scene, _) = rested();
    std::fs::remove_file(scene.path("work/agent.yaml")).unwrap();
    let resumed = scene.provost(&["resume", "last", "--max-turns", "5"]);
    assert_eq!(resumed.status, 2, "{resumed:?}");
    assert!(resumed.stderr.starts_with("error: can't read the script "), "{}", resumed.stderr);
}
