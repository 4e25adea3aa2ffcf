//! Judges in observers' events, in the budget and in compaction.

use std::sync::{Arc, Mutex};

use expect_test::expect;
use provost_event::{
    Budget, ConversationEntry, Dimension, Entry, Exhausted, MicroDollars, Outcome, PauseReason, Purpose,
    RunPolicy,
};
use provost_harness::{MemoryTrace, ObserverOptions, Observers, observe_with};

use crate::goals_stage::*;

#[tokio::test]
async fn an_observer_is_told_of_judges_calls_and_of_their_no_and_of_each_turn_once() {
    let names = Arc::new(Mutex::new(Vec::new()));
    let sees = names.clone();
    let make = move |_| {
        let sees = sees.clone();
        observe_with(move |event| {
            if event.actor == ROOT.into() {
                sees.lock().unwrap().push(event.kind.name());
            }
            Ok(())
        })
    };
    let stage = Stage::new().agent([text("It is done."), text("Now.")]).judge([no(), yes()]);
    let (options, trace) = (ObserverOptions::default(), MemoryTrace::new());
    let observers = Observers::new().with("eyes", options, make).with_trace("trace", options, trace.sink());
    let stage = stage.watched(observers);
    assert_eq!(stage.start(|_| {}).await.goes().await, DONE);
    let names = names.lock().unwrap();
    let names = names.iter().filter(|name| **name != "LLM_DELTA").copied().collect::<Vec<_>>();
    expect![[r#"
        SESSION_START
        TURN_START
        LLM_START
        LLM_END
        LLM_START
        LLM_END
        GUARDRAIL_TRIP
        TURN_END
        TURN_START
        LLM_START
        LLM_END
        LLM_START
        LLM_END
        TURN_END
        SESSION_END"#]]
    .assert_eq(&names.join("\n"));
    let traced = trace.events().iter().map(|event| event.to_json().unwrap()).collect::<Vec<_>>().concat();
    for kind in ["goal_judged", "goal_verdict"] {
        assert!(traced.contains(&format!("\"{kind}\"")), "no {kind} in {traced}");
    }
}

// ---- budgets ------------------------------------------------------------------------------------------------------

fn exhausted(outcome: &Outcome) -> Dimension {
    match outcome {
        Outcome::BudgetExhausted(Exhausted { dimension, .. }) => *dimension,
        other => panic!("{other:?}"),
    }
}

/// Each turn has a reported usage of 110 tokens; a verdict may use 10,000 and uses 55.
fn tokens(limit: u64) -> impl FnOnce(&mut RunPolicy) {
    move |policy| {
        policy.budget = Budget { tokens: Some(limit), ..Budget::default() };
        policy.agent.goal.as_mut().unwrap().budget_percent = 100;
    }
}

#[tokio::test]
async fn tokens_that_are_used_up_leave_enough_for_a_last_look_at_the_goal() {
    let work = (1..200).map(act).collect::<Vec<_>>();
    for (judge, rest) in [(yes(), "completed"), (no(), "budget exhausted")] {
        let stage = Stage::new().agent(work.clone()).judge([judge]);
        let mut playing = stage.start(tokens(14_000)).await;
        let outcome = playing.goes().await;
        assert_eq!(outcome.word(), rest, "{}", playing.told().await);
        let charged = playing.charged().await;
        assert_eq!(charged[JUDGE], (1, OF_JUDGE), "{}", playing.told().await);
        let sum = charged.values().map(|(_, tokens)| tokens).sum::<u64>();
        assert!(sum <= 14_000, "{charged:?}");
    }
}

#[tokio::test]
async fn money_that_is_used_up_leaves_enough_for_a_last_look_at_the_goal() {
    let work = (1..200).map(act).collect::<Vec<_>>();
    let stage = Stage::new().agent(work).judge([no()]);
    let money = |policy: &mut RunPolicy| {
        policy.budget = Budget { money: Some(MicroDollars(14_000)), ..Budget::default() };
        policy.agent.goal.as_mut().unwrap().budget_percent = 100;
    };
    let mut playing = stage.start(money).await;
    assert_eq!(exhausted(&playing.goes().await), Dimension::Money);
    assert_eq!(playing.charged().await[JUDGE], (1, OF_JUDGE));
}

#[tokio::test]
async fn judges_take_no_more_than_their_share_and_a_claim_without_it_is_not_believed() {
    let stage = Stage::new().agent([text("It is done.")]).judge([no(), no(), no(), yes()]);
    // A verdict may use about 10,000, which is reserved: a fifth of the limit leaves room for two or three.
    let share = |policy: &mut RunPolicy| {
        policy.budget = Budget { tokens: Some(49_600), ..Budget::default() };
        policy.agent.goal.as_mut().unwrap().rounds_max = 1_000;
    };
    let mut playing = stage.start(share).await;
    let outcome = playing.goes().await;
    let unasked = |outcome: &Outcome| match outcome {
        Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 0, error } } => {
            error.contains("budget")
        }
        _ => false,
    };
    assert!(unasked(&outcome), "{outcome:?}\n{}", playing.told().await);
    let (calls, tokens) = playing.charged().await[JUDGE];
    assert!((1..4).contains(&calls) && tokens <= 49_600 / 5, "{calls} calls took {tokens}");
    let more = Budget { tokens: Some(200_000), ..Budget::default() };
    playing.run.resume("ann", more, None).await.unwrap();
    assert_eq!(playing.goes().await, DONE);
}

