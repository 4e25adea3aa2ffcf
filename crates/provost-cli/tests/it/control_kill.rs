//! Control across kill -9: questions and hooks that were open when the process died, and calls that wait for them.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::control::{entries, lawful, log};
use crate::support::{Running, Scene, gone, json, line_in, until};

const ONE: &str = "
answers:
  - tools: [{ shell: { command: echo one >> effects } }]
  - text: all done
";

fn asks() -> Scene {
    Scene::scripted(ONE).with_settings("[permissions]\nask = [\"shell\"]\n")
}

fn effects(scene: &Scene) -> usize {
    fs::read_to_string(scene.path("work/effects")).unwrap_or_default().lines().count()
}

/// The names of the open questions.
fn names(scene: &Scene) -> Vec<String> {
    let listed = scene.provost(&["approvals", "--json"]).stdout;
    listed.lines().map(|line| json(line)["id"].as_str().unwrap().to_owned()).collect()
}

/// The state of the newest run; nothing if there is none.
fn status(scene: &Scene) -> Option<String> {
    let listed = scene.provost(&["ps", "--json", "-n", "1"]).stdout;
    Some(json(listed.lines().next()?)["status"].as_str().unwrap().to_owned())
}

/// Resumes the run, or starts it if the last process died before that.
fn go_on(scene: &Scene) -> Running {
    match status(scene) {
        Some(_) => scene.start(&["resume", "last"]),
        None => scene.start(&["run", "x"]),
    }
}

/// Waits until the approval is requested, and kills the process.
fn asked(scene: &Scene) -> String {
    let running = go_on(scene);
    let name = until("a question is asked", || names(scene).pop());
    running.kill();
    name
}

/// One run that is killed `delay` ms after its start, then during the question, then answered by two processes at
/// once.
fn round(delay: u64) {
    let scene = asks();
    let running = scene.start(&["run", "x"]);
    sleep(Duration::from_millis(delay));
    running.kill();
    let before = names(&scene);
    let name = asked(&scene);
    assert!(before.is_empty() || before == [name.clone()], "{delay} ms: {before:?}, then {name}");
    assert_eq!(
        names(&scene),
        std::slice::from_ref(&name),
        "{delay} ms: it waits though no process works on the run"
    );
    assert_eq!(effects(&scene), 0);
    let both = [scene.start(&["approve", &name]), scene.start(&["approve", &name])].map(Running::end);
    let mut statuses = both.each_ref().map(|done| done.status);
    statuses.sort_unstable();
    assert_eq!(statuses, [0, 1], "{delay} ms: {both:?}");
    let late = both.iter().find(|done| done.status == 1).unwrap();
    assert!(late.stderr.contains("has its answer") || late.stdout.contains("has its answer"), "{late:?}");
    let ended = scene.provost(&["resume", "last"]);
    assert_eq!((ended.status, effects(&scene)), (0, 1), "{delay} ms: {ended:?}");
    let log = log(&scene);
    lawful(&log);
    assert_eq!(entries(&log, "approval_requested").len(), 1, "{delay} ms: one question");
    assert_eq!(entries(&log, "tool_started").len(), 1, "{delay} ms: one call");
}

#[test]
fn a_question_survives_kills_at_any_moment_and_is_answered_once() {
    [0, 40].into_iter().for_each(round);
}

#[test]
fn a_question_survives_later_kills_too() {
    [55, 90].into_iter().for_each(round);
}

/// Many more of them, at moments a few milliseconds apart.
#[test]
#[ignore = "takes some seconds; run it by its name"]
fn many_kills_at_any_moment() {
    (0..100).step_by(2).for_each(round);
    (0..60).step_by(2).for_each(killed_after_yes);
}

