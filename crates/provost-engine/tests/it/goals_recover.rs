//! Goals: the state after a crash during a verification.

use expect_test::expect;
use provost_engine::{Actor, Answer, Decision, Event, RunEvent, SessionEvent};
use provost_event::{
    Block, EffectId, Entry, GoalEntry, GoalState, GoalTrigger, Outcome, PauseReason, Purpose, Seq,
    StopHookVerdict, StopReason, SupervisorError, Usage,
};

use crate::goals::{
    entries, failed, goal, goal_with, judge_call, judged, no, resume, status, timeout, work, yes,
};
use crate::goals_stop::{PLACES, TRIGGERS, VerificationStage, at};
use crate::world::{ROOT, RUN, World};

/// The process dies, and another takes over.
fn crash(world: &mut World) {
    recover(world, Vec::new());
}

fn recover(world: &mut World, fresh: Vec<EffectId>) {
    world.aborted.clear();
    world.read_back();
    world.run_event(RunEvent::Recover { fresh });
}

fn id(seq: Seq) -> EffectId {
    EffectId { actor: ROOT.into(), seq }
}

fn count(world: &World, wanted: impl Fn(&Entry) -> bool) -> usize {
    entries(world).iter().filter(|entry| wanted(entry)).count()
}

fn verdicts(world: &World) -> usize {
    count(world, |entry| matches!(entry, Entry::Goal(GoalEntry::Verdict(_))))
}

/// The rest of the verification gives a yes.
fn finish(world: &mut World) {
    for _ in 0..3 {
        if world.checking().is_some() {
            world.hook(StopHookVerdict::Allow, "1");
        } else if world.judging().is_none() {
            world.tick();
        }
    }
    world.judge(yes(90));
}

#[test]
fn a_verification_that_a_crash_cut_off_is_made_once_more_and_comes_to_one_verdict() {
    for trigger in TRIGGERS {
        for place in PLACES {
            let mut world = at(trigger, place);
            crash(&mut world);
            assert_eq!(status(&world).state, GoalState::Verifying, "{trigger:?} {place:?}: {}", world.news());
            finish(&mut world);
            let state = status(&world).state;
            assert_eq!(
                (state, verdicts(&world)),
                (GoalState::Achieved, 1),
                "{trigger:?} {place:?}: {}",
                world.news()
            );
            assert_eq!(status(&world).failures, 0);
        }
    }
}

#[test]
fn a_crash_before_the_effect_began_loses_nothing() {
    for place in [VerificationStage::Hooks, VerificationStage::Judge] {
        let mut world = at(GoalTrigger::Claim, place);
        let seq = world.checking().or(world.judging()).expect("a judge is asked");
        let before = world.session_log().len();
        recover(&mut world, vec![id(seq)]);
        if place == VerificationStage::Judge {
            assert_eq!(world.judging(), Some(seq), "{}", world.news());
            assert_eq!(world.session_log().len(), before + 1);
        }
        finish(&mut world);
        assert_eq!((status(&world).state, verdicts(&world)), (GoalState::Achieved, 1), "{}", world.news());
    }
}

