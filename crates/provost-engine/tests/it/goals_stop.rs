//! Goals: stopping a verification, and verdicts that come too late.

use expect_test::expect;
use provost_engine::RunEvent;
use provost_event::{
    Entry, ErrorClass, GoalEntry, GoalState, GoalTrigger, HookDecision, HookPoint, Outcome, PauseReason,
    Purpose, StopHookVerdict, SupervisorError,
};

use crate::goals::{
    ending, entries, failed, goal, goal_with, goal_with_hooks, judge_call, no, resume, status, timeout, work,
    yes,
};
use crate::world::{ROOT, World, guard, without_hooks};

/// The points at which a verification may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerificationStage {
    /// The stop hooks are called.
    Hooks,
    /// A judge is called.
    Judge,
    /// A judge's wait.
    Wait,
}

pub(crate) const PLACES: [VerificationStage; 3] =
    [VerificationStage::Hooks, VerificationStage::Judge, VerificationStage::Wait];
pub(crate) const TRIGGERS: [GoalTrigger; 3] = [GoalTrigger::Claim, GoalTrigger::Interval, GoalTrigger::Limit];

/// A run in a verification for this reason, at this point.
pub(crate) fn at(trigger: GoalTrigger, place: VerificationStage) -> World {
    let mut policy = goal_with_hooks(|goal| {
        goal.verify_every = (trigger == GoalTrigger::Interval).then_some(1);
    });
    policy.agent.limits.turns_max = if trigger == GoalTrigger::Limit { 1 } else { 10 };
    let mut world = World::start(policy);
    match trigger {
        GoalTrigger::Claim => world.say("done"),
        GoalTrigger::Interval => work(&mut world),
        GoalTrigger::Limit => {
            work(&mut world);
            world.say("As far as I came.");
        }
    }
    if place != VerificationStage::Hooks {
        world.hook(StopHookVerdict::Allow, "1");
    }
    if place == VerificationStage::Wait {
        world.judge(failed(SupervisorError::RateLimited { retry_after_ms: Some(1_000) }));
    }
    assert_eq!(status(&world).state, GoalState::Verifying, "{trigger:?} {place:?}: {}", world.news());
    world
}

/// All aborted effects report that they have stopped.
pub(crate) fn stopped(world: &mut World) {
    if world.checking().is_some() {
        world.hook(StopHookVerdict::Error("stopped".to_owned()), "");
    }
    if world.judging().is_some() {
        let error = SupervisorError::Llm {
            class: ErrorClass::Aborted,
            message: "stopped".to_owned(),
            hint: String::new(),
        };
        world.judge(failed(error));
    }
}

pub(crate) fn pause(world: &mut World) {
    world.run_event(RunEvent::Pause { agent: None, by: "me".to_owned() });
}

pub(crate) fn cancel(world: &mut World) {
    world.run_event(RunEvent::Cancel { agent: None, by: "me".to_owned() });
}

pub(crate) fn clear(world: &mut World) {
    world.run_event(RunEvent::ClearGoal { agent: 0, by: "me".to_owned() });
}

pub(crate) fn paused_by_me() -> Option<Outcome> {
    Some(Outcome::Paused { why: PauseReason::Asked { by: "me".to_owned(), awaited: None } })
}

fn cleared_by_me() -> Option<Outcome> {
    Some(Outcome::Paused { why: PauseReason::GoalCleared { by: "me".to_owned() } })
}

pub(crate) fn verdicts(world: &World) -> usize {
    entries(world).iter().filter(|entry| matches!(entry, Entry::Goal(GoalEntry::Verdict(_)))).count()
}

pub(crate) fn is_being_stopped(world: &World, place: VerificationStage) -> bool {
    place == VerificationStage::Wait || world.aborted.iter().any(|id| id.0 == ROOT.into())
}

