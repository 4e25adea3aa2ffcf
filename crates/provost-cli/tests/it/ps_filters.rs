//! Which runs are listed, and which one `last` is.

use crate::support::Scene;

fn two_folders() -> Scene {
    let scene = Scene::scripted("answers: [{ text: done }]");
    for folder in ["work/a", "work/b"] {
        std::fs::create_dir_all(scene.path(folder)).unwrap();
    }
    for folder in ["a", "b"] {
        let ran = scene.provost(&["run", folder, "-C", folder, "-m", "script:agent.yaml"]);
        assert_eq!(ran.status, 0, "{ran:?}");
    }
    scene
}

fn goals(scene: &Scene, folder: &str, args: &[&str]) -> Vec<String> {
    let mut command = scene.command(args);
    let listed = command.current_dir(scene.path(folder)).output().unwrap();
    let lines = String::from_utf8(listed.stdout).unwrap();
    let goal = |line: &str| crate::support::json(line)["goal"].as_str().unwrap().to_owned();
    lines.lines().map(goal).collect()
}

#[test]
fn runs_are_listed_by_folder_group_and_time() {
    let scene = two_folders();
    assert_eq!(goals(&scene, "work", &["ps", "--json"]), ["b", "a"]);
    assert_eq!(goals(&scene, "work/a", &["ps", "--json", "--here"]), ["a"]);
    assert_eq!(goals(&scene, "work", &["ps", "--json", "--here"]), ["b", "a"], "those below count");
    assert_eq!(goals(&scene, "work", &["ps", "--json", "--status", "finished,failed", "-n", "1"]), ["b"]);
    assert_eq!(goals(&scene, "work", &["ps", "--json", "--status", "needs-you"]), [""; 0]);
    assert_eq!(goals(&scene, "work", &["ps", "--json", "--since", "1h"]), ["b", "a"]);
    assert_eq!(goals(&scene, "work", &["ps", "--json", "--since", "0s"]), [""; 0]);
    assert!(scene.provost(&["ps", "--status", "stuck"]).stdout.starts_with("no such runs"));
    assert_eq!(scene.provost(&["ps", "--since", "soon"]).status, 2);
}

#[test]
fn last_is_the_newest_run_of_this_folder_and_with_global_of_all() {
    let scene = two_folders();
    assert_eq!(goals(&scene, "work/a", &["show", "last", "--json"]), ["a"]);
    assert_eq!(goals(&scene, "work/a", &["show", "last", "--json", "--global"]), ["b"]);
    assert_eq!(goals(&scene, "work", &["show", "last", "--json"]), ["b"], "the newest of those below");
    let elsewhere = scene.command(&["show", "last"]).current_dir(scene.path("home")).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(2), "{elsewhere:?}");
    let error = String::from_utf8_lossy(&elsewhere.stderr);
    assert!(error.contains("no run has worked in") && error.contains("--global"), "{error}");
}
