//! Goals: verdicts that come too late, and events while one is awaited: messages, hooks, the end of the time.

use provost_engine::{Effect, RunEvent};
use provost_event::{
    ActorKey, BudgetEntry, Entry, GoalState, GoalTrigger, HookDecision, HookPoint, ItemKind, Outcome,
    Purpose, RunPolicy, Seq, StopHookVerdict, SupervisorError,
};

use crate::goals::{
    failed, goal, goal_with_hooks, items, judge_call, judged, no, resume, status, timeout, work, yes,
};
use crate::goals_stop::{
    PLACES, VerificationStage, at, cancel, clear, is_being_stopped, pause, paused_by_me, stopped, verdicts,
};
use crate::world::{World, guard};

#[test]
fn a_yes_that_comes_too_late_is_recorded_and_changes_nothing() {
    for stop in [pause, clear, cancel] {
        let mut world = at(GoalTrigger::Claim, VerificationStage::Judge);
        let seq = world.judging().expect("a judge is asked");
        stop(&mut world);
        let before = status(&world);
        let charged = world.run_log().len();
        world.news();
        judged(&mut world, seq, yes(100));
        let news = world.news();
        assert!(news.contains("achieved 1.00 (stale)"), "{news}");
        assert!(!matches!(world.outcome(), None | Some(Outcome::Completed { .. })), "{news}");
        let after = status(&world);
        assert_eq!((after.rounds, after.failures), (before.rounds, before.failures));
        assert_eq!((after.finding, verdicts(&world)), (None, 0));
        // But it is paid for.
        let is_charge = |entry: &Entry| matches!(entry, Entry::Budget(BudgetEntry::Charged(_)));
        assert!(world.run_log()[charged..].iter().any(|record| is_charge(&record.entry)));
    }
}

#[test]
fn a_no_that_comes_too_late_is_not_told() {
    let mut world = at(GoalTrigger::Claim, VerificationStage::Judge);
    pause(&mut world);
    world.judge(no());
    assert_eq!(world.outcome(), paused_by_me());
    assert_eq!((items(&world, ItemKind::GoalNotReached).len(), status(&world).rounds), (0, 0));
}

#[test]
fn a_failure_that_comes_too_late_is_none() {
    let mut world = at(GoalTrigger::Claim, VerificationStage::Judge);
    pause(&mut world);
    world.judge(timeout());
    assert_eq!((world.outcome(), status(&world).failures, world.timers().len()), (paused_by_me(), 0, 0));
}

#[test]
fn an_answer_to_an_older_question_is_ignored() {
    let mut world = at(GoalTrigger::Claim, VerificationStage::Judge);
    let old = world.judging().expect("a judge is asked");
    pause(&mut world);
    judged(&mut world, old, timeout());
    resume(&mut world);
    world.hook(StopHookVerdict::Allow, "1");
    world.news();
    // A duplicate, and one without a call.
    for seq in [old, Seq(1), Seq(999)] {
        judged(&mut world, seq, yes(90));
    }
    let entries = world.session_log().len();
    assert_eq!(world.news().trim(), "→ #13 judge 0 (Claim, turn 1)");
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
    assert!(world.session_log().len() > entries);
    // After the end no entry is written.
    let ended = world.session_log().len();
    judged(&mut world, old, no());
    assert_eq!(world.session_log().len(), ended);
}

#[test]
fn a_verdict_counts_once() {
    let mut world = World::start(goal());
    world.say("done");
    let seq = world.judging().expect("a judge is asked");
    judged(&mut world, seq, no());
    judged(&mut world, seq, no());
    assert_eq!((status(&world).rounds, verdicts(&world)), (1, 1));
    assert_eq!(items(&world, ItemKind::GoalNotReached).len(), 1);
}

