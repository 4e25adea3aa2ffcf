//! What servers ask the user.

use provost_event::ToolStatus;
use serde_json::{Value, json};

use crate::stage::{Stage, tool};

fn asks(fields: &Value) -> Value {
    json!({ "mode": "form", "message": "Delete\u{200b} the branch?", "requestedSchema": {
        "type": "object", "properties": fields, "required": fields.as_object().unwrap().keys().collect::<Vec<_>>() } })
}

#[tokio::test]
async fn a_question_of_the_current_revision_waits_with_the_servers_own_state() {
    let script = json!({ "discover": "current", "lists": [[tool("delete")]], "calls": { "delete": {
        "asks": asks(&json!({ "sure": { "type": "boolean" }, "name": { "type": "string" } })) } } });
    let agent = Stage::new(&script).agreed().await;
    let output = agent.call("delete", json!({})).await;
    let asked = output.asks.expect("a question");
    assert_eq!(asked.message, "The MCP server evil asks: Delete the branch?");
    // The answer comes days later, in another process.
    let agent = agent.stage.agent();
    let output = agent.answered("delete", &asked, Some(json!({ "sure": true, "name": "main" }))).await;
    assert_eq!(
        output.text,
        r#"{"given": {"one": {"action": "accept", "content": {"name": "main", "sure": true}}}, "state": "sealed:1"}"#
    );
}

#[tokio::test]
async fn a_question_that_an_older_server_asks_by_itself_waits_too_and_the_call_is_made_anew() {
    let script = json!({ "lists": [[tool("delete")]], "calls": { "delete": {
        "by_itself": true, "asks": asks(&json!({ "sure": { "type": "boolean" } })) } } });
    let agent = Stage::new(&script).agreed().await;
    let output = agent.call("delete", json!({})).await;
    let asked = output.asks.expect("a question");
    let cancelled = agent.record().iter().any(|line| line["result"]["action"] == "cancel");
    assert!(cancelled, "the server isn't kept waiting for days");
    let output = agent.answered("delete", &asked, None).await;
    assert_eq!(output.text, r#"answer: {"action": "accept", "content": {"sure": true}}"#);
}

#[tokio::test]
async fn a_question_for_a_secret_is_refused() {
    for (discover, by_itself) in [("current", false), ("unknown", true)] {
        let script = json!({ "discover": discover, "lists": [[tool("login")]], "calls": { "login": {
            "by_itself": by_itself, "asks": asks(&json!({ "api_key": { "type": "string" } })) } } });
        let agent = Stage::new(&script).agreed().await;
        let output = agent.call("login", json!({})).await;
        assert!(output.asks.is_none());
        assert!(output.text.contains("asks for a secret (api_key)"), "{}", output.text);
        let is_refused = output.status == ToolStatus::Error || output.text.contains(r#""action": "decline""#);
        assert!(is_refused, "{output:?}");
    }
}
