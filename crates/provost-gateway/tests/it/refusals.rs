//! What the gateway refuses, and what passes free.

use provost_gateway::GatewayLimits;

use crate::answers::{ANTHROPIC_STREAM, ASK_ANTHROPIC};
use crate::stage::{KEY, Stage, Staged, json, sse};

#[tokio::test]
async fn requests_that_can_not_be_bounded_are_refused_and_say_why() {
    let stage = Stage::new(|_| json(200, "{}")).await;
    let anthropic = "/anthropic/v1/messages";
    let responses = "/openai/v1/responses";
    let chat = "/openai/v1/chat/completions";
    let gemini = "/gemini/v1beta/models/flash:generateContent";
    let all = [
        (responses, r#"{"model":"gpt","input":"x","previous_response_id":"r1"}"#, "previous_response_id"),
        (responses, r#"{"model":"gpt","input":"x","background":true}"#, "background"),
        (responses, r#"{"model":"gpt","input":"x","tools":[{"type":"web_search"}]}"#, "web_search"),
        (responses, r#"{"model":"gpt","input":"x","service_tier":"priority"}"#, "priority"),
        (responses, r#"{"model":"gpt","input":[{"type":"item_reference","id":"i"}]}"#, "earlier item"),
        (
            responses,
            r#"{"model":"gpt","input":[{"content":[{"type":"input_file","file_id":"f"}]}]}"#,
            "file_id",
        ),
        (
            anthropic,
            r#"{"model":"claude","max_tokens":9,"messages":[],"tools":[{"type":"web_search_20250305"}]}"#,
            "web_search",
        ),
        (
            anthropic,
            r#"{"model":"claude","max_tokens":9,"messages":[],"mcp_servers":[{"url":"x"}]}"#,
            "mcp_servers",
        ),
        (chat, r#"{"model":"gpt","messages":[],"web_search_options":{}}"#, "web_search_options"),
        (chat, r#"{"model":"gpt","messages":[],"n":1000}"#, "at most"),
        (chat, r#"{"model":"gpt","messages":[],"n":8.0}"#, "whole number"),
        (chat, r#"{"model":"gpt","messages":[],"n":"8"}"#, "whole number"),
        (chat, r#"{"model":"gpt","messages":[],"models":["dear/x"],"route":"fallback"}"#, "models"),
        (chat, r#"{"model":"gpt","messages":[],"max_tokens":9,"n_predict":99999}"#, "n_predict"),
        (chat, r#"{"model":"gpt","messages":[],"options":{"num_predict":99999}}"#, "options"),
        (chat, r#"{"model":"gpt","messages":[],"max_tokens":1,"max_tokens":100000}"#, "stands twice"),
        (chat, r#"["x"]"#, "can't be read"),
        (chat, r#"{"messages":[]}"#, "no model"),
        (gemini, r#"{"contents":[],"tools":[{"googleSearch":{}}]}"#, "googleSearch"),
        (gemini, r#"{"contents":[],"cachedContent":"c"}"#, "cachedContent"),
    ];
    for (path, ask, word) in all {
        let response = stage.post(path, ask).await;
        let status = response.status();
        let body = response.text().await.unwrap();
        assert_eq!(status, 400, "{ask}: {body}");
        assert!(body.contains(word), "{ask}: {body}");
    }
    assert!(stage.seen().is_empty(), "none is forwarded");
    assert!(stage.called().await.is_empty());
}

#[tokio::test]
async fn arguments_of_tools_may_have_members_of_any_name() {
    let stage = Stage::new(|_| sse(ANTHROPIC_STREAM)).await;
    let ask = r#"{"model":"claude","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"x","input":{"file_id":"f","type":"item_reference"}}]}],"tools":[{"name":"x","input_schema":{"properties":{"file_id":{}}}}]}"#;
    assert_eq!(stage.post("/anthropic/v1/messages", ask).await.status(), 200);
}

#[tokio::test]
async fn counts_of_tokens_and_lists_of_models_pass_free_and_nothing_else_does() {
    let stage = Stage::new(|seen| json(200, &format!("{{\"path\":\"{}\"}}", seen.path))).await;
    let counted = stage.post("/anthropic/v1/messages/count_tokens", "{}").await;
    assert_eq!(counted.text().await.unwrap(), r#"{"path":"/v1/messages/count_tokens"}"#);
    let counted = stage.post("/gemini/v1beta/models/flash:countTokens?key=x", "{}").await;
    assert_eq!(counted.status(), 200);
    for path in ["/openai/v1/models", "/anthropic/v1/models?limit=5", "/gemini/v1beta/models/flash"] {
        let request = stage.client.get(format!("{}{path}", stage.access.url));
        assert_eq!(request.bearer_auth(&stage.access.token).send().await.unwrap().status(), 200, "{path}");
    }
    let free = stage.seen().len();
    assert!(stage.seen().iter().all(|seen| !format!("{:?}", seen.headers).contains(&stage.access.token)));
    for path in [
        "/openai/v1/embeddings",
        "/openai/v1/batches",
        "/openai/v1/responses/compact",
        "/anthropic/v1/messages/batches",
        "/gemini/v1beta/models/flash:embedContent",
        "/gemini/v1beta/cachedContents",
        "/openai/v1/../v1/embeddings",
        "/other/v1/messages",
    ] {
        assert_eq!(stage.post(path, "{}").await.status(), 404, "{path}");
    }
    assert_eq!(stage.seen().len(), free, "the provider sees none of them");
    assert!(stage.called().await.is_empty());
}

#[tokio::test]
async fn only_the_program_with_its_token_is_answered() {
    let stage = Stage::new(|_| sse(ANTHROPIC_STREAM)).await;
    let url = format!("{}/anthropic/v1/messages", stage.access.url);
    let post = || stage.client.post(&url).body(ASK_ANTHROPIC);
    assert_eq!(post().send().await.unwrap().status(), 401, "without a token");
    assert_eq!(post().header("x-api-key", KEY).send().await.unwrap().status(), 401, "the real key is none");
    let token = stage.access.token.as_str();
    assert_eq!(post().header("x-api-key", token).send().await.unwrap().status(), 200);
    let strange = post().header("x-api-key", token).header("host", "provider.example");
    assert_eq!(strange.send().await.unwrap().status(), 403, "by another name");
    let page = post().header("x-api-key", token).header("origin", "http://127.0.0.1");
    assert_eq!(page.send().await.unwrap().status(), 403, "a page of a browser");
}

#[tokio::test]
async fn a_web_socket_is_refused_so_that_programs_fall_back_to_http() {
    let stage = Stage::new(|_| json(200, "{}")).await;
    let request = stage.client.get(format!("{}/openai/v1/responses", stage.access.url));
    let request = request.bearer_auth(&stage.access.token);
    let request = request.header("connection", "upgrade").header("upgrade", "websocket");
    assert_eq!(request.send().await.unwrap().status(), 426);
}

#[tokio::test]
async fn bodies_and_requests_have_limits() {
    let limits = GatewayLimits { request_bytes_max: 200, requests_max: 1, ..GatewayLimits::default() };
    let stage =
        Stage::with(Staged { limits, ..Staged::default() }, |_| crate::stage::open_sse(&["data: x"])).await;
    let long = ASK_ANTHROPIC.replace("hi", &"x".repeat(200));
    assert_eq!(stage.post("/anthropic/v1/messages", &long).await.status(), 413);
    let mut first = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
    first.chunk().await.unwrap();
    assert_eq!(stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await.status(), 429);
}

#[tokio::test]
async fn only_allowed_models_are_called() {
    let models = vec!["a/cl*".to_owned()];
    let stage = Stage::with(Staged { models, ..Staged::default() }, |_| sse(ANTHROPIC_STREAM)).await;
    assert_eq!(stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await.status(), 200);
    let response = stage.post("/openai/v1/responses", r#"{"model":"gpt","input":"x"}"#).await;
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("don't allow the model `o/gpt`"));
}
