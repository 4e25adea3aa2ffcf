//! The budget of the run binds each call.

use futures::future::join_all;
use provost_event::{Certainty, ExternalCallEnd};

use crate::answers::{ANTHROPIC_STREAM, ASK_ANTHROPIC};
use crate::stage::{Stage, Staged, json, open_sse, sse};

fn money(micros: u64) -> Staged {
    Staged { money: Some(micros), ..Staged::default() }
}

#[tokio::test]
async fn the_cap_of_every_format_is_lowered_to_what_is_granted_and_nothing_else_changes() {
    let stage = Stage::with(money(3_000), |_| json(500, "{}")).await;
    let check = async |path: &str, ask: &str, expected: &str| {
        stage.post(path, ask).await;
        let body = stage.seen().last().unwrap().body.clone();
        let called = stage.called().await;
        let cap = called.last().unwrap().output_tokens_max;
        assert_eq!(
            body,
            expected.replace("CAP", &cap.to_string()).replace("LESS", &(cap - cap / 4).to_string())
        );
    };
    check(
        "/anthropic/v1/messages",
        r#"{ "model": "claude", "max_tokens": 4000 , "thinking":{"type":"enabled","budget_tokens":3000}}"#,
        r#"{ "model": "claude", "max_tokens": CAP , "thinking":{"type":"enabled","budget_tokens":LESS}}"#,
    )
    .await;
    check(
        "/openai/v1/responses",
        r#"{"model":"gpt","input":"hi"}"#,
        r#"{"max_output_tokens":CAP,"model":"gpt","input":"hi"}"#,
    )
    .await;
    check(
        "/openai/v1/chat/completions",
        r#"{"model":"gpt","messages":[],"max_completion_tokens":4000}"#,
        r#"{"model":"gpt","messages":[],"max_completion_tokens":CAP}"#,
    )
    .await;
    check(
        "/gemini/v1beta/models/flash:generateContent",
        r#"{"contents":[],"generationConfig":{"temperature":0.10,"thinkingConfig":{"thinkingBudget":3999}}}"#,
        r#"{"contents":[],"generationConfig":{"maxOutputTokens":CAP,"temperature":0.10,"thinkingConfig":{"thinkingBudget":LESS}}}"#,
    )
    .await;
    check(
        "/gemini/v1beta/models/flash:generateContent",
        r#"{"contents":[]}"#,
        r#"{"generationConfig":{"maxOutputTokens":CAP},"contents":[]}"#,
    )
    .await;
    for called in stage.called().await {
        assert!(called.output_tokens_max < 4_000, "{called:?}");
    }
}

#[tokio::test]
async fn a_program_without_budget_gets_an_error_in_its_provider_s_form_and_the_provider_none() {
    let asks = [
        ("/anthropic/v1/messages", ASK_ANTHROPIC, "/error/type"),
        ("/openai/v1/chat/completions", r#"{"model":"gpt","messages":[]}"#, "/error/type"),
        ("/openai/v1/responses", r#"{"model":"gpt","input":"hi"}"#, "/error/type"),
        ("/gemini/v1beta/models/flash:generateContent", r#"{"contents":[]}"#, "/error/status"),
    ];
    for (path, ask, kind) in asks {
        let stage = Stage::with(money(10), |_| json(200, "{}")).await;
        let response = stage.post(path, ask).await;
        assert_eq!(response.status(), 400, "a status that programs don't retry");
        let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        assert!(body.pointer(kind).is_some(), "{body}");
        let message = body.pointer("/error/message").unwrap().as_str().unwrap();
        assert!(message.contains("budget is used up") && message.contains("Money budget"), "{message}");
        assert!(stage.seen().is_empty());
        let again = stage.post(path, ask).await;
        assert_eq!(again.status(), 400);
        assert!(again.text().await.unwrap().contains("budget is used up"), "as often as it asks");
    }
}

#[tokio::test]
async fn ten_calls_at_once_stay_within_the_budget_and_all_are_made() {
    let stage = Stage::with(money(2_000), |_| sse(ANTHROPIC_STREAM)).await;
    let calls = (0..10).map(|_| stage.post("/anthropic/v1/messages", ASK_ANTHROPIC));
    for response in join_all(calls).await {
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        assert_eq!(response.text().await.unwrap(), ANTHROPIC_STREAM);
    }
    let spent = stage.answered(10).await.iter().map(|answered| answered.cost.unwrap().0).sum::<u64>();
    assert_eq!(spent, 290);
}

#[tokio::test]
async fn closing_the_access_ends_open_calls_and_charges_them_before_it_returns() {
    let stage = Stage::with(money(2_000), |_| open_sse(&[&ANTHROPIC_STREAM[..300]])).await;
    let mut response = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
    response.chunk().await.unwrap();
    stage.close().await;
    let answered = stage.answered(1).await;
    assert_eq!(answered[0].end, ExternalCallEnd::Aborted);
    assert_eq!(answered[0].usage.certainty, Certainty::Estimated);
    let response = stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await;
    assert_eq!(response.status(), 401, "the token is worth nothing any more");
}
