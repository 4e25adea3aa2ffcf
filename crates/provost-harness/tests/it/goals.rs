//! Goals over whole runs: the effect of each answer and failure of a judge.

use std::sync::Arc;

use expect_test::{Expect, expect};
use provost_event::{
    Dimension, Entry, ErrorClass, Exhausted, GoalEntry, GoalState, Outcome, PauseReason, Purpose, RunPolicy,
    StepMode, StopHookPolicy,
};
use provost_harness::{CostTracker, ObserverOptions, Observers, SimulatedClock, TurnState};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::goals_stage::*;

/// Plays a run with a clock that is advanced at each wait, until it is suspended or ends.
async fn play(stage: Stage, change: impl FnOnce(&mut RunPolicy), expected: Expect) -> (Playing, Outcome) {
    let mut playing = stage.start(change).await;
    let outcome = playing.goes().await;
    expected.assert_eq(&playing.told().await);
    (playing, outcome)
}

/// The same with a clock that jumps to the end of each wait.
async fn play_fast(stage: Stage, clock: Arc<SimulatedClock>, expected: Expect) -> (Playing, Outcome) {
    let mut playing = stage.start(|_| {}).await;
    let outcome = goes_fast(&mut playing, &clock).await;
    expected.assert_eq(&playing.told().await);
    (playing, outcome)
}

