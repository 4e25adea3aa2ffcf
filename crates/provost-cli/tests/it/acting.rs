//! `pause`, `cancel` and `say`: acting on a run that another process works on, or no process.

use crate::support::{Done, Running, Scene, gone, line_in, until};

const SLEEPS: &str = "
answers:
  - tools: [{ shell: { command: 'echo $$ > child; sleep 600' } }]
  - text: done
";

const ASKS: &str = "[permissions]\nask = [\"shell\"]\n";

fn at_work(scene: &Scene) -> (Running, String) {
    let running = scene.start(&["run", "sleep"]);
    let child = line_in(&scene.path("work/child"));
    (running, child)
}

#[track_caller]
fn check(scene: &Scene, args: &[&str], status: i32, words: &str) {
    let Done { status: found, stdout, stderr } = scene.provost(args);
    assert_eq!((scene.stable(&format!("{stdout}{stderr}")).as_str(), found), (words, status));
}

#[test]
fn pause_brings_another_processs_run_to_rest() {
    let scene = Scene::scripted(SLEEPS);
    let (running, child) = at_work(&scene);
    let words = "run RUN is suspended: paused by provost pause\ngo on with: provost resume RUN\n";
    check(&scene, &["pause", "last"], 0, words);
    assert_eq!(running.end().status, 4);
    gone(&child);
    check(&scene, &["pause", "last"], 0, "run RUN is suspended already: paused by provost pause\n");
    assert_eq!(scene.provost(&["resume", "last"]).stdout, "done\n");
}

#[test]
fn cancel_ends_another_processs_run_for_good() {
    let scene = Scene::scripted(SLEEPS);
    let (running, child) = at_work(&scene);
    check(&scene, &["cancel", "last"], 0, "run RUN has ended: cancelled by provost cancel\n");
    assert_eq!(running.end().status, 130);
    gone(&child);
    let ended =
        "error: run RUN has ended: cancelled by provost cancel\nhint: go on with: provost resume RUN\n";
    check(&scene, &["cancel", "last"], 2, ended);
    check(&scene, &["pause", "last"], 2, ended);
    check(&scene, &["say", "last", "hello"], 2, ended);
}

#[test]
fn a_model_call_that_a_stop_cut_off_does_not_count_as_made_again() {
    let thinks = || {
        let scene = Scene::scripted("answers: [{ delay_ms: 60000, text: done }]");
        let running = scene.start(&["run", "think"]);
        let log = || scene.provost(&["logs", "last", "--json"]).stdout;
        until("a model is called", || log().contains("model_called").then_some(()));
        (scene, running)
    };
    let (scene, running) = thinks();
    running.kill();
    check(&scene, &["cancel", "last"], 0, "run RUN has ended: cancelled by provost cancel\n");
    let page = scene.provost(&["show", "last"]).stdout;
    assert!(page.contains("0 tool calls") && !page.contains("made again"), "{page}");
    // One that is called after a kill is.
    let (scene, running) = thinks();
    running.kill();
    scene.write("work/agent.yaml", "answers: [{ text: done }]");
    assert_eq!(scene.provost(&["resume", "last"]).stdout, "done\n");
    let page = scene.provost(&["show", "last"]).stdout;
    assert!(page.contains("1 model call made again"), "{page}");
}

#[test]
fn an_interrupted_run_is_suspended_or_ended_without_a_holder() {
    let scene = Scene::scripted(SLEEPS);
    for _ in 0..2 {
        let (running, child) = at_work(&scene);
        running.kill();
        gone(&child);
        std::fs::remove_file(scene.path("work/child")).unwrap();
    }
    let words = "run RUN is suspended: paused by provost pause\ngo on with: provost resume RUN\n";
    check(&scene, &["pause", "last"], 0, words);
    check(&scene, &["cancel", "last"], 0, "run RUN has ended: cancelled by provost cancel\n");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(log.lines().last().unwrap().contains(r#""type":"ended""#), "{log}");
    let other = scene.provost(&["ps"]).stdout.lines().last().unwrap()[..12].to_owned();
    check(&scene, &["cancel", &other], 0, "run RUN has ended: cancelled by provost cancel\n");
    assert!(!scene.path("work/child").exists(), "nothing was done again");
}

#[test]
fn a_run_that_waits_for_approval_can_be_cancelled() {
    let scene = Scene::scripted(SLEEPS).with_settings(ASKS);
    let running = scene.start(&["run", "sleep"]);
    until("it asks", || scene.provost(&["ps"]).stdout.contains("needs approval").then_some(()));
    check(&scene, &["cancel", "last"], 0, "run RUN has ended: cancelled by provost cancel\n");
    assert_eq!(running.end().status, 130);
    check(&scene, &["approvals"], 0, "nothing waits for approval\n");
    let late = scene.provost(&["approve", "last#5"]);
    assert_eq!(late.status, 1, "{late:?}");
    assert!(late.stderr.contains("#5 has its answer: denied (the agent was stopped before"), "{late:?}");
}

#[test]
fn what_is_said_is_heard_in_every_process_that_holds_the_run() {
    let script = "
answers:
  - tools: [{ shell: { command: 'echo $$ > child; until test -e go; do sleep 0.01; done' } }]
  - expect: { contains: skip the docs }
    text: I skip them
";
    let scene = Scene::scripted(script);
    let (running, _) = at_work(&scene);
    let words = "said to run RUN: skip the docs\nthe agent gets it before its next model call\n";
    check(&scene, &["say", "last", "skip", "the docs"], 0, words);
    check(
        &scene,
        &["say", "last", " "],
        2,
        "error: the message is empty\nhint: e.g. provost say last \"Skip the docs\"\n",
    );
    scene.write("work/go", "");
    let ended = running.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "I skip them\n"), "{ended:?}");
    assert!(ended.stderr.contains("user: provost say: skip the docs\n"), "{}", ended.stderr);
}

#[test]
fn what_is_said_to_a_resting_run_is_heard_when_it_goes_on() {
    let script =
        "answers: [{ text: looking, tools: [list_dir] }, { expect: { contains: hurry }, text: done }]";
    let scene = Scene::scripted(script);
    assert_eq!(scene.provost(&["run", "look", "--max-turns", "1"]).status, 3);
    let words = "said to run RUN: hurry\nthe run is suspended; the agent gets it with: provost resume RUN --max-turns 1\n";
    check(&scene, &["say", "last", "hurry"], 0, words);
    assert_eq!(scene.provost(&["resume", "last", "--max-turns", "5"]).stdout, "done\n");
}
