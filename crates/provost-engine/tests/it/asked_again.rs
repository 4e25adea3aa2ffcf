//! An agent that has delivered its result continues in its own session when its parent asks it again.

use expect_test::{Expect, expect};
use provost_event::{
    Budget, ConversationEntry, Entry, ErrorClass, LifecycleEntry, Outcome, RunPolicy, ToolStatus,
};

use crate::tree_world::{Tree, key, policy};

fn check(tree: &mut Tree, news: Expect) {
    news.assert_eq(&tree.news());
}

/// A tree whose first agent has the result of agent 1.
fn delivered(policy: RunPolicy) -> Tree {
    let mut tree = Tree::start(policy);
    tree.call(0, &[("spawn_agent", r#"{"goal":"find it","name":"finder"}"#)]);
    tree.say(1, "it is in the cellar");
    tree.news();
    tree
}

fn ask(tree: &mut Tree, input: &str) -> (ToolStatus, String) {
    tree.call(0, &[("spawn_agent", input)]);
    tree.results(0).last().cloned().expect("a result")
}

#[test]
fn it_goes_on_in_its_own_session_and_delivers_again() {
    let mut tree = delivered(policy(2));
    tree.call(0, &[("spawn_agent", r#"{"goal":"which shelf?","agent":"000000000001.1"}"#)]);
    assert_eq!(tree.thinking(), [1]);
    tree.say(1, "the third");
    check(
        &mut tree,
        expect![[r#"
        1 asked again by 0 (normal, Free)
        1 started
        1 finished: completed, not verified
    "#]],
    );
    expect!["the third"].assert_eq(&tree.results(0).last().expect("a result").1);
    let starts = tree
        .log(key(1))
        .iter()
        .filter(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::SessionStarted(_))));
    assert_eq!(starts.count(), 1, "one session");
    let heard = tree.log(key(1)).iter().any(|record| {
        matches!(&record.entry, Entry::Conversation(ConversationEntry::UserMessage(said)) if said.by == "agent 000000000001.0"
            && format!("{:?}", said.content).contains("which shelf?"))
    });
    assert!(heard, "it is told what it is asked");
    let status = tree.run().agents().find(|agent| agent.session.agent == 1).expect("it is known");
    let limit = policy(2).agent.limits.turns_max;
    assert_eq!(
        (status.turns, status.turns_max),
        (2, Some(limit + 1)),
        "its limit counts from where it was asked again"
    );
    tree.say(0, "all is done");
    assert!(matches!(tree.outcome(), Some(Outcome::Completed { .. })));
}

#[test]
fn only_the_agent_that_asked_for_it_may_ask_again_and_only_when_it_is_done() {
    let mut tree = delivered(policy(4));
    for (input, why) in [
        (r#"{"goal":"g","agent":"7"}"#, "No agent `7` has worked for you by `spawn_agent`"),
        (r#"{"goal":"g","agent":"0"}"#, "No agent `0` has worked for you"),
        (r#"{"goal":"g","agent":"000000000002.1"}"#, "No agent `000000000002.1` has worked for you"),
        (r#"{"goal":" ","agent":"1"}"#, "The goal is empty"),
        (r#"{"goal":"g","agent":"1","tools":["read"]}"#, "leave `tools` out"),
        (r#"{"goal":"g","agent":"1","priority":"critical"}"#, "Its priority can be normal at most."),
    ] {
        let (status, said) = ask(&mut tree, input);
        assert_eq!(status, ToolStatus::Rejected, "{input}");
        assert!(said.contains(why), "{input}: {said}");
    }
    // An agent of one tool can't be asked again by another tool.
    tree.call(0, &[("low", r#"{"goal":"g","agent":"1"}"#)]);
    let (status, said) = tree.results(0).last().cloned().expect("a result");
    assert_eq!(status, ToolStatus::Rejected);
    assert!(said.contains("by `low`"), "{said}");
    // Two calls of one answer: the second finds it at work.
    let again = ("spawn_agent", r#"{"goal":"g","agent":1}"#);
    tree.call(0, &[again, again]);
    assert!(tree.results(0).last().expect("a result").1.contains("still works"));
    tree.say(1, "done");
    // An agent below it has another parent.
    tree.call(0, &[("spawn_agent", r#"{"goal":"g"}"#)]);
    tree.call(2, &[("spawn_agent", r#"{"goal":"g","agent":"1"}"#)]);
    assert_eq!(tree.results(2).last().expect("a result").0, ToolStatus::Rejected);
}

#[test]
fn its_own_limits_count_anew() {
    let mut limited = policy(2);
    limited.agents[0].budget = Budget { turns: Some(1), ..Budget::default() };
    let name = limited.agents[0].name.clone();
    let mut tree = Tree::start(limited);
    tree.call(0, &[(name.as_str(), r#"{"goal":"g"}"#)]);
    tree.say(1, "one turn");
    tree.call(0, &[(name.as_str(), r#"{"goal":"again","agent":"1"}"#)]);
    assert_eq!(tree.thinking(), [1], "it has a turn again");
    tree.say(1, "another turn");
    assert!(tree.results(0).last().expect("a result").1.starts_with("another turn"));
}

#[test]
fn one_that_waits_for_a_slot_keeps_its_request_through_a_pause_and_is_cancelled_with_the_run() {
    let mut tree = delivered(policy(2));
    // The only slot besides the root's is taken: the second call waits for it.
    let both = [("spawn_agent", r#"{"goal":"g"}"#), ("spawn_agent", r#"{"goal":"and now","agent":"1"}"#)];
    tree.call(0, &both);
    assert_eq!(tree.thinking(), [2]);
    tree.pause(None);
    tree.fail(2, ErrorClass::Aborted);
    tree.resume(None);
    assert_eq!(tree.thinking(), [1], "it has waited longest");
    tree.say(1, "done again");
    tree.say(2, "done");
    tree.call(0, &both);
    assert_eq!(tree.thinking(), [3]);
    tree.news();
    tree.cancel(None);
    tree.fail(3, ErrorClass::Aborted);
    check(
        &mut tree,
        expect![[r#"
            all shall stop: cancelled by c
            1 finished: cancelled by c
            0 finished: cancelled by c
            3 finished: cancelled by c
            ended: cancelled by c
        "#]],
    );
}
