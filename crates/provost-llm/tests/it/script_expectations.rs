//! Expectations on a scripted model's requests.

use expect_test::{Expect, expect};
use provost_event::{Block, ErrorClass};
use provost_harness::{Part, Role};

use crate::scripted::script;
use crate::support::*;

/// Turn 3: a tool has failed, another has succeeded, and there is a reminder from Provost.
fn conversation() -> Conversation {
    let mut conversation = Conversation::new("Fix add.");
    conversation.turn = 3;
    conversation.push(Role::Assistant, vec![Part::Block(Block::Text("Looking.".to_owned()))]);
    conversation.push(
        Role::User,
        vec![
            result(&"a".into(), "shell", "test add ... FAILED\nadd fails: 3 != 4", true),
            result(&"b".into(), "search", "src/lib.rs:1: fn add", false),
            Part::Block(Block::Text("<system-reminder>\nGo on, add fails.\n</system-reminder>".to_owned())),
        ],
    );
    conversation.push(Role::Assistant, vec![Part::Block(Block::Text("Hm.".to_owned()))]);
    conversation
}

async fn holds(expect: &str) {
    let model = script(&format!("answers: [{{text: ok, expect: {expect}}}]"));
    conversation().ask(&model).await.unwrap_or_else(|failure| panic!("{expect}: {failure:?}"));
}

async fn fails(expect: &str, expected: Expect) {
    let model = script(&format!("answers:\n  - text: ok\n    expect: {expect}"));
    let failure = conversation().ask(&model).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::ScriptMismatch);
    expected.assert_eq(&failure.message);
}

#[tokio::test]
async fn expectations_that_hold_dont_show() {
    holds("{}").await;
    holds("{turn: 3, messages: 4, contains: add fails, not_contains: [bye, FAILED]}").await;
    holds("{contains: [Go on, add], system: careful, offers: [shell, search]}").await;
    holds("{tool_result: {tool: shell, is_error: true, contains: [FAILED, add]}}").await;
    holds("{tool_result: [{tool: search, is_error: false, not_contains: FAILED}, {tool: shell}, {}]}").await;
}

#[tokio::test]
async fn what_doesnt_hold_is_told_with_what_was_there_instead() {
    fails("{turn: 2}", expect!["demo.yaml:2: answer 1 expects turn 2, but this is turn 3"]).await;
    fails("{messages: 2}", expect!["demo.yaml:2: answer 1 expects 2 messages, but there are 4"]).await;
    fails("{contains: [Go on, nothing]}", expect!["demo.yaml:2: answer 1 expects the last message to contain `nothing`, but it is: `<system-reminder> Go on, add fails. </system-reminder>`"]).await;
    fails("{not_contains: add fails}", expect!["demo.yaml:2: answer 1 expects the last message not to contain `add fails`, but it is: `<system-reminder> Go on, add fails. </system-reminder>`"]).await;
    fails("{system: careless}", expect!["demo.yaml:2: answer 1 expects the system prompt to contain `careless`, but it is: `You are careful.`"]).await;
    fails("{offers: terminal}", expect!["demo.yaml:2: answer 1 expects the tool `terminal` to be offered, but there is only: search, shell"]).await;
    fails("{tool_result: {tool: shell, is_error: false, contains: ok, not_contains: no}}", expect!["demo.yaml:2: answer 1 expects a result without error of the tool `shell` with `ok` without `no`, but there is: error of `shell`: `test add ... FAILED add fails: 3 != 4`; result of `search`: `src/lib.rs:1: fn add`"]).await;
    fails("{tool_result: [{tool: search}, {tool: read_file}]}", expect!["demo.yaml:2: answer 1 expects a result of the tool `read_file`, but there is: error of `shell`: `test add ... FAILED add fails: 3 != 4`; result of `search`: `src/lib.rs:1: fn add`"]).await;
}

#[tokio::test]
async fn results_of_other_turns_dont_count_and_long_texts_are_shortened() {
    let mut conversation = conversation();
    conversation.say(&"long ".repeat(1000));
    let model = script("answers: [{text: ok, expect: {tool_result: {tool: shell}}}]");
    let failure = conversation.ask(&model).await.unwrap_err();
    expect!["demo.yaml:1: answer 1 expects a result of the tool `shell`, but there is none"]
        .assert_eq(&failure.message);
    let model = script("answers: [{text: ok, expect: {contains: short}}]");
    let failure = conversation.ask(&model).await.unwrap_err();
    assert!(failure.message.len() < 400, "{}", failure.message);
}

#[tokio::test]
async fn a_fault_may_have_expectations_too() {
    let model =
        script("answers: [{fault: cut, expect: {turn: 3}}, {fault: cut, expect: {turn: 4}}, {text: a}]");
    let conversation = conversation();
    assert_eq!(conversation.ask(&model).await.unwrap_err().class, ErrorClass::Cut);
    assert_eq!(conversation.ask(&model).await.unwrap_err().class, ErrorClass::ScriptMismatch);
}
