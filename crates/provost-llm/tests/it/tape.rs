//! Recorded answers are repeated, and the file has nothing else.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;

use expect_test::expect;
use provost_event::{Block, ErrorClass, Purpose};
use provost_harness::Model;
use provost_llm::ReplayModel;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::anthropic_support as anthropic;
use crate::server::{Reply, Server, plain, streamed};
use crate::support::*;
use crate::tape_support::*;

/// A provider's answers in a conversation: a refusal, then thinking and two calls, then a text.
fn replies() -> [Reply; 3] {
    let thinking = anthropic::block(
        0,
        json!({"type": "thinking", "thinking": "", "signature": ""}),
        &[
            json!({"type": "thinking_delta", "thinking": "Where "}),
            json!({"type": "thinking_delta", "thinking": "is it?"}),
            json!({"type": "signature_delta", "signature": "c2VhbA=="}),
        ],
    );
    let calls = anthropic::stream(
        &[
            thinking,
            anthropic::text_block(1, &["I'll ", "look."]),
            anthropic::tool_block(2, "toolu_1", "search", &["{\"pattern\":\n ", "\"fn add\", \"n\": 1.50}"]),
            anthropic::tool_block(3, "toolu_2", "shell", &["{\"command\":\"ls\"}"]),
            anthropic::block(4, json!({"type": "redacted_thinking", "data": "b3BhcXVl"}), &[]),
        ],
        "tool_use",
    );
    let done = anthropic::stream(&[anthropic::text_block(0, &["Grüße. ", "🦀"])], "end_turn");
    [
        Reply::Whole(plain(529, "retry-after: 3\r\n", &anthropic::refusal("overloaded_error", "busy"))),
        Reply::Whole(streamed([calls.as_bytes()])),
        Reply::Whole(streamed([done.as_bytes()])),
    ]
}

#[tokio::test]
async fn a_replay_answers_fails_and_streams_as_the_provider_did() {
    let (tapes, server) = (Tapes::new(), Server::start(replies()).await);
    let live = converse(&tapes.record(anthropic::model(&server)), 0, 2, "found").await;
    assert_eq!(live.len(), 3);
    assert_eq!(live[0].2.as_ref().unwrap_err().retry_after_ms, Some(3000));
    assert_eq!((live[1].0.as_str(), live[1].1.as_str()), ("Where is it?", "I'll look."));
    assert_eq!(live[1].2.as_ref().unwrap().content.len(), 5);

    let replay = tapes.replay();
    assert_eq!(converse(&replay, 0, 2, "found").await, live);
    assert_eq!(converse(&tapes.replay(), 0, 2, "found at another time").await, live);
    assert_eq!(server.seen().asked.len(), 3);
    let limits = (replay.window_tokens(), replay.output_tokens_max(), replay.images());
    assert_eq!((replay.model_name(), limits), ("demo", (Some(1000), 500, true)));
}

