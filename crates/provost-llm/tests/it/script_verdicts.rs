//! A scripted model as a judge.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use provost_event::{Block, Confidence, Purpose, RunId, SessionId, SupervisorError, SupervisorVerdict};
use provost_harness::{Clock, GoalSupervisor};
use provost_llm::ScriptedModel;
use tokio_util::sync::CancellationToken;

use crate::scripted::script;
use crate::support::*;

/// Shows the answers of a judge after this many earlier calls, one question after the other.
async fn check(model: &ScriptedModel, asked_before: &[u32], expected: Expect) {
    let mut shown = String::new();
    for before in asked_before {
        shown.push_str(&format!("{before}: {}\n", told(model, &Conversation::to_judge("go", *before)).await));
    }
    expected.assert_eq(&shown);
}

async fn told(model: &ScriptedModel, conversation: &Conversation) -> String {
    match conversation.ask(model).await {
        Ok(answer) => {
            let words = answer.content.iter().map(|block| match block {
                Block::Text(text) => text.clone(),
                other => serde_json::to_string(other).unwrap(),
            });
            words.collect::<Vec<_>>().join(" ")
        }
        Err(failure) => format!("{:?}: {}", failure.class, failure.message),
    }
}

const JUDGE: &str = "
verdicts:
  - achieved: false
    confidence: 0.9
    reasoning: Two of \"3\" tests fail.
    suggestions: [Mend the second., Mend the third.]
  - fault: rate_limited
  - thinking: Hm.
    text: I would say that it is done.
  - achieved: true
    reasoning: All pass.
  - { achieved: false, confidence: 1, reasoning: No., suggestions: Go on. }
";

