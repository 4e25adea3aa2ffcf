//! Goals: what follows when a judge gives no verdict.

use expect_test::expect;
use provost_event::{
    ConversationEntry, Entry, ErrorClass, GoalEntry, GoalFinding, GoalState, ItemKind, Outcome, PauseReason,
    SupervisorError,
};

use crate::goals::{
    ending, entries, failed, goal, goal_with, items, judge_call, malformed, no, resume, status, timeout,
    work, yes,
};
use crate::world::{ROOT, World};

fn limited(retry_after_ms: Option<u64>) -> provost_event::JudgeAnswer {
    failed(SupervisorError::RateLimited { retry_after_ms })
}

fn unreachable() -> provost_event::JudgeAnswer {
    failed(SupervisorError::Llm {
        class: ErrorClass::Transport,
        message: "connection refused".to_owned(),
        hint: String::new(),
    })
}

/// The waits before a judge was called again, and the failures counted so far.
fn waits(world: &World) -> Vec<u64> {
    let wait = |entry: Entry| match entry {
        Entry::Goal(GoalEntry::Judged(judged)) => judged.wait_ms,
        _ => None,
    };
    entries(world).into_iter().filter_map(wait).collect()
}

fn claim() -> World {
    let mut world = World::start(goal());
    world.say("done");
    world
}

/// Lets the wait for a judge end, not a moment early.
fn wait_over(world: &mut World) {
    let own = world.timers().into_iter().filter(|timer| timer.0 == ROOT.into());
    assert_eq!((world.judging(), own.count()), (None, 1), "{}", world.news());
    world.tick();
    assert!(world.judging().is_some(), "{}", world.news());
}

