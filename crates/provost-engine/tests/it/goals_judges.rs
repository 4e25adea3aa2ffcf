//! Goals: several judges, and the stop hooks before them.

use expect_test::expect;
use provost_event::{
    BudgetEntry, Confidence, Entry, GoalEntry, GoalFinding, GoalPolicy, GoalState, ItemKind, JudgeAnswer,
    OnHookError, Outcome, PauseReason, StopHookVerdict, SupervisorError, SupervisorVerdict,
};

use crate::goals::{
    ending, entries, failed, goal_with, goal_with_hooks, items, judge, judge_call, malformed, no, resume,
    status, timeout, yes,
};
use crate::world::World;

/// A claim that `agree` of `judges` have to confirm.
fn claim(agree: u32, judges: &[&str]) -> World {
    let several = |goal: &mut GoalPolicy| {
        goal.agree = agree;
        goal.judges = judges.iter().map(|name| judge(name)).collect();
    };
    let mut world = World::start(goal_with(several));
    world.say("done");
    world
}

fn says(achieved: JudgeAnswer, reasoning: &str, suggestion: &str) -> JudgeAnswer {
    match achieved {
        JudgeAnswer::Verdict(verdict) => JudgeAnswer::Verdict(SupervisorVerdict {
            reasoning: reasoning.to_owned(),
            suggestions: vec![suggestion.to_owned()],
            ..verdict
        }),
        failed @ JudgeAnswer::Failed(_) => failed,
    }
}

/// The called judges, in order, and how many of their calls were charged.
fn asked(world: &World) -> (Vec<String>, usize) {
    let judge = |entry: Entry| match entry {
        Entry::Goal(GoalEntry::Judged(judged)) => Some(judged.judge),
        _ => None,
    };
    let names = entries(world).into_iter().filter_map(judge).collect::<Vec<_>>();
    let is_theirs = |entry: &Entry| matches!(entry, Entry::Budget(BudgetEntry::Charged(charged)) if names.contains(&charged.model) && charged.usage.total() == 220);
    let charged = world.run_log().iter().filter(|record| is_theirs(&record.entry)).count();
    (names, charged)
}

#[test]
fn two_of_three_are_asked_in_order_until_it_is_known() {
    let names = ["a", "b", "c"];
    for (answers, achieved) in [
        (vec![yes(90), yes(80)], true),
        (vec![yes(90), no(), yes(80)], true),
        (vec![no(), yes(90), yes(80)], true),
        (vec![no(), no()], false),
        (vec![no(), yes(90), no()], false),
        (vec![yes(90), no(), no()], false),
        // A verdict without enough confidence is no yes.
        (vec![yes(69), yes(90), yes(70)], true),
        (vec![yes(69), yes(69)], false),
    ] {
        let mut world = claim(2, &names);
        for (place, answer) in answers.iter().enumerate() {
            assert_eq!(usize::try_from(judge_call(&world).judge), Ok(place));
            world.judge(answer.clone());
        }
        assert_eq!(world.judging(), None, "{answers:?}");
        let reached = matches!(world.outcome(), Some(Outcome::Completed { .. }));
        assert_eq!(reached, achieved, "{answers:?}");
        let of = answers.len();
        assert_eq!(asked(&world), (names[..of].iter().map(ToString::to_string).collect(), of));
    }
}

