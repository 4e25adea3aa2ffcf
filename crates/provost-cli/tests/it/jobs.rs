//! Background commands of an agent, from outside.

use serde_json::Value;

use crate::support::{Scene, gone, json, line_in, until};

const SERVER: &str = "
answers:
  - tools: [{ shell: { command: \"echo $$ > server.pid; echo ready > served; exec sleep 1000\", background: true } }]
  - tools: [{ shell: { command: \"until test -e served; do sleep 0.02; done; cat served\" } }]
  - expect: { tool_result: { tool: shell, contains: ready } }
    tools: [{ jobs: {} }]
  - expect: { tool_result: { tool: jobs, contains: running for } }
    text: served
";

fn bodies(scene: &Scene, kind: &str) -> Vec<Value> {
    let logs = scene.provost(&["logs", "last", "--json"]);
    assert_eq!(logs.status, 0, "{logs:?}");
    logs.stdout.lines().map(json).filter(|entry| entry["type"] == kind).collect()
}

#[test]
fn a_server_that_one_call_starts_is_used_two_turns_later_and_ends_with_the_run() {
    let scene = Scene::scripted(SERVER);
    let ran = scene.provost(&["run", "x"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "served\n"), "{ran:?}");
    gone(&line_in(&scene.path("work/server.pid")));
}

const KILLED: &str = "
answers:
  - tools: [{ shell: { command: echo quick, background: true } }]
  - tools: [{ jobs: { job: job1, wait_secs: 60 } }]
  - tools: [{ shell: { command: \"echo $$ > server.pid; exec sleep 1000\", background: true } }]
  - tools: [{ jobs: { job: job2, wait_secs: 500 } }]
  - expect: { contains: None of these runs any more }
    tools: [{ jobs: {} }]
  - text: told
";

/// After kill -9 the model is told at once which jobs it no longer has, and by `jobs` what became of each.
#[test]
fn a_job_is_gone_after_kill_9_and_the_model_is_told_of_each() {
    let scene = Scene::scripted(KILLED);
    let running = scene.start(&["run", "x"]);
    let pid = line_in(&scene.path("work/server.pid"));
    until("the agent waits for it", || (bodies(&scene, "tool_started").len() == 4).then_some(()));
    running.kill();
    gone(&pid);
    let resumed = scene.provost(&["resume", "last"]);
    assert_eq!((resumed.status, resumed.stdout.as_str()), (0, "told\n"), "{resumed:?}");
    let items = bodies(&scene, "system_item");
    let told =
        items.iter().filter(|item| item["body"].to_string().contains("background jobs")).collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{items:#?}");
    let body = told[0]["body"].to_string();
    assert!(body.contains("job2 (`echo $$ > server.pid") && !body.contains("job1"), "{body}");
    let finished = bodies(&scene, "tool_finished");
    let listed = finished.last().unwrap()["output"].as_str().unwrap();
    assert!(listed.contains("job1 (`echo quick`): ended with exit status 0"), "{listed}");
    assert!(listed.contains("job2") && listed.contains("no longer running"), "{listed}");
}

/// Where other calls are denied unattended, an agent still sees and ends what it was allowed to start.
#[test]
fn an_agents_own_jobs_need_no_permission_of_their_own() {
    const SCRIPT: &str = "
answers:
  - tools: [{ shell: { command: sleep 1000, background: true } }]
  - tools: [{ jobs: { job: job1, stop: true } }]
  - expect: { tool_result: { tool: jobs, contains: stopped as you asked } }
    text: done
";
    let permissions = "[permissions]\nallow = [\"shell(sleep *)\"]\n";
    let scene = Scene::scripted(SCRIPT).with_settings(permissions).trusted();
    let ran = scene.provost(&["run", "x"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let denying = format!("{permissions}deny = [\"jobs\"]\n");
    let denied = Scene::scripted(SCRIPT).with_settings(&denying).trusted();
    assert_ne!(denied.provost(&["run", "x"]).status, 0, "a pattern that denies them counts");
}
