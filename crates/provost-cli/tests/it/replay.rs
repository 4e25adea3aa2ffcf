//! `provost replay`: plays a program's recording.

use crate::support::Scene;

#[test]
fn what_a_program_showed_is_played_by_run_and_by_file() {
    let scene = Scene::new();
    let script = "echo one; sleep 0.3; printf 'tw\\303\\266\\n'";
    let ran = scene.provost(&["exec", "--unattended", "--", "sh", "-c", script]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let played = scene.provost(&["replay", "last", "--speed", "100"]);
    assert_eq!((played.status, played.stdout.as_str()), (0, "one\r\ntwö\r\n"), "{played:?}");
    let shown = crate::support::json(&scene.provost(&["show", "last", "--json"]).stdout);
    let file = shown["program"]["recording"].as_str().unwrap();
    let played = scene.provost(&["replay", file, "--max-idle", "10ms"]);
    assert_eq!((played.status, played.stdout.as_str()), (0, "one\r\ntwö\r\n"), "{played:?}");
    let agent = scene.provost(&["replay", "last.0", "--speed", "9"]);
    assert_eq!(agent.status, 0, "{agent:?}");
}

#[test]
fn what_cant_be_played_is_told() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    scene.write("work/bad.cast", "{\"version\": 3}\n");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    for (args, status, part) in [
        (&["replay", "nothere"][..], 2, "no run"),
        (&["replay", "nothere.cast"], 2, "there is no recording nothere.cast"),
        (&["replay", "last"], 2, "is no external agent"),
        (&["replay", "last.7"], 2, "has no agent 7"),
        (&["replay", "last", "--speed", "0"], 2, "--speed must be more than 0"),
        (&["replay", "last", "--max-idle", "soon"], 2, "--max-idle"),
        (&["replay", "bad.cast"], 1, "can't play bad.cast"),
    ] {
        let played = scene.provost(args);
        assert_eq!(played.status, status, "{args:?}: {played:?}");
        assert!(played.stderr.contains(part), "{args:?}: {part}: {played:?}");
    }
}
