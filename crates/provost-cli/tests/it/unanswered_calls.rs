//! Model calls that a provider received and never answered: they may have cost money, and that is said and counted.

use serde_json::Value;

use crate::model_server::{ModelServer, refusal};
use crate::support::{Running, Scene, json, until};

/// A run on a model with a price at `port`.
fn running(port: u16, more: &str) -> (Scene, Running) {
    let scene = Scene::new();
    let settings = format!(
        "[providers.mine]\nbase_url = \"http://127.0.0.1:{port}/v1\"\nfirst_token_secs = 1\n\
         [models.\"mine/big\"]\nwindow_tokens = 100_000\ninput_usd = 1000\noutput_usd = 1000\n{more}"
    );
    scene.write("home/.config/provost/config.toml", &settings);
    let mut command = scene.command(&["run", "x", "--model", "mine/big"]);
    command.env("MINE_API_KEY", "sk-secret-key");
    let running = Scene::spawn(command);
    (scene, running)
}

fn whole_cost(scene: &Scene) -> Value {
    json(scene.provost(&["cost", "last", "--json"]).stdout.trim())["total"].clone()
}

/// Asserts that the run's money is more than nothing, all of it estimated, and marked wherever it is shown.
#[track_caller]
fn is_estimated(scene: &Scene) {
    let total = whole_cost(scene);
    let micro_usd = total["cost_micro_usd"].as_u64().unwrap();
    assert!(micro_usd > 0 && total["estimated_cost_micro_usd"] == micro_usd, "{total}");
    let listed = scene.provost(&["ps"]).stdout;
    assert!(listed.contains("~$"), "{listed}");
    let shown = scene.provost(&["show", "last"]).stdout;
    assert!(shown.contains(" estimated"), "{shown}");
}

#[test]
fn a_call_that_a_person_stops_before_its_first_token_is_estimated() {
    let server = ModelServer::silent();
    let (scene, running) = running(server.port, "[budget]\nusd = 1000\n");
    until("the provider has the request", || (!server.requests().is_empty()).then_some(()));
    running.signal("INT");
    let done = running.end();
    assert!(done.status == 130 && done.stderr.contains("~$"), "{done:?}");
    is_estimated(&scene);
}

#[test]
fn a_call_whose_connection_ends_before_an_answer_is_estimated() {
    let server = ModelServer::plain(vec![String::new()]);
    let (scene, running) = running(server.port, "[limits]\nmodel_patience = \"1s\"\n");
    until("a call has failed", || {
        scene.provost(&["logs", "last", "--json"]).stdout.contains("\"retry\"").then_some(())
    });
    running.signal("INT");
    running.end();
    is_estimated(&scene);
}

#[test]
fn an_outage_of_broken_connections_does_not_use_up_the_limit() {
    let server = ModelServer::plain(vec![String::new()]);
    // The estimate of one request is $7 and more.
    let (scene, running) =
        running(server.port, "[limits]\nmodel_patience = \"5s\"\noutage_max = \"1s\"\n[budget]\nusd = 20\n");
    let done = running.end();
    assert_eq!(done.status, 4, "{done:?}");
    let attempts = scene.provost(&["logs", "last", "--json"]).stdout.matches("\"type\":\"retry\"").count();
    assert!(attempts >= 3, "{attempts}");
    is_estimated(&scene);
    let micro_usd = whole_cost(&scene)["cost_micro_usd"].as_u64().unwrap();
    assert!((2_000_000..12_000_000).contains(&micro_usd), "{micro_usd}");
}

#[test]
fn calls_without_a_first_token_use_up_the_limit() {
    let server = ModelServer::silent();
    let (scene, running) = running(server.port, "[limits]\nmodel_patience = \"1h\"\n[budget]\nusd = 12\n");
    let done = running.end();
    assert_eq!(done.status, 3, "{done:?}");
    is_estimated(&scene);
}

#[test]
fn what_never_reached_a_provider_or_was_refused_costs_nothing_for_certain() {
    let refused = ModelServer::plain(vec![refusal(503, "{\"error\":{\"message\":\"down\"}}")]);
    // Nothing listens on a port that was just released.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for port in [refused.port, closed] {
        let (scene, running) = running(port, "[limits]\nmodel_patience = \"1s\"\n");
        until("the run is suspended", || {
            scene.provost(&["logs", "last", "--json"]).stdout.contains("\"suspended\":true").then_some(())
        });
        running.signal("INT");
        let done = running.end();
        assert!(done.status == 130 && !done.stderr.contains('~'), "{done:?}");
        let total = whole_cost(&scene);
        assert_eq!(
            (&total["cost_micro_usd"], &total["estimated_cost_micro_usd"]),
            (&Value::from(0), &Value::from(0)),
            "{total}"
        );
    }
}

#[test]
fn a_call_that_was_never_sent_costs_nothing_also_where_the_price_is_unknown() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let scene = Scene::new();
    let settings = format!(
        "[providers.mine]\nbase_url = \"http://127.0.0.1:{closed}/v1\"\n[limits]\nmodel_patience = \"1s\"\n"
    );
    scene.write("home/.config/provost/config.toml", &settings);
    let mut command = scene.command(&["run", "x", "--model", "mine/big"]);
    command.env("MINE_API_KEY", "sk-secret-key");
    let running = Scene::spawn(command);
    until("the run is suspended", || {
        scene.provost(&["logs", "last", "--json"]).stdout.contains("\"suspended\":true").then_some(())
    });
    running.signal("INT");
    running.end();
    let total = whole_cost(&scene);
    assert_eq!(total["unknown_price_calls"], 0, "{total}");
    let page = scene.provost(&["cost", "last"]).stdout;
    assert!(!page.contains("unknown") && !page.contains('?'), "{page}");
}
