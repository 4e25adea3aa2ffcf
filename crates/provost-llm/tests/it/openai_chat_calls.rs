//! Tool calls in all the servers' formats.

use expect_test::expect;
use provost_event::ErrorClass;

use crate::openai_chat_support::*;
use crate::server::{Reply, Server, plain};
use crate::support::Conversation;

#[tokio::test]
async fn parallel_calls_keep_their_arguments_as_written() {
    let stream = stream(
        &[
            r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"search","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"pattern\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":": \"fn  add\", \"b\":1,\"a\":2}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"shell","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"command\":\"ls\"}"}}]}"#,
            r#"{"tool_calls":[{"index":2,"id":"call_c","type":"function","function":{"name":"list","arguments":""}}]}"#,
        ],
        "tool_calls",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"call_a","name":"search","input":{"pattern": "fn  add", "b":1,"a":2}}}
            {"tool_call":{"id":"call_b","name":"shell","input":{"command":"ls"}}}
            {"tool_call":{"id":"call_c","name":"list","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn calls_that_are_written_side_by_side_are_told_apart() {
    let stream = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":"}},{"index":1,"id":"b","function":{"name":"y","arguments":"{\"m\":"}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"2}"}},{"index":0,"function":{"arguments":"1}"}}]}"#,
        ],
        "tool_calls",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"a","name":"x","input":{"n":1}}}
            {"tool_call":{"id":"b","name":"y","input":{"m":2}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn pieces_without_an_index_belong_to_the_call_they_name_or_to_the_last_one() {
    let stream = stream(
        &[
            r#"{"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{\"n\":"}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":"1"}}]}"#,
            r#"{"tool_calls":[{"id":"a","function":{"arguments":"}"}}]}"#,
            r#"{"tool_calls":[{"id":"b","type":"function","function":{"name":"x","arguments":"{}"}}]}"#,
        ],
        "tool_calls",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"a","name":"x","input":{"n":1}}}
            {"tool_call":{"id":"b","name":"x","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

/// Gemini's compatible endpoint: no index, no id, all in one event.
#[tokio::test]
async fn whole_calls_without_index_and_id_in_one_event_are_several() {
    let stream = stream(
        &[
            r#"{"role":"assistant","tool_calls":[{"function":{"name":"x","arguments":"{\"n\":1}"},"type":"function"},{"function":{"name":"x","arguments":"{\"n\":2}"},"type":"function"},{"id":"","function":{"name":"y","arguments":""},"type":"function"},{"function":{"name":"y"},"type":"function"}]}"#,
        ],
        "stop",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"call_1_0","name":"x","input":{"n":1}}}
            {"tool_call":{"id":"call_1_1","name":"x","input":{"n":2}}}
            {"tool_call":{"id":"call_1_2","name":"y","input":{}}}
            {"tool_call":{"id":"call_1_3","name":"y","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

/// Ollama before it had indexes.
#[tokio::test]
async fn calls_that_all_have_index_0_are_told_apart_by_their_ids() {
    let stream = stream(
        &[
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"call_1","index":0,"type":"function","function":{"name":"x","arguments":"{\"n\":1}"}}]}"#,
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"call_2","index":0,"type":"function","function":{"name":"x","arguments":"{\"n\":2}"}}]}"#,
            r#"{"tool_calls":[{"id":"call_3","index":0,"type":"function","function":{"name":"y","arguments":"{\"n\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":":3}"}}]}"#,
            r#"{"tool_calls":[{"id":"call_4","index":0,"type":"function","function":{"name":"z","arguments":""}}]}"#,
            r#"{"tool_calls":[{"id":"call_5","index":0,"type":"function","function":{"name":"z","arguments":""}}]}"#,
        ],
        "tool_calls",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"call_1","name":"x","input":{"n":1}}}
            {"tool_call":{"id":"call_2","name":"x","input":{"n":2}}}
            {"tool_call":{"id":"call_3","name":"y","input":{"n":3}}}
            {"tool_call":{"id":"call_4","name":"z","input":{}}}
            {"tool_call":{"id":"call_5","name":"z","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn calls_that_all_have_index_0_and_no_id_are_told_apart_by_their_ends() {
    let stream = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"x","arguments":"{\"n\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"x","arguments":"{\"n\":2}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":null,"function":{"name":"y","arguments":null}}]}"#,
        ],
        "tool_calls",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"call_1_0","name":"x","input":{"n":1}}}
            {"tool_call":{"id":"call_1_1","name":"x","input":{"n":2}}}
            {"tool_call":{"id":"call_1_2","name":"y","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_id_and_a_name_may_stand_in_each_piece_or_come_late() {
    let repeated = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":"{\"n\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":"1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":""}}]}"#,
        ],
        "tool_calls",
    );
    let late = stream(
        &[
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"1}"}}]}"#,
        ],
        "tool_calls",
    );
    // vLLM up to 0.8.
    let other_ids = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"chatcmpl-tool-2","type":"function","function":{"arguments":"{\"n\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"chatcmpl-tool-3","type":"function","function":{"arguments":"1}"}}]}"#,
        ],
        "tool_calls",
    );
    let no_index = stream(
        &[
            r#"{"tool_calls":[{"function":{"name":"x","arguments":""}}]}"#,
            r#"{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{\"n\":"}}]}"#,
            r#"{"tool_calls":[{"id":"","function":{"name":"x","arguments":"1}"}}]}"#,
        ],
        "tool_calls",
    );
    for stream in [repeated, late, other_ids, no_index] {
        check(
            &stream,
            expect![[r#"
                {"tool_call":{"id":"a","name":"x","input":{"n":1}}}
                ToolUse
            "#]],
        )
        .await;
    }
}

#[tokio::test]
async fn arguments_may_be_an_object_or_null_and_ids_numbers() {
    let stream = stream(
        &[
            r#"{"tool_calls":[{"index":"0","id":7,"function":{"name":"x","arguments":{"b": 1,"a":[2.50]}}},{"index":1,"id":"b","function":{"name":"y","arguments":null}},{"index":2,"id":"c","function":{"name":"z"}}]}"#,
        ],
        "tool_calls",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"7","name":"x","input":{"b": 1,"a":[2.50]}}}
            {"tool_call":{"id":"b","name":"y","input":{}}}
            {"tool_call":{"id":"c","name":"z","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn arguments_that_are_no_object_are_kept_as_malformed() {
    let stream = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\": "}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"x","arguments":[1]}}]}"#,
        ],
        "tool_calls",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"a","name":"x","input":{},"malformed":"{\"n\": "}}
            {"tool_call":{"id":"b","name":"x","input":{},"malformed":"[1]"}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn calls_may_come_with_the_end_and_any_end_may_follow_them() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}"#;
    let with_end = delta(call).replace(r#""finish_reason":null"#, r#""finish_reason":"tool_calls""#);
    let streams =
        ["tool_calls", "function_call", "stop", "eos", "", "tool_use"].map(|end| stream(&[call], end));
    let never_said = ended(&[&delta(call)]);
    for stream in streams.into_iter().chain([ended(&[&with_end]), sse(&[&with_end]), never_said]) {
        check(
            &stream,
            expect![[r#"
                {"tool_call":{"id":"a","name":"x","input":{}}}
                ToolUse
            "#]],
        )
        .await;
    }
}

#[tokio::test]
async fn a_function_call_of_the_old_form_is_a_call() {
    let stream = stream(
        &[
            r#"{"role":"assistant","content":null,"function_call":{"name":"x","arguments":""}}"#,
            r#"{"function_call":{"arguments":"{\"n\":"}}"#,
            r#"{"function_call":{"arguments":"1}"}}"#,
        ],
        "function_call",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"call_1_0","name":"x","input":{"n":1}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_call_cut_off_by_the_cap_is_dropped_and_a_whole_one_is_kept() {
    let stream = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"x","arguments":"{\"n\""}}]}"#,
        ],
        "length",
    );
    check(
        &stream,
        expect![[r#"
            {"tool_call":{"id":"a","name":"x","input":{"n":1}}}
            OutputCap
        "#]],
    )
    .await;
}

#[tokio::test]
async fn calls_that_contradict_themselves_are_nonsense() {
    let nameless =
        stream(&[r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}"#], "tool_calls");
    let twice = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"a","function":{"name":"x","arguments":"{}"}}]}"#,
        ],
        "tool_calls",
    );
    for (stream, words) in
        [(nameless, "a tool call names no tool"), (twice, "two tool calls have the same id")]
    {
        let failure = failure_in(&stream).await;
        assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::MalformedResponse, words));
    }
}

