//! Scripts for several agents: which agent gets which answers.

use expect_test::{Expect, expect};
use provost_event::{Purpose, RunId, SessionId};
use provost_llm::ScriptedModel;

use crate::scripted::script;
use crate::support::*;

const SCRIPT: &str = "
answers:
  - text: the root begins
  - text: the root goes on
summaries:
  - text: the root sums up
agents:
  - goal: chapter 1
    answers:
      - fault: overloaded
      - text: one begins
      - text: one goes on
    final_summary: { text: the last of one }
  - goal: chapter
    answers:
      - { expect: { turn: 1 }, text: another begins }
    summaries:
      - text: another sums up
";

/// Agent `number` with this first message, after this many answers.
fn agent(number: u32, first: &str, answers_before: u32) -> Conversation {
    let session = SessionId { run: RunId::from_entropy(7), agent: number };
    Conversation { session, answers_before, ..Conversation::new(first) }
}

async fn told(model: &ScriptedModel, conversation: &Conversation) -> String {
    match conversation.ask(model).await {
        Ok(answer) => answer.content.iter().map(|block| serde_json::to_string(block).unwrap()).collect(),
        Err(failure) => format!("{:?}: {}", failure.class, failure.message),
    }
}

async fn check(asked: &[Conversation], expected: Expect) {
    let (model, mut shown) = (script(SCRIPT), String::new());
    for conversation in asked {
        shown.push_str(&format!(
            "{} {:?}: {}\n",
            conversation.session.agent,
            conversation.purpose,
            told(&model, conversation).await
        ));
    }
    expected.assert_eq(&shown);
}

#[tokio::test]
async fn an_agent_gets_the_words_of_the_first_text_in_its_goal() {
    check(
        &[
            agent(1, "Read chapter 1.", 0),
            agent(1, "Read chapter 1.", 0),
            agent(1, "Read chapter 1.", 1),
            agent(2, "Read chapter 12.", 0),
            agent(3, "Read chapter 2.", 0),
            agent(4, "Read Chapter 2.", 0),
            agent(4, "Read Chapter 2.", 1),
        ],
        expect![[r#"
            1 Turn: Overloaded: the provider is overloaded (scripted)
            1 Turn: {"text":"one begins"}
            1 Turn: {"text":"one goes on"}
            2 Turn: Overloaded: the provider is overloaded (scripted)
            3 Turn: {"text":"another begins"}
            4 Turn: {"text":"the root begins"}
            4 Turn: {"text":"the root goes on"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn the_root_has_the_scripts_own_whatever_it_is_told() {
    check(
        &[agent(0, "Have chapter 1 read.", 0), agent(0, "Have chapter 1 read.", 1)],
        expect![[r#"
        0 Turn: {"text":"the root begins"}
        0 Turn: {"text":"the root goes on"}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn summaries_and_final_summary_are_the_agents_own() {
    let asked = |number, goal, purpose| Conversation { purpose, ..agent(number, goal, 1) };
    check(
        &[
            asked(1, "Read chapter 1.", Purpose::FinalSummary),
            asked(1, "Read chapter 1.", Purpose::Summary),
            asked(2, "Read chapter 2.", Purpose::FinalSummary),
            asked(2, "Read chapter 2.", Purpose::Summary),
            asked(3, "Read it.", Purpose::Summary),
        ],
        expect![[r#"
            1 FinalSummary: {"text":"the last of one"}
            1 Summary: ScriptMismatch: demo.yaml has no summary 1 for `chapter 1`; add it under `summaries:`
            2 FinalSummary: 
            2 Summary: {"text":"another sums up"}
            3 Summary: {"text":"the root sums up"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn the_goal_is_not_looked_for_behind_the_first_message() {
    let mut conversation = agent(1, "Read it.", 1);
    conversation.say("This is chapter 1.");
    check(
        &[conversation],
        expect![[r#"
        1 Turn: {"text":"the root goes on"}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_script_that_is_over_says_for_whom() {
    check(&[agent(1, "Read chapter 1.", 2), agent(2, "Read chapter 2.", 3)], expect![[r#"
        1 Turn: ScriptMismatch: demo.yaml has 2 answers for `chapter 1`, and answer 3 was asked for; add it to the file
        2 Turn: ScriptMismatch: demo.yaml has 1 answers for `chapter`, and answer 4 was asked for; add it to the file
    "#]]).await;
}
