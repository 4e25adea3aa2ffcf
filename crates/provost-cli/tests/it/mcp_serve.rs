//! `provost mcp serve`: runs as tools of another agent.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stdio_client::StdioClient;
use crate::support::{Scene, json as read, until};

const ASKS: &str = "
answers:
  - tools: [{ shell: { command: echo published >> effects } }]
  - text: \"\\e[2Jpublished\"
";
const ASK: &str = "[permissions]\nask = [\"shell\"]\n";
const TOOLS: [&str; 9] = [
    "run_start",
    "run_wait",
    "run_status",
    "run_result",
    "run_say",
    "run_pause",
    "run_cancel",
    "run_cost",
    "run_list",
];

struct Client(StdioClient);

impl Client {
    /// A client that begins as those before the current revision do.
    fn older(scene: &Scene) -> Self {
        let mut client = StdioClient::start(scene.command(&["mcp", "serve"]));
        let about = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        let begun = client.call("initialize", &params);
        assert_eq!(
            (begun["protocolVersion"].as_str(), begun["serverInfo"]["name"].as_str()),
            (Some("2025-06-18"), Some("provost"))
        );
        client.notify("notifications/initialized", &json!({}));
        Self(client)
    }

    fn raw(&mut self, tool: &str, arguments: &Value) -> Value {
        self.0.call("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.raw(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        assert_eq!(read(result["content"][0]["text"].as_str().unwrap()), result["structuredContent"]);
        result["structuredContent"].clone()
    }

    #[track_caller]
    fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.raw(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The run's status, waited for as a model does.
    #[track_caller]
    fn wait(&mut self, run: &str) -> String {
        until("it isn't running", || {
            let status = self.call("run_wait", &json!({ "run": run }))["status"].as_str().unwrap().to_owned();
            (status != "running").then_some(status)
        })
    }
}

fn asks() -> Scene {
    Scene::scripted(ASKS).with_settings(ASK)
}

#[test]
fn a_run_is_started_waited_for_and_read() {
    let scene = asks();
    let mut client = Client::older(&scene);
    let request = json!({ "goal": "publish it", "idempotency_key": "k" });
    let run = client.call("run_start", &request)["run"].as_str().unwrap().to_owned();
    assert_eq!(client.call("run_start", &request)["run"], *run, "the same request");
    let other = json!({ "goal": "another", "idempotency_key": "k" });
    assert!(client.refused("run_start", &other).contains("another request before"));
    assert_eq!(client.wait(&run), "needs approval");
    let begun = Instant::now();
    // A model that knows that waits for the answer.
    let waited =
        client.call("run_wait", &json!({ "run": run, "known_status": "needs approval", "seconds": 1 }));
    assert_eq!(waited["status"], "needs approval");
    assert!(begun.elapsed() >= Duration::from_secs(1) && begun.elapsed() < Duration::from_secs(10));
    let status = client.call("run_status", &json!({ "run": run }));
    assert_eq!(
        (status["goal"].as_str(), status["approvals"][0].as_str()),
        (Some("publish it"), Some(format!("{run}.0#5").as_str()))
    );
    assert_eq!(client.call("run_say", &json!({ "run": run, "text": "be careful" }))["changed"], true);
    assert_eq!(scene.provost(&["approve"]).status, 0);
    assert_eq!(client.wait(&run), "completed");
    let result = client.call("run_result", &json!({ "run": run }));
    assert_eq!((result["text"].as_str(), result["verification"].as_str()), (Some("published"), Some("none")));
    assert!(result["outcome_text"].as_str().unwrap().starts_with("completed"), "{result}");
    assert_eq!(client.call("run_cost", &json!({ "run": run[..6] }))["total"]["calls"], 2);
    assert_eq!(client.0.end(), 0);
    assert_eq!(std::fs::read_to_string(scene.path("work/effects")).unwrap(), "published\n");
}

#[test]
fn runs_of_other_processes_are_listed_paused_and_cancelled() {
    let scene = Scene::scripted("answers: [{ delay_ms: 60000, text: late }, { delay_ms: 60000, text: x }]");
    let mut client = Client::older(&scene);
    let running = scene.start(&["run", "one"]);
    let ask = json!({ "running": true });
    let list = until("it runs", || {
        let list = client.call("run_list", &ask);
        (!list["runs"].as_array().unwrap().is_empty()).then_some(list)
    });
    let run = list["runs"][0]["run"].as_str().unwrap().to_owned();
    assert_eq!(client.call("run_pause", &json!({ "run": run }))["changed"], true);
    assert_eq!(running.end().status, 4);
    assert_eq!(client.wait(&run), "paused");
    let refused = client.refused("run_pause", &json!({ "run": run }));
    assert!(refused.contains("isn't worked on: paused by"), "{refused}");
    let running = scene.start(&["run", "two"]);
    let run = until("it runs", || {
        let list = client.call("run_list", &ask);
        list["runs"][0]["run"].as_str().map(str::to_owned)
    });
    let begun = Instant::now();
    assert_eq!(client.call("run_cancel", &json!({ "run": run }))["changed"], true);
    assert_eq!(client.wait(&run), "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(running.end().status, 130);
    let page = client.call("run_list", &json!({ "limit": 1 }));
    let next = client.call("run_list", &json!({ "limit": 1, "cursor": page["next_cursor"] }));
    assert_eq!(
        (page["runs"][0]["goal"].as_str(), next["runs"][0]["goal"].as_str()),
        (Some("two"), Some("one"))
    );
    assert_eq!(client.call("run_list", &json!({ "folder": "/nowhere" }))["runs"], json!([]));
}

#[test]
fn the_tools_say_what_they_take_and_none_approves() {
    let scene = Scene::new();
    let mut client = Client::older(&scene);
    let listed = client.0.call("tools/list", &json!({}));
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), TOOLS);
    for tool in tools {
        assert!(
            tool["description"].as_str().unwrap().len() > 20 && tool["inputSchema"]["type"] == "object",
            "{tool}"
        );
        assert!(!tool.to_string().contains("$ref"), "a model reads one schema: {tool}");
    }
    let start = &tools[0]["inputSchema"];
    assert_eq!(start["required"], json!(["goal"]));
    assert!(start["properties"]["limits"]["properties"]["usd"].is_object(), "{start}");
    assert_eq!(tools[6]["annotations"]["destructiveHint"], true);
    assert_eq!(tools[2]["annotations"]["readOnlyHint"], true);
    // What a model reads of all of them.
    assert!(listed.to_string().len() < 8_000, "{}", listed.to_string().len());
    for unknown in ["approve", "run_approve", "run_deny", "\u{1b}[2J"] {
        let error = client.0.refused("tools/call", &json!({ "name": unknown, "arguments": {} }));
        assert_eq!(error["code"], -32602, "{error}");
    }
}

#[test]
fn a_request_that_can_t_be_fulfilled_is_answered_with_the_reason() {
    let scene = Scene::scripted("answers: [{ text: x }]");
    let mut client = Client::older(&scene);
    let mut refused = |tool: &str, arguments: Value, said: &str| {
        let error = client.refused(tool, &arguments);
        assert!(error.contains(said) && !error.contains('\u{1b}'), "{error}");
    };
    refused("run_status", json!({ "run": "zzzz\u{1b}[2J" }), "there is no run zzzz; run_list lists them");
    refused("run_wait", json!({ "run": "" }), "there is no run");
    refused("run_result", json!({}), "missing field `run`");
    refused("run_start", json!({ "goal": " " }), "goal: is empty");
    refused("run_start", json!({ "goal": "x", "folder": "work" }), "no absolute path");
    refused("run_start", json!({ "goal": "x", "odd": 1 }), "unknown field `odd`");
    refused("run_start", json!({ "goal": "x", "model": "nobody/none" }), "nobody");
    refused("run_start", json!({ "goal": "x", "idempotency_key": "ä" }), "visible characters");
    refused("run_start", json!({ "goal": "x", "idempotency_key": 7 }), "a text is expected");
    refused("run_list", json!({ "cursor": "x" }), "next_cursor");
    refused("run_say", json!({ "run": "x", "text": " " }), "text: is empty");
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    let run = scene.last_run();
    let mut client = Client::older(&scene);
    let ended = client.refused("run_say", &json!({ "run": run, "text": "more" }));
    assert!(ended.contains("isn't worked on: completed"), "{ended}");
    assert_eq!(client.call("run_wait", &json!({ "run": run }))["status"], "completed");
}

#[test]
fn the_current_revision_needs_no_session() {
    let scene = Scene::scripted("answers: [{ text: x }]");
    let mut client = StdioClient::start(scene.command(&["mcp", "serve"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.call("server/discover", &json!({ "_meta": meta }));
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    assert!(found["capabilities"]["tools"].is_object(), "{found}");
    let listed = client.call("tools/list", &json!({ "_meta": meta }));
    assert_eq!(listed["tools"].as_array().unwrap().len(), TOOLS.len());
    let called = client.call("tools/call", &json!({ "_meta": meta, "name": "run_list", "arguments": {} }));
    assert_eq!(
        (called["resultType"].as_str(), called["structuredContent"]["runs"].as_array().map(Vec::len)),
        (Some("complete"), Some(0))
    );
    assert_eq!(client.end(), 0);
}

#[test]
fn garbage_ends_nothing() {
    let scene = Scene::new();
    let mut client = Client::older(&scene);
    client.0.line("no JSON");
    client.0.line("[1, 2]");
    client.0.line("");
    client.0.line(&"x".repeat(5 * 1024 * 1024));
    assert_eq!(client.0.refused("odd/method", &json!({}))["code"], -32601);
    assert_eq!(client.call("run_list", &json!({}))["runs"], json!([]));
    assert_eq!(client.0.end(), 0);
}
