//! A scripted model: answers, faults, delays, and continuing at the right entry.

use std::fs;
use std::sync::Arc;

use expect_test::{Expect, expect};
use provost_event::{Block, DeltaKind, ErrorClass, StopReason, Timestamp, Usage};
use provost_harness::{Clock, Message, Model as _, Part, Role, SimulatedClock};
use provost_llm::ScriptedModel;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::*;

pub(crate) fn script(text: &str) -> ScriptedModel {
    ScriptedModel::parse(text, "demo.yaml").unwrap()
}

/// Shows the first answer's blocks and its stop reason.
async fn check(text: &str, expected: Expect) {
    let answer = Conversation::new("go").ask(&script(text)).await.unwrap();
    let blocks = answer.content.iter().map(|block| serde_json::to_string(block).unwrap() + "\n");
    expected.assert_eq(&format!("{}{:?}\n", blocks.collect::<String>(), answer.stop));
}

#[tokio::test]
async fn an_answer_may_think_speak_and_call_tools() {
    check(
        "
answers:
  - thinking: Where is it?
    text: I'll look around.
    tools:
      - search: { pattern: fn add }
      - list_dir:
      - list_dir
      - { name: shell, id: mine, input: { command: ls } }
      - { name: shell, malformed: '{\"comm' }
",
        expect![[r#"
            {"thinking":{"text":"Where is it?"}}
            {"text":"I'll look around."}
            {"tool_call":{"id":"call_1_1","name":"search","input":{"pattern":"fn add"}}}
            {"tool_call":{"id":"call_1_2","name":"list_dir","input":{}}}
            {"tool_call":{"id":"call_1_3","name":"list_dir","input":{}}}
            {"tool_call":{"id":"mine","name":"shell","input":{"command":"ls"}}}
            {"tool_call":{"id":"call_1_5","name":"shell","input":{},"malformed":"{\"comm"}}
            ToolUse
        "#]],
    )
    .await;
}

#[tokio::test]
async fn why_it_stops_follows_from_the_answer_or_is_said() {
    check("answers: [{text: Done.}]", expect!["{\"text\":\"Done.\"}\nEndTurn\n"]).await;
    check("answers: [{text: And th, stop: output_cap}]", expect!["{\"text\":\"And th\"}\nOutputCap\n"]).await;
    check("answers: [{stop: refusal}]", expect!["Refusal\n"]).await;
    check("answers: [{text: No., stop: refusal}]", expect!["{\"text\":\"No.\"}\nRefusal\n"]).await;
}

#[tokio::test]
async fn text_is_streamed_in_the_scripts_pieces_or_in_short_ones() {
    let model = script("answers: [{thinking: Hm., text: [One., ' Two.']}]");
    let (heard, conversation) = (DeltaRecorder::default(), Conversation::new("go"));
    let answer = model.answer(conversation.request(), &heard, &CancellationToken::new()).await.unwrap();
    let text = |text: &str| (DeltaKind::Text, text.to_owned());
    assert_eq!(heard.pieces(), [(DeltaKind::Thinking, "Hm.".to_owned()), text("One."), text(" Two.")]);
    assert_eq!(answer.content[1], Block::Text("One. Two.".to_owned()));

    let long = "Grüße an alle, die diesen langen Satz in Stücken hören. 🦀";
    let (model, heard) = (script(&format!("answers: [{{text: \"{long}\"}}]")), DeltaRecorder::default());
    model.answer(conversation.request(), &heard, &CancellationToken::new()).await.unwrap();
    assert_eq!(heard.pieces().len(), 3);
    assert_eq!(heard.text(DeltaKind::Text), long);
}

#[tokio::test]
async fn usage_is_as_said_and_else_estimated() {
    let model = script(
        "model: demo-1\nanswers: [{text: hi, usage: {input: 900, output: 40, cache_read: 5, cache_write: 6}}, {text: one}, {text: '12345678', usage: {output: 1}}]",
    );
    let mut conversation = Conversation::new("go");
    let answer = conversation.ask(&model).await.unwrap();
    assert_eq!(answer.model, "demo-1");
    let said = Usage {
        input_tokens: 900,
        output_tokens: 40,
        cache_read_tokens: 5,
        cache_write_tokens: 6,
        ..Usage::default()
    };
    assert_eq!(answer.usage, said);
    conversation.answers_before = 2;
    let usage = conversation.ask(&model).await.unwrap().usage;
    assert_eq!(usage, Usage { input_tokens: usage.input_tokens, output_tokens: 1, ..Usage::default() });
    assert!((30..100).contains(&usage.input_tokens), "{usage:?}");
}

const THREE: &str = "answers: [{text: one}, {fault: overloaded}, {fault: cut}, {text: two}, {text: three}]";

fn said(answer: &provost_engine::Answer) -> &str {
    match &answer.content[0] {
        Block::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_place_follows_from_the_conversation_also_after_a_restart_and_a_compaction() {
    let mut conversation = Conversation::new("go");
    let model = script(THREE);
    for _ in 0..2 {
        // A retry gets the same answer.
        assert_eq!(said(&conversation.ask(&model).await.unwrap()), "one");
    }
    let answer = conversation.ask(&model).await.unwrap();
    conversation.answered(&answer, "go on");
    let restarted = script(THREE);
    conversation.ask(&restarted).await.unwrap_err();
    conversation.ask(&restarted).await.unwrap_err();
    let answer = conversation.ask(&restarted).await.unwrap();
    assert_eq!(said(&answer), "two");
    conversation.answered(&answer, "go on");
    conversation.messages = vec![Arc::new(Message::new(
        Role::User,
        vec![Part::Block(Block::Text("All that is left after compaction.".to_owned()))],
    ))];
    assert_eq!(said(&conversation.ask(&restarted).await.unwrap()), "three");
}

#[tokio::test]
async fn each_session_meets_each_fault_once_in_a_process() {
    let (first, mut second) = (Conversation::new("go"), Conversation::new("go"));
    second.session.agent = 1;
    let model = script("answers: [{fault: overloaded}, {text: one}]");
    for conversation in [&first, &second] {
        assert_eq!(conversation.ask(&model).await.unwrap_err().class, ErrorClass::Overloaded);
        assert_eq!(said(&conversation.ask(&model).await.unwrap()), "one");
        assert_eq!(said(&conversation.ask(&model).await.unwrap()), "one");
    }
    let restarted = script("answers: [{fault: overloaded}, {text: one}]");
    first.ask(&restarted).await.unwrap_err();
}

#[tokio::test]
async fn each_answer_has_faults_of_its_own() {
    let model =
        script("answers: [{fault: cut}, {text: one}, {fault: overloaded}, {fault: server}, {text: two}]");
    let mut conversation = Conversation::new("go");
    assert_eq!(conversation.ask(&model).await.unwrap_err().class, ErrorClass::Cut);
    let answer = conversation.ask(&model).await.unwrap();
    conversation.answered(&answer, "go on");
    assert_eq!(conversation.ask(&model).await.unwrap_err().class, ErrorClass::Overloaded);
    assert_eq!(conversation.ask(&model).await.unwrap_err().class, ErrorClass::Server);
    assert_eq!(said(&conversation.ask(&model).await.unwrap()), "two");
}

#[tokio::test]
async fn every_short_fault_has_class_status_and_words() {
    for (name, class, status) in [
        ("transport", ErrorClass::Transport, None),
        ("cut", ErrorClass::Cut, None),
        ("stalled", ErrorClass::Stalled, None),
        ("rate_limited", ErrorClass::RateLimited, Some(429)),
        ("overloaded", ErrorClass::Overloaded, Some(529)),
        ("server", ErrorClass::Server, Some(500)),
        ("malformed_response", ErrorClass::MalformedResponse, None),
        ("invalid_request", ErrorClass::InvalidRequest, Some(400)),
        ("unauthorized", ErrorClass::Unauthorized, Some(401)),
        ("forbidden", ErrorClass::Forbidden, Some(403)),
        ("not_found", ErrorClass::NotFound, Some(404)),
        ("context_too_long", ErrorClass::ContextTooLong, Some(400)),
    ] {
        let failure =
            Conversation::new("go").ask(&script(&format!("answers: [{{fault: {name}}}]"))).await.unwrap_err();
        assert_eq!((failure.class, failure.status), (class, status));
        assert_eq!(failure.message, format!("{} (scripted)", class.words()));
        assert_eq!(failure.usage, Usage::default());
    }
}

#[tokio::test]
async fn a_fault_may_say_everything_a_provider_can() {
    let model = script(
        "
answers:
  - fault:
      class: rate_limited
      status: 430
      message: slow down
      request_id: req_1
      retry_after_ms: 20
      usage: { input: 900, output: 3 }
      text: [Let me, ' st']
",
    );
    let (heard, conversation) = (DeltaRecorder::default(), Conversation::new("go"));
    let failure = model.answer(conversation.request(), &heard, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(
        (failure.class, failure.status, failure.retry_after_ms),
        (ErrorClass::RateLimited, Some(430), Some(20))
    );
    assert_eq!((failure.message.as_str(), failure.request_id.as_deref()), ("slow down", Some("req_1")));
    assert_eq!(failure.usage, Usage { input_tokens: 900, output_tokens: 3, ..Usage::default() });
    assert_eq!(heard.text(DeltaKind::Text), "Let me st");
}

#[tokio::test]
async fn an_empty_answer_comes_once_and_then_the_real_one() {
    let model = script("answers: [{fault: {class: empty, usage: {input: 5}}}, {text: one}]");
    let conversation = Conversation::new("go");
    let answer = conversation.ask(&model).await.unwrap();
    assert_eq!((answer.content, answer.stop), (Vec::new(), StopReason::EndTurn));
    assert_eq!(answer.usage.input_tokens, 5);
    assert_eq!(said(&conversation.ask(&model).await.unwrap()), "one");
}

#[tokio::test]
async fn a_script_that_is_over_says_so() {
    let model = script("answers: [{text: one}, {fault: cut}]");
    let mut conversation = Conversation::new("go");
    conversation.answers_before = 1;
    assert_eq!(conversation.ask(&model).await.unwrap_err().class, ErrorClass::Cut);
    for answers_before in [1, 2, u32::MAX] {
        conversation.answers_before = answers_before;
        let failure = conversation.ask(&model).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::ScriptMismatch);
        let asked = u64::from(answers_before) + 1;
        let expected =
            format!("demo.yaml has 1 answers, and answer {asked} was asked for; add it to the file");
        assert_eq!(failure.message, expected);
    }
}

/// Advances the clock until a task sleeps until `due`.
async fn until_asleep(clock: &SimulatedClock, due: Timestamp) {
    let mut woken = clock.advance_to_next_sleeper().await;
    while woken < due {
        tokio::task::yield_now().await;
        woken = clock.advance_to_next_sleeper().await;
    }
    assert_eq!(woken, due);
}

#[tokio::test]
async fn delays_are_by_the_clock_and_the_entrys_own_wins() {
    let clock = Arc::new(SimulatedClock::at(Timestamp(1000)));
    let text = "delay_ms: 100\nchunk_delay_ms: 10\nanswers: [{text: [a, b, c]}, {text: d, delay_ms: 3600000}, {fault: {class: cut, delay_ms: 0}}]";
    let model = Arc::new(script(text).with_clock(Arc::clone(&clock) as Arc<dyn Clock>));
    for (answers_before, expected) in [(0, [1100, 1110, 1120].as_slice()), (1, &[3_601_120]), (2, &[])] {
        let mut conversation = Conversation::new("go");
        conversation.answers_before = answers_before;
        let model = Arc::clone(&model);
        let asking = tokio::spawn(async move { conversation.ask(&*model).await });
        for due in expected {
            until_asleep(&clock, Timestamp(*due)).await;
        }
        assert_eq!(asking.await.unwrap().is_ok(), !expected.is_empty());
    }
}

#[tokio::test]
async fn cancel_ends_a_delay_at_once() {
    let model = script("answers: [{text: [a, b], chunk_delay_ms: 86400000}]");
    let (cancel, heard) = (CancellationToken::new(), DeltaRecorder::default());
    let conversation = Conversation::new("go");
    let asking = model.answer(conversation.request(), &heard, &cancel);
    let cancelling = async {
        heard.until_first().await;
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(asking, cancelling);
    assert_eq!(answer.unwrap_err().class, ErrorClass::Aborted);
    assert_eq!(heard.text(DeltaKind::Text), "a");
}

#[tokio::test]
async fn every_example_of_the_reference_page_is_a_script() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/script.md");
    let page = fs::read_to_string(page).unwrap();
    let examples = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let folder = TempDir::new().unwrap();
    let mut count = 0;
    for example in examples {
        let path = folder.path().join("example.yaml");
        fs::write(&path, example).unwrap();
        ScriptedModel::load(&path).unwrap_or_else(|error| panic!("{error}\n{example}"));
        count += 1;
    }
    assert!(count >= 4, "only {count} examples");
}