#[tokio::test]
async fn a_call_that_groq_couldnt_read_is_the_models_malformed_call() {
    let error = r#"{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=shell>{\"command\": \"ls</function>"}"#;
    let expected = expect![[r#"
        {"tool_call":{"id":"call_1_0","name":"shell","input":{},"malformed":"not a call: <function=shell>{\"command\": \"ls</function>"}}
        ToolUse
    "#]];
    // As a separate error, and within a stream.
    let server = Server::start([Reply::Whole(plain(400, "", &format!(r#"{{"error":{error}}}"#)))]).await;
    let answer = Conversation::new("go").ask(&model(&server)).await.unwrap();
    expected.assert_eq(&shown(&answer));
    check(&sse(&[&format!(r#"{{"error":{error}}}"#)]), expected).await;

    let named = r#"{"error":{"code":"tool_use_failed","message":"m","failed_generation":"[{\"name\": \"search\", \"parameters\": 1}]"}}"#;
    check(
        &sse(&[&delta(r#"{"content":"Let me look."}"#), named]),
        expect![[r#"
            {"text":"Let me look."}
            {"tool_call":{"id":"call_1_1","name":"search","input":{},"malformed":"not a call: [{\"name\": \"search\", \"parameters\": 1}]"}}
            ToolUse
        "#]],
    )
    .await;
}
