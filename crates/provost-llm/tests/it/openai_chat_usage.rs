//! The usage of answers, in all the servers' formats.

use provost_event::{Certainty, Usage};

use crate::openai_chat_support::*;

async fn check(events: &[&str], expected: Usage) {
    assert_eq!(answer_to(&ended(events)).await.usage, expected, "{events:?}");
}

fn with(event: &str, field: &str) -> String {
    event.replacen("{\"id\"", &format!("{{{field},\"id\""), 1)
}

/// The usage of a report in the last event.
async fn check_report(report: &str, expected: Usage) {
    let last = format!(r#"{{"choices":[],"usage":{report}}}"#);
    check(&[&delta(r#"{"content":"a"}"#), &finish("stop"), &last], expected).await;
}

const PLAIN: Usage = Usage {
    input_tokens: 100,
    output_tokens: 20,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    certainty: Certainty::Reported,
};

#[tokio::test]
async fn usage_is_read_wherever_it_stands() {
    let report = r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}"#;
    let (text, end) = (delta(r#"{"content":"a"}"#), finish("stop"));
    let usage = format!("\"usage\":{report}");
    check_report(report, PLAIN).await;
    check(&[&text, &with(&end, &usage)], PLAIN).await;
    check(&[&text, &end, &with(&delta("{}"), &usage)], PLAIN).await;
    // Groq, and Moonshot.
    check(&[&text, &with(&end, &format!(r#""x_groq":{{"id":"req_1","usage":{report}}}"#))], PLAIN).await;
    let moonshot = end.replace(r#""finish_reason""#, &format!(r#""usage":{report},"finish_reason""#));
    check(&[&text, &moonshot], PLAIN).await;
}

#[tokio::test]
async fn reports_in_each_event_are_cumulative() {
    // vLLM with `continuous_usage_stats`.
    let report = |prompt: u32, completion: u32| {
        format!(r#""usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":1}}"#)
    };
    let text = delta(r#"{"content":"a"}"#);
    let events = [
        with(&text, &report(100, 1)),
        with(&text, &report(100, 19)),
        with(&finish("stop"), &report(100, 20)),
        r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":null}}"#.to_owned(),
    ];
    check(&events.each_ref().map(String::as_str), PLAIN).await;
}

#[tokio::test]
async fn cached_input_is_told_apart_in_every_providers_words() {
    let cached = Usage { input_tokens: 36, cache_read_tokens: 64, ..PLAIN };
    for report in [
        r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0}}"#,
        r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#,
        r#"{"prompt_tokens":100,"completion_tokens":20,"cached_tokens":64}"#,
        r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64},"cached_tokens":64}"#,
        r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":null,"cache_read_input_tokens":64}"#,
    ] {
        check_report(report, cached).await;
    }
    let written = Usage { input_tokens: 6, cache_read_tokens: 64, cache_write_tokens: 30, ..PLAIN };
    for report in [
        r#"{"prompt_tokens":100,"completion_tokens":20,"cost":0.01,"prompt_tokens_details":{"cached_tokens":64,"cache_write_tokens":30}}"#,
        r#"{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64,"cache_creation_tokens":30},"cache_creation_input_tokens":30,"cache_read_input_tokens":64}"#,
    ] {
        check_report(report, written).await;
    }
    // A gateway that didn't add up Anthropic's separate counts.
    let apart = r#"{"prompt_tokens":100,"completion_tokens":20,"cache_creation_input_tokens":30,"cache_read_input_tokens":640}"#;
    check_report(apart, Usage { cache_read_tokens: 640, cache_write_tokens: 30, ..PLAIN }).await;
}

#[tokio::test]
async fn reasoning_is_part_of_the_output_also_where_it_is_counted_beside_it() {
    let thought = Usage { reasoning_tokens: 15, ..PLAIN };
    let within = r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"completion_tokens_details":{"reasoning_tokens":15}}"#;
    check_report(within, thought).await;
    // xAI.
    let beside = r#"{"prompt_tokens":100,"completion_tokens":5,"total_tokens":120,"completion_tokens_details":{"reasoning_tokens":15}}"#;
    check_report(beside, thought).await;
}

#[tokio::test]
async fn usage_that_is_never_told_or_cant_be_read_is_estimated() {
    for last in [
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":"x"}}"#,
    ] {
        let usage =
            answer_to(&ended(&[&delta(r#"{"content":"12345678"}"#), &finish("stop"), last])).await.usage;
        assert_eq!(usage.output_tokens, 2);
        assert!(usage.input_tokens > 0);
    }
}
