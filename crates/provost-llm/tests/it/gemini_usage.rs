//! Usage reports of Google's models.

use provost_event::{Certainty, Usage};

use crate::gemini_support::*;

async fn check(reports: &[&str], expected: Usage) {
    let mut chunks = vec![parts(r#"{"text": "12345678"}"#)];
    chunks.extend(reports.iter().map(|report| format!(r#"{{"usageMetadata": {report}}}"#)));
    chunks.push(r#"{"candidates": [{"finishReason": "STOP"}]}"#.to_owned());
    assert_eq!(outcome(&chunks).await.unwrap().usage, expected, "{reports:?}");
}

#[tokio::test]
async fn the_prompt_includes_what_was_cached_and_the_output_the_thoughts() {
    let expected = Usage {
        input_tokens: 144 - 40,
        output_tokens: 51 + 56,
        cache_read_tokens: 40,
        cache_write_tokens: 0,
        reasoning_tokens: 56,
        certainty: Certainty::Reported,
    };
    check(
        &[
            r#"{"promptTokenCount": 55,"candidatesTokenCount": 51,"totalTokenCount": 251,"toolUsePromptTokenCount": 89,"thoughtsTokenCount": 56,"cachedContentTokenCount": 40}"#,
        ],
        expected,
    )
    .await;
}

#[tokio::test]
async fn counts_are_the_last_word_and_none_is_forgotten() {
    let expected = Usage { input_tokens: 6, output_tokens: 77, reasoning_tokens: 76, ..Usage::default() };
    check(
        &[
            r#"{"promptTokenCount": 6,"totalTokenCount": 20,"thoughtsTokenCount": 14}"#,
            r#"{"promptTokenCount": 6,"totalTokenCount": 82,"thoughtsTokenCount": 76}"#,
            r#"{"promptTokenCount": 6,"candidatesTokenCount": 1,"totalTokenCount": 83,"thoughtsTokenCount": 76}"#,
            r#"{"promptTokenCount": 0,"candidatesTokenCount": 1,"totalTokenCount": 83}"#,
            "{}",
        ],
        expected,
    )
    .await;
}

#[tokio::test]
async fn an_answers_count_may_include_the_thoughts() {
    let expected = Usage { input_tokens: 10, output_tokens: 90, reasoning_tokens: 76, ..Usage::default() };
    check(
        &[r#"{"promptTokenCount": 10,"candidatesTokenCount": 90,"totalTokenCount": 100,"thoughtsTokenCount": 76}"#],
        expected,
    )
    .await;
}

#[tokio::test]
async fn a_cache_that_is_larger_than_the_prompt_leaves_nothing_else() {
    let expected = Usage { output_tokens: 1, cache_read_tokens: 9, ..Usage::default() };
    check(&[r#"{"promptTokenCount": 5,"candidatesTokenCount": 1,"cachedContentTokenCount": 9}"#], expected)
        .await;
}

#[tokio::test]
async fn the_last_chunk_counts_also_where_it_counts_less() {
    let expected = Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() };
    check(
        &[
            r#"{"promptTokenCount": 120,"candidatesTokenCount": 35,"totalTokenCount": 155}"#,
            r#"{"promptTokenCount": 100,"candidatesTokenCount": 20,"totalTokenCount": 120}"#,
        ],
        expected,
    )
    .await;
}
