//! Goals: verified once more when a limit ends the work, so that the outcome says whether they were reached.

use expect_test::expect;
use provost_engine::{Effect, RunEvent};
use provost_event::{
    Budget, Dimension, Entry, ErrorClass, GoalEntry, GoalFinding, GoalState, GoalTrigger, ItemKind,
    MicroDollars, Outcome, Purpose, RunPolicy, StopHookVerdict, SupervisorError, ToolEntry, ToolStatus,
};

use crate::goals::{
    entries, failed, goal_with, goal_with_hooks, items, judge_call, judged, malformed, no, resume,
    resume_with, status, timeout, work, yes,
};
use crate::world::World;

/// A judge that needs about 2,500 tokens, and may use half of every limit.
fn small() -> RunPolicy {
    let mut policy = goal_with(|goal| {
        goal.evidence_tokens_max = 500;
        goal.budget_percent = 50;
    });
    policy.agent.limits.turns_max = 100;
    policy
}

pub(crate) fn limited_to(budget: Budget) -> RunPolicy {
    let mut policy = RunPolicy { budget, ..small() };
    policy.agent.goal.as_mut().expect("a goal").stuck_turns = u32::MAX;
    policy
}

fn two_turns() -> RunPolicy {
    let mut policy = small();
    policy.agent.limits.turns_max = 2;
    policy
}

pub(crate) fn tokens() -> Budget {
    Budget { tokens: Some(7_000), ..Budget::default() }
}

fn money() -> Budget {
    Budget { money: Some(MicroDollars(7_000)), ..Budget::default() }
}

fn time() -> Budget {
    Budget { wall_time_ms: Some(100_000), ..Budget::default() }
}

/// A run of this policy that has worked to its limit and has given its final summary.
pub(crate) fn at_limit(policy: RunPolicy) -> World {
    let is_timed = policy.budget.wall_time_ms.is_some();
    let mut world = World::start(policy);
    while world.calls_model_for(Purpose::Turn) {
        work(&mut world);
        if is_timed {
            world.advance(90_000);
            world.tick();
            world.fail(ErrorClass::Aborted, None);
        }
    }
    assert!(world.calls_model_for(Purpose::FinalSummary), "{}", world.news());
    world.say("As far as I came.");
    world
}

pub(crate) fn dimension(outcome: Option<Outcome>) -> Option<Dimension> {
    match outcome? {
        Outcome::BudgetExhausted(exhausted) => Some(exhausted.dimension),
        _ => None,
    }
}

fn every_limit() -> [(RunPolicy, Dimension); 4] {
    [
        (two_turns(), Dimension::Turns),
        (limited_to(tokens()), Dimension::Tokens),
        (limited_to(money()), Dimension::Money),
        (limited_to(time()), Dimension::WallTime),
    ]
}

fn checks(world: &World) -> usize {
    entries(world).iter().filter(|entry| matches!(entry, Entry::Goal(GoalEntry::CheckStarted(_)))).count()
}

#[test]
fn a_goal_that_was_reached_when_a_limit_ended_the_work_is_completed() {
    for (policy, dimension) in every_limit() {
        let mut world = at_limit(policy);
        assert_eq!(judge_call(&world).trigger, GoalTrigger::Limit, "{dimension:?}");
        assert_eq!(status(&world).state, GoalState::Verifying);
        world.judge(yes(90));
        let outcome = world.outcome();
        assert!(matches!(outcome, Some(Outcome::Completed { .. })), "{dimension:?}: {}", world.news());
        assert_eq!(status(&world).state, GoalState::Achieved);
    }
}

#[test]
fn a_goal_that_was_not_reached_at_a_limit_leaves_the_limit_as_the_outcome() {
    for (policy, of) in every_limit() {
        let mut world = at_limit(policy);
        world.judge(no());
        assert_eq!(dimension(world.outcome()), Some(of), "{}", world.news());
        let status = status(&world);
        assert_eq!((status.state, status.rounds), (GoalState::Paused, 0));
        assert!(matches!(status.finding, Some(GoalFinding::NotAchieved { .. })));
        // A resumed agent has been notified.
        assert_eq!(items(&world, ItemKind::GoalNotReached).len(), 1);
    }
}

#[test]
fn a_goal_that_can_t_be_verified_at_a_limit_leaves_the_limit_as_the_outcome() {
    for (policy, of) in every_limit() {
        let mut world = at_limit(policy);
        world.judge(timeout());
        assert_eq!(dimension(world.outcome()), Some(of), "{}", world.news());
        assert!(matches!(status(&world).finding, Some(GoalFinding::Unverified { .. })));
        assert_eq!(world.timers().len(), 0);
    }
}

