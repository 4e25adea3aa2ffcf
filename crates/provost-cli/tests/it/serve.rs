//! `provost serve`: looking at runs, acting on them, and following them.

use std::io::{BufRead as _, BufReader};

use crate::served::Served;
use crate::support::{Scene, done, json, line_in, until};

const ASKS: &str = "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - text: done
";

fn asks() -> Scene {
    Scene::scripted(ASKS).with_settings("[permissions]\nask = [\"shell\"]\n")
}

#[test]
fn runs_are_listed_in_pages_and_read() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    for goal in ["one", "two", "three"] {
        assert_eq!(scene.provost(&["run", goal]).status, 0);
    }
    let served = Served::start(&scene);
    let first = served.get("/v1/runs?limit=2").json();
    let goals = |page: &serde_json::Value| {
        let runs = page["runs"].as_array().unwrap().iter();
        runs.map(|run| run["goal"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(goals(&first), ["three", "two"]);
    let second =
        served.get(&format!("/v1/runs?limit=2&cursor={}", first["next_cursor"].as_str().unwrap())).json();
    assert_eq!((goals(&second), second["next_cursor"].is_null()), (vec!["one".to_owned()], true));
    let run = scene.last_run();
    let details = served.get(&format!("/v1/runs/{run}")).json();
    assert_eq!((details["goal"].as_str(), details["agents"][0]["agent"].as_u64()), (Some("three"), Some(0)));
    // The same types that the commands print.
    let explained = json(&scene.provost(&["explain", &run, "--json"]).stdout);
    assert_eq!(served.get(&format!("/v1/runs/{run}/explain")).json()["limits"], explained["limits"]);
    let timeline = served.get(&format!("/v1/runs/{run}/timeline")).json();
    assert_eq!(timeline["items"][0]["text"], "done");
    let entries = served.get(&format!("/v1/runs/{run}/entries?agent=0&limit=2")).json();
    assert_eq!(
        (entries["entries"][0]["type"].as_str(), entries["last"].as_u64()),
        (Some("session_started"), Some(2))
    );
    assert_eq!(served.get(&format!("/v1/runs/{run}/conversation")).status, 200);
    assert_eq!(served.get(&format!("/v1/runs/{run}/spend")).json()["total"]["calls"], 1);
    let groups = served.get("/v1/groups").json();
    assert_eq!(groups["groups"][0]["group"], "finished");
    assert_eq!(groups["groups"][0]["runs"].as_array().unwrap().len(), 3);
}

#[test]
fn a_question_is_answered_once_and_the_run_goes_on() {
    let scene = asks();
    let running = scene.start(&["run", "publish it"]);
    let served = Served::start(&scene);
    let waiting = served.question();
    let run = waiting["run"].as_str().unwrap();
    assert_eq!(served.get("/v1/groups").json()["groups"][0]["group"], "needs_you");
    let inbox = served.get("/inbox").body;
    assert!(inbox.contains("echo published &gt;&gt; effects") && inbox.contains("(1) Inbox"), "{inbox}");
    let call = || served.get(&format!("/v1/runs/{run}/timeline")).json()["items"][0]["calls"][0].clone();
    assert_eq!(call()["progress"], "needs_approval");
    assert!(served.get(&format!("/runs/{run}")).body.contains("<span class=\"res\">needs approval</span>"));
    let path = format!("/v1/runs/{run}/approvals/0/{}", waiting["asked"]);
    assert_eq!(served.post(&path, "{\"answer\":\"allow\",\"scope\":\"forever\"}").status, 400);
    assert_eq!(served.post(&path, "{\"answer\":\"allow\"}").status, 200);
    let late = served.post(&path, "{\"answer\":\"deny\"}");
    assert_eq!(late.status, 409, "{late:?}");
    assert!(
        late.json()["detail"].as_str().unwrap().contains("it has its answer: approved once by "),
        "{late:?}"
    );
    assert_eq!(served.post(&format!("/v1/runs/{run}/approvals/0/1"), "{\"answer\":\"deny\"}").status, 404);
    let ended = running.end();
    assert_eq!(ended.status, 0, "{ended:?}");
    assert_eq!(call()["progress"], "finished");
    assert!(ended.stderr.contains("(provost serve)"), "the log names where the answer came from: {ended:?}");
    assert_eq!(std::fs::read_to_string(scene.path("work/effects")).unwrap(), "published\n");
}

#[test]
fn a_call_runs_until_its_process_is_killed() {
    let scene = Scene::scripted("answers: [{ tools: [{ shell: { command: sleep 600 } }] }]\n");
    let running = scene.start(&["run", "wait"]);
    let served = Served::start(&scene);
    let run = until("it runs", || Some(served.get("/v1/runs").json()["runs"][0]["run"].as_str()?.to_owned()));
    let call = || served.get(&format!("/v1/runs/{run}/timeline")).json()["items"][0]["calls"][0].clone();
    until("the call runs", || (call()["progress"] == "running").then_some(()));
    running.kill();
    until("it is interrupted", || (call()["progress"] == "interrupted").then_some(()));
    assert!(served.get(&format!("/runs/{run}")).body.contains("<span class=\"res\">interrupted</span>"));
}

#[test]
fn a_call_of_a_cancelled_run_needs_no_approval_any_more() {
    let scene = asks();
    let running = scene.start(&["run", "publish it"]);
    let served = Served::start(&scene);
    let waiting = served.question();
    let run = waiting["run"].as_str().unwrap();
    assert_eq!(served.post(&format!("/v1/runs/{run}/cancel"), "{}").status, 200);
    running.end();
    let timeline = served.get(&format!("/v1/runs/{run}/timeline")).json();
    assert_ne!(timeline["items"][0]["calls"][0]["progress"], "needs_approval", "{timeline}");
}

#[test]
fn an_approval_for_always_is_kept_in_the_users_settings() {
    let scene = asks();
    let running = scene.start(&["run", "publish it"]);
    let served = Served::start(&scene);
    let waiting = served.question();
    let path = format!("/v1/runs/{}/approvals/0/{}", waiting["run"].as_str().unwrap(), waiting["asked"]);
    assert_eq!(served.post(&path, "{\"answer\":\"allow\",\"scope\":\"always\"}").status, 200);
    assert_eq!(running.end().status, 0);
    let file = std::fs::read_to_string(scene.path("home/.config/provost/config.toml")).unwrap();
    assert!(file.contains("shell(echo published >> effects)"), "{file}");
}

#[test]
fn a_run_is_told_paused_and_cancelled_while_another_process_works_on_it() {
    let scene = Scene::scripted(
        "answers:\n  - tools: [{ shell: { command: 'echo $$ > child; while [ ! -e go ]; do sleep 0.02; done' } }]\n  - text: went\n",
    );
    let running = scene.start(&["run", "wait"]);
    line_in(&scene.path("work/child"));
    let served = Served::start(&scene);
    let run = scene.last_run();
    assert_eq!(served.post(&format!("/v1/runs/{run}/say"), "{\"text\":\"mind it\"}").status, 200);
    assert_eq!(served.post(&format!("/v1/runs/{run}/say"), "{\"agent\":7,\"text\":\"mind it\"}").status, 409);
    assert_eq!(served.post(&format!("/v1/runs/{run}/pause"), "{}").status, 200);
    let ended = running.end();
    assert_eq!(ended.status, 4, "{ended:?}");
    assert_eq!(served.post(&format!("/v1/runs/{run}/cancel"), "{}").status, 200);
    assert_eq!(served.get(&format!("/v1/runs/{run}")).json()["status"], "cancelled");
}

/// The ids of a stream's events and their data, up to `max` of them.
fn events(served: &Served, path: &str, after: Option<&str>, max: usize) -> Vec<(String, String)> {
    let token = format!("Bearer {}", served.token);
    let host = format!("127.0.0.1:{}", served.port);
    let mut headers = vec![("host", host.as_str()), ("authorization", token.as_str())];
    headers.extend(after.map(|id| ("last-event-id", id)));
    let stream = served.open("GET", path, &headers, "");
    let mut all = Vec::new();
    let (mut id, mut data) = (String::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if let Some(found) = line.strip_prefix("id: ") {
            found.clone_into(&mut id);
        } else if let Some(found) = line.strip_prefix("data: ") {
            found.clone_into(&mut data);
        } else if line.is_empty() && !data.is_empty() {
            all.push((std::mem::take(&mut id), std::mem::take(&mut data)));
            if all.len() == max {
                break;
            }
        }
    }
    all
}

#[test]
fn events_go_on_after_the_last_one_without_gap_or_repeat_also_when_the_server_was_killed() {
    hears_all_over_kills(8, 25);
}

#[test]
#[ignore = "takes a minute or two: 10,000 events"]
fn ten_thousand_events_are_heard_once_each_while_the_server_is_killed_again_and_again() {
    let count = hears_all_over_kills(950, 1_300);
    assert!(count > 10_000, "{count}");
}

/// Follows a run with this number of turns, and kills the server after each `piece` of its events. Returns how many there were.
fn hears_all_over_kills(turns: usize, piece: usize) -> usize {
    // Each call is another one: the same again and again would be stuck.
    let call = |turn: usize, limit: usize| {
        format!("{{ read_file: {{ path: agent.yaml, offset: {}, limit: {limit} }} }}", turn + 1)
    };
    let calls = (0..turns).map(|turn| {
        let all = [1, 2, 3].map(|limit| call(turn, limit)).join(", ");
        format!("  - tools: [{all}]\n")
    });
    let calls = calls.collect::<String>();
    let scene = Scene::scripted(&format!("answers:\n{calls}  - text: done\n"));
    let mut command = scene.command(&["run", "--max-turns", "2000", "look around"]);
    // Reading alone is no progress.
    command.env("PROVOST_AGENT_STUCK_TURNS", "0");
    assert_eq!(done(&command.output().unwrap()).status, 0);
    let run = scene.last_run();
    let log = scene.provost(&["logs", &run, "--json"]).stdout;
    let count = log.lines().count();
    assert!(count > 60, "{count}");
    let path = format!("/v1/runs/{run}/events");
    let mut heard = Vec::new();
    while heard.len() < count {
        let served = Served::start(&scene);
        let last = heard.last().map(|(id, _): &(String, String)| id.clone());
        heard.extend(events(&served, &path, last.as_deref(), piece.min(count - heard.len())));
        served.kill();
    }
    let sorted = |lines: Vec<String>| {
        let mut lines = lines.iter().map(|line| json(line).to_string()).collect::<Vec<_>>();
        lines.sort_unstable();
        lines
    };
    let heard = heard.into_iter().map(|(_, data)| data).collect::<Vec<_>>();
    assert_eq!(sorted(heard), sorted(log.lines().map(str::to_owned).collect()));
    let served = Served::start(&scene);
    assert_eq!(served.send("GET", &path, &[("last-event-id", "odd")], "").status, 400);
    count
}

#[test]
fn the_page_is_told_of_each_change() {
    let scene = asks();
    let served = Served::start(&scene);
    assert!(events(&served, "/live/home", None, 1)[0].1.contains("no runs yet"));
    let running = scene.start(&["run", "publish it"]);
    until("it asks", || served.get("/v1/approvals").json().as_array().unwrap().first().cloned());
    let sections = events(&served, "/live/home", None, 1).remove(0).1;
    assert!(sections.contains("publish it") && sections.contains("g-needs"), "{sections}");
    running.kill();
}

#[test]
fn the_openapi_document_describes_every_route_with_its_types() {
    let scene = Scene::new();
    let document = json(&scene.provost(&["serve", "--openapi"]).stdout);
    assert_eq!(document["openapi"], "3.1.0");
    let served = Served::start(&scene);
    assert_eq!(served.get("/v1/openapi.json").json(), document);
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 18, "{paths:?}");
    let references = document.to_string();
    for name in references.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next())
    {
        assert!(document["components"]["schemas"][name].is_object(), "{name} is described");
    }
    for (path, methods) in paths {
        let asked = path.replace("{run}", "zzzz").replace("{agent}", "0").replace("{asked}", "1");
        let is_there = if methods["get"].is_object() { "GET" } else { "POST" };
        if !path.ends_with("/events") {
            assert_ne!(served.send(is_there, &asked, &[], "").status, 405, "{path}");
        }
    }
}

#[test]
fn metrics_are_in_the_format_of_prometheus() {
    let scene = Scene::scripted("answers: [{ text: done }]");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let served = Served::start(&scene);
    let metrics = served.get("/metrics").body;
    for line in
        ["provost_runs{status=\"completed\"} 1", "# TYPE provost_runs gauge", "provost_approvals_waiting 0"]
    {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[cfg(unix)]
#[test]
fn it_listens_on_a_socket_that_is_the_users_own_and_a_second_server_says_so() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    let served = Served::start(&scene);
    let socket = scene.path("state/server.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let (port, token) = (served.port, &served.token);
    let request = format!(
        "GET /v1/runs HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let second = scene.provost(&["serve", "--port", "0"]);
    assert_eq!(second.status, 2, "{second:?}");
    assert!(second.stderr.contains("another server listens on"), "{second:?}");
    assert!(second.stderr.contains("provost serve --link"), "{second:?}");
    assert_eq!(std::fs::metadata(scene.path("token")).unwrap().permissions().mode() & 0o777, 0o600);
}
