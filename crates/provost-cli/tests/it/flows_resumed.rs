//! `resume --with-settings` of a workflow, whose file is read anew.

use std::fs;

use crate::support::{Done, Scene};

const SCRIPT: &str = r#"
answers: [{ text: "no agent was meant" }]
agents:
  - goal: write the notes
    answers: [{ text: The plan is to do it. }]
  - goal: build it
    answers: [{ text: It is built. }, { text: It is built again. }]
  - goal: ship it
    answers: [{ text: It is shipped. }]
"#;

const FLOW: &str = r#"
[flow]
name = "release"

[[flow.steps]]
name = "plan"
goal = "write the notes"
stop_hooks = [{ command = "true" }]

[[flow.steps]]
name = "build"
needs = ["plan"]
goal = "build it"
stop_hooks = [{ name = "compiles", command = "no-such-compiler" }]

[[flow.steps]]
name = "ship"
needs = ["build"]
goal = "ship it"
"#;

/// A workflow that has failed, since the check of its second step can't be run.
fn blocked() -> Scene {
    let scene = Scene::scripted(SCRIPT);
    scene.write("work/flow.toml", FLOW);
    trust(&scene);
    let done = scene.provost(&["flow", "run", "flow.toml"]);
    says(&done, 1, &["the check `compiles` is broken"]);
    scene
}

fn trust(scene: &Scene) {
    says(&scene.provost(&["trust", "--flow", "flow.toml", "--yes"]), 0, &[]);
}

#[track_caller]
fn says(done: &Done, status: i32, words: &[&str]) {
    assert_eq!(done.status, status, "{done:?}");
    for word in words {
        assert!(done.stderr.contains(word), "`{word}` isn't in {}", done.stderr);
    }
}

fn resume(scene: &Scene) -> Done {
    scene.provost(&["resume", "last", "--with-settings"])
}

#[test]
fn a_broken_check_of_a_step_is_replaced_by_that_of_the_workflows_file() {
    let scene = blocked();
    let file = scene.path("work/flow.toml").canonicalize().unwrap();
    let hint = format!(
        "--with-settings  (after the check `compiles` is repaired in {} or the settings)",
        file.display()
    );
    let shown = scene.provost(&["show", "last"]);
    assert!(shown.stdout.contains(&hint), "{shown:?}");
    // What has changed of a step that is done has no effect.
    let repaired = FLOW.replace("no-such-compiler", "touch compiled").replace("write the notes", "think");
    scene.write("work/flow.toml", &repaired);

    let before = scene.provost(&["logs", "last", "--json"]).stdout;
    let file = file.display();
    let command = format!("`provost trust --flow {file}`");
    says(&resume(&scene), 2, &["runs when step build wants to stop (stop hook compiles)", &command]);
    assert_eq!(scene.provost(&["logs", "last", "--json"]).stdout, before, "nothing has changed");
    assert!(!scene.path("work/compiled").exists());

    trust(&scene);
    let difference = "flow.steps.build.stop_hooks.compiles.command: no-such-compiler → touch compiled";
    let resumed = resume(&scene);
    says(&resumed, 0, &["the current settings bind the run from here on", difference]);
    assert!(!resumed.stderr.contains("write the notes → think"), "{resumed:?}");
    assert_eq!(resumed.stdout, "It is shipped.\n");
    assert!(scene.path("work/compiled").exists());
    for command in [&["show", "last"], &["logs", "last"], &["explain", "last"]] {
        let shown = scene.provost(command);
        assert!(shown.stdout.contains(difference), "{command:?}: {shown:?}");
    }
}

#[test]
fn what_a_started_workflow_can_not_change_is_refused_with_its_place() {
    let scene = blocked();
    let refused = |flow: &str, words: &[&str]| {
        scene.write("work/flow.toml", flow);
        says(&resume(&scene), 2, words);
    };
    refused(
        &FLOW.replace("name = \"ship\"", "name = \"send\""),
        &[
            "flow.toml:17:1: flow.steps.name: step `send` is new, and a run that was started keeps its steps; take it out",
            "flow.steps.name: step `ship` is missing, and a run that was started keeps its steps; put it back",
        ],
    );
    refused(
        &FLOW.replace("needs = [\"build\"]", "needs = [\"plan\"]"),
        &[
            "flow.toml:18:1: flow.steps.needs: step `ship` depends on other steps than when the run was started; have needs = [\"build\"], as at the start",
        ],
    );
    refused("[flow", &["flow.toml:1:6: not TOML"]);
    fs::remove_file(scene.path("work/flow.toml")).unwrap();
    says(
        &resume(&scene),
        2,
        &["can't read the workflow in", "No such file", "back, or leave out --with-settings"],
    );
}

#[test]
fn what_a_waiting_step_is_to_do_may_change() {
    let scene = blocked();
    let flow = FLOW.replace("no-such-compiler", "true").replace("\"ship it\"", "\"ship it well\"\nretry = 2");
    scene.write("work/flow.toml", &flow);
    scene.write("work/agent.yaml", &SCRIPT.replace("goal: ship it", "goal: ship it well"));
    trust(&scene);
    let resumed = resume(&scene);
    says(
        &resumed,
        0,
        &["flow.steps.ship.goal: ship it → ship it well", "flow.steps.ship.attempts_max: 1 → 3"],
    );
    assert_eq!(resumed.stdout, "It is shipped.\n");
}

#[test]
fn what_a_suspended_agent_of_a_step_was_begun_with_can_not_change() {
    let scene = Scene::scripted(SCRIPT);
    scene.write("work/flow.toml", FLOW);
    trust(&scene);
    says(&scene.provost(&["flow", "run", "flow.toml", "--max-turns", "1"]), 3, &[]);
    scene.write("work/flow.toml", &FLOW.replace("build it", "build all"));
    says(
        &scene.provost(&["resume", "last", "--with-settings", "--max-turns", "9"]),
        2,
        &[
            "flow.toml:13:1: flow.steps.goal: step `build` has begun, and its goal can't change any more; take the change back",
        ],
    );
    scene.write("work/flow.toml", &FLOW.replace("no-such-compiler", "true"));
    trust(&scene);
    says(&scene.provost(&["resume", "last", "--with-settings", "--max-turns", "9"]), 0, &[]);
}
