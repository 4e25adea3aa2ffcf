//! A scripted model's answers outside of the conversation: summaries, and final summaries at a limit.

use expect_test::{Expect, expect};
use provost_engine::Answer;
use provost_event::{Block, ErrorClass, ModelFailure, Purpose, Usage};
use provost_llm::ScriptedModel;

use crate::scripted::script;
use crate::support::*;

const SCRIPT: &str = "
model: demo-1
answers:
  - text: an answer
summaries:
  - fault: overloaded
  - text: the first summary
  - fault: empty
  - fault: { class: invalid_request, message: no }
  - tools: [search]
  - expect: { contains: sum up }
    text: the fifth
final_summary: { text: how far it is, usage: { input: 7, output: 3 } }
";

fn asked_for(purpose: Purpose, summaries_before: u32) -> Conversation {
    Conversation { purpose, summaries_before, answers_before: 5, ..Conversation::new("go") }
}

fn told(answer: Result<Answer, ModelFailure>) -> String {
    match answer {
        Ok(answer) => answer.content.iter().map(|block| serde_json::to_string(block).unwrap()).collect(),
        Err(failure) => format!("{:?}: {}", failure.class, failure.message),
    }
}

/// Shows the results of requests for a summary after this many others, one after the other.
async fn check(model: &ScriptedModel, summaries_before: &[u32], expected: Expect) {
    let mut shown = String::new();
    for before in summaries_before {
        let answer = asked_for(Purpose::Summary, *before).ask(model).await;
        shown.push_str(&format!("{before}: {}\n", told(answer)));
    }
    expected.assert_eq(&shown);
}

#[tokio::test]
async fn the_summary_that_is_given_follows_from_how_many_there_were() {
    let model = script(SCRIPT);
    check(
        &model,
        &[0, 0, 0, 1, 2, 3, 5],
        expect![[r#"
            0: Overloaded: the provider is overloaded (scripted)
            0: {"text":"the first summary"}
            0: {"text":"the first summary"}
            1: 
            2: InvalidRequest: no
            3: {"tool_call":{"id":"call_6_1","name":"search","input":{}}}
            5: ScriptMismatch: demo.yaml has no summary 6; add it under `summaries:`
        "#]],
    )
    .await;
    // Answers are counted separately, with faults of their own.
    let mut conversation = Conversation::new("go");
    conversation.summaries_before = 9;
    assert_eq!(told(conversation.ask(&model).await), r#"{"text":"an answer"}"#);
}

#[tokio::test]
async fn summaries_expect_things_of_their_question() {
    let model = script(SCRIPT);
    let mut conversation = asked_for(Purpose::Summary, 4);
    let failure = conversation.ask(&model).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::ScriptMismatch);
    expect!["demo.yaml:11: summary 5 expects the last message to contain `sum up`, but it is: `go`"]
        .assert_eq(&failure.message);
    conversation.say("Now sum up.");
    assert_eq!(told(conversation.ask(&model).await), r#"{"text":"the fifth"}"#);
}

#[tokio::test]
async fn a_script_without_summaries_has_none() {
    let model = script("answers: [{text: a}]");
    check(
        &model,
        &[0],
        expect!["0: ScriptMismatch: demo.yaml has no summary 1; add it under `summaries:`\n"],
    )
    .await;
}

#[tokio::test]
async fn final_summary_are_the_same_at_each_limit() {
    let model = script(SCRIPT);
    for _ in 0..2 {
        let answer = asked_for(Purpose::FinalSummary, 2).ask(&model).await.unwrap();
        assert_eq!(answer.content, [Block::Text("how far it is".to_owned())]);
        assert_eq!((answer.usage.input_tokens, answer.usage.output_tokens), (7, 3));
    }
    let failing = script("answers: [{text: a}]\nfinal_summary: {fault: overloaded}");
    for _ in 0..2 {
        let failure = asked_for(Purpose::FinalSummary, 0).ask(&failing).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Overloaded);
    }
    let expecting = script("answers: [{text: a}]\nfinal_summary:\n  expect: {contains: limit}\n  text: b");
    let failure = asked_for(Purpose::FinalSummary, 0).ask(&expecting).await.unwrap_err();
    expect!["demo.yaml:3: final_summary expects the last message to contain `limit`, but it is: `go`"]
        .assert_eq(&failure.message);
}

#[tokio::test]
async fn a_script_without_final_summary_says_nothing_which_takes_nothing() {
    let answer = asked_for(Purpose::FinalSummary, 0).ask(&script("answers: [{text: a}]")).await.unwrap();
    assert_eq!(
        (answer.content.len(), answer.usage, answer.model.as_str()),
        (0, Usage::default(), "scripted")
    );
}

#[tokio::test]
async fn answers_are_at_most_a_quarter_of_a_window_that_is_small() {
    let sizes = |text: &str| {
        let model = script(&format!("{text}\nanswers: [{{text: a}}]"));
        (model.window_tokens(), model.output_tokens_max())
    };
    assert_eq!(sizes("model: a"), (200_000, 8192));
    assert_eq!(sizes("window_tokens: 8000"), (8000, 2000));
    assert_eq!(sizes("window_tokens: 8000\noutput_tokens_max: 3999"), (8000, 3999));
}
