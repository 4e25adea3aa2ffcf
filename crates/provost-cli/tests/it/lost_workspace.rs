//! A workspace that goes away under a run suspends it before more is spent.

use std::fs;

use crate::support::{Done, Running, Scene, json, until};

/// A run in `work/sub`, whose agent waits in its first call until the test has removed that folder.
fn begun(rest: &str) -> (Scene, Running) {
    let scene = Scene::new();
    let waits = "touch ../started; until test -e ../go; do sleep 0.02; done";
    let answers = format!("answers:\n  - tools: [{{ shell: {{ command: \"{waits}\" }} }}]\n{rest}");
    scene.write("work/agent.yaml", &answers);
    scene.write("work/sub/provost.toml", "[agent]\nmodel = \"script:../agent.yaml\"\n");
    let mut command = scene.command(&["run", "x"]);
    command.current_dir(scene.path("work/sub"));
    let running = Scene::spawn(command);
    until("the agent works", || scene.path("work/started").exists().then_some(()));
    (scene, running)
}

const FILE_CALLS: &str = "  - tools: [{ read_file: { path: a } }]\n  - tools: [{ write_file: { path: a, content: b } }]\n  - text: done\n";

#[track_caller]
fn is_suspended(scene: &Scene, ran: &Done, turns: u64) {
    assert_eq!(ran.status, 4, "{ran:?}");
    let folder = scene.path("work").canonicalize().unwrap().join("sub");
    let gone = format!("the workspace {} is gone", folder.display());
    assert!(ran.stderr.contains(&gone), "{ran:?}");
    let command = format!("go on with: provost resume {}  (once the folder is back)", scene.last_run());
    assert!(ran.stderr.contains(&command), "{ran:?}");
    let listed = json(scene.provost(&["ps", "--json"]).stdout.trim());
    assert_eq!(listed["turns"], turns, "nothing more is spent: {listed}");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(
        log.contains(&format!("The workspace `{}` is gone", folder.display())),
        "the model is told: {log}"
    );
}

#[test]
fn a_workspace_that_is_deleted_suspends_the_run_until_it_is_back() {
    let (scene, running) = begun(FILE_CALLS);
    fs::rename(scene.path("work/sub"), scene.path("work/aside")).unwrap();
    scene.write("work/go", "");
    is_suspended(&scene, &running.end(), 1);

    let refused = scene.provost(&["resume", "last"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("is gone: it was deleted, moved or unmounted"), "{refused:?}");
    assert!(refused.stderr.contains("hint: put the folder back, then `provost resume"), "{refused:?}");

    fs::rename(scene.path("work/aside"), scene.path("work/sub")).unwrap();
    scene.write("work/sub/a", "text");
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "done\n"), "{resumed:?}");
    assert_eq!(fs::read_to_string(scene.path("work/sub/a")).unwrap(), "b");
}

#[test]
fn a_workspace_that_is_deleted_between_two_calls_is_told_by_the_next_one() {
    let between = "  - tools: [{ shell: { command: \"cd .. && rm -r sub; true\" } }, { write_file: { path: a, content: b } }]\n";
    let (scene, running) = begun(&format!("{between}{FILE_CALLS}"));
    scene.write("work/go", "");
    is_suspended(&scene, &running.end(), 2);
    assert!(!scene.path("work/sub").exists(), "no tool makes it anew");
}
