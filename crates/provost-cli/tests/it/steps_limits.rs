//! A workflow whose step was ended by its own limit: the suggested command is typed as it is, and goes on.

use crate::support::{Done, Scene};

const SCRIPT: &str = "answers: [{ text: no agent has this goal }]\nagents:\n  - goal: plan it\n    answers: [{ text: planned }]\n  - goal: build it\n    answers: [{ tools: [list_dir] }, { tools: [{ shell: { command: SLOW } }] }, { tools: [list_dir] }, { text: built }]\n";

/// The workflow whose step `build` has this limit, as it ended.
fn ended(limit: &str, more: &str) -> (Scene, Done) {
    let scene = Scene::scripted(&SCRIPT.replace("SLOW", "true")).with_settings(more);
    let flow = format!(
        "[flow]\nname = \"f\"\n[[flow.steps]]\nname = \"plan\"\ngoal = \"plan it\"\n[[flow.steps]]\nname = \"build\"\nneeds = [\"plan\"]\ngoal = \"build it\"\n{limit}\n"
    );
    scene.write("work/flow.toml", &flow);
    let done = scene.provost(&["flow", "run", "flow.toml"]);
    (scene, done)
}

/// The command that is suggested last.
#[track_caller]
fn suggested(done: &Done) -> Vec<String> {
    let line = done.stderr.lines().rev().find_map(|line| line.strip_prefix("go on with: provost "));
    let line = line.unwrap_or_else(|| panic!("{done:?}"));
    let command = line.split_once("  (").map_or(line, |(command, _)| command);
    command.split(' ').map(str::to_owned).collect()
}

/// Types what is suggested until the run is completed: at most so often.
#[track_caller]
fn completes_as_suggested(scene: &Scene, mut done: Done, times_max: usize) -> Done {
    for _ in 0..times_max {
        let command = suggested(&done);
        done = scene.provost(&command.iter().map(String::as_str).collect::<Vec<_>>());
        if done.status == 0 {
            assert_eq!(done.stdout, "built\n", "{done:?}");
            return done;
        }
    }
    panic!("{done:?}");
}

#[test]
fn its_limit_of_tokens_is_raised_by_the_suggested_command() {
    let (scene, done) = ended("budget.tokens = 7000", "");
    assert_eq!(done.status, 1, "{done:?}");
    assert!(done.stderr.contains("`build`: Token budget of the agent"), "{done:?}");
    let command = suggested(&done);
    assert_eq!((command[0].as_str(), command[2].as_str()), ("resume", "--tokens"), "{command:?}");
    let resumed = completes_as_suggested(&scene, done, 3);
    assert!(resumed.stderr.contains("flow.steps.build.budget.tokens: "), "{resumed:?}");
    let whole = scene.provost(&["show", "last", "--json"]).stdout;
    assert!(!whole.contains("\"budget\":{\"tokens\":0"), "{whole}");
    let explained = scene.provost(&["explain", "last"]);
    assert!(!explained.stdout.contains("the current settings"), "{explained:?}");
}

#[test]
fn what_is_added_counts_for_the_limit_of_the_run_too() {
    let (scene, done) = ended("budget.tokens = 7000", "[budget]\ntokens = 12000\n");
    completes_as_suggested(&scene, done, 4);
}

#[test]
fn the_limit_of_turns_of_its_agent_is_raised_too() {
    let (scene, done) = ended("", "max_turns = 2\n");
    assert_eq!(done.status, 1, "{done:?}");
    let command = suggested(&done);
    assert_eq!(command[2], "--max-turns", "{command:?}");
    completes_as_suggested(&scene, done, 3);
}

#[test]
fn a_step_that_asks_or_is_skipped_over_gets_its_limit_too() {
    for (on_failure, status) in [("ask", 4), ("skip", 1)] {
        let (scene, done) = ended(&format!("budget.tokens = 7000\non_failure = \"{on_failure}\""), "");
        assert_eq!(done.status, status, "{done:?}");
        completes_as_suggested(&scene, done, 3);
    }
}
