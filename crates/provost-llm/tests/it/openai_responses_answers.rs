//! Every kind of answer of Responses, and of servers that only resemble it.

use expect_test::{Expect, expect};
use provost_event::{Block, Certainty, DeltaKind, ErrorClass, StopReason, Usage};
use provost_harness::Model as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::openai_responses_support::*;
use crate::server::{Reply, Server, streamed};
use crate::support::{Conversation, DeltaRecorder};

/// Shows the deltas of an answer, its blocks, and its stop reason.
async fn check(stream: &str, expected: Expect) {
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    let (heard, conversation) = (DeltaRecorder::default(), Conversation::new("go"));
    let answer = model(&server).answer(conversation.request(), &heard, &CancellationToken::new()).await;
    let answer = answer.unwrap();
    let mut shown = String::new();
    for (name, kind) in [("thinking", DeltaKind::Thinking), ("text", DeltaKind::Text)] {
        let pieces = heard.pieces().into_iter().filter(|piece| piece.0 == kind).map(|piece| piece.1);
        let pieces = pieces.collect::<Vec<_>>();
        if !pieces.is_empty() {
            shown += &format!("heard {name}: {pieces:?}\n");
        }
    }
    for block in &answer.content {
        shown += &format!("{}\n", serde_json::to_string(block).unwrap());
    }
    expected.assert_eq(&format!("{shown}{:?}\n", answer.stop));
}