#[test]
fn the_last_look_comes_after_the_final_summary() {
    let mut world = at_limit(two_turns());
    world.judge(no());
    expect![[r#"
        session_started
        model_called turn 1 call 1 attempt 1
        assistant_message ToolUse 1 blocks
        tool_started c1
        tool_finished c1 Ok: read
        turn_ended
        system_item LastTurn
        model_called turn 2 call 2 attempt 1
        assistant_message ToolUse 1 blocks
        tool_started c2
        tool_finished c2 Ok: read
        turn_ended
        stop_requested: Turn budget of the agent used up: 2 of 2
        model_called turn 2 call 3 attempt 1 for FinalSummary
        final_summary_finished: As far as I came.
        goal_check_started Limit turn 2 generation 1
        model_called turn 2 call 4 attempt 1 for Judge
        goal_judged judge generation 1: not achieved 0.90
        goal_verdict Limit turn 2 generation 1: not achieved, I looked.
        system_item GoalNotReached
        paused: Turn budget of the agent used up: 2 of 2
    "#]]
    .assert_eq(&world.news());
}

#[test]
fn nonsense_at_a_limit_is_asked_about_once_more_and_a_rate_limit_waited_for() {
    let mut world = at_limit(two_turns());
    world.judge(malformed());
    world.judge(failed(SupervisorError::RateLimited { retry_after_ms: Some(3_000) }));
    world.tick();
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn too_many_failures_that_end_at_a_limit_are_still_the_limit() {
    let mut policy = goal_with(|goal| (goal.failures_max, goal.verify_every) = (2, Some(1)));
    policy.agent.limits.turns_max = 2;
    let mut world = World::start(policy);
    work(&mut world);
    world.judge(timeout());
    work(&mut world);
    // The interval's check comes first, and its failure is the one too many.
    world.judge(timeout());
    assert_eq!((status(&world).failures, status(&world).state), (2, GoalState::Paused));
    assert_ne!(dimension(world.outcome()), Some(Dimension::Turns));
    // Failures at the limit itself don't change the outcome.
    let mut policy = goal_with(|goal| goal.failures_max = 1);
    policy.agent.limits.turns_max = 2;
    let mut world = at_limit(policy);
    world.judge(timeout());
    assert_eq!(dimension(world.outcome()), Some(Dimension::Turns), "{}", world.news());
}

#[test]
fn what_was_judged_just_before_the_limit_is_not_asked_again() {
    let mut world = World::start(two_turns());
    work(&mut world);
    world.say("done");
    world.judge(no());
    assert!(world.calls_model_for(Purpose::FinalSummary), "{}", world.news());
    world.say("As far as I came.");
    assert_eq!((dimension(world.outcome()), checks(&world)), (Some(Dimension::Turns), 1));
    // Nor earlier verdicts at intervals.
    let mut policy = two_turns();
    policy.agent.goal.as_mut().expect("a goal").verify_every = Some(2);
    let mut world = World::start(policy);
    work(&mut world);
    work(&mut world);
    world.judge(no());
    world.say("As far as I came.");
    assert_eq!((dimension(world.outcome()), checks(&world)), (Some(Dimension::Turns), 1));
}

#[test]
fn who_resumes_at_a_limit_has_a_last_look_taken_anew() {
    let mut world = at_limit(two_turns());
    world.judge(no());
    // A person may have done the rest by hand before the resumption.
    resume(&mut world);
    world.say("Nothing new.");
    assert_eq!(judge_call(&world).trigger, GoalTrigger::Limit);
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn when_time_is_over_amid_the_last_look_it_ends_there() {
    let mut world = at_limit(limited_to(time()));
    let seq = world.judging().expect("a judge is asked");
    world.news();
    world.advance(10_000);
    world.tick();
    assert!(world.open.len() == 1 && !world.aborted.is_empty(), "{}", world.news());
    judged(
        &mut world,
        seq,
        failed(SupervisorError::Llm {
            class: ErrorClass::Aborted,
            message: "aborted".into(),
            hint: String::new(),
        }),
    );
    expect![[r#"
        goal_judged judge generation 1: the call was cancelled: aborted
        goal_verdict Limit turn 1 generation 1: unverified, the call was cancelled: aborted
        paused: Time budget used up: 90.0 s of 100.0 s
    "#]]
    .assert_eq(&world.news());
    assert_eq!(dimension(world.outcome()), Some(Dimension::WallTime));
}

#[test]
fn a_yes_that_was_on_its_way_at_the_time_limit_counts_and_no_other_judge_is_asked() {
    let mut world = at_limit(limited_to(time()));
    world.advance(10_000);
    world.tick();
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
    // A malformed response would cause another call, but there is no time for it.
    let mut world = at_limit(limited_to(time()));
    world.advance(10_000);
    world.tick();
    world.news();
    world.judge(malformed());
    expect![[r#"
        goal_judged judge generation 1: its answer is no verdict: Well.
        goal_verdict Limit turn 1 generation 1: unverified, there is no budget left for a judge (Time budget used up: 100.0 s of 100.0 s)
        paused: Time budget used up: 90.0 s of 100.0 s
    "#]].assert_eq(&world.news());
    assert_eq!(dimension(world.outcome()), Some(Dimension::WallTime));
}

#[test]
fn time_that_is_over_amid_a_claim_s_verification_leaves_time_for_a_last_look() {
    let mut world = World::start(limited_to(time()));
    world.say("done");
    let seq = world.judging().expect("a judge is asked");
    world.advance(90_000);
    world.tick();
    world.news();
    judged(
        &mut world,
        seq,
        failed(SupervisorError::Llm {
            class: ErrorClass::Aborted,
            message: "aborted".into(),
            hint: String::new(),
        }),
    );
    expect![[r#"
        goal_judged judge generation 1: the call was cancelled: aborted (stale)
        goal_check_started Limit turn 1 generation 3
        model_called turn 1 call 3 attempt 1 for Judge
          → #9 judge 0 (Limit, turn 1)
    "#]]
    .assert_eq(&world.news());
    assert_eq!(judge_call(&world).trigger, GoalTrigger::Limit);
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn time_that_is_over_amid_calls_verifies_what_they_came_to() {
    let mut world = World::start(limited_to(time()));
    work(&mut world);
    world.call(&[("shell", "{\"command\":\"make\"}")]);
    world.advance(90_000);
    world.tick();
    let seq = world.tools()[0].0;
    world.finish(seq, ToolStatus::Cancelled, "stopped");
    assert!(world.calls_model_for(Purpose::FinalSummary), "{}", world.news());
    world.say("As far as I came.");
    assert_eq!(judge_call(&world).trigger, GoalTrigger::Limit);
    world.judge(no());
    assert_eq!(dimension(world.outcome()), Some(Dimension::WallTime), "{}", world.news());
    resume_with(&mut world, Budget { wall_time_ms: Some(500_000), ..Budget::default() });
    assert!(world.calls_model_for(Purpose::Turn), "{}", world.news());
}

#[test]
fn before_anything_was_done_no_limit_is_judged() {
    let mut world = World::start(limited_to(Budget { tokens: Some(100), ..Budget::default() }));
    assert_eq!(
        (dimension(world.outcome()), checks(&world)),
        (Some(Dimension::Tokens), 0),
        "{}",
        world.news()
    );
}

#[test]
fn stop_hooks_that_say_no_at_a_limit_save_the_judge_s_money() {
    let mut policy = goal_with_hooks(|_| {});
    policy.agent.limits.turns_max = 2;
    let mut world = at_limit(policy.clone());
    let asked = world.open.values().any(|effect| matches!(effect, Effect::CheckStop(_)));
    assert!(asked, "{}", world.news());
    world.hook(StopHookVerdict::Block("a test fails".to_owned()), "1");
    assert_eq!(dimension(world.outcome()), Some(Dimension::Turns), "{}", world.news());
    assert_eq!(items(&world, ItemKind::StopBlocked).len(), 0);
    // A hook that halts determines the outcome.
    let mut world = at_limit(policy.clone());
    world.hook(StopHookVerdict::Halt("the disk is full".to_owned()), "1");
    assert!(matches!(world.outcome(), Some(Outcome::Aborted { .. })), "{}", world.news());
    // A hook that allows it leaves the decision to the judge.
    let mut world = at_limit(policy);
    world.hook(StopHookVerdict::Allow, "1");
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn words_spoken_at_a_limit_are_not_lost_in_a_yes() {
    let mut world = at_limit(two_turns());
    world.run_event(RunEvent::Say { agent: 0, text: "and the docs".to_owned(), by: "me".to_owned() });
    world.judge(yes(90));
    // It can't continue, and the last message is still unanswered.
    assert_eq!(dimension(world.outcome()), Some(Dimension::Turns), "{}", world.news());
}

#[test]
fn a_cancel_while_a_judge_is_waited_for_leaves_no_call_without_a_result() {
    let mut policy = limited_to(time());
    policy.agent.permissions.ask = vec!["shell".to_owned()];
    let mut world = World::start(policy);
    world.call(&[("shell", "{\"command\":\"make\"}")]);
    world.advance(90_000);
    world.tick();
    world.say("As far as I came.");
    world.judge(failed(SupervisorError::RateLimited { retry_after_ms: Some(1_000) }));
    world.run_event(RunEvent::Cancel { agent: None, by: "me".to_owned() });
    assert_eq!(world.outcome(), Some(Outcome::Cancelled { by: "me".to_owned() }), "{}", world.news());
    let results =
        entries(&world).into_iter().filter(|entry| matches!(entry, Entry::Tool(ToolEntry::Finished(_))));
    assert_eq!(results.count(), 1);
}