/// Of 100 s the agent works for 90 at most; the rest is for the final summary and a last verification.
fn limited_time(policy: &mut RunPolicy) {
    policy.budget = Budget { wall_time_ms: Some(100_000), ..Budget::default() };
    policy.agent.goal.as_mut().unwrap().timeout_ms = 3_600_000;
}

#[tokio::test]
async fn time_that_runs_out_while_a_judge_is_asked_has_it_asked_once_more() {
    let (stage, clock) = Stage::simulated();
    let stage = stage.agent([text("It is done.")]).judge([Say::Hangs, yes()]);
    let mut playing = stage.start(limited_time).await;
    let pass = async {
        judges_asked(&stage.tape, 1).await;
        clock.advance_ms(90_000);
    };
    assert_eq!(playing.goes_while(pass).await, DONE);
    expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
        stop: Time budget used up: 90.0 s of 100.0 s
          judge for generation 1: failed: the call was cancelled: it was told to stop, too late
        verify: Limit, turn 1, generation 3
          ask a judge
          judge for generation 3: yes at 0.90
          verdict on turn 1: achieved at 0.90
        turn 1 ends
        ended: completed, verified
    "#]]
    .assert_eq(&playing.told().await);
}

#[tokio::test]
async fn time_that_is_over_before_the_judge_has_answered_ends_the_run_unverified() {
    let (stage, clock) = Stage::simulated();
    let stage = stage.agent([text("It is done.")]).judge([Say::Hangs]);
    let mut playing = stage.start(limited_time).await;
    let pass = async {
        judges_asked(&stage.tape, 1).await;
        clock.advance_ms(90_000);
        judges_asked(&stage.tape, 2).await;
        clock.advance_ms(10_000);
    };
    let outcome = playing.goes_while(pass).await;
    assert_eq!(exhausted(&outcome), Dimension::WallTime);
    expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
        stop: Time budget used up: 90.0 s of 100.0 s
          judge for generation 1: failed: the call was cancelled: it was told to stop, too late
        verify: Limit, turn 1, generation 3
          ask a judge
          judge for generation 3: failed: the call was cancelled: it was told to stop
          verdict on turn 1: unverified: the call was cancelled: it was told to stop
        paused: Time budget used up: 90.0 s of 100.0 s
    "#]]
    .assert_eq(&playing.told().await);
}

// ---- compaction ---------------------------------------------------------------------------------------------------

#[tokio::test]
async fn what_the_judge_said_is_known_after_another_process_goes_on() {
    let stage = Stage::new().agent([text("It is done."), text("Now.")]).judge([no(), Say::Hangs]);
    let playing = stage.start(|_| {}).await;
    judges_asked(&stage.tape, 2).await;
    drop(playing);
    let stage = stage.agent([act(7)]).judge([no(), yes()]);
    let mut playing = stage.open().await;
    assert_eq!(playing.goes().await, DONE);
    let turns =
        playing.asked().into_iter().filter(|asked| asked.purpose == Purpose::Turn).collect::<Vec<_>>();
    assert_eq!(turns.len(), 2, "the claim isn't made again");
    assert!(turns[1].conversation.last().unwrap().contains("It isn't there."));
}

#[tokio::test]
async fn what_the_judge_said_lasts_until_a_compaction_takes_it_and_the_condition_lasts_longer() {
    let long =
        |n: u32| Say::Calls(vec![("act", serde_json::json!({ "n": n, "text": "stone ".repeat(1_500) }))]);
    let mut lines = vec![text("It is done.")];
    lines.extend((1..9).map(long));
    lines.push(text("Now."));
    let stage = Stage::new().counting().agent(lines).judge([no(), yes()]);
    let small = |policy: &mut RunPolicy| policy.agent.model.window_tokens = Some(12_000);
    let mut playing = stage.start(small).await;
    assert_eq!(playing.goes().await, DONE, "{}", playing.told().await);
    let log = playing.log(ROOT).await;
    let is_shorter = log
        .iter()
        .any(|record| matches!(&record.entry, Entry::Conversation(ConversationEntry::Compacted(_))));
    assert!(is_shorter, "the conversation didn't fit");
    for asked in playing.asked().iter().filter(|asked| asked.purpose == Purpose::Turn) {
        assert!(asked.system.contains("It is there."), "{}", asked.system);
    }
}
