//! Agents that fail: which failures are retried, in which session, how often, and which agents are notified.

use expect_test::{Expect, expect};
use provost_engine::AgentState;
use provost_event::{
    AgentEntry, ConversationEntry, Entry, ErrorClass, ItemKind, Outcome, PauseReason, RetryPolicy, RunPolicy,
    ToolEntry, ToolStatus,
};

use crate::tree_world::{Tree, key, policy};
use crate::world::RUN;

const RETRY: RetryPolicy = RetryPolicy { attempts_max: 2, backoff_base_ms: 60_000, backoff_max_ms: 60_000 };

fn restarting(slots: u32) -> RunPolicy {
    let mut policy = policy(slots);
    policy.agent.limits.model_patience_ms = 0;
    for agent in &mut policy.agents {
        agent.agent.limits.retry = RETRY;
        agent.agent.limits.model_patience_ms = 0;
    }
    policy
}

#[expect(clippy::needless_pass_by_value, reason = "snapshots are written where they are checked")]
fn check(tree: &mut Tree, expected: Expect) {
    expected.assert_eq(&tree.news());
}

fn told(tree: &Tree, agent: u32) -> Vec<String> {
    let entries = tree.log(key(agent)).iter().map(|record| &record.entry);
    let told = entries.filter_map(|entry| match entry {
        Entry::Conversation(ConversationEntry::SystemItem(item)) if item.item == ItemKind::Resumed => {
            Some(item.body.clone())
        }
        _ => None,
    });
    told.collect()
}

fn waits_for_restart(tree: &Tree, agent: u32) -> bool {
    matches!(tree.standing(agent), AgentState::AwaitsRestart { .. })
}

