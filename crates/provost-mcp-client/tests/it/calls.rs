//! Calls: in either revision, lost, cancelled, blocked.

use std::time::Duration;

use provost_event::ToolStatus;
use provost_mcp_client::Lifecycle;
use serde_json::json;

use crate::stage::{Stage, tool};

#[tokio::test]
async fn a_server_is_started_when_it_is_needed_and_shared_from_then_on() {
    for discover in ["current", "unknown", "empty"] {
        let script = json!({ "discover": discover, "lists": [[tool("a"), tool("b")]] });
        let agent = Stage::new(&script).agreed().await;
        assert_eq!(agent.notices, Vec::<String>::new());
        assert_eq!(agent.count("start"), 0, "nothing is started to know the tools");
        let output = agent.call("a", json!({ "x": 1 })).await;
        assert_eq!((output.status, output.text.as_str()), (ToolStatus::Ok, "done"));
        agent.call("b", json!({})).await;
        assert_eq!(agent.count("start"), 1);
        let is_current = discover == "current";
        assert_eq!(agent.count("initialize"), usize::from(!is_current));
        assert_eq!(agent.count("server/discover"), usize::from(is_current), "what worked is remembered");
    }
}

#[tokio::test]
async fn a_server_that_is_silent_on_what_it_doesnt_know_is_connected_to_the_older_way() {
    let stage = Stage::new(&json!({ "discover": "silent", "lists": [[tool("a")]] }));
    let seen = stage.inspected().await.unwrap();
    assert_eq!(seen.pins.lifecycle, Lifecycle::Initialize);
    assert_eq!(seen.protocol, "2025-06-18");
    assert!(seen.took < Duration::from_secs(30), "{:?}", seen.took);
}

#[tokio::test]
async fn the_outcome_of_a_call_is_unknown_when_the_server_dies_in_it_and_is_told_once() {
    let script = json!({ "lists": [[tool("pay"), tool("look")]], "calls": { "pay": { "dies": true } } });
    let agent = Stage::new(&script).agreed().await;
    let output = agent.call("pay", json!({})).await;
    assert_eq!(output.status, ToolStatus::Unknown);
    assert!(
        output.text.contains("isn't known") && output.text.contains("isn't made again"),
        "{}",
        output.text
    );
    assert_eq!(agent.count("tools/call"), 1);
    assert_eq!(agent.call("look", json!({})).await.status, ToolStatus::Ok, "it is started again");
    assert_eq!(agent.count("start"), 2);
}

#[tokio::test]
async fn a_call_that_our_settings_say_may_be_repeated_is() {
    let script = json!({
        "lists": [[{ "name": "look", "inputSchema": {}, "annotations": { "idempotentHint": true } }]],
        "calls": { "look": { "dies_once": true } }
    });
    let mut stage = Stage::new(&script);
    stage.setup.idempotent = vec!["look".to_owned()];
    let agent = stage.agreed().await;
    assert_eq!(agent.call("look", json!({})).await.text, "done");
    assert_eq!(agent.count("tools/call"), 2);
    let agent = Stage::new(&script).agreed().await;
    let output = agent.call("look", json!({})).await;
    assert_eq!(output.status, ToolStatus::Unknown, "what the server says of it doesn't count");
}

#[tokio::test]
async fn a_cancel_reaches_the_server_within_a_second() {
    let script = json!({ "lists": [[tool("slow")]], "calls": { "slow": { "never": true } } });
    let agent = Stage::new(&script).agreed().await;
    let call = agent.call("slow", json!({}));
    let cancel = async {
        agent.until_sent("tools/call", Duration::from_secs(20)).await;
        agent.cancel.cancel();
    };
    let (output, ()) = tokio::join!(call, cancel);
    assert!(output.text.contains("cancelled"), "{}", output.text);
    agent.until_sent("notifications/cancelled", Duration::from_secs(1)).await;
}

#[tokio::test]
async fn the_environment_is_that_of_the_allow_list_and_its_own() {
    // Set for this whole process before any thread: a canary that looks like no secret by its name.
    let mut stage = Stage::new(&json!({ "lists": [[tool("a")]] }));
    if let provost_mcp_client::Reach::Program { env, .. } = &mut stage.setup.reach {
        env.push(("MCP_OWN".to_owned(), "1".to_owned().into()));
    }
    let agent = stage.agreed().await;
    agent.call("a", json!({})).await;
    let record = agent.record();
    let names = record[0]["started"].as_array().unwrap();
    let names = names.iter().filter_map(|name| name.as_str()).collect::<Vec<_>>();
    assert!(names.contains(&"MCP_OWN") && names.contains(&"PATH"), "{names:?}");
    // Cargo sets many for the tests of this process.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!names.iter().any(|name| name.starts_with("CARGO_") && *name != "CARGO_HOME"), "{names:?}");
}

#[tokio::test]
async fn a_server_ends_with_its_run() {
    let agent = Stage::new(&json!({ "lists": [[tool("a")]] })).agreed().await;
    agent.call("a", json!({})).await;
    let tool = agent.tools.get("mcp__evil__a").unwrap();
    tool.session_over(provost_event::SessionId { run: crate::stage::Agent::run(), agent: 3 });
    agent.call("a", json!({})).await;
    assert_eq!(agent.count("start"), 1, "a sub-agent's end isn't the run's");
    tool.session_over(provost_event::SessionId::root(crate::stage::Agent::run()));
    agent.call("a", json!({})).await;
    assert_eq!(agent.count("start"), 2);
}
