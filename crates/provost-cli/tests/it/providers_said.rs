//! What a run says of a provider that gives no answer: the cause, its remedy, and that nothing was spent.

use serde_json::Value;

use crate::model_server::{ModelServer, refusal};
use crate::support::{Done, Scene, json};

const PRICE: &str = "input_usd = 100\noutput_usd = 100\n";

/// A scene whose model `mine/big` is at this port.
fn scene(port: u16, price: &str) -> Scene {
    let scene = Scene::new();
    let settings = format!(
        "[providers.mine]\nbase_url = \"http://127.0.0.1:{port}/v1\"\n[models.\"mine/big\"]\nwindow_tokens = \
         100_000\noutput_tokens_max = 2000\n{price}[limits]\nmodel_patience = \"1s\"\noutage_max = \"1s\"\n"
    );
    scene.write("home/.config/provost/config.toml", &settings);
    scene
}

fn run(scene: &Scene, more: &[&str]) -> Done {
    let mut command = scene.command(&[&["run", "x", "--model", "mine/big"], more].concat());
    command.env("MINE_API_KEY", "sk-secret-key");
    Scene::spawn(command).end()
}

fn total(scene: &Scene) -> Value {
    json(&scene.provost(&["cost", "--json"]).stdout)["total"].clone()
}

#[test]
fn a_refused_connection_costs_nothing_for_certain_with_and_without_a_price() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for price in [PRICE, ""] {
        let scene = scene(port, price);
        let done = run(&scene, &[]);
        assert_eq!(done.status, 4, "{done:?}");
        let total = total(&scene);
        assert_eq!((&total["cost_micro_usd"], &total["unconfirmed_tokens"]), (&0.into(), &0.into()));
        assert_eq!(total["unknown_price_calls"], 0, "{total}");
        let shown = ["ps --all", "show last", "cost last"]
            .map(|args| scene.provost(&args.split(' ').collect::<Vec<_>>()).stdout);
        for text in shown.iter().chain([&done.stderr]) {
            assert!(!text.contains('~') && !text.contains("+ ?"), "{text}");
            assert!(!text.contains("price unknown"), "{text}");
        }
    }
}

/// What a run says of its provider in every place.
#[track_caller]
fn check_cause(answer: &str, words: &str) {
    let server = ModelServer::plain(vec![answer.to_owned()]);
    let scene = scene(server.port, PRICE);
    let done = run(&scene, &[]);
    assert_eq!(done.status, 4, "{done:?}");
    assert!(done.stderr.contains(words), "{}", done.stderr);
    for args in [["ps", "--all"], ["show", "last"], ["explain", "last"]] {
        let shown = scene.provost(&args).stdout;
        assert!(shown.contains(words), "{args:?}: {shown}");
    }
}

#[test]
fn each_cause_of_an_outage_has_its_own_words() {
    let error = r#"{"error":{"message":"later"}}"#;
    check_cause(&refusal(429, error), "the provider limits the rate");
    check_cause(&refusal(529, error), "the provider can't be reached: it is overloaded");
    check_cause(&refusal(500, error), "the provider can't be reached: it reports an error");
    check_cause(&refusal(200, "<html>hello</html>"), "the provider's answers are malformed");
}

#[test]
fn a_content_filter_is_said_as_the_providers() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
        data: {\"model\":\"big-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"content_filter\"}]}\n\n\
        data: {\"model\":\"big-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2}}\n\n\
        data: [DONE]\n\n";
    let server = ModelServer::plain(vec![answer.to_owned()]);
    let scene = scene(server.port, PRICE);
    let done = run(&scene, &[]);
    assert!(done.stderr.contains("reports a refusal"), "{done:?}");
    for args in [["ps", "--all"], ["show", "last"], ["explain", "last"]] {
        let shown = scene.provost(&args).stdout;
        assert!(shown.contains("reports a refusal"), "{args:?}: {shown}");
    }
}

#[test]
fn an_unattended_run_doesnt_wait_where_waiting_changes_nothing() {
    for status in [401, 402, 403, 404] {
        let server = ModelServer::plain(vec![refusal(status, r#"{"error":{"message":"no"}}"#)]);
        let scene = scene(server.port, PRICE);
        let path = scene.path("home/.config/provost/config.toml");
        let settings = std::fs::read_to_string(path).unwrap().replace("\"1s\"", "\"8h\"");
        scene.write("home/.config/provost/config.toml", &settings);
        let done = run(&scene, &[]);
        assert_eq!((done.status, server.requests().len()), (4, 1), "{status}: {done:?}");
    }
}

#[test]
fn a_time_limit_that_cuts_patience_short_is_said() {
    let server = ModelServer::plain(vec![refusal(503, r#"{"error":{"message":"down"}}"#)]);
    let scene = scene(server.port, PRICE);
    let path = scene.path("home/.config/provost/config.toml");
    let settings = std::fs::read_to_string(path).unwrap();
    let settings = settings.replace("model_patience = \"1s\"", "model_patience = \"1h\"");
    scene.write("home/.config/provost/config.toml", &settings);
    let done = run(&scene, &["--wall-time", "2s"]);
    let log = scene.provost(&["logs", "last"]).stdout;
    let words = "not retried for the whole of limits.model_patience: the limit on time leaves ";
    assert!(log.contains(words), "{log} {done:?}");
}

#[test]
fn the_models_that_were_asked_are_named_each_with_its_failure() {
    let down = ModelServer::plain(vec![refusal(503, r#"{"error":{"message":"down"}}"#)]);
    let first = ModelServer::plain(vec![refusal(401, r#"{"error":{"message":"wrong key"}}"#)]);
    let second = ModelServer::plain(vec![refusal(403, r#"{"error":{"message":"not yours"}}"#)]);
    let scene = scene(down.port, PRICE);
    let path = scene.path("home/.config/provost/config.toml");
    let mut settings = std::fs::read_to_string(path).unwrap();
    for (name, server) in [("one", &first), ("two", &second)] {
        settings.push_str(&format!(
            "[providers.{name}]\nbase_url = \"http://127.0.0.1:{}/v1\"\n[models.\"{name}/big\"]\nwindow_tokens = \
             100_000\n{PRICE}",
            server.port
        ));
    }
    settings.push_str("[agent]\nfallback_models = [\"one/big\", \"two/big\"]\n");
    scene.write("home/.config/provost/config.toml", &settings);
    let mut command = scene.command(&["run", "x", "--model", "mine/big"]);
    for name in ["MINE_API_KEY", "ONE_API_KEY", "TWO_API_KEY"] {
        command.env(name, "sk-secret-key");
    }
    let done = Scene::spawn(command).end();
    assert_eq!(done.status, 4, "{done:?}");
    let json_of = |args: &[&str]| json(scene.provost(args).stdout.trim()).to_string();
    let pages = [
        done.stderr.clone(),
        scene.provost(&["show", "last"]).stdout,
        scene.provost(&["explain", "last"]).stdout,
        json_of(&["ps", "--all", "--json"]),
        json_of(&["show", "last", "--json"]),
        json_of(&["explain", "last", "--json"]),
    ];
    for page in pages {
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in ["mine/big", "down", "one/big", "wrong key", "ONE_API_KEY"] {
            assert!(page.contains(words), "{words}: {page}");
        }
    }
    for words in ["two/big", "not yours", "TWO_API_KEY", "set a valid key"] {
        assert!(done.stderr.contains(words), "{words}: {done:?}");
    }
}