#[test]
fn an_agent_that_fails_goes_on_in_its_own_session_and_its_parent_hears_once() {
    let mut tree = Tree::start(restarting(4));
    tree.spawn(0, &["normal"]);
    tree.call(1, &[("read", "{}")]);
    tree.finish(1, ToolStatus::Ok, "what it has read");
    tree.fail(1, ErrorClass::Program);
    assert!(waits_for_restart(&tree, 1));
    assert_eq!(tree.results(0), [], "its parent waits");
    tree.tick();
    tree.say(1, "found it");
    check(
        &mut tree,
        expect![[r#"
            1 spawned by 0 (normal, a slot is free)
            1 started
            1 failed: the program failed: its message; retry 1 of 2
            1 resumed by the retry policy
            1 started
            1 finished: completed, not verified, restarted 1 times
        "#]],
    );
    let report = tree.log(key(0)).iter().find_map(|record| match &record.entry {
        Entry::Tool(ToolEntry::Finished(done)) => Some(done.output.clone()),
        _ => None,
    });
    expect![[r#"
        found it

        <system-reminder id="eefpmdbpejljfcdc">
        [agent 000000000001.1 (normal): completed, not verified; attempts: 2, turns: 2, tokens: 200, cost: $0.0002]
        </system-reminder>"#]]
    .assert_eq(&report.expect("a result"));
    expect!["Your work had failed (the program failed: its message), and you are restarted: retry 1 of 2. What you did before still stands, and your limits are the same. Look at how far you came, and go on from there; if what you did led to the failure, do it differently."]
        .assert_eq(&told(&tree, 1).concat());
    tree.say(0, "done");
    assert_eq!(tree.outcome(), Some(Outcome::UNVERIFIED));
}

#[test]
fn after_its_last_restart_an_agent_has_failed() {
    let mut tree = Tree::start(restarting(4));
    tree.spawn(0, &["normal"]);
    for _ in 0..2 {
        tree.fail(1, ErrorClass::Program);
        tree.tick();
    }
    tree.fail(1, ErrorClass::Program);
    assert_eq!(tree.thinking(), [0]);
    assert_eq!(tree.results(0)[0].0, ToolStatus::Error);
    assert!(tree.news().ends_with("1 finished: the program failed: its message, restarted 2 times\n"));
}

#[test]
fn what_is_restarted_follows_from_the_class_of_the_failure() {
    let restarted = [ErrorClass::Program, ErrorClass::NoAnswer, ErrorClass::Aborted];
    let judged_by_parent = [
        ErrorClass::Refusal,
        ErrorClass::InvalidRequest,
        ErrorClass::ContextExhausted,
        ErrorClass::ScriptMismatch,
        ErrorClass::Unanswered,
    ];
    let awaited = [
        ErrorClass::Transport,
        ErrorClass::Overloaded,
        ErrorClass::RateLimited,
        ErrorClass::Server,
        ErrorClass::MalformedResponse,
        ErrorClass::Unauthorized,
        ErrorClass::QuotaUsedUp,
        ErrorClass::NotFound,
    ];
    for (classes, is_restarted, is_reported) in
        [(&restarted[..], true, false), (&judged_by_parent[..], false, true), (&awaited[..], false, false)]
    {
        for class in classes {
            let mut tree = Tree::start(restarting(4));
            tree.spawn(0, &["normal"]);
            tree.fail(1, *class);
            assert_eq!(waits_for_restart(&tree, 1), is_restarted, "{class:?}");
            assert_eq!(!tree.results(0).is_empty(), is_reported, "{class:?}");
        }
    }
}

#[test]
fn an_agent_that_is_cancelled_blocked_or_at_a_limit_is_not_restarted() {
    let cancelled = Outcome::Cancelled { by: "ann".to_owned() };
    let aborted = Outcome::Aborted { hook: "h".to_owned(), reason: String::new() };
    let blocked = Outcome::Blocked { reasons: vec!["red".to_owned()] };
    let asked = Outcome::Paused { why: PauseReason::Asked { by: "ann".to_owned(), awaited: None } };
    for outcome in [cancelled, aborted, blocked, asked, Outcome::UNVERIFIED] {
        assert!(!outcome.may_restart(), "{outcome}");
    }
    let mut policy = restarting(4);
    policy.agents[2].agent.limits.turns_max = 1;
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["normal"]);
    tree.call(1, &[("read", "{}")]);
    tree.finish(1, ToolStatus::Ok, "x");
    tree.say(1, "so far");
    assert_eq!(tree.results(0).len(), 1, "its turns are used up, and its parent goes on");
}

#[test]
fn tool_calls_that_lead_nowhere_are_a_failure_of_the_agent() {
    let mut policy = restarting(4);
    policy.agents[2].agent.limits.repeated_call_max = 2;
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["normal"]);
    for _ in 0..2 {
        tree.call(1, &[("read", "{}")]);
        tree.finish(1, ToolStatus::Ok, "the same");
    }
    assert!(waits_for_restart(&tree, 1));
    tree.tick();
    tree.say(1, "another way");
    assert_eq!(tree.results(0), [(ToolStatus::Ok, "another way".to_owned())]);
}

#[test]
fn the_root_is_not_restarted_by_itself() {
    let mut policy = restarting(4);
    policy.agent.limits.retry = RETRY;
    let mut tree = Tree::start(policy);
    tree.fail(0, ErrorClass::Program);
    assert!(matches!(tree.outcome(), Some(Outcome::Failed { class: ErrorClass::Program, .. })));
}

#[test]
fn an_agent_that_waits_for_its_restart_holds_no_slot() {
    let mut tree = Tree::start(restarting(2));
    tree.spawn(0, &["normal"]);
    tree.fail(1, ErrorClass::Program);
    assert_eq!(tree.run().slots_held(), 1);
    tree.tick();
    assert_eq!(tree.run().slots_held(), 2);
}

#[test]
fn limits_hold_over_all_attempts() {
    let mut policy = restarting(4);
    policy.agents[2].agent.limits.turns_max = 2;
    let mut tree = Tree::start(policy);
    tree.spawn(0, &["normal"]);
    tree.call(1, &[("read", "{}")]);
    tree.finish(1, ToolStatus::Ok, "x");
    tree.fail(1, ErrorClass::Program);
    tree.tick();
    tree.call(1, &[("read", "{}")]);
    tree.finish(1, ToolStatus::Ok, "y");
    tree.say(1, "so far");
    let [(status, text)] = &tree.results(0)[..] else { panic!("one result") };
    assert_eq!((*status, text.as_str()), (ToolStatus::Error, "so far"));
    let news = tree.news();
    let finished = news.lines().last().unwrap_or_default();
    assert!(finished.starts_with("1 finished: ") && finished.contains("2 of 2"), "{news}");
    assert!(finished.ends_with("restarted 1 times"), "{news}");
}

#[test]
fn a_pause_of_the_run_keeps_the_wait_and_one_of_the_agent_ends_it() {
    let mut tree = Tree::start(restarting(4));
    tree.spawn(0, &["normal"]);
    tree.fail(1, ErrorClass::Program);
    tree.pause(None);
    assert!(matches!(tree.outcome(), Some(Outcome::Paused { .. })));
    assert_eq!(tree.timers(), []);
    tree.resume(None);
    assert!(waits_for_restart(&tree, 1));
    tree.pause(Some(1));
    assert!(matches!(tree.standing(1), AgentState::Suspended(_)));
    tree.resume(None);
    assert_eq!(tree.standing(1), AgentState::Working, "it was resumed");
    tree.say(1, "ok");
    tree.say(0, "ok");
    assert_eq!(tree.outcome(), Some(Outcome::UNVERIFIED));
}

#[test]
fn an_agent_that_is_cancelled_while_it_waits_for_its_restart_has_failed() {
    for whole_run in [false, true] {
        let mut tree = Tree::start(restarting(4));
        tree.spawn(0, &["normal"]);
        tree.fail(1, ErrorClass::Program);
        tree.news();
        tree.cancel((!whole_run).then_some(1));
        let news = tree.news();
        assert!(news.contains("1 finished: the program failed: its message\n"), "{news}");
        assert_eq!(tree.outcome().is_some(), whole_run);
        assert_eq!(tree.timers(), []);
    }
}

#[test]
fn a_kill_at_any_point_neither_loses_nor_doubles_an_attempt() {
    let moves: [&dyn Fn(&mut Tree); 6] = [
        &|tree| tree.spawn(0, &["normal"]),
        &|tree| tree.fail(1, ErrorClass::Program),
        &Tree::tick,
        &|tree| tree.fail(1, ErrorClass::Program),
        &Tree::tick,
        &|tree| tree.say(1, "ok"),
    ];
    for kill_before in 0..=moves.len() {
        let mut tree = Tree::start(restarting(4));
        for (number, one) in moves.iter().enumerate() {
            if number == kill_before {
                tree.crash(|_| false);
            }
            one(&mut tree);
        }
        if kill_before == moves.len() {
            tree.crash(|_| false);
        }
        let attempts = tree.log(RUN.into()).iter().filter_map(|record| match &record.entry {
            Entry::Agent(AgentEntry::RetryScheduled(scheduled)) => Some(scheduled.attempt),
            _ => None,
        });
        assert_eq!(attempts.collect::<Vec<_>>(), [1, 2], "killed before {kill_before}");
        assert_eq!(tree.results(0), [(ToolStatus::Ok, "ok".to_owned())], "killed before {kill_before}");
        assert_eq!(told(&tree, 1).len(), 2);
    }
}

#[test]
fn a_resumed_agent_has_all_its_attempts_again() {
    let mut tree = Tree::start(restarting(4));
    tree.spawn(0, &["normal"]);
    for round in 0..2 {
        for _ in 0..2 {
            tree.fail(1, ErrorClass::Program);
            tree.tick();
        }
        if round == 0 {
            tree.pause(Some(1));
            tree.fail(1, ErrorClass::Aborted);
            tree.resume(None);
        }
    }
    tree.say(1, "ok");
    assert_eq!(tree.results(0).len(), 1);
}
