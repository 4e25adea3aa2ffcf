//! Goals: verified during the work, so that a goal that is reached early ends the work early.

use expect_test::expect;
use provost_engine::{RunEvent, SessionEvent, SessionStatus};
use provost_event::{
    Entry, GoalState, GoalTrigger, ItemKind, ModelEntry, Outcome, PauseReason, Purpose, RunPolicy, StepMode,
    StopHookVerdict, SupervisorError,
};

use crate::goals::{
    ending, entries, failed, goal, goal_with, goal_with_hooks, items, judge_call, malformed, no, resume,
    status, timeout, work, yes,
};
use crate::world::World;

fn every(turns: u32) -> RunPolicy {
    let mut policy = goal_with(|goal| goal.verify_every = Some(turns));
    policy.agent.limits.turns_max = 100;
    policy
}

fn judge_calls(world: &World) -> usize {
    let is_judges = |entry: &Entry| matches!(entry, Entry::Model(ModelEntry::Called(call)) if call.purpose == Purpose::Judge);
    entries(world).iter().filter(|entry| is_judges(entry)).count()
}

#[test]
fn by_default_no_judge_is_asked_amid_the_work() {
    let mut world = World::start(goal());
    for _ in 0..8 {
        work(&mut world);
        assert_eq!(world.judging(), None);
    }
}