#[test]
fn a_rate_limited_judge_is_waited_for_and_asked_once_more_without_counting() {
    let mut world = claim();
    world.news();
    world.judge(limited(Some(12_345)));
    expect![[r#"
        goal_judged judge generation 1: rate limited, for another 13 s, asked again in 12345 ms
          → #6 timer
    "#]]
    .assert_eq(&world.news());
    assert_eq!((status(&world).failures, status(&world).state), (0, GoalState::Verifying));
    wait_over(&mut world);
    world.judge(yes(90));
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{}", world.news());
}

#[test]
fn a_judge_that_is_still_limited_after_the_wait_has_failed() {
    let mut world = claim();
    world.judge(limited(Some(1_000)));
    wait_over(&mut world);
    world.judge(limited(Some(1_000)));
    assert_eq!(status(&world).failures, 1);
    // It is a new call: it is waited for once more.
    wait_over(&mut world);
    world.judge(limited(Some(1_000)));
    assert_eq!(status(&world).failures, 1);
    wait_over(&mut world);
    world.judge(limited(None));
    assert_eq!(status(&world).failures, 2);
    wait_over(&mut world);
    world.judge(no());
    assert_eq!((ending(&world).as_str(), status(&world).failures), ("it goes on", 0));
}

#[test]
fn waits_without_a_retry_after_double_from_five_seconds_to_a_minute() {
    let mut world = World::start(goal_with(|goal| goal.failures_max = 6));
    world.say("done");
    for _ in 0..5 {
        world.judge(limited(None));
        wait_over(&mut world);
        world.judge(limited(None));
        wait_over(&mut world);
    }
    let minute = 60_000;
    let all = [5_000, 10_000, 20_000, 40_000, minute, minute, minute, minute, minute, minute];
    assert_eq!(waits(&world), all);
}

#[test]
fn waits_double_across_claims_and_begin_anew_after_a_verdict() {
    let mut world = claim();
    world.judge(timeout());
    wait_over(&mut world);
    world.judge(limited(None));
    wait_over(&mut world);
    world.judge(no());
    world.say("done");
    world.judge(timeout());
    assert_eq!(waits(&world), [5_000, 10_000, 5_000]);
}

#[test]
fn a_provider_that_wants_ten_minutes_gets_them_and_one_that_wants_more_has_failed() {
    let mut world = claim();
    world.judge(limited(Some(600_000)));
    assert_eq!((waits(&world), status(&world).failures), (vec![600_000], 0));
    let mut world = claim();
    world.judge(limited(Some(600_001)));
    assert_eq!((waits(&world), status(&world).failures), (vec![5_000], 1));
    wait_over(&mut world);
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn a_wait_past_the_run_s_time_is_a_failure() {
    let mut policy = goal();
    policy.budget.wall_time_ms = Some(100_000);
    let mut world = World::start(policy);
    world.say("done");
    world.judge(limited(Some(100_001)));
    assert_eq!(status(&world).failures, 1, "{}", world.news());
    wait_over(&mut world);
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn a_failure_with_no_time_left_to_ask_again_leaves_it_paused_and_unverified() {
    let mut policy = goal();
    policy.budget.wall_time_ms = Some(100_000);
    let mut world = World::start(policy);
    world.advance(88_000);
    world.say("done");
    world.advance(1_000);
    world.news();
    world.judge(timeout());
    let mut story = world.news();
    for _ in 0..5 {
        world.tick();
        story.push_str(&world.news());
    }
    assert!(!matches!(world.outcome(), Some(Outcome::Completed { .. })), "{story}");
    expect![[r#"
        goal_judged judge generation 1: no verdict within 60 s
        goal_verdict Claim turn 1 generation 1: unverified, no verdict within 60 s
        paused: the judge gives no verdict: one failure, the last: no verdict within 60 s
    "#]]
    .assert_eq(&story);
}

#[test]
fn judges_that_fail_for_good_pause_it() {
    for answer in [timeout(), unreachable()] {
        let mut world = claim();
        for _ in 0..2 {
            world.judge(answer.clone());
            assert_eq!(ending(&world), "it goes on");
            wait_over(&mut world);
        }
        world.judge(answer.clone());
        let provost_event::JudgeAnswer::Failed(error) = answer else { panic!("it failed") };
        let why = PauseReason::JudgeUnreachable { times: 3, error: error.to_string() };
        assert_eq!(world.outcome(), Some(Outcome::Paused { why }), "{}", world.news());
        let status = status(&world);
        assert_eq!((status.state, status.failures, status.rounds), (GoalState::Paused, 3, 0));
        assert_eq!(status.finding, Some(GoalFinding::Unverified { why: error.to_string() }));
        // The agent isn't told that something is missing, because that is unknown.
        assert_eq!(items(&world, ItemKind::GoalNotReached), []);
    }
}

#[test]
fn a_judge_unreachable_for_good_costs_a_bounded_wait() {
    let mut world = World::start(goal_with(|goal| goal.failures_max = 20));
    world.say("done");
    let mut waited = 0;
    for _ in 0..40 {
        if world.judging().is_some() {
            world.judge(limited(None));
        }
        let Some((_, _, due)) = world.timers().into_iter().next() else { break };
        waited += due.since_ms(world.session_log().last().expect("an entry").at);
        world.tick();
    }
    // Each failure has at most two waits of a minute, but for the last, which has one.
    assert!(waited <= (2 * 20 - 1) * 60_000, "{waited} ms");
    assert!(matches!(world.outcome(), Some(Outcome::Paused { .. })), "{}", ending(&world));
}

#[test]
fn a_verdict_in_between_starts_the_count_of_failures_anew() {
    let mut world = claim();
    for _ in 0..2 {
        world.judge(timeout());
        wait_over(&mut world);
    }
    assert_eq!(status(&world).failures, 2);
    world.judge(no());
    assert_eq!(status(&world).failures, 0);
    world.say("done");
    for _ in 0..2 {
        world.judge(timeout());
        wait_over(&mut world);
    }
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn who_resumes_after_failures_has_the_same_claim_verified_anew() {
    let mut world = claim();
    for _ in 0..2 {
        world.judge(timeout());
        wait_over(&mut world);
    }
    world.judge(timeout());
    world.news();
    resume(&mut world);
    expect![[r#"
        resumed
        goal_check_started Claim turn 1 generation 5
        model_called turn 1 call 5 attempt 1 for Judge
          → #15 judge 0 (Claim, turn 1)
    "#]]
    .assert_eq(&world.news());
    assert_eq!((status(&world).failures, status(&world).state), (0, GoalState::Verifying));
    world.judge(timeout());
    assert_eq!(ending(&world), "it goes on");
    wait_over(&mut world);
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
    // The agent itself claimed it once.
    let claims = entries(&world)
        .into_iter()
        .filter(|entry| matches!(entry, Entry::Conversation(ConversationEntry::AssistantMessage(_))));
    assert_eq!(claims.count(), 1);
}

#[test]
fn an_answer_that_is_no_verdict_is_asked_for_once_more_at_once() {
    let mut world = claim();
    assert!(!judge_call(&world).again);
    world.news();
    world.judge(malformed());
    expect![[r#"
        goal_judged judge generation 1: its answer is no verdict: Well.
        model_called turn 1 call 3 attempt 1 for Judge
          → #7 judge 0 (Claim, turn 1)
    "#]]
    .assert_eq(&world.news());
    assert!(judge_call(&world).again);
    assert_eq!((status(&world).failures, world.timers().len()), (0, 0));
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn nonsense_twice_is_one_failure() {
    let mut world = claim();
    world.judge(malformed());
    world.judge(malformed());
    assert_eq!((status(&world).failures, waits(&world)), (1, vec![5_000]));
    for _ in 0..2 {
        wait_over(&mut world);
        assert!(!judge_call(&world).again);
        world.judge(malformed());
        assert!(judge_call(&world).again);
        world.judge(malformed());
    }
    let Some(Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 3, error } }) = world.outcome()
    else {
        panic!("{}", world.news())
    };
    expect!["its answer is no verdict: Well."].assert_eq(&error);
}

#[test]
fn no_asking_takes_more_than_two_calls_for_nonsense_and_a_wait() {
    let mut world = claim();
    world.judge(malformed());
    world.judge(limited(Some(1_000)));
    assert_eq!(status(&world).failures, 0);
    wait_over(&mut world);
    world.judge(malformed());
    assert_eq!(status(&world).failures, 1);
    // In the opposite order.
    let mut world = claim();
    world.judge(limited(Some(1_000)));
    wait_over(&mut world);
    world.judge(malformed());
    assert_eq!(status(&world).failures, 0);
    world.judge(limited(Some(1_000)));
    assert_eq!(status(&world).failures, 1);
}

#[test]
fn a_single_failure_pauses_it_where_none_is_allowed() {
    let mut world = World::start(goal_with(|goal| goal.failures_max = 1));
    work(&mut world);
    world.say("done");
    world.judge(limited(Some(1_000)));
    assert_eq!(ending(&world), "it goes on");
    wait_over(&mut world);
    world.judge(timeout());
    expect!["the judge gives no verdict: one failure, the last: no verdict within 60 s"]
        .assert_eq(&ending(&world));
}
