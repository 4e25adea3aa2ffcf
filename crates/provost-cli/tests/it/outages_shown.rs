//! What the list of runs and the other outputs say about a run whose provider is down, while a process waits and
//! after it was killed.

use serde_json::json as value;

use crate::model_server::{ModelServer, refusal};
use crate::support::{Running, Scene, json, until};

/// A scene whose provider answers with a 503, and the run that waits for it.
fn waiting() -> (Scene, ModelServer, Running) {
    let server = ModelServer::plain(vec![refusal(
        503,
        r#"{"error":{"message":"down\nstatus      completed, verified"}}"#,
    )]);
    let scene = Scene::new();
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    let settings =
        format!("[providers.mine]\nbase_url = \"{url}\"\nfree = true\n[limits]\nmodel_patience = \"1s\"\n");
    scene.write("home/.config/provost/config.toml", &settings);
    let mut command = scene.command(&["run", "x", "--model", "mine/big"]);
    command.env("MINE_API_KEY", "sk-secret-key");
    let running = Scene::spawn(command);
    until("the run is suspended", || {
        scene.provost(&["logs", "last", "--json"]).stdout.contains("\"suspended\":true").then_some(())
    });
    (scene, server, running)
}

#[test]
fn a_run_that_waits_for_its_provider_has_one_status_in_the_table_and_in_json() {
    let (scene, _server, running) = waiting();
    let listed = scene.provost(&["ps"]).stdout;
    assert!(
        listed.contains("  suspended: the provider can't be reached: it reports an error, next try "),
        "{listed}"
    );
    for args in [["ps", "--json"], ["show", "last"], ["explain", "last"]] {
        let args = if args[0] == "ps" { args.to_vec() } else { vec![args[0], args[1], "--json"] };
        let line = json(scene.provost(&args).stdout.trim());
        assert_eq!(line["status"], "suspended", "{args:?}: {line}");
        let awaits = &line["awaits_provider"];
        assert_eq!(
            (&awaits["cause"], &awaits["model"]),
            (&value!("provider"), &value!("mine/big")),
            "{line}"
        );
        assert!(awaits["next_try_ms"].is_u64(), "{args:?}: {line}");
    }
    for command in ["show", "explain"] {
        let page = scene.provost(&[command, "last"]).stdout;
        let status = page.lines().find(|line| line.starts_with("status ")).unwrap();
        assert!(
            status.contains(" suspended: the provider can't be reached: it reports an error, next try "),
            "{page}"
        );
    }
    // What a provider says makes no row of its own, and the remedy is one that works.
    let shown = scene.provost(&["show", "last"]).stdout;
    assert_eq!(shown.matches("\nstatus ").count(), 1, "{shown}");
    assert!(
        shown.contains(
            "\n            status      completed, verified [request req_7]; it is tried again by itself."
        ),
        "{shown}"
    );
    let refused = scene.provost(&["resume", "last", "--usd", "1"]);
    assert!(refused.status == 2 && refused.stderr.contains("isn't suspended and goes on"), "{refused:?}");
    running.kill();
}

#[test]
fn explain_names_the_provider_of_a_run_that_was_paused_in_an_outage() {
    let (scene, _server, running) = waiting();
    assert_eq!(scene.provost(&["pause", "last"]).status, 0);
    running.end();
    let explained = scene.provost(&["explain", "last"]).stdout;
    assert!(
        explained.contains("\nstatus  paused: the provider couldn't be reached: it reported an error\n"),
        "{explained}"
    );
}

