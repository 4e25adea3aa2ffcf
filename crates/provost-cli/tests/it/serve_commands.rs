//! Commands that use the server that runs over the same store, and go without it.

use std::net::TcpListener;

use crate::served::Served;
use crate::support::{Scene, until};

const ASKS: &str = "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - text: done
";

/// A run whose process was killed while its question waited.
fn killed() -> Scene {
    let scene = Scene::scripted(ASKS).with_settings("[permissions]\nask = [\"shell\"]\n");
    let running = scene.start(&["run", "publish it"]);
    until("it asks", || scene.provost(&["approvals"]).stdout.contains("echo published").then_some(()));
    running.kill();
    scene
}

#[test]
fn a_link_is_printed_by_the_server_that_runs() {
    let scene = Scene::new();
    let none = scene.provost(&["serve", "--link"]);
    assert_eq!(none.status, 2, "{none:?}");
    assert!(none.stderr.contains("no server of these runs is running"), "{none:?}");
    let served = Served::start(&scene);
    let printed = scene.provost(&["serve", "--link"]);
    assert_eq!(printed.status, 0, "{printed:?}");
    let (page, path) = printed.stdout.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert_eq!(page, served.page);
    assert_eq!(served.exact("GET", &format!("/{path}"), &[("host", page)], "").status, 303);
    served.kill();
    let none = scene.provost(&["serve", "--link"]);
    assert_eq!(none.status, 2, "what a killed server left is none: {none:?}");
}

#[test]
fn an_approval_has_the_server_go_on_with_a_run_whose_process_was_killed() {
    let scene = killed();
    let _served = Served::start(&scene);
    let approved = scene.provost(&["approve"]);
    assert_eq!(approved.status, 0, "{approved:?}");
    assert!(approved.stdout.contains("the server goes on with run "), "{approved:?}");
    until("it goes on", || {
        std::fs::read_to_string(scene.path("work/effects")).ok().filter(|text| text == "published\n")
    });
    until("it ends", || scene.provost(&["ps", "--all"]).stdout.contains("completed").then_some(()));
}

#[test]
fn without_a_server_an_approval_says_how_to_go_on() {
    let scene = killed();
    let served = Served::start(&scene);
    served.kill();
    let approved = scene.provost(&["approve"]);
    assert!(approved.stdout.contains("it goes on with: provost resume "), "{approved:?}");
}

#[test]
fn a_port_in_use_is_named_with_how_to_take_another() {
    let scene = Scene::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = scene.provost(&["serve", "--port", &port]);
    assert_eq!(refused.status, 2, "{refused:?}");
    for words in [format!("127.0.0.1:{port} is in use"), "--port 0".to_owned()] {
        assert!(refused.stderr.contains(&words), "{words}: {refused:?}");
    }
}

#[test]
fn one_agent_goes_on_through_the_server() {
    const WAITS: &str = "answers:
  - tools: [{ tests: { goal: Cover the parser. } }, { tests: { goal: Cover the lexer. } }]
  - { text: 'Both done. VERDICT: PASS' }
agents:
  - goal: the parser
    answers: [{ tools: [{ shell: { command: 'echo $$ > child; while [ ! -e go ]; do sleep 0.02; done' } }] }, { text: 'Covered. VERDICT: PASS' }]
  - goal: the lexer
    answers: [{ tools: [{ shell: { command: 'while [ ! -e end ]; do sleep 0.02; done' } }] }, { text: 'Covered. VERDICT: PASS' }]
";
    let scene = Scene::scripted(WAITS)
        .with_settings("[[agents]]\nname = \"tests\"\ndescription = \"writes tests\"\n");
    let running = scene.start(&["run", "cover it", "--max-agents", "3"]);
    crate::support::line_in(&scene.path("work/child"));
    let served = Served::start(&scene);
    let run = scene.last_run();
    assert_eq!(served.post(&format!("/v1/runs/{run}/pause"), "{\"agent\":1}").status, 200);
    let agent = |served: &Served| {
        served.get(&format!("/v1/runs/{run}/tree")).json()["agents"][1]["state"].to_string()
    };
    until("it is suspended", || agent(&served).contains("suspended").then_some(()));
    scene.write("work/go", "");
    let resumed = served.post(&format!("/v1/runs/{run}/resume"), "{\"agent\":1}");
    assert_eq!(resumed.status, 200, "{resumed:?}");
    let none = served.post(&format!("/v1/runs/{run}/resume"), "{\"agent\":7}");
    assert_eq!(none.status, 404, "{none:?}");
    scene.write("work/end", "");
    assert_eq!(running.end().status, 0);
}