#[tokio::test]
async fn text_comes_in_pieces_and_as_a_whole() {
    let stream = stream(&[text_item(0, "msg_1", &["Hel", "lo, ", "wörld"])]);
    check(
        &stream,
        expect![[r#"
        heard text: ["Hel", "lo, ", "wörld"]
        {"text":"Hello, wörld"}
        EndTurn
    "#]],
    )
    .await;
    assert_eq!(ask(&stream).await.unwrap().model, "gpt-test-2025-08-07");
}

#[tokio::test]
async fn reasoning_keeps_its_item_and_calls_keep_their_arguments() {
    let items = [
        reasoning_item(0, "rs_1", &["**Look**", "Then…"], Some("gAAA=")),
        text_item(1, "msg_1", &["Let me look."]),
        call_item(2, "call_1", "search", &["", "{\"pattern\"", ": \"fn  add\", \"b\":1", ",\"a\":2}"]),
        call_item(3, "call_2", "shell", &["{\"command\":\"ls\"}"]),
        call_item(4, "call_3", "list", &[]),
        call_item(5, "call_4", "shell", &["{\"command\": "]),
    ];
    let stream = stream(&items).replace(r#""id":"rs_1""#, r#""id":  "rs_1""#);
    check(&stream, expect![[r#"
        heard thinking: ["**Lo", "ok**", "\n\nThe", "n…"]
        heard text: ["Let me look."]
        {"thinking":{"text":"**Look**\n\nThen…","signature":"{\"id\":  \"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"**Look**\"},{\"type\":\"summary_text\",\"text\":\"Then…\"}],\"encrypted_content\":\"gAAA=\"}","wire":"openai-responses"}}
        {"text":"Let me look."}
        {"tool_call":{"id":"call_1","name":"search","input":{"pattern": "fn  add", "b":1,"a":2}}}
        {"tool_call":{"id":"call_2","name":"shell","input":{"command":"ls"}}}
        {"tool_call":{"id":"call_3","name":"list","input":{}}}
        {"tool_call":{"id":"call_4","name":"shell","input":{},"malformed":"{\"command\": "}}
        ToolUse
    "#]])
    .await;
}

#[tokio::test]
async fn an_items_json_on_several_lines_is_kept_on_one() {
    let item = "{\"type\": \"reasoning\",\ndata:  \"summary\": [],\ndata:  \"encrypted_content\": \"x\"}";
    let done = format!("data: {{\"type\":\"response.output_item.done\",\"item\":{item}}}\n\n");
    let answer = ask(&(done + &sse(&[completed()]))).await.unwrap();
    let [Block::Thinking { signature: Some(seal), .. }] = &*answer.content else { panic!("{answer:?}") };
    assert_eq!(seal, r#"{"type": "reasoning",  "summary": [],  "encrypted_content": "x"}"#);
}

#[tokio::test]
async fn reasoning_that_cant_go_back_has_no_seal() {
    let thought = |text: &str| {
        event(
            "response.reasoning_text.delta",
            json!({"output_index": 0, "item_id": "rs_1", "content_index": 0, "delta": text}),
        )
    };
    let item = |content: Value| json!({"id": "rs_1", "type": "reasoning", "summary": [], "content": content, "encrypted_content": null});
    let content = json!([{"type": "reasoning_text", "text": "Hm, so."}]);
    let open = vec![added(0, item(Value::Null)), thought("Hm, "), thought("so."), done(0, item(content))];
    check(&stream(&[open, reasoning_item(1, "rs_2", &[], None), reasoning_item(2, "rs_3", &[], Some("x"))]), expect![[r#"
        heard thinking: ["Hm, ", "so."]
        {"thinking":{"text":"Hm, so.","wire":"openai-responses"}}
        {"thinking":{"text":"","signature":"{\"id\":\"rs_3\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"x\"}","wire":"openai-responses"}}
        EndTurn
    "#]])
    .await;
}

#[tokio::test]
async fn an_answer_that_ends_with_a_comment_is_no_end() {
    let phased = |text: &str, phase: &str| {
        let mut item = message("msg_1", json!([output_text(text)]));
        item["phase"] = phase.into();
        vec![done(0, item)]
    };
    check(
        &stream(&[phased("I look at it now.", "commentary")]),
        expect![[r#"
            heard text: ["I look at it now."]
            {"opaque":{"wire":"openai-responses","json":{"type":"provost_message_phase","phase":"commentary"}}}
            {"text":"I look at it now."}
            Commentary
        "#]],
    )
    .await;
}

#[tokio::test]
async fn other_items_keep_their_json_and_a_message_its_phase() {
    let search = |status: &str| json!({"id": "ws_1", "type": "web_search_call", "status": status});
    let phased = |text: &str, phase: &str| {
        let mut item = message("msg_1", json!([output_text(text)]));
        item["phase"] = phase.into();
        vec![done(1, item)]
    };
    let items = [
        vec![
            added(0, search("in_progress")),
            event("response.web_search_call.searching", json!({"item_id": 7})),
            done(0, search("completed")),
        ],
        phased("Looking.", "commentary"),
        vec![done(2, json!("@compaction"))],
        phased("Found.", "final_answer"),
        phased("", "final_answer"),
    ];
    let stream =
        stream(&items).replace("\"@compaction\"", r#"{"type":"compaction", "encrypted_content" : "x"}"#);
    check(&stream, expect![[r#"
        heard text: ["Looking.", "Found."]
        {"opaque":{"wire":"openai-responses","json":{"id":"ws_1","type":"web_search_call","status":"completed"}}}
        {"opaque":{"wire":"openai-responses","json":{"type":"provost_message_phase","phase":"commentary"}}}
        {"text":"Looking."}
        {"opaque":{"wire":"openai-responses","json":{"type":"compaction", "encrypted_content" : "x"}}}
        {"opaque":{"wire":"openai-responses","json":{"type":"provost_message_phase","phase":"final_answer"}}}
        {"text":"Found."}
        EndTurn
    "#]])
    .await;
}

#[tokio::test]
async fn a_refusal_is_an_answer_with_its_words() {
    let refusal = |text: &str| {
        event(
            "response.refusal.delta",
            json!({"output_index": 0, "item_id": "msg_1", "content_index": 0, "delta": text}),
        )
    };
    let whole = message("msg_1", json!([{"type": "refusal", "refusal": "I can't."}]));
    check(
        &stream(&[vec![
            added(0, message("msg_1", json!([]))),
            refusal("I "),
            refusal("can't."),
            done(0, whole),
        ]]),
        expect![[r#"
        heard text: ["I ", "can't."]
        {"text":"I can't."}
        Refusal
    "#]],
    )
    .await;
}

#[tokio::test]
async fn every_end_is_understood_whichever_event_says_it() {
    let incomplete = |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
    for (kind, response, expected) in [
        ("response.completed", json!({"status": "completed"}), StopReason::EndTurn),
        ("response.completed", json!({}), StopReason::EndTurn),
        ("response.done", json!({}), StopReason::EndTurn),
        ("response.completed", json!({"status": "something_new"}), StopReason::EndTurn),
        ("response.incomplete", incomplete("max_output_tokens"), StopReason::OutputCap),
        ("response.completed", incomplete("max_output_tokens"), StopReason::OutputCap),
        ("response.incomplete", json!({}), StopReason::OutputCap),
        ("response.incomplete", incomplete("something_new"), StopReason::OutputCap),
        ("response.incomplete", incomplete("content_filter"), StopReason::Refusal),
    ] {
        let mut events = text_item(0, "msg_1", &["a"]);
        events.push(ended(kind, response.clone()));
        let answer = ask(&sse(&events)).await.unwrap();
        assert_eq!((answer.stop, answer.content.len()), (expected, 1), "{kind} {response}");
    }
    let answer = ask("data: {\"type\":\"response.completed\"}\n\n").await.unwrap();
    assert_eq!((answer.stop, answer.content.len()), (StopReason::EndTurn, 0));
    assert_eq!(answer.model, "gpt-test");
}

#[tokio::test]
async fn a_call_cut_off_by_the_cap_is_dropped_and_a_whole_one_is_kept() {
    let mut events =
        [call_item(0, "a", "shell", &["{\"command\":\"ls\"}"]), call_item(1, "b", "shell", &["{\"comm"])]
            .concat();
    events.push(ended(
        "response.incomplete",
        json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
    ));
    check(
        &sse(&events),
        expect![[r#"
        {"tool_call":{"id":"a","name":"shell","input":{"command":"ls"}}}
        OutputCap
    "#]],
    )
    .await;
}

#[tokio::test]
async fn counts_dont_overlap() {
    let expected = Usage {
        input_tokens: 125,
        output_tokens: 40,
        cache_read_tokens: 2000,
        cache_write_tokens: 0,
        reasoning_tokens: 30,
        certainty: Certainty::Reported,
    };
    assert_eq!(ask(&stream(&[text_item(0, "m", &["a"])])).await.unwrap().usage, expected);
    let mut counts = usage();
    counts["input_tokens_details"]["cache_write_tokens"] = 100.into();
    let with = |usage: Value| sse(&[ended("response.completed", json!({"usage": usage}))]);
    let written = Usage { input_tokens: 25, cache_write_tokens: 100, ..expected };
    assert_eq!(ask(&with(counts)).await.unwrap().usage, written);
    let bare = json!({"input_tokens": 7, "output_tokens": 3, "input_tokens_details": null, "output_tokens_details": null});
    let expected = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
    assert_eq!(ask(&with(bare)).await.unwrap().usage, expected);
}

/// An event of a stream that leaves almost everything out.
fn bare(kind: &str, field: &str, value: &str) -> Value {
    event(kind, json!({field: value}))
}

const TEXT: &str = "response.output_text.delta";
const ARGUMENTS: &str = "response.function_call_arguments.delta";
const ARGUMENTS_DONE: &str = "response.function_call_arguments.done";

#[tokio::test]
async fn pieces_without_any_place_belong_to_the_last_open_item() {
    let unplaced = |mut event: Value| {
        event.as_object_mut().unwrap().remove("output_index");
        event["item"].as_object_mut().unwrap().remove("id");
        event
    };
    let events = [
        bare("response.reasoning_text.delta", "delta", "Hm."),
        bare(TEXT, "delta", "Hel"),
        bare(TEXT, "delta", "lo"),
        unplaced(done(0, message("", json!([output_text("Hello")])))),
        unplaced(added(0, call("", "a", "shell", ""))),
        unplaced(added(0, call("", "b", "shell", ""))),
        bare(ARGUMENTS, "delta", "{\"n\":"),
        bare(ARGUMENTS, "delta", "2}"),
        // The first call's arguments, though the second has begun.
        bare(ARGUMENTS_DONE, "arguments", "{\"n\":1}"),
        bare(ARGUMENTS_DONE, "arguments", "{\"n\":2}"),
        unplaced(done(0, call("", "a", "shell", ""))),
        unplaced(done(0, call("", "b", "shell", ""))),
        ended("response.completed", json!({"output": []})),
    ];
    check(
        &sse(&events),
        expect![[r#"
        heard thinking: ["Hm."]
        heard text: ["Hel", "lo"]
        {"thinking":{"text":"Hm.","wire":"openai-responses"}}
        {"text":"Hello"}
        {"tool_call":{"id":"a","name":"shell","input":{"n":1}}}
        {"tool_call":{"id":"b","name":"shell","input":{"n":2}}}
        ToolUse
    "#]],
    )
    .await;
}

#[tokio::test]
async fn ids_that_change_from_event_to_event_and_one_place_for_all_dont_tear_items_apart() {
    let delta = |id: &str, text: &str| {
        event(TEXT, json!({"item_id": id, "output_index": 0, "content_index": 0, "delta": text}))
    };
    let events = [
        added(0, json!({"id": "x1", "type": "reasoning", "summary": []})),
        event(
            "response.reasoning_summary_text.delta",
            json!({"item_id": "x2", "output_index": 0, "summary_index": 0, "delta": "Hm."}),
        ),
        done(
            0,
            json!({"id": "x3", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}),
        ),
        delta("y1", "Hel"),
        added(0, message("y2", json!([]))),
        delta("y3", "lo"),
        done(0, message("y4", json!([output_text("Hello")]))),
        added(0, call("z1", "a", "shell", "")),
        done(0, call("z2", "a", "shell", "{}")),
        added(0, call("z3", "b", "shell", "")),
        done(0, call("z4", "b", "shell", "{\"n\":2}")),
        ended(
            "response.completed",
            json!({"output": [
                {"id": "1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                message("2", json!([output_text("Hello")])),
                call("3", "a", "shell", "{}"),
                call("4", "b", "shell", "{\"n\":2}"),
            ]}),
        ),
    ];
    check(
        &sse(&events),
        expect![[r#"
        heard thinking: ["Hm."]
        heard text: ["Hel", "lo"]
        {"thinking":{"text":"Hm.","wire":"openai-responses"}}
        {"text":"Hello"}
        {"tool_call":{"id":"a","name":"shell","input":{}}}
        {"tool_call":{"id":"b","name":"shell","input":{"n":2}}}
        ToolUse
    "#]],
    )
    .await;
}

#[tokio::test]
async fn what_only_the_last_event_tells_is_told_once_and_in_its_place() {
    let output = json!([
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "x"},
        message("msg_1", json!([output_text("Hello"), {"type": "refusal", "refusal": "No."}])),
        call("fc_1", "a", "shell", "{\"n\":1}"),
        call("fc_2", "b", "shell", "{\"n\":2}"),
        message("msg_2", json!([output_text("Bye")])),
    ]);
    let last = ended("response.completed", json!({"output": output}));
    let events = [bare(TEXT, "delta", "Hel"), done(3, call("fc_2", "b", "shell", "{\"n\":2}")), last.clone()];
    let expected = expect![[r#"
        heard text: ["Hel", "lo", "No.", "Bye"]
        {"thinking":{"text":"","signature":"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"x\"}","wire":"openai-responses"}}
        {"text":"Hello"}
        {"text":"No."}
        {"tool_call":{"id":"a","name":"shell","input":{"n":1}}}
        {"tool_call":{"id":"b","name":"shell","input":{"n":2}}}
        {"text":"Bye"}
        Refusal
    "#]];
    check(&sse(&events), expected).await;
    assert_eq!(ask(&sse(&[last])).await.unwrap().content, ask(&sse(&events)).await.unwrap().content);
}

#[tokio::test]
async fn arguments_as_an_object_and_calls_without_an_id_are_taken() {
    let nameless =
        |arguments: Value| done(0, json!({"type": "function_call", "name": "shell", "arguments": arguments}));
    check(
        &stream(&[vec![nameless(json!({"n": 1})), nameless(Value::Null)]]),
        expect![[r#"
        {"tool_call":{"id":"call_1_0","name":"shell","input":{"n":1}}}
        {"tool_call":{"id":"call_1_1","name":"shell","input":{}}}
        ToolUse
    "#]],
    )
    .await;
}

#[tokio::test]
async fn words_that_the_end_repeats_differently_stay_as_they_were_told() {
    let mut item = text_item(0, "msg_1", &["\n\nHello"]);
    *item.last_mut().unwrap() = done(0, message("msg_1", json!([output_text("Hello")])));
    check(
        &stream(&[item]),
        expect![[r#"
        heard text: ["\n\nHello"]
        {"text":"\n\nHello"}
        EndTurn
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_contradiction_is_nonsense_that_names_what() {
    let text = |events: &[Value]| sse(&[events, &[completed()]].concat());
    let begun = added(0, message("msg_1", json!([])));
    for (stream, expected) in [
        (text(&[begun.clone(), begun]), "item msg_1 begins twice"),
        (text(&[bare(ARGUMENTS, "delta", "{}")]), "a tool call doesn't name its tool"),
        (
            text(&[call_item(0, "a", "b", &[]), call_item(1, "a", "b", &[])].concat()),
            "two tool calls have the same id",
        ),
        (text(&[event("response.output_item.done", json!({}))]), "response.output_item.done lacks its item"),
        (
            text(&[done(0, json!({"type": "message", "content": 7}))]),
            "a message of the answer can't be read: invalid type: integer `7`, expected a sequence at line 1 column 29",
        ),
        (
            text(&[event(TEXT, json!({"delta": 7}))]),
            "an event of the stream can't be read: invalid type: integer `7`, expected a string at line 1 column 10",
        ),
        ("data: {}\n\n".to_owned(), "an event of the stream has no type"),
        (
            "data: nonsense\n\n".to_owned(),
            "an event of the stream can't be read: expected ident at line 1 column 2",
        ),
    ] {
        let failure = ask(&stream).await.unwrap_err();
        assert_eq!(
            (failure.class, failure.message.as_str()),
            (ErrorClass::MalformedResponse, expected),
            "{stream}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_only_says_that_it_is_over_is_cut() {
    let stream = sse(&text_item(0, "msg_1", &["a"])) + "data: [DONE]\n\n";
    assert_eq!(ask(&stream).await.unwrap_err().class, ErrorClass::Cut);
}