#[test]
fn a_pause_amid_a_verification_stops_it_and_a_resume_makes_it_anew() {
    for place in PLACES {
        for trigger in [GoalTrigger::Claim, GoalTrigger::Interval] {
            let mut world = at(trigger, place);
            pause(&mut world);
            assert!(is_being_stopped(&world, place), "{trigger:?} {place:?}");
            stopped(&mut world);
            assert_eq!(world.outcome(), paused_by_me(), "{trigger:?} {place:?}: {}", world.news());
            let status_then = status(&world);
            assert_eq!(
                (status_then.state, status_then.rounds, status_then.failures),
                (GoalState::Paused, 0, 0)
            );
            assert_eq!(verdicts(&world), 0);
            resume(&mut world);
            if trigger == GoalTrigger::Claim {
                world.hook(StopHookVerdict::Allow, "1");
                assert_eq!(judge_call(&world).trigger, trigger);
                world.judge(yes(90));
                assert_eq!(status(&world).state, GoalState::Achieved);
            } else {
                assert_eq!(status(&world).state, GoalState::Running, "{place:?}: {}", world.news());
                assert!(world.calls_model_for(Purpose::Turn), "{place:?}: {}", world.news());
            }
        }
    }
}

#[test]
fn a_cancel_amid_a_verification_ends_it() {
    for place in PLACES {
        for trigger in TRIGGERS {
            let mut world = at(trigger, place);
            cancel(&mut world);
            assert!(is_being_stopped(&world, place), "{trigger:?} {place:?}");
            stopped(&mut world);
            let outcome = world.outcome();
            assert!(
                matches!(outcome, Some(Outcome::Cancelled { .. })),
                "{trigger:?} {place:?}: {}",
                world.news()
            );
            assert_eq!((status(&world).state, verdicts(&world)), (GoalState::Aborted, 0));
            assert_eq!(world.open.len(), 0);
        }
    }
}

#[test]
fn a_goal_cleared_amid_a_verification_pauses_the_run_which_goes_on_without() {
    for place in PLACES {
        for trigger in [GoalTrigger::Claim, GoalTrigger::Interval] {
            let mut world = at(trigger, place);
            clear(&mut world);
            assert!(is_being_stopped(&world, place), "{trigger:?} {place:?}");
            assert_eq!(status(&world).state, GoalState::Aborted);
            stopped(&mut world);
            assert_eq!(world.outcome(), cleared_by_me(), "{trigger:?} {place:?}: {}", world.news());
            assert_eq!((status(&world).state, verdicts(&world)), (GoalState::Aborted, 0));
            resume(&mut world);
            if trigger == GoalTrigger::Claim {
                // The stop hooks still answer, but no judge is called.
                world.hook(StopHookVerdict::Allow, "1");
            } else {
                world.say("done");
                world.hook(StopHookVerdict::Allow, "1");
            }
            assert_eq!(world.judging(), None);
            assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{}", world.news());
            // It wasn't judged: the result is unknown.
            assert_eq!(status(&world).state, GoalState::Aborted);
        }
    }
}

#[test]
fn a_goal_cleared_at_a_limit_leaves_the_limit() {
    for place in PLACES {
        let mut world = at(GoalTrigger::Limit, place);
        clear(&mut world);
        stopped(&mut world);
        let outcome = world.outcome();
        assert!(matches!(outcome, Some(Outcome::BudgetExhausted(_))), "{place:?}: {}", world.news());
        assert_eq!((status(&world).state, verdicts(&world)), (GoalState::Aborted, 0));
    }
}

