//! Every kind of answer, in the formats of OpenAI and compatible servers.

use expect_test::expect;
use provost_event::{Block, DeltaKind, ErrorClass};
use provost_harness::Model as _;
use tokio_util::sync::CancellationToken;

use crate::openai_chat_support::*;
use crate::server::{Reply, Server, plain, streamed};
use crate::support::{Conversation, DeltaRecorder};

#[tokio::test]
async fn text_comes_in_pieces_and_as_a_whole() {
    let stream = stream(
        &[
            r#"{"role":"assistant","content":"","refusal":null}"#,
            r#"{"content":"Hel"}"#,
            r#"{"content":"lo, "}"#,
            r#"{"content":"wörld"}"#,
        ],
        "stop",
    );
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    let (heard, conversation) = (DeltaRecorder::default(), Conversation::new("go"));
    let answer =
        model(&server).answer(conversation.request(), &heard, &CancellationToken::new()).await.unwrap();
    assert_eq!(answer.content, [Block::Text("Hello, wörld".to_owned())]);
    assert_eq!(answer.model, "a-model-1");
    let text = |text: &str| (DeltaKind::Text, text.to_owned());
    assert_eq!(heard.pieces(), [text("Hel"), text("lo, "), text("wörld")]);
}

#[tokio::test]
async fn reasoning_is_read_from_whichever_field_has_it_and_only_once() {
    // DeepSeek and llama.cpp; vLLM, Groq and Ollama; both alike.
    let deepseek = stream(
        &[
            r#"{"role":"assistant","content":null,"reasoning_content":""}"#,
            r#"{"content":null,"reasoning_content":"Let me "}"#,
            r#"{"content":null,"reasoning_content":"think."}"#,
            r#"{"content":"So.","reasoning_content":null}"#,
        ],
        "stop",
    );
    let vllm = deepseek.replace("reasoning_content", "reasoning");
    let both = deepseek
        .replace(r#""reasoning_content":"think.""#, r#""reasoning_content":"think.","reasoning":"think.""#);
    for stream in [deepseek, vllm, both] {
        check(
            &stream,
            expect![[r#"
                {"thinking":{"text":"Let me think.","wire":"openai-chat"}}
                {"text":"So."}
                EndTurn
            "#]],
        )
        .await;
    }
}

#[tokio::test]
async fn blocks_stand_in_the_order_in_which_they_were_written() {
    let stream = stream(
        &[
            r#"{"reasoning":"a"}"#,
            r#"{"content":"b"}"#,
            r#"{"reasoning":"c","content":"d"}"#,
            r#"{"tool_calls":[{"index":0,"id":"x","function":{"name":"x","arguments":"{}"}}]}"#,
            r#"{"content":"e"}"#,
        ],
        "stop",
    );
    check(
        &stream,
        expect![[r#"
            {"thinking":{"text":"a","wire":"openai-chat"}}
            {"text":"b"}
            {"thinking":{"text":"c","wire":"openai-chat"}}
            {"text":"d"}
            {"tool_call":{"id":"x","name":"x","input":{}}}
            {"text":"e"}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn openrouters_details_of_reasoning_are_put_together_and_kept_as_a_seal() {
    let stream = stream(
        &[
            r#"{"role":"assistant","content":"","reasoning":"Let me ","reasoning_details":[{"type":"reasoning.text","text":"Let me ","signature":null,"format":"anthropic-claude-v1","index":0}]}"#,
            r#"{"role":"assistant","content":"","reasoning":"think.","reasoning_details":[{"type":"reasoning.text","text":"think.","format":"anthropic-claude-v1","index":0}]}"#,
            r#"{"role":"assistant","content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"EqQB+/=","format":"anthropic-claude-v1","index":0}]}"#,
            r#"{"role":"assistant","content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA","id":"rs_1","format":"openai-responses-v1","index":1},{"type":"reasoning.encrypted","data":"gBBB","id":"rs_2","format":"openai-responses-v1","index":1}]}"#,
            r#"{"role":"assistant","content":"So."}"#,
            r#"{"role":"assistant","content":"","reasoning":"Hm.","reasoning_details":[{"type":"reasoning.summary","summary":"Hm.","index":2}]}"#,
        ],
        "stop",
    );
    check(
        &stream,
        expect![[r#"
            {"thinking":{"text":"Let me think.","signature":"[{\"type\":\"reasoning.text\",\"text\":\"Let me think.\",\"signature\":\"EqQB+/=\",\"format\":\"anthropic-claude-v1\",\"index\":0},{\"type\":\"reasoning.encrypted\",\"data\":\"gAAA\",\"id\":\"rs_1\",\"format\":\"openai-responses-v1\",\"index\":1},{\"type\":\"reasoning.encrypted\",\"data\":\"gBBB\",\"id\":\"rs_2\",\"format\":\"openai-responses-v1\",\"index\":1},{\"type\":\"reasoning.summary\",\"summary\":\"Hm.\",\"index\":2}]","wire":"openai-chat"}}
            {"text":"So."}
            {"thinking":{"text":"Hm.","wire":"openai-chat"}}
            EndTurn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn reasoning_that_is_only_sealed_is_kept_and_details_without_words_beside_them_are_shown() {
    let sealed = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"x","function":{"name":"x","arguments":"{}"}}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA"}]}"#,
        ],
        "tool_calls",
    );
    check(
        &sealed,
        expect![[r#"
            {"tool_call":{"id":"x","name":"x","input":{}}}
            {"thinking":{"text":"","signature":"[{\"type\":\"reasoning.encrypted\",\"data\":\"gAAA\"}]","wire":"openai-chat"}}
            ToolUse
        "#]],
    )
    .await;
    let details = stream(
        &[
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"a"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"b"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"c","index":0},{"type":"reasoning.text","text":"d","index":1}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","signature":"s","index":0},{"type":"reasoning.text","text":"e","index":1}]}"#,
        ],
        "stop",
    );
    check(
        &details,
        expect![[r#"
            {"thinking":{"text":"abcde","signature":"[{\"type\":\"reasoning.text\",\"text\":\"ab\"},{\"type\":\"reasoning.text\",\"text\":\"c\",\"index\":0,\"signature\":\"s\"},{\"type\":\"reasoning.text\",\"text\":\"de\",\"index\":1}]","wire":"openai-chat"}}
            EndTurn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn content_may_be_a_list_of_parts_with_reasoning_among_them() {
    let stream = stream(
        &[
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me "}]}]}"#,
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"think."}],"closed":true}]}"#,
            r#"{"content":[{"type":"text","text":"So"},{"type":"reference","reference_ids":[1]}]}"#,
            r#"{"content":"."}"#,
        ],
        "stop",
    );
    check(
        &stream,
        expect![[r#"
            {"thinking":{"text":"Let me think.","wire":"openai-chat"}}
            {"text":"So."}
            EndTurn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn think_tags_are_text() {
    let words = "<think>\nhm\n</think>\n\nSo.";
    assert_eq!(answer_to(&text(words)).await.content, [Block::Text(words.to_owned())]);
}

#[tokio::test]
async fn every_reason_to_stop_is_understood() {
    for (said, expected) in [
        ("stop", "EndTurn"),
        ("eos", "EndTurn"),
        ("end_turn", "EndTurn"),
        ("something_new", "EndTurn"),
        ("", "EndTurn"),
        ("length", "OutputCap"),
        ("MAX_TOKENS", "OutputCap"),
        ("model_length", "OutputCap"),
        ("content_filter", "Refusal"),
        ("sensitive", "Refusal"),
        ("tool_calls", "ToolUse"),
    ] {
        let answer = answer_to(&stream(&[r#"{"content":"a"}"#], said)).await;
        assert_eq!(format!("{:?}", answer.stop), expected, "{said}");
    }
}

#[tokio::test]
async fn a_refusal_is_one_with_its_words() {
    let pieces = stream(&[r#"{"refusal":"I "}"#, r#"{"refusal":"can't."}"#], "stop");
    let part = stream(&[r#"{"content":[{"type":"refusal","refusal":"I can't."}]}"#], "stop");
    for stream in [pieces, part] {
        check(
            &stream,
            expect![[r#"
                {"text":"I can't."}
                Refusal
            "#]],
        )
        .await;
    }
}

#[tokio::test]
async fn an_end_that_is_none_is_a_failure() {
    for (said, class) in [
        ("error", ErrorClass::Server),
        ("network_error", ErrorClass::Server),
        ("insufficient_system_resource", ErrorClass::Overloaded),
        ("abort", ErrorClass::Cut),
    ] {
        assert_eq!(failure_in(&stream(&[r#"{"content":"a"}"#], said)).await.class, class, "{said}");
    }
}

#[tokio::test]
async fn an_answer_may_end_without_the_streams_end_and_with_nothing_else() {
    let unended = sse(&[&delta(r#"{"content":"a"}"#), &finish("stop")]);
    let unfinished = ended(&[&delta(r#"{"content":"a"}"#)]);
    let spaced = unended.clone() + "data:  [DONE] \n\n";
    for stream in [unended, unfinished, spaced] {
        assert_eq!(answer_to(&stream).await.content, [Block::Text("a".to_owned())], "{stream}");
    }
    let neither = failure_in(&sse(&[&delta(r#"{"content":"a"}"#)])).await;
    assert_eq!(
        (neither.class, neither.message.as_str()),
        (ErrorClass::Cut, "the stream ended before the answer did")
    );
    let nothing = failure_in("data: [DONE]\n\n").await;
    assert_eq!(
        (nothing.class, nothing.message.as_str()),
        (ErrorClass::MalformedResponse, "the stream ended without an answer")
    );
}

#[tokio::test]
async fn an_empty_answer_is_an_answer() {
    check(&stream(&[], "stop"), expect!["EndTurn\n"]).await;
    check(&stream(&[r#"{"role":"assistant","content":""}"#], "stop"), expect!["EndTurn\n"]).await;
}

#[tokio::test]
async fn only_the_first_choice_counts_and_other_events_are_passed_over() {
    let azure = r#"{"id":"","object":"","created":0,"model":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}],"choices":[]}"#;
    let second = delta(r#"{"content":"no"}"#).replace(r#""index":0"#, r#""index":1"#);
    let second_end = finish("length").replace(r#""index":0"#, r#""index":1"#);
    let stream = String::from(": OPENROUTER PROCESSING\n\n: keep-alive\n\n")
        + &ended(&[
            azure,
            r#"{"type":"ping"}"#,
            "",
            r#"{"choices":null,"error":null}"#,
            &delta("null"),
            &second,
            &delta(r#"{"content":"yes","new":{"a":1},"reasoning":{"not":"words"}}"#),
            &second_end,
            &finish("stop"),
            &finish("length"),
        ]);
    let answer = answer_to(&stream).await;
    assert_eq!(answer.content, [Block::Text("yes".to_owned())]);
    assert_eq!((answer.model.as_str(), format!("{:?}", answer.stop).as_str()), ("a-model-1", "EndTurn"));
}

#[tokio::test]
async fn a_message_stands_for_deltas_where_there_are_none() {
    let whole = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"x","type":"function","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let expected = expect![[r#"
        {"text":"a"}
        {"tool_call":{"id":"x","name":"x","input":{}}}
        ToolUse
    "#]];
    check(&ended(&[whole]), expected).await;
    let repeated = r#"{"choices":[{"index":0,"delta":null,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}"#;
    assert_eq!(
        answer_to(&ended(&[&delta(r#"{"content":"a"}"#), repeated])).await.content,
        [Block::Text("a".to_owned())]
    );
}

#[tokio::test]
async fn a_server_that_doesnt_stream_is_told_from_a_broken_one() {
    let body = r#"{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}"#;
    let failure = failure_of(Reply::Whole(plain(200, "content-type: application/json\r\n", body))).await;
    assert_eq!(failure.class, ErrorClass::InvalidRequest);
    assert_eq!(failure.message, "the server answered as a whole although a stream was asked for");
}

#[tokio::test]
async fn what_cant_be_read_is_nonsense() {
    for event in ["{\"choices\":", "[]", "7", "null", r#"{"choices":{}}"#, r#"{"choices":[{"delta":7}]}"#] {
        let failure = failure_in(&sse(&[event])).await;
        assert_eq!(failure.class, ErrorClass::MalformedResponse, "{event}");
        assert!(failure.message.starts_with("an event of the stream can't be read"), "{}", failure.message);
    }
}