#[test]
fn words_spoken_amid_a_claim_s_verification_are_heard_before_the_end() {
    for place in PLACES {
        let mut world = at(GoalTrigger::Claim, place);
        world.run_event(RunEvent::Say { agent: 0, text: "and the docs".to_owned(), by: "me".to_owned() });
        if place == VerificationStage::Hooks {
            world.hook(StopHookVerdict::Allow, "1");
        }
        if place == VerificationStage::Wait {
            world.tick();
        }
        world.judge(yes(90));
        assert!(world.calls_model_for(Purpose::Turn), "{place:?}: {}", world.news());
        assert_eq!(status(&world).state, GoalState::Running, "{place:?}");
        world.say("done with that too");
        world.hook(StopHookVerdict::Allow, "1");
        world.judge(yes(90));
        assert_eq!(status(&world).state, GoalState::Achieved);
    }
}

/// With ten seconds kept for the final summary.
fn timed() -> RunPolicy {
    let mut policy = goal_with_hooks(|_| {});
    policy.budget.wall_time_ms = Some(100_000);
    policy
}

fn time_is_over(world: &mut World) {
    let timer = world.timers().into_iter().find(|timer| matches!(timer.0, ActorKey::Run(_)));
    let (_, seq, _) = timer.expect("the run has a timer");
    world.run_event(RunEvent::TimerFired { seq });
}

#[test]
fn time_over_amid_a_claim_s_verification_leaves_a_last_look_or_ends_it() {
    for place in PLACES {
        let mut world = World::start(timed());
        world.say("done");
        if place != VerificationStage::Hooks {
            world.hook(StopHookVerdict::Allow, "1");
        }
        if place == VerificationStage::Wait {
            world.judge(failed(SupervisorError::RateLimited { retry_after_ms: Some(50_000) }));
        }
        world.advance(90_000);
        time_is_over(&mut world);
        assert!(is_being_stopped(&world, place), "{place:?}");
        if place != VerificationStage::Wait {
            stopped(&mut world);
        }
        let asks_hooks = world.open.values().any(|effect| matches!(effect, Effect::CheckStop(_)));
        if asks_hooks {
            world.hook(StopHookVerdict::Allow, "1");
        }
        assert_eq!(judge_call(&world).trigger, GoalTrigger::Limit, "{place:?}: {}", world.news());
        world.advance(10_000);
        time_is_over(&mut world);
        assert!(is_being_stopped(&world, VerificationStage::Judge), "{place:?}");
        stopped(&mut world);
        let outcome = world.outcome();
        assert!(matches!(outcome, Some(Outcome::BudgetExhausted(_))), "{place:?}: {}", world.news());
        assert_eq!(status(&world).rounds, 0, "{place:?}");
    }
}

#[test]
fn time_over_amid_an_interval_s_verification_leaves_final_summary_and_a_last_look() {
    let mut policy = timed();
    policy.agent.goal.as_mut().expect("a goal").verify_every = Some(1);
    let mut world = World::start(policy);
    work(&mut world);
    world.hook(StopHookVerdict::Allow, "1");
    world.advance(90_000);
    time_is_over(&mut world);
    stopped(&mut world);
    assert!(world.calls_model_for(Purpose::FinalSummary), "{}", world.news());
    world.say("As far as I came.");
    world.hook(StopHookVerdict::Allow, "1");
    assert_eq!(judge_call(&world).trigger, GoalTrigger::Limit);
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn hooks_at_a_turn_s_end_come_before_the_verification() {
    let mut policy = goal();
    policy.agent.hooks = vec![guard(HookPoint::TurnEnd)];
    let mut world = World::start(policy);
    world.say("done");
    assert_eq!((world.hook_calls().len(), status(&world).state), (1, GoalState::Running));
    world.answer_hook(HookDecision::Pause("look first".to_owned()));
    assert_eq!((world.judging(), status(&world).state), (None, GoalState::Paused));
    resume(&mut world);
    while !world.hook_calls().is_empty() {
        world.answer_hook(HookDecision::Continue);
    }
    world.judge(yes(90));
    assert_eq!(status(&world).state, GoalState::Achieved);
}