#[tokio::test]
async fn a_judge_says_its_verdicts_in_order_as_a_judge_writes_them() {
    check(&script(JUDGE), &[0, 1, 2, 3, 4, 5], expect![[r#"
        0: {"achieved":false,"confidence":0.9,"reasoning":"Two of \"3\" tests fail.","suggestions":["Mend the second.","Mend the third."]}
        1: RateLimited: rate limited (scripted)
        2: {"thinking":{"text":"Hm."}} I would say that it is done.
        3: {"achieved":true,"confidence":1.0,"reasoning":"All pass.","suggestions":[]}
        4: {"achieved":false,"confidence":1.0,"reasoning":"No.","suggestions":["Go on."]}
        5: ScriptMismatch: demo.yaml has 5 verdicts, and verdict 6 was asked for; add it under `verdicts:`
    "#]]).await;
}

#[tokio::test]
async fn a_fault_has_a_place_of_its_own_and_comes_as_often_as_it_is_asked_there() {
    check(&script(JUDGE), &[1, 1, 0, 1, 0], expect![[r#"
        1: RateLimited: rate limited (scripted)
        1: RateLimited: rate limited (scripted)
        0: {"achieved":false,"confidence":0.9,"reasoning":"Two of \"3\" tests fail.","suggestions":["Mend the second.","Mend the third."]}
        1: RateLimited: rate limited (scripted)
        0: {"achieved":false,"confidence":0.9,"reasoning":"Two of \"3\" tests fail.","suggestions":["Mend the second.","Mend the third."]}
    "#]]).await;
}

#[tokio::test]
async fn a_judges_place_is_its_own_where_agent_and_judge_share_a_file() {
    let model = script("answers: [{text: one}, {text: two}]\nverdicts: [{text: first}, {text: second}]");
    let agent = Conversation { answers_before: 1, ..Conversation::new("go") };
    assert_eq!(told(&model, &agent).await, "two");
    check(
        &model,
        &[0, 1, 2],
        expect![[r#"
            0: first
            1: second
            2: ScriptMismatch: demo.yaml has 2 verdicts, and verdict 3 was asked for; add it under `verdicts:`
        "#]],
    )
    .await;
    assert_eq!(told(&model, &Conversation::new("go")).await, "one");
}

#[tokio::test]
async fn a_judges_file_has_nothing_for_an_agent_and_an_agents_nothing_for_a_judge() {
    let asked = |purpose| Conversation { purpose, ..Conversation::new("go") };
    let judge = script("verdicts: [{achieved: true, reasoning: Yes.}]");
    let agent = script("answers: [{text: one}]");
    let said = [told(&judge, &asked(Purpose::Turn)).await, told(&agent, &asked(Purpose::Judge)).await];
    expect![[r#"
        ScriptMismatch: demo.yaml has 0 answers, and answer 1 was asked for; add it to the file
        ScriptMismatch: demo.yaml has 0 verdicts, and verdict 1 was asked for; add it under `verdicts:`"#]]
    .assert_eq(&said.join("\n"));
}

#[tokio::test]
async fn verdicts_expect_things_of_what_the_judge_is_asked() {
    let model = script(
        "
verdicts:
  - expect: { contains: [condition, exit 0], not_contains: secret, system: careful, messages: 1 }
    achieved: true
    reasoning: Yes.
  - expect: { offers: [shell] }
    fault: overloaded
",
    );
    let mut shown = String::new();
    for (question, before) in
        [("condition: exit 0", 0), ("condition: exit 1", 0), ("exit 0 condition secret", 0), ("go", 1)]
    {
        let told = told(&model, &Conversation::to_judge(question, before)).await;
        shown.push_str(&told);
        shown.push('\n');
    }
    expect![[r#"
        {"achieved":true,"confidence":1.0,"reasoning":"Yes.","suggestions":[]}
        ScriptMismatch: demo.yaml:3: verdict 1 expects the last message to contain `exit 0`, but it is: `condition: exit 1`
        ScriptMismatch: demo.yaml:3: verdict 1 expects the last message not to contain `secret`, but it is: `exit 0 condition secret`
        ScriptMismatch: demo.yaml:7: verdict 2 expects the tool `shell` to be offered, but there is only: 
    "#]]
    .assert_eq(&shown);
}

#[tokio::test]
async fn a_sub_agents_verdicts_are_found_by_the_text_that_comes_first_in_the_question() {
    let model = script(
        "
verdicts:
  - text: about the root
agents:
  - goal: chapter 1
    verdicts:
      - text: about the first chapter
  - goal: chapter
    answers: [{text: a}]
    verdicts:
      - text: about another chapter
  - goal: chipper
    answers: [{text: a}]
",
    );
    let mut shown = String::new();
    for (agent, question) in [
        (1, "condition| chapter 1 is read\ntask| Read chapter 1.\nclaim| chapter 2 is read too"),
        (2, "condition| chapter 2 is read\ntask| Read chapter 2.\nclaim| chapter 1 is read too"),
        (3, "condition| it is read\nclaim| I know nothing of anything"),
        (0, "condition| chapter 1 is read"),
        (4, "condition| the chipper chips"),
    ] {
        let session = SessionId { run: RunId::from_entropy(7), agent };
        let asked = Conversation { session, ..Conversation::to_judge(question, 0) };
        shown.push_str(&format!("{agent}: {}\n", told(&model, &asked).await));
    }
    expect![[r#"
        1: about the first chapter
        2: about another chapter
        3: about the root
        0: about the root
        4: ScriptMismatch: demo.yaml has 0 verdicts for `chipper`, and verdict 1 was asked for; add it under `verdicts:`
    "#]]
    .assert_eq(&shown);
}

#[tokio::test]
async fn what_a_judge_consumes_is_as_said_or_estimated() {
    let model = script("verdicts: [{text: one, usage: {input: 900, output: 40}}, {text: '12345678'}]");
    let usage = async |before| Conversation::to_judge("go on", before).ask(&model).await.unwrap().usage;
    let said = usage(0).await;
    assert_eq!((said.input_tokens, said.output_tokens), (900, 40));
    let estimated = usage(1).await;
    assert_eq!(estimated.output_tokens, 2);
    assert!((1..20).contains(&estimated.input_tokens), "{estimated:?}");
}

/// The goal supervisor's result with a judge's script.
async fn verified(text: &str, clock: Arc<dyn Clock>) -> Result<SupervisorVerdict, SupervisorError> {
    let judge = GoalSupervisor::new(Arc::new(script(text).with_clock(clock.clone())), clock);
    let judge = judge.with_timeout(Duration::from_secs(30));
    in_time(judge.verify("it works", "it was tried", Vec::new(), &CancellationToken::new())).await
}

#[tokio::test]
async fn a_goal_is_judged_by_a_script_as_by_a_provider() {
    let (_, clock) = still_clock();
    let verdict = |achieved, hundredths, reasoning: &str| SupervisorVerdict {
        achieved,
        confidence: Confidence::hundredths(hundredths),
        reasoning: reasoning.to_owned(),
        suggestions: Vec::new(),
    };
    let yes = "{achieved: true, reasoning: It works.}";
    for (script, expected) in [
        (format!("[{yes}]"), Ok(verdict(true, 100, "It works."))),
        ("[{achieved: false, confidence: 0.25, reasoning: No.}]".to_owned(), Ok(verdict(false, 25, "No."))),
        // Called once more.
        (format!("[{{text: Yes!}}, {yes}]"), Ok(verdict(true, 100, "It works."))),
        (format!("[{{fault: empty}}, {yes}]"), Ok(verdict(true, 100, "It works."))),
        ("[{text: Yes!}, {text: No!}]".to_owned(), Err(SupervisorError::Parse("No!".to_owned()))),
        ("[{fault: rate_limited}]".to_owned(), Err(SupervisorError::RateLimited { retry_after_ms: None })),
        (
            "[{fault: {class: rate_limited, retry_after_ms: 7000}}]".to_owned(),
            Err(SupervisorError::RateLimited { retry_after_ms: Some(7000) }),
        ),
    ] {
        assert_eq!(verified(&format!("verdicts: {script}"), clock.clone()).await, expected, "{script}");
    }
    for class in ["transport", "cut", "stalled", "malformed_response", "overloaded", "server", "unauthorized"]
    {
        let failed = verified(&format!("verdicts: [{{fault: {class}}}, {yes}]"), clock.clone()).await;
        let Err(SupervisorError::Llm { class: found, .. }) = failed else { panic!("{class}: {failed:?}") };
        assert_eq!(serde_json::to_value(found).unwrap(), class);
    }
}

#[tokio::test]
async fn a_judge_that_takes_too_long_is_out_of_time() {
    let (simulated, clock) = still_clock();
    let text = "verdicts: [{achieved: true, reasoning: At last., delay_ms: 31000}]";
    let (verdict, _) = tokio::join!(verified(text, clock), in_time(simulated.advance_to_next_sleeper()));
    assert_eq!(verdict, Err(SupervisorError::Timeout(30_000)));
}