#[test]
fn a_judge_is_asked_again_after_a_crash_and_the_late_answer_is_ignored() {
    let mut world = World::start(goal());
    world.say("done");
    let lost = world.judging().expect("a judge is asked");
    world.news();
    crash(&mut world);
    expect![[r#"
        resumed
        retry Interrupted in 0 ms
        model_called turn 1 call 3 attempt 1 for Judge
          → #8 judge 0 (Claim, turn 1)
    "#]]
    .assert_eq(&world.news());
    judged(&mut world, lost, yes(90));
    assert_eq!(world.news().lines().count(), 1, "only the question that is open");
    world.judge(no());
    assert_eq!((status(&world).rounds, verdicts(&world)), (1, 1));
}

#[test]
fn counters_outlive_a_crash() {
    let mut world = World::start(goal_with(|goal| goal.rounds_max = 2));
    world.say("done");
    world.judge(no());
    world.say("done");
    world.judge(timeout());
    world.tick();
    world.judge(timeout());
    crash(&mut world);
    assert_eq!((status(&world).rounds, status(&world).failures), (1, 2));
    if world.judging().is_none() {
        world.tick();
    }
    world.judge(no());
    assert_eq!(status(&world).state, GoalState::Blocked, "{}", world.news());
}

#[test]
fn counters_are_in_snapshots_too() {
    let mut world = World::start(goal());
    work(&mut world);
    world.say("done");
    world.judge(no());
    world.say("done");
    world.judge(timeout());
    let before = status(&world);
    world.take_snapshot(RUN.into());
    world.take_snapshot(ROOT.into());
    crash(&mut world);
    let after = status(&world);
    assert_eq!(
        (after.rounds, after.failures, after.idle_turns),
        (before.rounds, before.failures, before.idle_turns)
    );
    assert_eq!((after.rounds, after.failures), (1, 1));
    finish(&mut world);
    assert_eq!(status(&world).state, GoalState::Achieved);
}

#[test]
fn one_vote_of_several_is_not_asked_for_twice() {
    let mut world = World::start(goal_with(|goal| {
        goal.judges = ["a", "b"].map(crate::goals::judge).into();
        goal.agree = 2;
    }));
    world.say("done");
    world.judge(yes(90));
    crash(&mut world);
    assert_eq!(judge_call(&world).judge, 1);
    world.judge(yes(90));
    assert_eq!((status(&world).state, verdicts(&world)), (GoalState::Achieved, 1));
}

#[test]
fn a_judge_that_three_crashes_in_a_row_cut_off_pauses_the_run() {
    for trigger in [GoalTrigger::Claim, GoalTrigger::Interval] {
        let mut world = at(trigger, VerificationStage::Judge);
        for _ in 0..3 {
            assert_eq!(world.outcome(), None);
            crash(&mut world);
        }
        let looped = Some(Outcome::Paused { why: PauseReason::CrashLoop { times: 3 } });
        assert_eq!((world.outcome(), verdicts(&world)), (looped, 0), "{trigger:?}: {}", world.news());
        resume(&mut world);
        if trigger == GoalTrigger::Claim {
            finish(&mut world);
            assert_eq!(status(&world).state, GoalState::Achieved);
        }
    }
}

#[test]
fn crashes_amid_a_last_look_leave_the_limit() {
    let mut world = at(GoalTrigger::Limit, VerificationStage::Judge);
    for _ in 0..3 {
        crash(&mut world);
    }
    assert!(matches!(world.outcome(), Some(Outcome::BudgetExhausted(_))), "{}", world.news());
    let unverified =
        Some(provost_event::GoalFinding::Unverified { why: "it was interrupted 3 times".to_owned() });
    assert_eq!(status(&world).finding, unverified);
}

#[test]
fn a_crash_while_it_is_being_stopped_still_stops_it() {
    for trigger in [GoalTrigger::Claim, GoalTrigger::Interval] {
        for place in [VerificationStage::Hooks, VerificationStage::Judge] {
            let mut world = at(trigger, place);
            world.run_event(RunEvent::ClearGoal { agent: 0, by: "me".to_owned() });
            assert_eq!(world.outcome(), None);
            crash(&mut world);
            let cleared = Some(Outcome::Paused { why: PauseReason::GoalCleared { by: "me".to_owned() } });
            assert_eq!(
                (world.outcome(), verdicts(&world)),
                (cleared, 0),
                "{trigger:?} {place:?}: {}",
                world.news()
            );
            assert_eq!(status(&world).state, GoalState::Aborted);
        }
    }
}

#[test]
fn a_wait_that_a_crash_cut_off_is_over() {
    let mut world = World::start(goal());
    world.say("done");
    world.judge(failed(SupervisorError::RateLimited { retry_after_ms: Some(1_000) }));
    crash(&mut world);
    assert!(world.judging().is_some(), "{}", world.news());
    // It had its wait.
    world.judge(failed(SupervisorError::RateLimited { retry_after_ms: Some(1_000) }));
    assert_eq!(status(&world).failures, 1);
}

/// The session alone, whose judge waits for budget: the request was not delivered.
fn asking_for_budget() -> Actor {
    let world = World::start(goal());
    let mut session = world.actors[&ROOT.into()].clone();
    let seq = world.thinking().expect("it thinks");
    let content = vec![Block::Text("done".to_owned())];
    let answer = Answer {
        cost: None,
        content,
        usage: Usage::default(),
        model: "m".to_owned(),
        stop: StopReason::EndTurn,
    };
    assert!(asks_for_budget(&tell(&mut session, SessionEvent::Answered { seq, answer })));
    session
}

fn tell(session: &mut Actor, event: SessionEvent) -> Decision {
    session.decide(event.into(), crate::time::Clocks::default().now(crate::time::BEGIN.plus_ms(1_000_000), 7))
}

fn asks_for_budget(step: &Decision) -> bool {
    let is_judges =
        |event: &Event| matches!(event, Event::Run(RunEvent::Reserve(ask)) if ask.purpose == Purpose::Judge);
    step.messages.iter().any(|message| is_judges(&message.event))
}

fn suspended(step: &Decision) -> Option<Outcome> {
    step.messages.iter().find_map(|message| match &message.event {
        Event::Run(RunEvent::SessionStopped { outcome, .. }) => Some(outcome.clone()),
        _ => None,
    })
}

#[test]
fn a_verification_that_waits_for_budget_asks_for_it_again_after_a_crash() {
    let mut session = asking_for_budget();
    let step = tell(&mut session, SessionEvent::Recover { fresh: Vec::new() });
    assert!(asks_for_budget(&step), "{step:?}");
    // Both answers may arrive: one call is made.
    let granted = || SessionEvent::Reserved {
        limits: Vec::new(),
        is_last_turn: false,
        call: 2,
        output_tokens_max: 500,
        time_left: None,
        purpose: Purpose::Judge,
    };
    assert_eq!(tell(&mut session, granted()).effects.len(), 1);
    let again = tell(&mut session, granted());
    assert_eq!((again.effects.len(), again.entries.len()), (0, 0));
}

#[test]
fn a_verification_that_waits_for_budget_stops_at_once() {
    let by = || "me".to_owned();
    let paused = Outcome::Paused { why: PauseReason::Asked { by: by(), awaited: None } };
    let cancelled = Outcome::Cancelled { by: by() };
    let cleared = Outcome::Paused { why: PauseReason::GoalCleared { by: by() } };
    let stop = |outcome: &Outcome| SessionEvent::Stop { outcome: outcome.clone() };
    for (event, outcome) in [
        (stop(&paused), paused.clone()),
        (stop(&cancelled), cancelled.clone()),
        (SessionEvent::ClearGoal { by: by() }, cleared),
    ] {
        let mut session = asking_for_budget();
        assert_eq!(suspended(&tell(&mut session, event)), Some(outcome));
        // A reservation that arrives late isn't used.
        let purpose = Purpose::Judge;
        let late = SessionEvent::Reserved {
            call: 2,
            output_tokens_max: 500,
            time_left: None,
            purpose,
            limits: Vec::new(),
            is_last_turn: false,
        };
        let late = tell(&mut session, late);
        assert_eq!((late.effects.len(), late.entries.len()), (0, 0), "{late:?}");
    }
}
