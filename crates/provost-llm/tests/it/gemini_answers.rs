//! Every kind of answer of Google's models.

use expect_test::expect;
use provost_event::{Block, DeltaKind, ErrorClass};
use provost_harness::Model as _;
use tokio_util::sync::CancellationToken;

use crate::gemini_support::*;
use crate::server::{Reply, Server, streamed};
use crate::support::{Conversation, DeltaRecorder};

#[tokio::test]
async fn thoughts_and_text_are_heard_as_they_come() {
    let stream = sse(&[
        parts(r#"{"text": "Let me ","thought": true}"#),
        parts(r#"{"text": "think.","thought": true}"#),
        parts(r#"{"text": "Hel"}"#),
        parts(r#"{"text": "lo, "}, {"text": "wörld"}"#),
        last(r#"{"text": ""}"#, "STOP"),
    ]);
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    let (heard, conversation) = (DeltaRecorder::default(), Conversation::new("go"));
    let model = named(&server, FLASH_2, None);
    let answer = model.answer(conversation.request(), &heard, &CancellationToken::new()).await.unwrap();
    assert_eq!(answer.content[1..], [Block::Text("Hello, wörld".to_owned())]);
    assert_eq!(answer.model, "gemini-as-released");
    let thought = |text: &str| (DeltaKind::Thinking, text.to_owned());
    let text = |text: &str| (DeltaKind::Text, text.to_owned());
    assert_eq!(
        heard.pieces(),
        [thought("Let me "), thought("think."), text("Hel"), text("lo, "), text("wörld")]
    );
}

#[tokio::test]
async fn parallel_calls_keep_their_arguments_ids_and_the_one_seal() {
    check(
        &[
            parts(r#"{"text": "I look.","thought": true}"#),
            parts(
                r#"{"functionCall": {"name": "search","args": {"pattern": "fn  add", "n":1.50},"id": "lpndqlku"},"thoughtSignature": "AY89+/="}, {"functionCall": {"id": "m6rogicj","name": "shell","args": {"command":"a\nb"}}}"#,
            ),
            last("", "STOP"),
        ],
        expect![[r#"
            {"thinking":{"text":"I look.","signature":"AY89+/=","wire":"gemini"}}
            {"tool_call":{"id":"lpndqlku","name":"search","input":{"pattern": "fn  add", "n":1.50}}}
            {"tool_call":{"id":"m6rogicj","name":"shell","input":{"command":"a\nb"}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn calls_without_id_or_arguments_are_calls() {
    check(
        &[last(
            r#"{"functionCall": {"name": "list","args": {}}}, {"functionCall": {"name": "list"}}, {"functionCall": {"name": "list","id": "","args": null}}"#,
            "STOP",
        )],
        expect![[r#"
            {"tool_call":{"id":"unnamed_1_0","name":"list","input":{}}}
            {"tool_call":{"id":"unnamed_1_1","name":"list","input":{}}}
            {"tool_call":{"id":"unnamed_1_2","name":"list","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_seal_stands_before_the_text_it_came_with() {
    check(
        &[
            parts(r#"{"text": "One. "}"#),
            parts(r#"{"text": "Two. ","thoughtSignature": "c2Vh"}"#),
            parts(r#"{"text": "Three. "}"#),
            last(r#"{"text": "Four."}"#, "STOP"),
        ],
        expect![[r#"
            {"text":"One. "}
            {"thinking":{"text":"","signature":"c2Vh","wire":"gemini"}}
            {"text":"Two. "}
            {"text":"Three. Four."}
            EndTurn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_seal_on_an_empty_text_at_the_end_is_kept() {
    for seal in [r#"{"text": "","thoughtSignature": "EqkE"}"#, r#"{"thoughtSignature": "EqkE"}"#] {
        check(
            &[parts(r#"{"text": "fixture ok"}"#), last(seal, "STOP")],
            expect![[r#"
                {"text":"fixture ok"}
                {"thinking":{"text":"","signature":"EqkE","wire":"gemini"}}
                EndTurn
            "#]],
        )
        .await;
    }
}

#[tokio::test]
async fn a_sealed_part_that_isnt_of_the_next_one_is_kept_as_it_is() {
    check(
        &[
            parts(r#"{"text": "", "thoughtSignature": "YQ=="}"#),
            parts(r#"{"text": "Hm.", "thought": true, "thoughtSignature": "Yg=="}"#),
            parts(r#"{"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "Yw=="}"#),
            last(r#"{"functionCall": {"name": "list","args": {},"id": "a"}}"#, "STOP"),
        ],
        expect![[r#"
            {"opaque":{"wire":"gemini","json":{"text":"","thoughtSignature":"YQ=="}}}
            {"thinking":{"text":"Hm.","wire":"gemini"}}
            {"opaque":{"wire":"gemini","json":{"text": "Hm.", "thought": true, "thoughtSignature": "Yg=="}}}
            {"opaque":{"wire":"gemini","json":{"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "Yw=="}}}
            {"tool_call":{"id":"a","name":"list","input":{}}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn every_reason_to_stop_is_understood() {
    for (said, expected) in [
        ("STOP", "EndTurn"),
        ("MAX_TOKENS", "OutputCap"),
        ("SAFETY", "Refusal"),
        ("RECITATION", "Refusal"),
        ("LANGUAGE", "Refusal"),
        ("BLOCKLIST", "Refusal"),
        ("PROHIBITED_CONTENT", "Refusal"),
        ("SPII", "Refusal"),
        ("IMAGE_SAFETY", "Refusal"),
        ("OTHER", "EndTurn"),
        ("SOMETHING_NEW", "EndTurn"),
    ] {
        let answer = outcome(&[last(r#"{"text": "a"}"#, said)]).await.unwrap();
        assert_eq!(answer.content, [Block::Text("a".to_owned())], "{said}");
        assert_eq!(format!("{:?}", answer.stop), expected, "{said}");
    }
}

#[tokio::test]
async fn a_refusal_has_the_providers_words_or_ours() {
    let refused = |extra: &str| format!(r#"{{"candidates": [{{"finishReason": "SPII"{extra}}}]}}"#);
    check(
        &[refused(r#","finishMessage": "Too private.""#), refused(r#","finishMessage": "Too private.""#)],
        expect![[r#"
            {"text":"Too private."}
            Refusal
        "#]],
    )
    .await;
    check(
        &[parts(r#"{"text": "Well"}"#), refused(r#","finishMessage": "Too private.""#)],
        expect![[r#"
            {"text":"Well"}
            {"text":"\nToo private."}
            Refusal
        "#]],
    )
    .await;
    check(
        &[refused("")],
        expect![[r#"
            {"text":"The provider stopped the answer: SPII."}
            Refusal
        "#]],
    )
    .await;
    let blocked = |extra: &str| {
        format!(
            r#"{{"promptFeedback": {{"blockReason": "PROHIBITED_CONTENT"{extra}}},"usageMetadata": {{"promptTokenCount": 9,"totalTokenCount": 9}},"modelVersion": "m"}}"#
        )
    };
    check(
        &[blocked(r#","blockReasonMessage": "Not this.""#)],
        expect![[r#"
            {"text":"Not this."}
            Refusal
        "#]],
    )
    .await;
    let answer = outcome(&[blocked("")]).await.unwrap();
    assert_eq!(
        answer.content,
        [Block::Text("The provider blocked the request: PROHIBITED_CONTENT.".to_owned())]
    );
    assert_eq!(answer.usage.input_tokens, 9);
}

#[tokio::test]
async fn a_call_that_the_model_failed_at_is_an_empty_answer() {
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let chunk = format!(
            r#"{{"candidates": [{{"content": {{}},"finishReason": "{reason}","finishMessage": "Malformed function call: print(x)"}}]}}"#
        );
        check(&[chunk], expect!["EndTurn\n"]).await;
    }
}

#[tokio::test]
async fn a_call_that_the_model_failed_at_behind_words_is_a_failure_that_may_be_tried_again() {
    let chunk =
        r#"{"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL","finishMessage": "print(x)"}]}"#;
    let failure = outcome(&[parts(r#"{"text": "Let me look."}"#), chunk.to_owned()]).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::MalformedResponse);
    assert_eq!(failure.message, "the model's answer broke off (MALFORMED_FUNCTION_CALL): print(x)");
    assert_eq!(failure.usage.output_tokens, 4);
}

#[tokio::test]
async fn a_stream_that_ends_without_a_reason_is_cut() {
    let text = || parts(r#"{"text": "Hel"}"#);
    let unspecified =
        text().replace("\"index\"", "\"finishReason\": \"FINISH_REASON_UNSPECIFIED\",\"index\"");
    for chunks in [vec![], vec![text()], vec![unspecified], vec![text(), "[DONE]".to_owned()]] {
        let failure = outcome(&chunks).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Cut, "{chunks:?}");
        assert_eq!(failure_of(cut(&chunks)).await.class, ErrorClass::Cut, "{chunks:?}");
    }
}

#[tokio::test]
async fn after_the_reason_nothing_need_follow_and_anything_may() {
    let server = Server::start([cut(&[last(r#"{"text": "a"}"#, "STOP")])]).await;
    let answer = Conversation::new("go").ask(&named(&server, FLASH_2, None)).await.unwrap();
    assert_eq!(answer.usage.output_tokens, 96);
    let late = r#"{"usageMetadata": {"promptTokenCount": 7,"candidatesTokenCount": 50}}"#.to_owned();
    let done = || "[DONE]".to_owned();
    let answer = outcome(&[last(r#"{"text": "a"}"#, "STOP"), late, done()]).await.unwrap();
    assert_eq!(answer.usage.output_tokens, 144);
}

#[tokio::test]
async fn only_the_first_candidate_counts_and_what_isnt_known_is_passed_over() {
    let two = r#"{"candidates": [{"index": 1,"content": {"parts": [{"text": "no"}]}},{"content": {"parts": [{"text": "yes"},{}],"new": 1},"safetyRatings": [],"avgLogprobs": -0.1}],"createTime": "now","promptFeedback": {"safetyRatings": []}}"#;
    let other = r#"{"candidates": [{"index": 1,"finishReason": "MAX_TOKENS"}],"error": null}"#;
    check(
        &["{}".to_owned(), two.to_owned(), other.to_owned(), last("", "STOP")],
        expect![[r#"
            {"text":"yes"}
            EndTurn
        "#]],
    )
    .await;
}

#[tokio::test]
async fn what_cant_be_an_answer_is_nonsense_that_names_it() {
    for (chunk, expected) in [
        (
            "{\"candidates\"",
            "a chunk of the stream can't be read: EOF while parsing an object at line 1 column 13",
        ),
        (
            &parts(r#"{"text": 7}"#),
            "a part of the answer can't be read: invalid type: integer `7`, expected a string at line 1 column 10",
        ),
        (&parts(r#"{"functionCall": {"args": {}}}"#), "a tool call lacks the tool's name"),
        ("[]", "an error in the stream says nothing"),
    ] {
        let failure = outcome(&[chunk.to_owned()]).await.unwrap_err();
        assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::MalformedResponse, expected));
    }
    let twice =
        r#"{"functionCall": {"name": "list","id": "a"}}, {"functionCall": {"name": "list","id": "a"}}"#;
    let failure = outcome(&[last(twice, "STOP")]).await.unwrap_err();
    assert_eq!(failure.message, "two tool calls have the same id");
}

#[tokio::test]
async fn what_follows_the_end_and_isnt_of_the_answer_is_passed_over() {
    for late in ["not json", r#"{"error": {"code": 503,"message": "late","status": "UNAVAILABLE"}}"#] {
        let answer = outcome(&[last(r#"{"text": "a"}"#, "STOP"), late.to_owned()]).await.unwrap();
        assert_eq!(answer.content, [Block::Text("a".to_owned())], "{late}");
    }
}