/// The process that works on the run is killed `delay` ms after the approval.
fn killed_after_yes(delay: u64) {
    let scene = asks();
    let running = scene.start(&["run", "x"]);
    let name = until("a question is asked", || names(&scene).pop());
    let yes = scene.start(&["approve", &name]);
    sleep(Duration::from_millis(delay));
    running.kill();
    assert_eq!(yes.end().status, 0);
    // A fast machine may have finished the run before the kill.
    if entries(&log(&scene), "ended").is_empty() {
        let ended = scene.provost(&["resume", "last"]);
        assert_eq!(ended.status, 0, "{delay} ms: {ended:?}");
    }
    let log = log(&scene);
    lawful(&log);
    let is_unknown = entries(&log, "tool_finished")[0]["status"] != "ok";
    let done = effects(&scene);
    assert!(done == 1 || (done == 0 && is_unknown), "{delay} ms: {done} effects, {log:#?}");
    assert_eq!(entries(&log, "tool_started").len(), 1, "{delay} ms");
    assert_eq!(entries(&log, "approval_resolved").len(), 1, "{delay} ms");
}

#[test]
fn a_kill_behind_a_yes_makes_the_call_at_most_once() {
    [5, 25].into_iter().for_each(killed_after_yes);
}

#[test]
fn yes_and_no_at_once_while_the_run_lives_come_to_one() {
    for _ in 0..2 {
        let scene = asks();
        let running = scene.start(&["run", "x"]);
        let name = until("a question is asked", || names(&scene).pop());
        let both = [scene.start(&["deny", &name, "no"]), scene.start(&["approve", &name])].map(Running::end);
        assert_eq!(both[0].status + both[1].status, 1, "{both:?}");
        assert_eq!(running.end().status, 0);
        assert_eq!(effects(&scene), usize::from(both[1].status == 0));
        lawful(&log(&scene));
    }
}

// ---- hooks --------------------------------------------------------------------------------------------------------

const HOOK: &str = "
echo $$ >> asked
test -e go && exit 0
sh -c 'echo $$ > child.pid; sleep 60; true' &
echo $$ > hook.pid
wait
";

fn hooked(event: &str) -> Scene {
    let settings = format!("[[hooks]]\nevent = \"{event}\"\nname = \"slow\"\ncommand = '''{HOOK}'''\n");
    Scene::scripted(ONE).with_settings(&settings).trusted()
}

/// The run's process is killed while a hook at `event` runs; then the run is resumed.
fn killed_in_hook(event: &str) -> (Scene, Vec<Value>) {
    let scene = hooked(event);
    let running = scene.start(&["run", "x"]);
    let pids = ["hook.pid", "child.pid"].map(|name| line_in(&scene.path(&format!("work/{name}"))));
    running.kill();
    pids.iter().for_each(|pid| gone(pid));
    scene.write("work/go", "");
    let ended = scene.provost(&["resume", "last"]);
    assert_eq!(ended.status, 0, "{event}: {ended:?}");
    assert_eq!(effects(&scene), 1, "{event}");
    let log = log(&scene);
    lawful(&log);
    (scene, log)
}

fn times_asked(scene: &Scene) -> usize {
    fs::read_to_string(scene.path("work/asked")).unwrap().lines().count()
}

#[test]
fn nothing_of_a_hook_outlives_a_kill_and_it_is_asked_again_under_its_entry() {
    for event in ["pre_tool_call", "post_tool_call"] {
        let (scene, log) = killed_in_hook(event);
        assert_eq!(times_asked(&scene), 2, "{event}");
        assert_eq!(entries(&log, "hooks_asked").len(), 1, "{event}");
        assert_eq!(entries(&log, "hooks_decided").len(), 1, "{event}");
        assert_eq!(entries(&log, "tool_started").len(), 1, "{event}");
    }
}

#[test]
fn so_are_hooks_around_the_model_and_the_session() {
    for event in ["session_start", "pre_llm_request", "stop"] {
        let (scene, _) = killed_in_hook(event);
        assert!(times_asked(&scene) >= 2, "{event}");
    }
}

#[test]
fn explain_tells_of_a_run_that_died_amid_a_hook() {
    let scene = hooked("pre_tool_call");
    let running = scene.start(&["run", "x"]);
    line_in(&scene.path("work/child.pid"));
    running.kill();
    let explained = scene.provost(&["explain", "last"]);
    assert!(explained.status == 0 && explained.stdout.contains("slow"), "{explained:?}");
    let row =
        json(scene.provost(&["explain", "last", "--json"]).stdout.trim())["agents"][0]["hooks"][0].clone();
    assert_eq!(row["consulted"], 0, "{row}");
}