#[tokio::test]
async fn a_recording_is_a_header_and_a_line_for_each_call() {
    let tapes = Tapes::new();
    let text = "answers: [{fault: overloaded}, {text: Hi., usage: {input: 5, output: 1}}]";
    converse(&tapes.script(text), 0, 1, "ok").await;
    expect![[r#"
        {"provost_recording":1,"run":"000000000007","model":"demo","window_tokens":1000,"output_tokens_max":500,"images":true}
        {"session":0,"answers_before":0,"turn":1,"purpose":"turn","summaries_before":0,"messages":1,"digest":"af5686ef6b1cb7e6","outcome":{"failure":{"class":"overloaded","status":529,"message":"the provider is overloaded (scripted)","usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0}}}}
        {"session":0,"answers_before":0,"turn":1,"purpose":"turn","summaries_before":0,"messages":1,"digest":"af5686ef6b1cb7e6","outcome":{"answer":{"content":[{"text":"Hi."}],"usage":{"input_tokens":5,"output_tokens":1,"cache_read_tokens":0,"cache_write_tokens":0},"model":"scripted","stop":"end_turn"}}}
    "#]]
    .assert_eq(&tapes.text());
}

#[tokio::test]
async fn no_secret_and_nothing_of_a_request_gets_into_the_file() {
    let tapes = Tapes::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    // JSON may encode the same characters differently.
    let in_disguise = KEY.replace('0', "\\u0030").replace('-', "\\u002d");
    let text = format!(
        "
answers:
  - fault: {{ class: unauthorized, message: 'the key {KEY} is wrong', request_id: 'req {KEY}' }}
  - thinking: It is {KEY}.
    text: I'll use {KEY}.
    tools:
      - shell: {{ 'a {KEY}': [1, '{token}'], command: 'curl -H \"Authorization: Bearer {token}\" https://u:{token}@h' }}
      - {{ name: shell, malformed: '{{\"k\": \"{KEY}' }}
      - shell: {{ command: \"echo {in_disguise}\" }}
  - text: Done.
"
    );
    let mut live = Conversation::new(&format!("a goal with {KEY} and hunter2hunter2"));
    live.system = "a system prompt".to_owned();
    let recording = tapes.script(&text);
    live.ask(&recording).await.unwrap_err();
    let answer = live.ask(&recording).await.unwrap();
    assert!(format!("{answer:?}").contains(KEY) && format!("{answer:?}").contains(&token));
    live.answered(&answer, "an output");
    live.ask(&recording).await.unwrap();

    let bytes = tapes.text();
    for secret in [KEY, token.as_str(), "hunter2", "a goal", "a system prompt", "an output"] {
        assert!(!bytes.contains(secret), "{secret} is in {bytes}");
    }
    let replayed = converse(&tapes.replay(), 0, 2, "another output").await;
    assert_eq!(replayed[0].2.as_ref().unwrap_err().message, "the key [secret] is wrong");
    let content = &replayed[1].2.as_ref().unwrap().content;
    assert_eq!(content[1], Block::Text("I'll use [secret].".to_owned()));
    let inputs = content.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call.input.text()),
        _ => None,
    });
    expect![[r#"
        {"a [secret]":[1,"[secret]"],"command":"curl -H \"Authorization: Bearer [secret]\" https://u:[secret]@h"}
        {}
        {"command":"echo [secret]"}"#]]
    .assert_eq(&inputs.collect::<Vec<_>>().join("\n"));
}

const THREE: &str = "answers: [{text: one}, {fault: cut}, {text: two}, {text: three}]";

#[tokio::test]
async fn a_run_that_goes_on_goes_on_with_its_recording() {
    let tapes = Tapes::new();
    let first = converse(&tapes.script(THREE), 0, 1, "ok").await;
    // Another process, which finds the first answer in the log.
    let mut conversation = Conversation::new("go");
    conversation.answered(first[0].2.as_ref().unwrap(), "ok");
    let resumed = tapes.script(THREE);
    conversation.ask(&resumed).await.unwrap_err();
    conversation.answered(&conversation.ask(&resumed).await.unwrap(), "ok");
    conversation.ask(&resumed).await.unwrap();
    assert_eq!(tapes.lines().len(), 5);
    let whole = converse(&crate::scripted::script(THREE), 0, 3, "ok").await;
    assert_eq!(converse(&tapes.replay(), 0, 3, "ok").await, whole);

    // A replay is resumed the same way.
    let replay = tapes.replay();
    let answer = conversation.ask(&replay).await.unwrap();
    assert_eq!(answer.content, [Block::Text("three".to_owned())]);
}

#[tokio::test]
async fn a_line_cut_off_by_a_kill_is_ignored_and_cut_at_the_next_call() {
    let tapes = Tapes::new();
    converse(&tapes.script(THREE), 0, 1, "ok").await;
    let whole = tapes.text();
    let line = whole.lines().last().unwrap().to_owned();
    for length in [1, 30, line.len()] {
        fs::write(tapes.file(), &whole).unwrap();
        OpenOptions::new()
            .append(true)
            .open(tapes.file())
            .unwrap()
            .write_all(&line.as_bytes()[..length])
            .unwrap();
        assert_eq!(converse(&tapes.replay(), 0, 1, "ok").await.len(), 1);
        let mut second = Conversation::new("go");
        second.session.agent = 1;
        second.ask(&tapes.script(THREE)).await.unwrap();
        assert!(tapes.text().starts_with(&whole));
        assert_eq!(tapes.lines().len(), 3);
    }
    // Killed while writing the header.
    for length in [0, 5, 40] {
        fs::write(tapes.file(), &whole[..length]).unwrap();
        converse(&tapes.script(THREE), 0, 1, "ok").await;
        assert_eq!(tapes.text(), whole);
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_before_it_was_committed_is_left_out() {
    let tapes = Tapes::new();
    let conversation = Conversation::new("go");
    let empty = "answers: [{fault: empty}, {text: lost}]";
    conversation.ask(&tapes.script(empty)).await.unwrap();
    conversation.ask(&tapes.script("answers: [{text: lost}]")).await.unwrap();
    conversation.ask(&tapes.script("answers: [{fault: server}]")).await.unwrap_err();
    conversation.ask(&tapes.script("answers: [{text: kept}]")).await.unwrap();
    let replay = tapes.replay();
    assert_eq!(conversation.ask(&replay).await.unwrap().content, []);
    assert_eq!(conversation.ask(&replay).await.unwrap_err().class, ErrorClass::Server);
    // A retry gets the same answer.
    for _ in 0..2 {
        let answer = conversation.ask(&replay).await.unwrap();
        assert_eq!(answer.content, [Block::Text("kept".to_owned())]);
    }
}

#[tokio::test]
async fn two_runs_of_one_process_replay_each_for_itself() {
    let tapes = Tapes::new();
    let live = converse(&tapes.script(THREE), 0, 2, "ok").await;
    let replay = tapes.replay();
    let mut other = Conversation::new("go");
    other.session.run = provost_event::RunId::from_entropy(8);
    let answer = other.ask(&replay).await.unwrap();
    other.answered(&answer, "ok");
    assert_eq!(other.ask(&replay).await.unwrap_err().class, ErrorClass::Cut);
    assert_eq!(converse(&replay, 0, 2, "ok").await, live);
}

#[tokio::test]
async fn sessions_that_answer_side_by_side_are_all_recorded_whole() {
    let tapes = Tapes::new();
    let long = "x".repeat(50_000);
    let recording =
        Arc::new(tapes.script(&format!("answers: [{{text: {long}}}, {{fault: cut}}, {{text: b{long}}}]")));
    let sessions = (0..8).map(|agent| {
        let recording = Arc::clone(&recording);
        tokio::spawn(async move { converse(&*recording, agent, 2, "ok").await })
    });
    let sessions = sessions.collect::<Vec<_>>();
    let mut live = Vec::new();
    for session in sessions {
        live.push(session.await.unwrap());
    }
    assert_eq!(tapes.lines().len(), 1 + 8 * 3);
    let replay = tapes.replay();
    for (agent, live) in (0..).zip(&live) {
        assert_eq!(converse(&replay, agent, 2, "ok").await, *live);
    }
}

#[tokio::test]
async fn a_cancelled_call_is_not_recorded_and_not_asked() {
    let tapes = Tapes::new();
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let (recording, conversation) = (tapes.script(THREE), Conversation::new("go"));
    let failure =
        recording.answer(conversation.request(), &DeltaRecorder::default(), &cancelled).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Aborted);
    assert!(!tapes.file().exists());

    let slow = tapes.script("answers: [{text: [a, b], chunk_delay_ms: 86400000}]");
    let (cancel, heard) = (CancellationToken::new(), DeltaRecorder::default());
    let cancelling = async {
        heard.until_first().await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(slow.answer(conversation.request(), &heard, &cancel), cancelling);
    assert_eq!(outcome.unwrap_err().class, ErrorClass::Aborted);
    assert_eq!(tapes.lines().len(), 1);

    conversation.ask(&recording).await.unwrap();
    let replay = tapes.replay();
    let failure =
        replay.answer(conversation.request(), &DeltaRecorder::default(), &cancelled).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Aborted);
    conversation.ask(&replay).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_recording_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let tapes = Tapes::new();
    converse(&tapes.script(THREE), 0, 1, "ok").await;
    assert_eq!(fs::metadata(tapes.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[tokio::test]
async fn a_recording_into_an_empty_file_that_others_could_read_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let tapes = Tapes::new();
    fs::write(tapes.file(), "").unwrap();
    fs::set_permissions(tapes.file(), fs::Permissions::from_mode(0o644)).unwrap();
    converse(&tapes.script(THREE), 0, 1, "ok").await;
    assert_eq!(fs::metadata(tapes.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_recording_outlives_unknown_fields_and_an_absent_window() {
    let tapes = Tapes::new();
    converse(&tapes.script(THREE), 0, 1, "ok").await;
    let newer = tapes
        .text()
        .replace("\"window_tokens\":1000,", "\"new\":{},")
        .replace("\"turn\":1", "\"turn\":1,\"new\":2");
    fs::write(tapes.file(), newer).unwrap();
    let replay = ReplayModel::open(tapes.file()).unwrap();
    assert_eq!(replay.window_tokens(), None);
    converse(&replay, 0, 1, "ok").await;
}

/// Summaries and final summaries are requested between two answers, with the same number of answers before.
#[tokio::test]
async fn summaries_and_final_summary_have_places_of_their_own() {
    let tapes = Tapes::new();
    let text =
        "answers: [{text: an answer}]\nsummaries: [{text: one}, {text: two}]\nfinal_summary: {text: bye}";
    let said = async |model: &dyn Model| {
        let mut said = Vec::new();
        let order =
            [(Purpose::Summary, 0), (Purpose::Summary, 1), (Purpose::Turn, 2), (Purpose::FinalSummary, 2)];
        for (purpose, summaries_before) in order {
            let conversation = Conversation { purpose, summaries_before, ..Conversation::new("go") };
            said.push(hear(&conversation, model).await.1);
        }
        said
    };
    let recorded = said(&tapes.script(text)).await;
    assert_eq!(recorded, ["one", "two", "an answer", "bye"]);
    assert_eq!(said(&tapes.replay()).await, recorded);
    let beyond = Conversation { purpose: Purpose::Summary, summaries_before: 2, ..Conversation::new("go") };
    let failure = hear(&beyond, &tapes.replay()).await.2.unwrap_err();
    assert!(failure.message.contains("has no summary 3 of session 0"), "{}", failure.message);
}