async fn goes_fast(playing: &mut Playing, clock: &SimulatedClock) -> Outcome {
    let hurry = async {
        loop {
            clock.advance_to_next_sleeper().await;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = playing.goes() => outcome,
        () = hurry => unreachable!("it goes on for ever"),
    }
}

/// The waits between judges' calls, in milliseconds.
async fn waits(playing: &Playing) -> Vec<u64> {
    let log = playing.log(ROOT).await;
    let wait = |entry: &Entry| match entry {
        Entry::Goal(GoalEntry::Judged(judged)) => judged.wait_ms,
        _ => None,
    };
    log.iter().filter_map(|record| wait(&record.entry)).collect()
}

fn rate_limited(retry_after_ms: Option<u64>) -> Say {
    Say::Fails(ErrorClass::RateLimited, retry_after_ms)
}

// ---- verdicts -----------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_claim_that_the_judge_confirms_completes_the_run() {
    let stage = Stage::new().agent([act(1), text("It is done.")]).judge([yes()]);
    let (playing, outcome) = play(
        stage,
        |_| {},
        expect![[r#"
            the agent answers
            turn 1 ends
            the agent answers
            verify: Claim, turn 2, generation 1
              ask a judge
              judge for generation 1: yes at 0.90
              verdict on turn 2: achieved at 0.90
            turn 2 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
    let goal = playing.goal().await;
    assert_eq!((goal.state, goal.rounds, goal.failures), (GoalState::Achieved, 0, 0));
    let charged = playing.charged().await;
    assert_eq!(charged[AGENT], (2, 2 * OF_AGENT));
    assert_eq!(charged[JUDGE], (1, OF_JUDGE));
}

#[tokio::test]
async fn a_claim_that_the_judge_rejects_is_followed_by_another_turn_which_knows_why() {
    let stage = Stage::new()
        .agent([act(1), text("It is done."), act(2), text("Now it is done.")])
        .judge([no(), yes()]);
    let (playing, outcome) = play(
        stage,
        |_| {},
        expect![[r#"
            the agent answers
            turn 1 ends
            the agent answers
            verify: Claim, turn 2, generation 1
              ask a judge
              judge for generation 1: no at 0.80
              verdict on turn 2: not achieved: "It isn't there."
              told: GoalNotReached
            turn 2 ends
            the agent answers
            turn 3 ends
            the agent answers
            verify: Claim, turn 4, generation 3
              ask a judge
              judge for generation 3: yes at 0.90
              verdict on turn 4: achieved at 0.90
            turn 4 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
    let asked = playing.asked();
    let turns = asked.iter().filter(|asked| asked.purpose == Purpose::Turn).collect::<Vec<_>>();
    for (before, after) in turns.iter().zip(&turns[1..]) {
        assert_eq!(before.system, after.system);
        let shared = before.conversation.len() - 1;
        assert_eq!(before.conversation[..shared], after.conversation[..shared]);
        assert!(after.conversation.len() > before.conversation.len());
    }
    let last = turns[2].conversation.last().unwrap();
    assert!(last.contains("It isn't there.") && last.contains("- make it"), "{last}");
    assert!(turns[..2].iter().all(|turn| !turn.conversation.concat().contains("It isn't there.")));
}

#[tokio::test]
async fn a_yes_without_confidence_is_a_no_that_says_so() {
    let stage = Stage::new().agent([text("It is done.")]).judge([verdict(true, 0.69), verdict(true, 0.7)]);
    let (_, outcome) = play(stage, |_| {}, expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
          judge for generation 1: yes at 0.69
          verdict on turn 1: not achieved: "It looks reached, but the judge is not sure enough: 0.69, and 0.70 is needed. It is there."
          told: GoalNotReached
        turn 1 ends
        the agent answers
        verify: Claim, turn 2, generation 3
          ask a judge
          judge for generation 3: yes at 0.70
          verdict on turn 2: achieved at 0.70
        turn 2 ends
        ended: completed, verified
    "#]]).await;
    assert_eq!(outcome, DONE);
}

#[tokio::test]
async fn so_many_rejected_claims_block_the_run_with_the_last_reason_and_a_resume_counts_anew() {
    let stage = Stage::new().agent([text("It is done.")]).judge([no(), no(), no(), yes()]);
    let rounds = |policy: &mut RunPolicy| policy.agent.goal.as_mut().unwrap().rounds_max = 2;
    let (mut playing, outcome) = play(
        stage,
        rounds,
        expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
          judge for generation 1: no at 0.80
          verdict on turn 1: not achieved: "It isn't there."
          told: GoalNotReached
        turn 1 ends
        the agent answers
        verify: Claim, turn 2, generation 3
          ask a judge
          judge for generation 3: no at 0.80
          verdict on turn 2: not achieved: "It isn't there."
          told: GoalNotReached
        turn 2 ends
        paused: blocked: judge: It isn't there.
    "#]],
    )
    .await;
    assert_eq!(outcome, Outcome::Blocked { reasons: vec!["judge: It isn't there.".to_owned()] });
    assert_eq!(playing.goal().await.state, GoalState::Blocked);
    assert_eq!(playing.resumed(None).await, DONE);
    assert_eq!(playing.charged().await[JUDGE], (4, 4 * OF_JUDGE));
}

#[tokio::test]
async fn turns_in_which_nothing_moves_pause_the_run_as_stuck() {
    // Alternating calls, so that none is a repeated call.
    let cycle = [act(1), act(2), act(3)].into_iter().cycle().take(40).collect::<Vec<_>>();
    let stage = Stage::new().agent(cycle).judge([yes()]);
    let (mut playing, outcome) = play(
        stage,
        |_| {},
        expect![[r#"
        the agent answers
        turn 1 ends
        the agent answers
        turn 2 ends
        the agent answers
        turn 3 ends
        the agent answers
        turn 4 ends
        the agent answers
        turn 5 ends
        the agent answers
        turn 6 ends
          told: NoProgressNotice
        the agent answers
        turn 7 ends
        the agent answers
        turn 8 ends
        paused: stuck: 5 turns without measurable progress
    "#]],
    )
    .await;
    assert_eq!(outcome, Outcome::Paused { why: PauseReason::Stuck { turns: 5 } });
    assert_eq!(playing.goal().await.state, GoalState::Stuck);
    let outcome = playing.resumed(None).await;
    assert_eq!(outcome, Outcome::Paused { why: PauseReason::Stuck { turns: 5 } });
    assert_eq!(playing.charged().await[AGENT].0, 3 + 5 + 5);
}

// ---- judges without a verdict
// -------------------------------------------------------------------------------------

#[tokio::test]
async fn a_rate_limit_is_waited_out_once_without_counting() {
    let (stage, clock) = Stage::simulated();
    let stage = stage.agent([text("It is done.")]).judge([rate_limited(Some(17_000)), yes()]);
    let (playing, outcome) = play_fast(
        stage,
        clock,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
              judge for generation 1: failed: rate limited, for another 17 s, wait 17000 ms
              ask a judge
              judge for generation 1: yes at 0.90
              verdict on turn 1: achieved at 0.90
            turn 1 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
    assert_eq!(playing.charged().await[JUDGE], (2, OF_FAILURE + OF_JUDGE));
}

#[tokio::test]
async fn a_judge_who_is_limited_for_good_is_waited_for_135_seconds_and_then_the_run_pauses() {
    let (stage, clock) = Stage::simulated();
    let stage = stage.agent([text("It is done.")]).judge([rate_limited(None)]);
    let (mut playing, outcome) = play_fast(
        stage,
        clock.clone(),
        expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
          judge for generation 1: failed: rate limited, wait 5000 ms
          ask a judge
          judge for generation 1: failed: rate limited, wait 10000 ms
          ask a judge
          judge for generation 1: failed: rate limited, wait 20000 ms
          ask a judge
          judge for generation 1: failed: rate limited, wait 40000 ms
          ask a judge
          judge for generation 1: failed: rate limited, wait 60000 ms
          ask a judge
          judge for generation 1: failed: rate limited
          verdict on turn 1: unverified: rate limited
        paused: the judge gives no verdict: 3 failures in a row, the last: rate limited
    "#]],
    )
    .await;
    let why = PauseReason::JudgeUnreachable { times: 3, error: "rate limited".to_owned() };
    assert_eq!(outcome, Outcome::Paused { why });
    assert_eq!(waits(&playing).await.iter().sum::<u64>(), 135_000);
    playing.run.resume("ann", provost_event::Budget::default(), None).await.unwrap();
    assert_eq!(goes_fast(&mut playing, &clock).await, outcome);
    assert_eq!(playing.charged().await[JUDGE].0, 2 * 6);
    assert_eq!(waits(&playing).await.iter().sum::<u64>(), 270_000);
}

#[tokio::test]
async fn a_judge_who_is_down_for_good_is_waited_for_15_seconds_and_then_the_run_pauses() {
    let (stage, clock) = Stage::simulated();
    let down = Say::Fails(ErrorClass::Server, None);
    let stage = stage.agent([text("It is done.")]).judge([down.clone(), down.clone(), down, yes()]);
    let (mut playing, outcome) = play_fast(
        stage,
        clock.clone(),
        expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          ask a judge
          judge for generation 1: failed: the provider failed: not now, wait 5000 ms
          ask a judge
          judge for generation 1: failed: the provider failed: not now, wait 10000 ms
          ask a judge
          judge for generation 1: failed: the provider failed: not now
          verdict on turn 1: unverified: the provider failed: not now
        paused: the judge gives no verdict: 3 failures in a row, the last: the provider failed: not now
    "#]],
    )
    .await;
    let Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 3, .. } } = &outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(waits(&playing).await, [5_000, 10_000]);
    assert_eq!(playing.goal().await.state, GoalState::Paused);
    playing.run.resume("ann", provost_event::Budget::default(), None).await.unwrap();
    assert_eq!(goes_fast(&mut playing, &clock).await, DONE);
    assert_eq!(playing.charged().await[AGENT].0, 1, "the claim is verified that was made before the rest");
}

#[tokio::test]
async fn a_judge_who_hangs_is_a_failure_after_its_time() {
    let (stage, clock) = Stage::simulated();
    let stage = stage.agent([text("It is done.")]).judge([Say::Hangs, yes()]);
    let (playing, outcome) = play_fast(
        stage,
        clock,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
              judge for generation 1: failed: no verdict within 60 s, wait 5000 ms
              ask a judge
              judge for generation 1: yes at 0.90
              verdict on turn 1: achieved at 0.90
            turn 1 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
    assert_eq!(playing.charged().await[JUDGE], (2, OF_FAILURE + OF_JUDGE));
}

#[tokio::test]
async fn an_answer_that_is_no_verdict_is_asked_for_once_more_and_then_counts_as_a_failure() {
    let (stage, clock) = Stage::simulated();
    let chat = || text("I believe that it went well.");
    let stage = stage.agent([text("It is done.")]).judge([chat(), no(), chat(), chat(), yes()]);
    let (playing, outcome) = play_fast(
        stage,
        clock,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
              judge for generation 1: failed: its answer is no verdict: I believe that it went well.
              ask a judge
              judge for generation 1: no at 0.80
              verdict on turn 1: not achieved: "It isn't there."
              told: GoalNotReached
            turn 1 ends
            the agent answers
            verify: Claim, turn 2, generation 3
              ask a judge
              judge for generation 3: failed: its answer is no verdict: I believe that it went well.
              ask a judge
              judge for generation 3: failed: its answer is no verdict: I believe that it went well., wait 5000 ms
              ask a judge
              judge for generation 3: yes at 0.90
              verdict on turn 2: achieved at 0.90
            turn 2 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
    assert_eq!(playing.charged().await[JUDGE], (5, 5 * OF_JUDGE));
}

// ---- several judges -----------------------------------------------------------------------------------------------

#[tokio::test]
async fn two_of_three_judges_decide_and_each_who_was_asked_is_paid() {
    let stage = Stage::new()
        .agent([text("It is done.")])
        .voice("ann", 0, [yes(), yes()])
        .voice("bob", 0, [no(), yes()])
        .voice("cat", 0, [no()]);
    let costs = CostTracker::new();
    let options = ObserverOptions::default();
    let stage = stage.watched(Observers::new().with("costs", options, costs.observer()));
    let judges = |policy: &mut RunPolicy| {
        policy.agent.goal =
            Some(Box::new(provost_event::GoalPolicy { agree: 2, ..goal(&["ann", "bob", "cat"]) }));
    };
    let (playing, outcome) = play(
        stage,
        judges,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              ask a judge
              ann for generation 1: yes at 0.90
              ask a judge
              bob for generation 1: no at 0.80
              ask a judge
              cat for generation 1: no at 0.80
              verdict on turn 1: not achieved: "bob: It isn't there.\n\ncat: It isn't there."
              told: GoalNotReached
            turn 1 ends
            the agent answers
            verify: Claim, turn 2, generation 3
              ask a judge
              ann for generation 3: yes at 0.90
              ask a judge
              bob for generation 3: yes at 0.90
              verdict on turn 2: achieved at 0.90
            turn 2 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
    let charged = playing.charged().await;
    let calls = ["ann", "bob", "cat"].map(|judge| charged[judge].0);
    assert_eq!(calls, [2, 2, 1], "no judge is asked once it is decided");
    let totals = costs.totals();
    for (model, (calls, tokens)) in charged {
        assert_eq!(totals.by_model[&model].calls, calls as u64);
        assert_eq!(totals.by_model[&model].usage.total(), tokens);
        assert_eq!(totals.by_model[&model].known_cost.0, tokens, "{model}");
    }
}

// ---- stop hooks, intervals, limits --------------------------------------------------------------------------------

fn stop_hook(command: &str) -> impl FnOnce(&mut RunPolicy) {
    let command = Some(command.to_owned());
    |policy| {
        let name = "tests".to_owned();
        policy.agent.stop_hooks = vec![StopHookPolicy {
            name,
            command,
            timeout_ms: 10_000,
            on_error: provost_event::OnHookError::Ignore,
        }];
    }
}

#[tokio::test]
async fn no_judge_is_asked_before_the_stop_hooks_allow_the_stop() {
    let stage = Stage::new().agent([text("It is done."), act(1), text("Now.")]).judge([yes()]);
    let hook = stop_hook("test -e seen && exit 0; touch seen; echo 'not yet'; exit 2");
    let (_, outcome) = play(
        stage,
        hook,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              stop hooks answer
              told: StopBlocked
            turn 1 ends
            the agent answers
            turn 2 ends
            the agent answers
            verify: Claim, turn 3, generation 3
              stop hooks answer
              ask a judge
              judge for generation 3: yes at 0.90
              verdict on turn 3: achieved at 0.90
            turn 3 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
}

#[tokio::test]
async fn a_stop_hook_that_cannot_be_run_certifies_nothing() {
    let stage = Stage::new().agent([text("It is done.")]).judge([yes()]);
    let (_, outcome) = play(
        stage,
        stop_hook("exit 77"),
        expect![[r#"
        the agent answers
        verify: Claim, turn 1, generation 1
          stop hooks answer
          told: StopBlocked
        turn 1 ends
        the agent answers
        verify: Claim, turn 2, generation 3
          stop hooks answer
          told: StopSuspended
        turn 2 ends
        paused: blocked: tests: exit status 77: it printed nothing
    "#]],
    )
    .await;
    assert!(matches!(outcome, Outcome::Blocked { .. }), "{outcome:?}");

    let stage = Stage::new().agent([text("It is done.")]).judge([yes()]);
    let ignored = |policy: &mut RunPolicy| {
        stop_hook("exit 77")(policy);
        policy.agent.goal.as_mut().unwrap().stop_hook_errors = provost_event::OnHookError::Ignore;
    };
    let (_, outcome) = play(
        stage,
        ignored,
        expect![[r#"
            the agent answers
            verify: Claim, turn 1, generation 1
              stop hooks answer
              ask a judge
              judge for generation 1: yes at 0.90
              verdict on turn 1: achieved at 0.90
            turn 1 ends
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
}

#[tokio::test]
async fn a_goal_that_is_reached_amid_the_work_ends_it() {
    let stage = Stage::new().agent([act(1), act(2), act(3), act(4), act(5)]).judge([no(), yes()]);
    let every = |policy: &mut RunPolicy| policy.agent.goal.as_mut().unwrap().verify_every = Some(2);
    let (playing, outcome) = play(
        stage,
        every,
        expect![[r#"
            the agent answers
            turn 1 ends
            the agent answers
            turn 2 ends
            verify: Interval, turn 2, generation 1
              ask a judge
              judge for generation 1: no at 0.80
              verdict on turn 2: not achieved: "It isn't there."
              told: GoalNotReached
            the agent answers
            turn 3 ends
            the agent answers
            turn 4 ends
            verify: Interval, turn 4, generation 3
              ask a judge
              judge for generation 3: yes at 0.90
              verdict on turn 4: achieved at 0.90
            ended: completed, verified
        "#]],
    )
    .await;
    assert_eq!(outcome, DONE);
    assert_eq!(playing.goal().await.rounds, 0);
    assert_eq!(playing.charged().await[AGENT].0, 4);
}

#[tokio::test]
async fn a_stepped_run_is_done_only_when_its_goal_is_verified() {
    let stage = Stage::new().agent([act(1), act(2), text("It is done.")]).judge([no(), no(), yes()]);
    let stepped = |policy: &mut RunPolicy| {
        policy.agent.step_mode = StepMode::Stepped;
        policy.agent.goal.as_mut().unwrap().verify_every = Some(2);
    };
    let mut playing = stage.start(stepped).await;
    let cancel = CancellationToken::new();
    let mut turns = Vec::new();
    for _ in 0..4 {
        let turn = timeout(DEADLINE, playing.run.run_turn(&cancel)).await.expect("the turn ends");
        turns.push(turn.unwrap());
    }
    expect![[r#"
        the agent answers
        turn 1 ends
        the agent answers
        turn 2 ends
        verify: Interval, turn 2, generation 1
          ask a judge
          judge for generation 1: no at 0.80
          verdict on turn 2: not achieved: "It isn't there."
          told: GoalNotReached
        the agent answers
        verify: Claim, turn 3, generation 3
          ask a judge
          judge for generation 3: no at 0.80
          verdict on turn 3: not achieved: "It isn't there."
          told: GoalNotReached
        turn 3 ends
        the agent answers
        verify: Claim, turn 4, generation 5
          ask a judge
          judge for generation 5: yes at 0.90
          verdict on turn 4: achieved at 0.90
        turn 4 ends
        ended: completed, verified
    "#]]
    .assert_eq(&playing.told().await);
    let going_on = TurnState::Continue;
    assert_eq!(turns, [going_on.clone(), going_on.clone(), going_on, TurnState::Done(DONE)]);
}

/// Turns are used up, and the judge is called one last time.
async fn at_the_limit(judge: Say, rest: Outcome, expected: Expect) {
    let stage = Stage::new().agent([act(1), act(2), act(3)]).judge([judge]);
    let (playing, outcome) = play(stage, |policy| policy.agent.limits.turns_max = 2, expected).await;
    assert_eq!(outcome, rest);
    assert_eq!(playing.charged().await[JUDGE].0, 1, "it is asked once");
}

#[tokio::test]
async fn a_goal_that_is_found_reached_at_a_limit_completes_the_run() {
    at_the_limit(
        yes(),
        DONE,
        expect![[r#"
            the agent answers
            turn 1 ends
              told: LastTurn
            the agent answers
            turn 2 ends
            stop: Turn budget of the agent used up: 2 of 2
            final summary
            verify: Limit, turn 2, generation 1
              ask a judge
              judge for generation 1: yes at 0.90
              verdict on turn 2: achieved at 0.90
            ended: completed, verified
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_limit_stays_a_limit_where_the_judge_says_no_or_nothing() {
    let exhausted =
        Exhausted { owner: provost_event::LimitOwner::Agent, ..Exhausted::new(Dimension::Turns, 2, 2) };
    at_the_limit(
        no(),
        Outcome::BudgetExhausted(exhausted),
        expect![[r#"
            the agent answers
            turn 1 ends
              told: LastTurn
            the agent answers
            turn 2 ends
            stop: Turn budget of the agent used up: 2 of 2
            final summary
            verify: Limit, turn 2, generation 1
              ask a judge
              judge for generation 1: no at 0.80
              verdict on turn 2: not achieved: "It isn't there."
              told: GoalNotReached
            paused: Turn budget of the agent used up: 2 of 2
        "#]],
    )
    .await;
    let down = Say::Fails(ErrorClass::Server, None);
    at_the_limit(
        down,
        Outcome::BudgetExhausted(exhausted),
        expect![[r#"
            the agent answers
            turn 1 ends
              told: LastTurn
            the agent answers
            turn 2 ends
            stop: Turn budget of the agent used up: 2 of 2
            final summary
            verify: Limit, turn 2, generation 1
              ask a judge
              judge for generation 1: failed: the provider failed: not now
              verdict on turn 2: unverified: the provider failed: not now
            paused: Turn budget of the agent used up: 2 of 2
        "#]],
    )
    .await;
}