#[test]
fn the_least_sure_of_those_who_agree_is_how_sure_they_are() {
    let mut world = claim(2, &["a", "b", "c"]);
    world.judge(says(yes(75), "I ran them.", ""));
    world.judge(no());
    world.judge(says(yes(90), "I read them.", ""));
    let Some(GoalFinding::Achieved { confidence, reasoning }) = status(&world).finding else {
        panic!("{}", world.news())
    };
    assert_eq!(confidence, Confidence::hundredths(75));
    expect![[r#"
        a: I ran them.

        c: I read them."#]]
    .assert_eq(&reasoning);
}

#[test]
fn what_several_miss_is_said_once_each_and_by_name() {
    let mut world = claim(2, &["a", "b", "c"]);
    world.judge(says(no(), "A test fails.", "run the tests"));
    world.judge(says(yes(90), "All is well.", "go home"));
    world.judge(says(yes(60), "It seems so.", "run the tests"));
    expect![[r#"
        The goal isn't reached yet, so you can't stop. An independent judge who saw the evidence says:

        a: A test fails.

        c: It looks reached, but the judge is not sure enough: 0.60, and 0.70 is needed. It seems so.

        What it suggests:
        - run the tests"#]]
    .assert_eq(&items(&world, ItemKind::GoalNotReached)[0].body);
}

#[test]
fn one_that_fails_is_done_without_if_the_others_know() {
    for (answers, achieved) in [
        (vec![timeout(), yes(90), yes(90)], true),
        (vec![yes(90), timeout(), yes(90)], true),
        (vec![timeout(), no(), no()], false),
        (vec![no(), timeout(), no()], false),
    ] {
        let mut world = claim(2, &["a", "b", "c"]);
        for answer in &answers {
            world.judge(answer.clone());
        }
        let reached = matches!(world.outcome(), Some(Outcome::Completed { .. }));
        assert_eq!((reached, status(&world).failures), (achieved, 0), "{answers:?}");
        assert!(reached || ending(&world) == "it goes on");
    }
}

#[test]
fn those_who_failed_are_asked_again_where_it_takes_their_word() {
    let mut world = claim(2, &["a", "b", "c"]);
    world.judge(yes(90));
    world.judge(timeout());
    world.news();
    world.judge(no());
    expect![[r#"
        goal_judged c generation 1: not achieved 0.90, asked again in 5000 ms
          → #10 timer
    "#]]
    .assert_eq(&world.news());
    assert_eq!(status(&world).failures, 1);
    world.tick();
    // Only the judge that gave no answer.
    assert_eq!(judge_call(&world).judge, 1);
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
    assert_eq!(asked(&world).0, ["a", "b", "c", "b"]);
}

#[test]
fn judges_that_stay_undecided_pause_it() {
    let mut world = claim(3, &["a", "b", "c"]);
    world.judge(yes(90));
    world.judge(yes(90));
    for _ in 0..2 {
        world.judge(timeout());
        world.tick();
    }
    world.judge(timeout());
    let Some(Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 3, .. } }) = world.outcome()
    else {
        panic!("{}", world.news())
    };
    // After a resumption all are called: the claim may have changed by then.
    resume(&mut world);
    assert_eq!(judge_call(&world).judge, 0);
}

#[test]
fn all_must_agree_where_the_policy_says_so() {
    let mut world = claim(2, &["a", "b"]);
    world.judge(no());
    assert_eq!((world.judging(), status(&world).rounds), (None, 1));
    world.say("done");
    world.judge(yes(90));
    assert!(world.judging().is_some());
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn each_judge_has_its_own_second_try_and_its_own_wait() {
    let mut world = claim(2, &["a", "b"]);
    let limited = || failed(SupervisorError::RateLimited { retry_after_ms: Some(1_000) });
    for place in 0..2 {
        assert_eq!(judge_call(&world).judge, place);
        world.judge(malformed());
        assert_eq!((judge_call(&world).judge, judge_call(&world).again), (place, true));
        world.judge(limited());
        world.tick();
        assert_eq!(judge_call(&world).judge, place);
        world.judge(yes(90));
    }
    assert_eq!((status(&world).state, status(&world).failures), (GoalState::Achieved, 0));
    assert_eq!(asked(&world).1, 6);
}

#[test]
fn a_judge_is_told_how_often_it_was_asked_before() {
    let mut world = claim(1, &["a", "b"]);
    world.judge(no());
    world.judge(malformed());
    assert_eq!((judge_call(&world).judge, judge_call(&world).asked_before), (1, 1));
    world.judge(no());
    world.say("done");
    assert_eq!((judge_call(&world).judge, judge_call(&world).asked_before), (0, 1));
    world.judge(no());
    assert_eq!((judge_call(&world).judge, judge_call(&world).asked_before), (1, 2));
}

#[test]
fn a_stop_hook_that_blocks_a_claim_saves_the_judge_s_money() {
    let mut world = World::start(goal_with_hooks(|_| {}));
    world.say("done");
    assert_eq!(status(&world).state, GoalState::Verifying);
    world.hook(StopHookVerdict::Block("a test fails".to_owned()), "1");
    expect![[r#"
        session_started
        model_called turn 1 call 1 attempt 1
        assistant_message EndTurn 1 blocks
        goal_check_started Claim turn 1 generation 1
        stop_verdicts Block("a test fails")
        system_item StopBlocked
        turn_ended
        model_called turn 2 call 2 attempt 1
          → #8 call model (turn 2, cap 1000)
    "#]]
    .assert_eq(&world.news());
    // It isn't the judge's verdict: no round is counted.
    assert_eq!((status(&world).rounds, status(&world).state), (0, GoalState::Running));
    world.say("done");
    world.hook(StopHookVerdict::Allow, "2");
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn a_check_that_could_not_run_certifies_nothing() {
    let error = || StopHookVerdict::Error("no such program".to_owned());
    let mut world = World::start(goal_with_hooks(|_| {}));
    world.say("done");
    world.hook(error(), "1");
    assert_eq!((world.judging(), ending(&world).as_str()), (None, "it goes on"));
    expect![[r#"
        You can't stop yet. What stands against it:

        tests: no such program"#]]
    .assert_eq(&items(&world, ItemKind::StopBlocked)[0].body);
    // The same objection without new evidence: the session is suspended.
    world.say("done");
    world.hook(error(), "1");
    assert!(matches!(world.outcome(), Some(Outcome::Blocked { .. })), "{}", world.news());
}

#[test]
fn a_policy_may_take_a_check_that_could_not_run_for_none() {
    let mut world = World::start(goal_with_hooks(|goal| goal.stop_hook_errors = OnHookError::Ignore));
    world.say("done");
    world.hook(StopHookVerdict::Error("no such program".to_owned()), "1");
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn a_stop_hook_s_halt_ends_it_whatever_a_judge_would_say() {
    let mut world = World::start(goal_with_hooks(|_| {}));
    world.say("done");
    world.hook(StopHookVerdict::Halt("the disk is full".to_owned()), "1");
    assert!(matches!(world.outcome(), Some(Outcome::Aborted { .. })), "{}", world.news());
    assert_eq!((status(&world).state, asked(&world).0.len()), (GoalState::Aborted, 0));
}

#[test]
fn a_wrong_claim_and_a_block_are_counted_apart() {
    let mut policy = goal_with_hooks(|goal| goal.rounds_max = 2);
    policy.agent.limits.stop_blocks_max = 2;
    let mut world = World::start(policy);
    world.say("done");
    world.hook(StopHookVerdict::Allow, "1");
    world.judge(no());
    world.say("done");
    world.hook(StopHookVerdict::Block("a test fails".to_owned()), "2");
    assert_eq!(ending(&world), "it goes on");
    world.say("done");
    world.hook(StopHookVerdict::Block("another test fails".to_owned()), "3");
    assert!(matches!(world.outcome(), Some(Outcome::Blocked { .. })), "{}", world.news());
    assert_eq!(status(&world).rounds, 1);
}

#[test]
fn an_agent_without_any_judge_is_never_found_done() {
    let mut world = World::start(goal_with(|goal| goal.judges.clear()));
    world.say("done");
    let Some(Outcome::Paused { why: PauseReason::JudgeUnreachable { .. } }) = world.outcome() else {
        panic!("{}", world.news())
    };
    assert_eq!(status(&world).state, GoalState::Paused);
}
