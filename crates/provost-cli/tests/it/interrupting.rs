//! Ctrl-C: once suspends the run cleanly, twice exits at once; nothing is left running, and the run can be
//! resumed.

use std::time::{Duration, Instant};

use crate::support::{Running, Scene, gone, line_in, until};

const SLEEPS: &str = "
answers:
  - tools:
      - shell: { command: 'sleep 600 & echo $! > child; sleep 600' }
  - text: done
";

/// Its shell ignores a request to end.
const STUBBORN: &str = "
answers:
  - tools:
      - shell: { command: \"trap '' TERM INT; sleep 600 & echo $! > child; while :; do sleep 1; done\" }
  - text: done
";

/// A run whose shell is at work, and its background process.
fn at_work(scene: &Scene, flags: &[&str]) -> (Running, String) {
    let running = scene.start(&[&["run", "sleep"], flags].concat());
    let child = line_in(&scene.path("work/child"));
    (running, child)
}

#[track_caller]
fn goes_on(scene: &Scene) {
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "done\n"), "{resumed:?}");
}

#[test]
fn once_rests_cleanly_and_says_how_to_go_on() {
    for (signal, word) in [("INT", "Ctrl-C"), ("TERM", "SIGTERM")] {
        let scene = Scene::scripted(SLEEPS);
        let (running, child) = at_work(&scene, &[]);
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.status, 130, "{ended:?}");
        let run = scene.last_run();
        assert!(ended.stderr.contains(&format!("paused by {word} · 1 turn")), "{}", ended.stderr);
        assert!(ended.stderr.ends_with(&format!("go on with: provost resume {run}\n")), "{}", ended.stderr);
        gone(&child);
        goes_on(&scene);
    }
}

#[test]
fn twice_leaves_at_once_and_the_run_counts_as_interrupted() {
    let scene = Scene::scripted(STUBBORN);
    let (running, child) = at_work(&scene, &[]);
    running.signal("INT");
    // Two signals within one poll count once: the log shows when the first was received.
    until("the first is heard", || {
        scene.provost(&["logs", "last"]).stdout.contains("stop_requested").then_some(())
    });
    let asked_again = Instant::now();
    running.signal("INT");
    let ended = running.end();
    let took = asked_again.elapsed();
    assert_eq!(ended.status, 130, "{ended:?}");
    assert!(took < Duration::from_millis(1_500), "its shell would have taken 2 s, leaving took {took:?}");
    let run = scene.last_run();
    assert!(ended.stderr.ends_with(&format!("go on with: provost resume {run}\n")), "{}", ended.stderr);
    gone(&child);
    assert!(scene.provost(&["ps"]).stdout.contains("interrupted"));
    // The recorded request to stop outlives the process; resuming the run overrides it.
    goes_on(&scene);
}

#[test]
fn a_killed_program_leaves_a_run_that_goes_on() {
    let scene = Scene::scripted(SLEEPS);
    let (running, child) = at_work(&scene, &[]);
    running.kill();
    gone(&child);
    assert!(scene.provost(&["ps"]).stdout.contains("interrupted"));
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "done\n"), "{resumed:?}");
    assert!(resumed.stderr.contains("interrupted, what it did isn't known"), "{}", resumed.stderr);
}

#[test]
fn with_json_nothing_but_records_is_printed() {
    let scene = Scene::scripted(SLEEPS);
    let (running, _) = at_work(&scene, &["--json"]);
    running.signal("INT");
    let ended = running.end();
    assert_eq!((ended.status, ended.stderr.as_str()), (130, ""));
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.contains(r#""type":"paused""#), "{last}");
}
