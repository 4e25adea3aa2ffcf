//! Goals: how much of the run's budget judges may use, and what follows when that is used up.

use expect_test::expect;
use provost_event::{Budget, Dimension, GoalFinding, GoalState, Outcome, PauseReason, Purpose};

use crate::goals::{judge_call, no, resume_with, status, work, yes};
use crate::goals_limit::{at_limit, dimension, limited_to, tokens};
use crate::world::World;

#[test]
fn with_more_budget_the_work_goes_on_and_is_judged_anew() {
    let mut world = at_limit(limited_to(tokens()));
    world.judge(no());
    resume_with(&mut world, Budget { tokens: Some(14_000), ..Budget::default() });
    assert!(world.calls_model_for(Purpose::Turn), "{}", world.news());
    work(&mut world);
    world.say("done");
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn a_budget_that_is_all_used_up_leaves_no_last_look() {
    // Half of the limit is enough for the judge, but its share is 0.
    let mut policy = limited_to(tokens());
    policy.agent.goal.as_mut().expect("a goal").budget_percent = 1;
    let mut world = at_limit(policy);
    assert_eq!((world.judging(), dimension(world.outcome())), (None, Some(Dimension::Tokens)));
    let Some(GoalFinding::Unverified { why }) = status(&world).finding else { panic!("{}", world.news()) };
    expect!["the judges' part of the run's budget is used up (Token budget too small to go on: 0 of 70 used; the next call needs about 2,259 tokens; 70 are left): give the run more"].assert_eq(&why);
}

#[test]
fn a_claim_that_no_budget_can_verify_rests_unverified() {
    let mut policy = limited_to(tokens());
    policy.agent.goal.as_mut().expect("a goal").budget_percent = 1;
    let mut world = World::start(policy);
    world.news();
    world.say("done");
    expect![[r#"
        assistant_message EndTurn 1 blocks
        goal_check_started Claim turn 1 generation 1
        goal_verdict Claim turn 1 generation 1: unverified, the judges' part of the run's budget is used up (Token budget too small to go on: 0 of 70 used; the next call needs about 2,259 tokens; 70 are left): give the run more
        paused: no judge can be asked: the judges' part of the run's budget is used up (Token budget too small to go on: 0 of 70 used; the next call needs about 2,259 tokens; 70 are left): give the run more
    "#]].assert_eq(&world.news());
    // With a higher limit the same claim is verified.
    resume_with(&mut world, Budget { tokens: Some(700_000), ..Budget::default() });
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn judges_take_no_more_than_their_part() {
    let mut policy = limited_to(Budget { tokens: Some(20_000), ..Budget::default() });
    policy.agent.goal.as_mut().expect("a goal").budget_percent = 14;
    let mut world = World::start(policy);
    // The judges' share is 2,800 tokens: a call that used 220 leaves 2,580, another 2,360, and each needs at least
    // 2,260.
    for _ in 0..2 {
        work(&mut world);
        world.say("done");
        world.judge(no());
    }
    work(&mut world);
    world.say("done");
    assert!(world.judging().is_some(), "{}", world.news());
    assert!(judge_call(&world).output_tokens_max < 500, "{}", judge_call(&world).output_tokens_max);
    world.judge(no());
    work(&mut world);
    world.say("done");
    assert_eq!(world.judging(), None);
    let Some(Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 0, .. } }) = world.outcome()
    else {
        panic!("{}", world.news())
    };
}
