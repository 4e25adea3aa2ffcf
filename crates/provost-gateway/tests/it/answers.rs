//! Answers pass byte for byte, and their usage is charged.

use std::sync::Arc;

use provost_event::{Certainty, ExternalCallEnd};
use tokio::sync::Notify;

use crate::stage::{KEY, Stage, Staged, broken_sse, json, open_sse, sse};

pub(crate) const ANTHROPIC_STREAM: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\",\"usage\":{\"input_tokens\":20,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"command\\\":\\\"make\\\"}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);
pub(crate) const ASK_ANTHROPIC: &str =
    r#"{"model":"claude","max_tokens":300, "stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
const ASK_CHAT: &str = r#"{"model":"gpt","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

#[tokio::test]
async fn a_stream_passes_unchanged_and_what_it_took_is_charged() {
    let stage = Stage::new(|_| sse(ANTHROPIC_STREAM)).await;
    let response = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(response.text().await.unwrap(), ANTHROPIC_STREAM);
    let answered = stage.answered(1).await;
    assert_eq!((answered[0].usage.input_tokens, answered[0].usage.output_tokens), (20, 9));
    assert_eq!(answered[0].usage.certainty, Certainty::Reported);
    assert_eq!(answered[0].cost.map(|cost| cost.0), Some(29));
    let tools = answered[0].tools.iter().map(|tool| (tool.name.as_str(), tool.input.text()));
    assert_eq!(tools.collect::<Vec<_>>(), [("Bash", r#"{"command":"make"}"#)]);
    let seen = stage.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].path.as_str(), seen[0].body.as_str()), ("/v1/messages", ASK_ANTHROPIC));
    assert_eq!(seen[0].headers["x-api-key"], KEY, "the provider gets the real key");
    let sent = format!("{:?}", seen[0].headers);
    assert!(!sent.contains(&stage.access.token), "and not the token: {sent}");
}

#[tokio::test]
async fn usage_that_the_program_did_not_ask_for_is_asked_for_and_hidden() {
    let plain = concat!(
        "data: {\"id\":\"1\", \"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n",
        "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    );
    let stream = format!(
        "{plain}data: {{\"id\":\"1\",\"choices\":[],\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":3}}}}\n\ndata: [DONE]\n\n"
    );
    let stage = Stage::new(move |_| sse(&stream)).await;
    let response = stage.post("/openai/v1/chat/completions", ASK_CHAT).await;
    assert_eq!(response.text().await.unwrap(), format!("{plain}data: [DONE]\n\n"));
    let answered = stage.answered(1).await;
    assert_eq!((answered[0].usage.input_tokens, answered[0].usage.output_tokens), (7, 3));
    let body = &stage.seen()[0].body;
    assert!(body.contains(r#""stream_options":{"include_usage":true}"#), "{body}");
    let with_options =
        ASK_CHAT.replace("\"stream\":true", "\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    let response = stage.post("/openai/v1/chat/completions", &with_options).await;
    assert!(response.text().await.unwrap().contains("prompt_tokens"), "a program that asks for it gets it");
    assert_eq!(stage.seen()[1].body, with_options);
}

#[tokio::test]
async fn whole_answers_of_every_format_are_read() {
    let stage = Stage::new(|seen| {
        let path = seen.path.as_str();
        json(200, match path {
            "/v1/messages" => r#"{"type":"message","model":"claude","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}"#,
            "/v1/chat/completions" => r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
            "/v1/responses" => r#"{"id":"r","status":"completed","model":"gpt","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":5,"output_tokens":2}}"#,
            _ => r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}"#,
        })
    })
    .await;
    let asks = [
        ("/anthropic/v1/messages", r#"{"model":"claude","max_tokens":9,"messages":[]}"#),
        ("/openai/v1/chat/completions", r#"{"model":"gpt","messages":[]}"#),
        ("/openai/v1/responses", r#"{"model":"gpt","input":"hi"}"#),
        ("/gemini/v1beta/models/flash:generateContent", r#"{"contents":[]}"#),
    ];
    for (path, ask) in asks {
        let response = stage.post(path, ask).await;
        assert_eq!(response.status(), 200, "{path}: {}", response.text().await.unwrap());
    }
    for answered in stage.answered(4).await {
        assert_eq!(answered.end, ExternalCallEnd::Answered, "{answered:?}");
        assert_eq!((answered.usage.input_tokens, answered.usage.output_tokens), (5, 2), "{answered:?}");
    }
}

#[tokio::test]
async fn a_program_that_aborts_its_stream_is_charged_an_estimate_and_the_provider_is_let_go() {
    let stage = Stage::new(|_| open_sse(&[&ANTHROPIC_STREAM[..300]])).await;
    let mut response = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
    response.chunk().await.unwrap();
    assert_eq!(stage.activity().open, 1);
    drop(response);
    let answered = stage.answered(1).await;
    assert_eq!(answered[0].end, ExternalCallEnd::Aborted);
    assert_eq!(answered[0].usage.certainty, Certainty::Estimated);
    assert!(answered[0].usage.total() > 0);
}

#[tokio::test]
async fn a_stream_that_breaks_breaks_for_the_program_too_and_is_charged_an_estimate() {
    let breaks = Arc::new(Notify::new());
    let told = Arc::clone(&breaks);
    let stage = Stage::new(move |_| broken_sse(&ANTHROPIC_STREAM[..300], Arc::clone(&told))).await;
    let mut response = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
    response.chunk().await.unwrap();
    breaks.notify_one();
    assert!(response.text().await.is_err(), "the program sees that it is cut");
    let answered = stage.answered(1).await;
    assert!(matches!(answered[0].end, ExternalCallEnd::Failed { .. }), "{answered:?}");
    assert_eq!(answered[0].usage.certainty, Certainty::Estimated);
}

#[tokio::test]
async fn bodies_are_recorded_without_secrets_where_that_is_set() {
    let answer = ANTHROPIC_STREAM.replace("make", &format!("echo {KEY}"));
    let stage = Stage::with(Staged { records: true, ..Staged::default() }, move |_| sse(&answer)).await;
    let ask = ASK_ANTHROPIC.replace("\"hi\"", &format!("\"the key is {KEY}\""));
    stage.post("/anthropic/v1/messages", &ask).await.text().await.unwrap();
    let answered = stage.answered(1).await;
    let called = stage.called().await;
    for blob in [called[0].of.body.clone().unwrap(), answered[0].body.clone().unwrap()] {
        let body = stage.backend.get_blob(&blob).await.unwrap().unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains("[secret]") && !body.contains(KEY), "{body}");
    }
    let log = format!("{:?}", stage.records().await);
    assert!(!log.contains(KEY) && !log.contains(&stage.access.token), "{log}");
}
