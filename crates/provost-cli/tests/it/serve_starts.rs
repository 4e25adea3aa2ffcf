//! `provost serve`: runs that are started through it, and go on without it.

use serde_json::{Value, json};

use crate::served::{Answered, Served};
use crate::support::{Scene, until};

const ASKS: &str = "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - text: done
";

fn asks() -> Scene {
    Scene::scripted(ASKS).with_settings("[permissions]\nask = [\"shell\"]\n")
}

fn request(scene: &Scene, goal: &str) -> Value {
    json!({ "goal": goal, "folder": scene.path("work") })
}

fn start(served: &Served, request: &Value, key: Option<&str>) -> Answered {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(key.map(|key| ("idempotency-key", key)));
    served.send("POST", "/v1/runs", &headers, &request.to_string())
}

#[track_caller]
fn run_of(started: &Answered) -> String {
    assert_eq!(started.status, 201, "{started:?}");
    let run = started.json()["run"].as_str().unwrap().to_owned();
    assert_eq!(started.header("location"), Some(format!("/v1/runs/{run}").as_str()));
    run
}

fn status(served: &Served, run: &str, wanted: &str) {
    until(wanted, || {
        let now = served.get(&format!("/v1/runs/{run}")).json();
        (now["status"] == wanted).then_some(())
    });
}

fn question(served: &Served) -> Value {
    until("it asks", || served.get("/v1/approvals").json().as_array().unwrap().first().cloned())
}

#[test]
fn a_run_and_its_question_outlive_a_server_that_is_killed() {
    let scene = asks();
    let served = Served::start(&scene);
    let run = run_of(&start(&served, &request(&scene, "publish it"), None));
    let asked = question(&served);
    served.kill();
    let served = Served::start(&scene);
    assert_eq!(question(&served), asked);
    let path = format!("/v1/runs/{run}/approvals/0/{}", asked["asked"]);
    assert_eq!(served.post(&path, "{\"answer\":\"allow\"}").status, 200);
    status(&served, &run, "completed");
    assert_eq!(std::fs::read_to_string(scene.path("work/effects")).unwrap(), "published\n");
    assert_eq!(served.get(&format!("/v1/runs/{run}/tree")).json()["agents"][0]["agent"], 0);
    assert_eq!(served.get(&format!("/v1/runs/{run}/goal")).status, 404);
}

#[test]
fn a_request_with_a_key_starts_one_run_also_over_a_kill_of_the_server() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let served = Served::start(&scene);
    let wanted = request(&scene, "once");
    let run = run_of(&start(&served, &wanted, Some("k-1")));
    assert_eq!(run_of(&start(&served, &wanted, Some("k-1"))), run);
    served.kill();
    let served = Served::start(&scene);
    assert_eq!(run_of(&start(&served, &wanted, Some("k-1"))), run);
    let other = start(&served, &request(&scene, "twice"), Some("k-1"));
    assert_eq!(other.status, 422, "{other:?}");
    assert!(other.json()["detail"].as_str().unwrap().contains("another request before"), "{other:?}");
    assert_ne!(run_of(&start(&served, &wanted, Some("k-2"))), run);
    assert_eq!(served.get("/v1/runs").json()["runs"].as_array().unwrap().len(), 2);
    for odd in ["", "ä", &"x".repeat(256)] {
        assert_eq!(start(&served, &wanted, Some(odd)).status, 400, "{odd}");
    }
}

#[test]
fn a_key_whose_server_was_killed_before_there_was_a_run_starts_it() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let served = Served::start(&scene);
    let wanted = request(&scene, "once");
    let run = run_of(&start(&served, &wanted, Some("k-1")));
    status(&served, &run, "completed");
    // As if the run's process had never been started.
    assert_eq!(scene.provost(&["prune", "--older", "0s", "--yes"]).status, 0);
    assert_eq!(served.get(&format!("/v1/runs/{run}")).status, 404);
    assert_eq!(run_of(&start(&served, &wanted, Some("k-1"))), run);
}

#[test]
fn what_can_t_be_started_says_why_and_leaves_the_key_free() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    let served = Served::start(&scene);
    let refused = |body: Value, word: &str| {
        let answered = start(&served, &body, Some("k"));
        assert_eq!(answered.status, 422, "{answered:?}");
        assert!(answered.json()["detail"].as_str().unwrap().contains(word), "{answered:?}");
    };
    refused(json!({ "goal": " ", "folder": scene.path("work") }), "goal: is empty");
    refused(json!({ "goal": "x", "folder": "work" }), "no absolute path");
    refused(json!({ "goal": "x", "folder": scene.path("nowhere") }), "no absolute path of a folder");
    refused(json!({ "goal": "x", "folder": scene.path("work"), "model": "nobody/none" }), "nobody");
    refused(json!({ "goal": "x", "folder": scene.path("work"), "limits": { "usd": "odd" } }), "--usd");
    assert_eq!(served.get("/v1/runs").json()["runs"], json!([]));
    run_of(&start(&served, &request(&scene, "x"), Some("k")));
}

#[test]
fn a_run_is_resumed_and_forked_at_an_entry() {
    let scene = Scene::scripted("answers: [{ text: first }, { text: second }, { text: third }]");
    assert_eq!(scene.provost(&["run", "begin"]).status, 0);
    let run = scene.last_run();
    let served = Served::start(&scene);
    let turns = || served.get(&format!("/v1/runs/{run}/timeline")).json()["items"].to_string();
    let resumed = served.post(&format!("/v1/runs/{run}/resume"), "{\"text\":\"go on\"}");
    assert_eq!(resumed.status, 200, "{resumed:?}");
    until("it went on", || turns().contains("go on").then_some(()));
    status(&served, &run, "completed");
    let first = served.get(&format!("/v1/runs/{run}/entries?agent=0")).json();
    let entries = first["entries"].as_array().unwrap();
    let said = entries.iter().find(|entry| entry["type"] == "assistant_message").unwrap();
    let body = json!({ "at": said["seq"], "text": "the other way" }).to_string();
    let forked = served.send(
        "POST",
        &format!("/v1/runs/{run}/fork"),
        &[("content-type", "application/json"), ("idempotency-key", "f")],
        &body,
    );
    let fork = run_of(&forked);
    status(&served, &fork, "completed");
    let details = served.get(&format!("/v1/runs/{fork}")).json();
    assert!(
        details["forked_from"].to_string().contains(&run) && details["goal"] == "the other way",
        "{details}"
    );
    let beyond = served.post(&format!("/v1/runs/{run}/fork"), "{\"at\":100000}");
    assert_eq!(beyond.status, 422, "{beyond:?}");
}

#[test]
fn a_run_that_is_worked_on_isn_t_resumed() {
    let scene = asks();
    let served = Served::start(&scene);
    let run = run_of(&start(&served, &request(&scene, "publish it"), None));
    question(&served);
    assert_eq!(served.post(&format!("/v1/runs/{run}/resume"), "{}").status, 409);
    assert_eq!(served.post(&format!("/v1/runs/{run}/cancel"), "{}").status, 200);
    status(&served, &run, "cancelled");
}