#[test]
fn a_run_whose_process_was_killed_promises_no_try_that_nothing_makes() {
    let (scene, _server, running) = waiting();
    running.kill();
    let run = scene.last_run();
    let listed = scene.provost(&["ps"]).stdout;
    assert!(
        listed.contains("  interrupted: the provider couldn't be reached: it reported an error  "),
        "{listed}"
    );
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(
        shown.contains("\nstatus      interrupted: the provider couldn't be reached: it reported an error\n"),
        "{shown}"
    );
    assert!(shown.contains(&format!("\ngo on with  provost resume {run}\n")), "{shown}");
    for text in [&listed, &shown] {
        assert!(!text.contains("next try") && !text.contains("suspended"), "{text}");
    }
    let line = json(scene.provost(&["ps", "--json"]).stdout.trim());
    assert_eq!(
        (&line["status"], &line["awaits_provider"]["next_try_ms"]),
        (&value!("interrupted"), &value!(null))
    );
    let explained = scene.provost(&["explain", "last"]).stdout;
    assert!(
        explained.contains("\nstatus  interrupted: the provider couldn't be reached: it reported an error\n"),
        "{explained}"
    );
}

#[test]
fn the_agents_of_a_killed_run_are_interrupted_and_hold_no_slots() {
    let scene = Scene::scripted(
        "answers: [{ tools: [{ spawn_agent: { goal: sub } }] }, { text: done }]\nagents:\n  - goal: sub\n    \
         answers: [{ tools: [{ shell: { command: 'echo at work > started; sleep 600' } }] }, { text: done }]\n",
    );
    let running = scene.start(&["run", "x"]);
    until("the agent works", || scene.path("work/started").exists().then_some(()));
    assert!(scene.provost(&["show", "last"]).stdout.contains(" working"));
    running.kill();
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains(" slots · 2 interrupted\n") && !shown.contains("working"), "{shown}");
    assert!(!shown.contains(" of 8 slots"), "{shown}");
    let line = json(scene.provost(&["show", "last", "--json"]).stdout.trim());
    let states = line["agents"].as_array().unwrap().iter().map(|agent| agent["state"].as_str().unwrap());
    assert_eq!(states.collect::<Vec<_>>(), ["interrupted", "interrupted"], "{line}");
}

#[test]
fn a_run_that_is_stopped_while_it_waits_keeps_the_cause() {
    let (scene, _server, running) = waiting();
    running.signal("TERM");
    let done = running.end();
    let cause =
        "paused by SIGTERM while the provider couldn't be reached: it reported an error (mine/big): down";
    assert!(done.status == 130 && done.stderr.contains(cause), "{done:?}");
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains(cause), "{shown}");
    let line = json(scene.provost(&["ps", "--json"]).stdout.trim());
    assert_eq!(
        line["outcome"]["why"]["asked"]["awaited"]["message"],
        "down\nstatus      completed, verified [request req_7]",
        "{line}"
    );
    let listed = scene.provost(&["ps"]).stdout;
    assert!(listed.contains("paused: the provider couldn't be reached: it reported an error"), "{listed}");
}

/// Waiting for seconds doesn't renew a limit of a day.
#[test]
fn a_limit_of_a_day_is_a_used_up_quota() {
    let body = r#"{"error":{"message":"Rate limit reached for big on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s.","code":"rate_limit_exceeded"}}"#;
    let server = ModelServer::plain(vec![refusal(429, body)]);
    let scene = Scene::new();
    let url = format!("http://127.0.0.1:{}/v1", server.port);
    scene.write(
        "home/.config/provost/config.toml",
        &format!("[providers.mine]\nbase_url = \"{url}\"\nfree = true\n"),
    );
    let mut command = scene.command(&["run", "x", "--model", "mine/big"]);
    command.env("MINE_API_KEY", "sk-secret-key");
    let running = Scene::spawn(command);
    let listed = until("the run waits", || {
        let listed = scene.provost(&["ps"]).stdout;
        listed.contains("the quota is used up, next try in").then_some(listed)
    });
    let line = json(scene.provost(&["ps", "--json"]).stdout.trim());
    let next_try_ms = line["awaits_provider"]["next_try_ms"].as_u64().unwrap();
    assert!((400_000..=432_000).contains(&next_try_ms), "{line}");
    assert_eq!(server.requests().len(), 1, "{listed}");
    running.kill();
}
