//! Acting on a run whose process is stopped: it holds the run and decides nothing.
#![cfg(target_os = "linux")]

use crate::support::{Scene, gone, line_in, until};

const SLEEPS: &str = "
answers:
  - tools: [{ shell: { command: 'echo $$ > child; sleep 600' } }]
  - text: done
";

const WRITES: &str = "
answers:
  - tools: [{ shell: { command: echo one >> effects } }]
  - text: done
";

const ASKS: &str = "[permissions]\nask = [\"shell\"]\n";

#[test]
fn an_answer_without_a_decision_is_withdrawn_and_never_applied() {
    let scene = Scene::scripted(WRITES).with_settings(ASKS);
    let running = scene.start(&["run", "write"]);
    until("it asks", || scene.provost(&["ps"]).stdout.contains("needs approval").then_some(()));
    running.signal("STOP");
    let told = scene.provost(&["approve"]);
    let run = scene.last_run();
    assert_eq!(told.status, 1, "{told:?}");
    let holder = format!("error: process {} since ", running.id());
    assert!(told.stderr.starts_with(&holder), "{told:?}");
    let words = format!(
        " holds run {run} and has not decided within 5 s; the request is withdrawn, and nothing has changed\n\
         hint: it may be stopped or overloaded: try again, or end it together with the run: `provost cancel {run} \
         --force`\n"
    );
    assert!(told.stderr.ends_with(&words), "{told:?}");
    running.signal("CONT");
    // Its process works again, and decides on this.
    let denied = scene.provost(&["deny", &run, "not that"]);
    assert_eq!(denied.status, 0, "{denied:?}");
    let ended = running.end();
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(!scene.path("work/effects").exists(), "what was withdrawn was applied");
}

#[test]
fn cancel_force_ends_a_stopped_process_with_all_that_it_started_and_then_the_run() {
    let scene = Scene::scripted(SLEEPS);
    let running = scene.start(&["run", "sleep"]);
    let child = line_in(&scene.path("work/child"));
    running.signal("STOP");
    let agent = scene.provost(&["cancel", "last.1", "--force"]);
    assert_eq!(agent.status, 2, "{agent:?}");
    let told = scene.provost(&["cancel", "last", "--force"]);
    assert_eq!(told.status, 0, "{told:?}");
    assert_eq!(scene.stable(&told.stdout), "run RUN has ended: cancelled by provost cancel\n");
    assert!(told.stderr.contains(&format!("ended process {} since ", running.id())), "{told:?}");
    gone(&child);
    assert_eq!(running.end().status, -1, "it was killed");
    let log = scene.provost(&["logs", "last", "--json"]).stdout;
    assert!(log.lines().last().unwrap().contains(r#""type":"ended""#), "{log}");
}

#[test]
fn cancel_force_without_a_process_is_a_cancel() {
    let scene = Scene::scripted(SLEEPS);
    let running = scene.start(&["run", "sleep"]);
    gone_after_kill(&scene, running);
    let told = scene.provost(&["cancel", "last", "--force"]);
    assert_eq!((told.status, told.stderr.as_str()), (0, ""), "{told:?}");
    assert_eq!(scene.stable(&told.stdout), "run RUN has ended: cancelled by provost cancel\n");
}

fn gone_after_kill(scene: &Scene, running: crate::support::Running) {
    let child = line_in(&scene.path("work/child"));
    running.kill();
    gone(&child);
}
