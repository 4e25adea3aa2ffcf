//! Details of Anthropic's answers.

use expect_test::{Expect, expect};
use provost_engine::Answer;
use provost_event::{Block, Certainty, Usage};
use serde_json::{Value, json};

use crate::anthropic_support::*;
use crate::server::{Reply, Server, streamed};
use crate::support::Conversation;

async fn answer_to(stream: &str) -> Answer {
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    Conversation::new("go").ask(&model(&server)).await.unwrap()
}

/// Shows an answer's blocks and its stop reason.
async fn check(blocks: &[Vec<Value>], stop: &str, expected: Expect) {
    check_stream(&stream(blocks, stop), expected).await;
}

async fn check_stream(stream: &str, expected: Expect) {
    let answer = answer_to(stream).await;
    let blocks = answer.content.iter().map(|block| serde_json::to_string(block).unwrap() + "\n");
    expected.assert_eq(&format!("{}{:?}\n", blocks.collect::<String>(), answer.stop));
}

#[tokio::test]
async fn usage_is_the_last_word_on_each_count() {
    let answer = answer_to(&stream(&[text_block(0, &["a"])], "end_turn")).await;
    let expected = Usage {
        input_tokens: 25,
        output_tokens: 40,
        cache_read_tokens: 2000,
        cache_write_tokens: 100,
        reasoning_tokens: 0,
        certainty: Certainty::Reported,
    };
    assert_eq!(answer.usage, expected);
    let late = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {
        "input_tokens": 30, "output_tokens": 7, "cache_read_input_tokens": null, "cache_creation_input_tokens": 0,
    }});
    let answer = answer_to(&sse(&[start(), late, json!({"type": "message_stop"})])).await;
    assert_eq!(answer.usage, Usage { input_tokens: 30, output_tokens: 7, ..expected });
}

#[tokio::test]
async fn parallel_tool_calls_keep_their_arguments_as_written() {
    let blocks = [
        text_block(0, &["Let me look."]),
        tool_block(1, "toolu_1", "search", &["", "{\"pattern\"", ": \"fn  add\", \"b\":1", ",\"a\":2}"]),
        tool_block(2, "toolu_2", "shell", &["{\"command\":\"ls\"}"]),
        tool_block(3, "toolu_3", "list", &[]),
    ];
    check(
        &blocks,
        "tool_use",
        expect![[r#"
            {"text":"Let me look."}
            {"tool_call":{"id":"toolu_1","name":"search","input":{"pattern": "fn  add", "b":1,"a":2}}}
            {"tool_call":{"id":"toolu_2","name":"shell","input":{"command":"ls"}}}
            {"tool_call":{"id":"toolu_3","name":"list","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn arguments_that_are_no_object_are_kept_as_malformed() {
    let blocks = [
        tool_block(0, "a", "shell", &["{\"command\": "]),
        tool_block(1, "b", "shell", &["[1]"]),
        tool_block(2, "c", "shell", &[&format!("\"{}", "x".repeat(600))]),
    ];
    let answer = answer_to(&stream(&blocks, "tool_use")).await;
    let malformed = |block: &Block| match block {
        Block::ToolCall(call) => (call.input.text().to_owned(), call.malformed.clone().unwrap()),
        other => panic!("{other:?}"),
    };
    let calls = answer.content.iter().map(malformed).collect::<Vec<_>>();
    assert_eq!(calls[0], ("{}".to_owned(), "{\"command\": ".to_owned()));
    assert_eq!(calls[1], ("{}".to_owned(), "[1]".to_owned()));
    assert_eq!(calls[2].1.chars().count(), 501);
}

#[tokio::test]
async fn arguments_on_several_lines_fit_one_line_of_the_log() {
    let blocks = [tool_block(0, "a", "shell", &["{\n  \"command\":\r\n \"a\\nb\"\n}"])];
    check(
        &blocks,
        "tool_use",
        expect![[r#"
            {"tool_call":{"id":"a","name":"shell","input":{   "command":   "a\nb" }}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_cut_off_by_the_cap_is_dropped_and_a_whole_one_is_kept() {
    let blocks =
        [tool_block(0, "a", "shell", &["{\"command\":\"ls\"}"]), tool_block(1, "b", "shell", &["{\"comm"])];
    check(
        &blocks,
        "max_tokens",
        expect![[r#"
            {"tool_call":{"id":"a","name":"shell","input":{"command":"ls"}}}
            OutputCap
        "#]],
    )
    .await;
    check(&[tool_block(0, "a", "shell", &[])], "max_tokens", expect!["OutputCap\n"]).await;
}

#[tokio::test]
async fn reasoning_keeps_its_seal_and_unknown_blocks_their_json() {
    let thinking = [
        json!({"type": "thinking_delta", "thinking": "Let me "}),
        json!({"type": "thinking_delta", "thinking": "think."}),
        json!({"type": "signature_delta", "signature": "EqQB+/="}),
    ];
    let blocks = [
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""}), &thinking),
        block(1, json!({"type": "redacted_thinking", "data": "Emwk/+="}), &[]),
        block(2, json!({"type": "thinking", "thinking": "", "signature": ""}), &thinking[2..]),
        block(3, json!("@future"), &[json!({"type": "x_delta"})]),
        text_block(4, &["Done."]),
    ];
    let stream =
        stream(&blocks, "end_turn").replace("\"@future\"", r#"{"z" : 1, "type":"new", "a":{"b":[1.50]}}"#);
    check_stream(
        &stream,
        expect![[r#"
            {"thinking":{"text":"Let me think.","signature":"EqQB+/=","wire":"anthropic","prefix":"aba487c49b8598cc"}}
            {"opaque":{"wire":"anthropic","json":{"type":"redacted_thinking","data":"Emwk/+="},"prefix":"aba487c49b8598cc"}}
            {"thinking":{"text":"","signature":"EqQB+/=","wire":"anthropic","prefix":"aba487c49b8598cc"}}
            {"opaque":{"wire":"anthropic","json":{"z" : 1, "type":"new", "a":{"b":[1.50]}},"prefix":"aba487c49b8598cc"}}
            {"text":"Done."}
            EndTurn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn every_reason_to_stop_is_understood() {
    for (said, expected) in [
        ("end_turn", "EndTurn"),
        ("stop_sequence", "EndTurn"),
        ("tool_use", "ToolUse"),
        ("max_tokens", "OutputCap"),
        ("model_context_window_exceeded", "OutputCap"),
        ("pause_turn", "OutputCap"),
        ("refusal", "Refusal"),
        ("something_new", "EndTurn"),
    ] {
        let answer = answer_to(&stream(&[text_block(0, &["a"])], said)).await;
        assert_eq!(format!("{:?}", answer.stop), expected, "{said}");
    }
}

#[tokio::test]
async fn unknown_events_fields_and_deltas_are_passed_over() {
    let mut events = vec![start(), json!({"type": "new_event", "delta": 7, "index": "x"})];
    events.extend(block(
        0,
        json!({"type": "text", "text": "", "new": {}}),
        &[
            json!({"type": "citations_delta", "citation": {"cited_text": "x"}}),
            json!({"type": "text_delta", "text": "a"}),
        ],
    ));
    events.extend(end("end_turn"));
    assert_eq!(answer_to(&sse(&events)).await.content, [Block::Text("a".to_owned())]);
}