#[test]
fn a_goal_cleared_while_a_judge_is_asked_is_cleared_for_good() {
    let mut world = World::start(goal());
    world.say("done");
    world.news();
    clear(&mut world);
    expect![[r#"
        goal_cleared by me
        stop_requested: the goal was cleared by me; resume goes on without it
          → #5 judge 0 (Claim, turn 1) (abort)
    "#]]
    .assert_eq(&world.news());
    world.judge(yes(90));
    expect![[r#"
        goal_judged judge generation 1: achieved 0.90 (stale)
        paused: the goal was cleared by me; resume goes on without it
    "#]]
    .assert_eq(&world.news());
    resume(&mut world);
    expect![[r#"
        resumed
        turn_ended
        ended: completed, not verified
    "#]]
    .assert_eq(&world.news());
}

#[test]
fn a_goal_cleared_amid_the_work_stops_the_turn_in_flight() {
    let mut world = World::start(goal());
    clear(&mut world);
    assert!(!world.aborted.is_empty());
    world.fail(ErrorClass::Aborted, None);
    assert_eq!((world.outcome(), status(&world).state), (cleared_by_me(), GoalState::Aborted));
    resume(&mut world);
    world.say("done");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{}", world.news());
}

#[test]
fn a_goal_cleared_at_rest_stays_at_rest_without_it() {
    let mut world = World::start(goal());
    pause(&mut world);
    world.fail(ErrorClass::Aborted, None);
    let before = status(&world).generation;
    clear(&mut world);
    assert_eq!((world.outcome(), status(&world).state), (paused_by_me(), GoalState::Aborted));
    assert!(status(&world).generation > before);
    resume(&mut world);
    world.say("done");
    assert_eq!(world.judging(), None);
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{}", world.news());
}

#[test]
fn to_clear_it_twice_or_where_there_is_none_does_nothing() {
    let mut world = World::start(goal());
    clear(&mut world);
    world.fail(ErrorClass::Aborted, None);
    let (session, run) = (world.session_log().len(), world.run_log().len());
    clear(&mut world);
    assert_eq!((world.session_log().len(), world.run_log().len()), (session, run));
    resume(&mut world);
    let session = world.session_log().len();
    clear(&mut world);
    assert_eq!(world.session_log().len(), session, "{}", world.news());
    assert_eq!(ending(&world), "it goes on");
    let mut world = World::start(without_hooks());
    let session = world.session_log().len();
    clear(&mut world);
    world.run_event(RunEvent::ClearGoal { agent: 7, by: "me".to_owned() });
    assert_eq!((world.session_log().len(), ending(&world).as_str()), (session, "it goes on"));
}

#[test]
fn a_blocked_or_stuck_or_unreachable_goal_can_be_cleared() {
    let mut blocked = World::start(goal_with(|goal| goal.rounds_max = 1));
    blocked.say("done");
    blocked.judge(no());
    let mut stuck = World::start(goal_with(|goal| goal.stuck_turns = 1));
    stuck.say("done");
    stuck.judge(no());
    let mut unreachable = World::start(goal_with(|goal| goal.failures_max = 1));
    unreachable.say("done");
    unreachable.judge(timeout());
    let expected = [GoalState::Blocked, GoalState::Stuck, GoalState::Paused];
    for (mut world, state) in [blocked, stuck, unreachable].into_iter().zip(expected) {
        assert_eq!(status(&world).state, state);
        clear(&mut world);
        assert_eq!(status(&world).state, GoalState::Aborted);
        resume(&mut world);
        if world.outcome().is_none() {
            world.say("done");
        }
        assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{state:?}: {}", world.news());
    }
}

#[test]
fn a_cleared_goal_stays_cleared_whatever_happens_then() {
    let mut world = World::start(goal_with(|goal| goal.verify_every = Some(1)));
    clear(&mut world);
    world.fail(ErrorClass::Aborted, None);
    resume(&mut world);
    for _ in 0..3 {
        world.call(&[("read", "{\"path\":\"a\"}")]);
        world.finish_first("as it was");
        world.run_event(RunEvent::Recover { fresh: Vec::new() });
    }
    let is_check = |entry: &Entry| matches!(entry, Entry::Goal(GoalEntry::CheckStarted(_)));
    assert!(!entries(&world).iter().any(is_check), "{}", world.news());
    assert_eq!(status(&world).state, GoalState::Aborted);
}

#[test]
fn a_goal_cleared_after_it_was_found_reached_changes_nothing_of_the_end() {
    let mut policy = goal();
    policy.agent.hooks = vec![guard(HookPoint::SessionEnd)];
    let mut world = World::start(policy);
    world.say("done");
    world.judge(yes(90));
    assert_eq!(world.hook_calls().len(), 1);
    clear(&mut world);
    world.answer_hook(HookDecision::Continue);
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{}", world.news());
}