#[test]
fn a_goal_reached_early_ends_the_work_early() {
    let mut world = World::start(every(2));
    work(&mut world);
    assert_eq!(world.judging(), None);
    world.news();
    work(&mut world);
    let call = judge_call(&world);
    assert_eq!((call.trigger, call.turn), (GoalTrigger::Interval, 2));
    world.judge(yes(90));
    expect![[r#"
        assistant_message ToolUse 1 blocks
        tool_started c2
        tool_finished c2 Ok: read
        turn_ended
        goal_check_started Interval turn 2 generation 1
        model_called turn 2 call 3 attempt 1 for Judge
        goal_judged judge generation 1: achieved 0.90
        goal_verdict Interval turn 2 generation 1: achieved 0.90
        ended: completed, verified
    "#]]
    .assert_eq(&world.news());
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn a_goal_not_reached_yet_is_no_wrong_claim() {
    let mut world = World::start(every(1));
    for turn in 1..=12 {
        work(&mut world);
        world.judge(no());
        assert_eq!((ending(&world).as_str(), status(&world).rounds), ("it goes on", 0));
        assert_eq!(items(&world, ItemKind::GoalNotReached).len(), turn);
    }
    let told = items(&world, ItemKind::GoalNotReached);
    expect![[r#"
        The goal isn't reached yet. An independent judge who saw the evidence says:

        I looked.

        What it suggests:
        - run the tests"#]]
    .assert_eq(&told[0].body);
}

#[test]
fn it_is_asked_every_so_many_turns_and_not_about_what_was_just_judged() {
    let mut world = World::start(every(3));
    for turn in 1..=9 {
        if turn == 6 {
            // A claim in the same turn is verified already.
            world.say("done");
            assert_eq!(judge_call(&world).trigger, GoalTrigger::Claim);
        } else {
            work(&mut world);
        }
        assert_eq!(world.judging().is_some(), turn % 3 == 0, "turn {turn}");
        if world.judging().is_some() {
            world.judge(no());
        }
    }
    assert_eq!(judge_calls(&world), 3);
    assert_eq!(status(&world).rounds, 1);
}

#[test]
fn one_that_is_not_sure_enough_lets_the_work_go_on() {
    let mut world = World::start(every(1));
    work(&mut world);
    world.judge(yes(69));
    assert_eq!((ending(&world).as_str(), status(&world).rounds), ("it goes on", 0));
}

#[test]
fn a_judge_that_fails_amid_the_work_is_not_waited_for() {
    let mut world = World::start(every(1));
    work(&mut world);
    world.news();
    world.judge(timeout());
    expect![[r#"
        goal_judged judge generation 1: no verdict within 60 s
        goal_verdict Interval turn 1 generation 1: unverified, no verdict within 60 s
        model_called turn 2 call 3 attempt 1
          → #11 call model (turn 2, cap 1000)
    "#]]
    .assert_eq(&world.news());
    assert_eq!((status(&world).failures, status(&world).state), (1, GoalState::Running));
    work(&mut world);
    world.judge(malformed());
    world.judge(malformed());
    assert_eq!(status(&world).failures, 2);
    work(&mut world);
    world.judge(timeout());
    let Some(Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 3, .. } }) = world.outcome()
    else {
        panic!("{}", ending(&world))
    };
    resume(&mut world);
    assert_eq!((status(&world).failures, status(&world).state), (0, GoalState::Running));
    assert!(world.thinking().is_some(), "{}", world.news());
}

#[test]
fn failures_amid_the_work_and_at_a_claim_count_together() {
    let mut world = World::start(every(1));
    for _ in 0..2 {
        work(&mut world);
        world.judge(timeout());
    }
    world.say("done");
    world.judge(timeout());
    let Some(Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 3, .. } }) = world.outcome()
    else {
        panic!("{}", ending(&world))
    };
}

#[test]
fn a_rate_limited_judge_is_waited_for_amid_the_work_too() {
    let mut world = World::start(every(1));
    work(&mut world);
    let limited = || failed(SupervisorError::RateLimited { retry_after_ms: Some(2_000) });
    world.judge(limited());
    assert_eq!((status(&world).failures, world.judging(), world.thinking()), (0, None, None));
    world.tick();
    world.judge(limited());
    assert_eq!(status(&world).failures, 1);
    assert!(world.thinking().is_some(), "{}", world.news());
}

#[test]
fn a_stepped_run_looks_at_its_goal_when_it_is_to_proceed() {
    let mut policy = every(1);
    policy.agent.step_mode = StepMode::Stepped;
    let mut world = World::start(policy);
    world.session_event(SessionEvent::Proceed { turn: 1 });
    work(&mut world);
    assert_eq!(world.session().standing(), SessionStatus::BetweenTurns { next: 2 });
    world.session_event(SessionEvent::Proceed { turn: 2 });
    assert_eq!(judge_call(&world).trigger, GoalTrigger::Interval);
    // A repeated event counts once.
    world.session_event(SessionEvent::Proceed { turn: 2 });
    assert_eq!(world.thinking(), None);
    world.judge(no());
    assert!(world.thinking().is_some(), "{}", world.news());
    work(&mut world);
    world.session_event(SessionEvent::Proceed { turn: 3 });
    world.judge(timeout());
    work(&mut world);
    assert_eq!(world.session().standing(), SessionStatus::BetweenTurns { next: 4 });
    world.session_event(SessionEvent::Proceed { turn: 4 });
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn stop_hooks_that_say_no_amid_the_work_save_the_judge_s_money() {
    let mut policy = goal_with_hooks(|goal| goal.verify_every = Some(1));
    policy.agent.limits.stop_blocks_max = 2;
    policy.agent.limits.turns_max = 100;
    let mut world = World::start(policy);
    world.news();
    work(&mut world);
    world.hook(StopHookVerdict::Block("a test fails".to_owned()), "1");
    expect![[r#"
        assistant_message ToolUse 1 blocks
        tool_started c1
        tool_finished c1 Ok: read
        turn_ended
        goal_check_started Interval turn 1 generation 1
        stop_verdicts Block("a test fails")
        model_called turn 2 call 2 attempt 1
          → #9 call model (turn 2, cap 1000)
    "#]]
    .assert_eq(&world.news());
    for _ in 0..4 {
        work(&mut world);
        world.hook(StopHookVerdict::Block("a test fails".to_owned()), "1");
    }
    // The agent didn't ask, and isn't notified; no stop counts against it.
    assert_eq!((items(&world, ItemKind::StopBlocked).len(), judge_calls(&world)), (0, 0));
    assert_eq!((ending(&world).as_str(), status(&world).rounds), ("it goes on", 0));
    work(&mut world);
    world.hook(StopHookVerdict::Error("no such program".to_owned()), "1");
    assert_eq!(judge_calls(&world), 0);
    work(&mut world);
    world.hook(StopHookVerdict::Allow, "2");
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn blocks_amid_the_work_are_not_taken_for_those_of_a_claim() {
    let mut policy = goal_with_hooks(|goal| goal.verify_every = Some(1));
    policy.agent.limits.turns_max = 100;
    let block = || StopHookVerdict::Block("a test fails".to_owned());
    let mut world = World::start(policy);
    for _ in 0..3 {
        work(&mut world);
        world.hook(block(), "1");
    }
    // The same reason with the same evidence, but the first that the agent gets.
    world.say("done");
    world.hook(block(), "1");
    assert_eq!((ending(&world).as_str(), items(&world, ItemKind::StopBlocked).len()), ("it goes on", 1));
}

#[test]
fn a_halt_amid_the_work_ends_it() {
    let mut world = World::start(goal_with_hooks(|goal| goal.verify_every = Some(1)));
    work(&mut world);
    world.hook(StopHookVerdict::Halt("the disk is full".to_owned()), "1");
    let outcome = Outcome::Aborted { hook: "tests".to_owned(), reason: "the disk is full".to_owned() };
    assert_eq!(world.outcome(), Some(outcome), "{}", world.news());
    assert_eq!(status(&world).state, GoalState::Aborted);
}

#[test]
fn words_spoken_while_a_goal_is_found_reached_are_heard_before_the_end() {
    let mut world = World::start(every(1));
    work(&mut world);
    world.run_event(RunEvent::Say { agent: 0, text: "and the docs".to_owned(), by: "me".to_owned() });
    world.judge(yes(90));
    assert!(world.thinking().is_some(), "{}", world.news());
    assert_eq!(status(&world).state, GoalState::Running);
    work(&mut world);
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn a_judge_without_budget_lets_the_work_go_on() {
    let mut policy = every(1);
    policy.budget.tokens = Some(40_000);
    let mut world = World::start(policy);
    world.news();
    work(&mut world);
    expect![[r#"
        assistant_message ToolUse 1 blocks
        tool_started c1
        tool_finished c1 Ok: read
        turn_ended
        goal_check_started Interval turn 1 generation 1
        goal_verdict Interval turn 1 generation 1: unverified, the judges' part of the run's budget is used up (Token budget too small to go on: 0 of 8,000 used; the next call needs about 9,759 tokens; 8,000 are left): give the run more
        model_called turn 2 call 2 attempt 1
          → #9 call model (turn 2, cap 1000)
    "#]].assert_eq(&world.news());
    assert_eq!((ending(&world).as_str(), status(&world).failures), ("it goes on", 0));
}

#[test]
fn a_claim_that_stop_hooks_block_has_them_asked_once_for_its_turn() {
    let mut world = World::start(goal_with_hooks(|goal| goal.verify_every = Some(1)));
    world.say("done");
    world.hook(StopHookVerdict::Block("a test fails".to_owned()), "1");
    assert!(world.checking().is_none() && world.thinking().is_some(), "{}", world.news());
}

#[test]
fn stop_hooks_are_told_why_they_are_asked() {
    let mut world = World::start(goal_with_hooks(|goal| goal.verify_every = Some(2)));
    let mut reasons = Vec::new();
    work(&mut world);
    work(&mut world);
    for _ in 0..2 {
        reasons.push(world.stop_check().stop_reason());
        world.hook(StopHookVerdict::Block("a test fails".to_owned()), "1");
        world.say("done");
    }
    assert_eq!(reasons, ["interval", "end_turn"], "{}", world.news());
    let mut policy = goal_with_hooks(|_| {});
    policy.agent.limits.turns_max = 1;
    let mut world = World::start(policy);
    work(&mut world);
    world.say("As far as I came.");
    assert_eq!(world.stop_check().stop_reason(), "limit");
}
