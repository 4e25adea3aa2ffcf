//! Servers that are reached by HTTP.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use provost_mcp_client::Reach;
use serde_json::{Value, json};

use crate::stage::{Stage, tool};

type Seen = Arc<Mutex<Vec<(String, String)>>>;

async fn answer(
    State((seen, is_current)): State<(Seen, bool)>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let authorization =
        headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    seen.lock().unwrap().push((method.clone(), authorization.to_owned()));
    let result = match method.as_str() {
        "server/discover" if is_current => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" }, "ttlMs": 0, "cacheScope": "private" }),
        "initialize" if !is_current => json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" } }),
        "tools/list" => {
            json!({ "resultType": "complete", "tools": [tool("a")], "ttlMs": 0, "cacheScope": "private" })
        }
        "tools/call" => {
            json!({ "resultType": "complete", "content": [{ "type": "text", "text": "from afar" }] })
        }
        _ if message.get("id").is_none() => return axum::http::StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32601, "message": "no" } });
            return ([("content-type", "application/json")], error.to_string()).into_response();
        }
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    ([("content-type", "application/json")], answer.to_string()).into_response()
}

#[tokio::test]
async fn a_server_is_reached_by_its_address_with_its_headers() {
    for is_current in [true, false] {
        let seen = Seen::default();
        let app = Router::new().route("/mcp", post(answer)).with_state((Arc::clone(&seen), is_current));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        let mut stage = Stage::new(&json!({}));
        stage.setup.reach = Reach::Http {
            url: format!("http://{address}/mcp"),
            headers: vec![("Authorization".to_owned(), "Bearer abc".to_owned().into())],
        };
        let agent = stage.agreed().await;
        let output = agent.call("a", json!({})).await;
        assert_eq!(output.text, "from afar", "{output:?}");
        let seen = seen.lock().unwrap().clone();
        assert!(seen.iter().all(|(_, authorization)| authorization == "Bearer abc"), "{seen:?}");
        assert_eq!(seen.iter().any(|(method, _)| method == "initialize"), !is_current, "{seen:?}");
        server.abort();
    }
}
