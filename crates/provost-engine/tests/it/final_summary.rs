//! An agent's final summary at a limit.

use expect_test::expect;
use provost_engine::{Actor, RunEvent, SessionEvent};
use provost_event::{
    ApprovalAnswer, ApprovalScope, Block, Budget, BudgetEntry, ConversationEntry, Dimension, Effort, Entry,
    ErrorClass, FinalSummaryFinished, HookDecision as Say, HookPoint as At, MicroDollars, Outcome, Purpose,
    RunPolicy, StopHookVerdict, StopReason, Usage,
};

use crate::view::View;
use crate::world::{ROOT, World, guarded, policy, without_hooks};

type Does = fn(&mut World);

fn limited(change: impl FnOnce(&mut RunPolicy)) -> RunPolicy {
    let mut policy = without_hooks();
    change(&mut policy);
    policy
}

fn turns(turns: u32) -> RunPolicy {
    limited(|policy| policy.agent.limits.turns_max = turns)
}

fn timed(ms: u64) -> RunPolicy {
    limited(|policy| policy.budget.wall_time_ms = Some(ms))
}

fn turn(world: &mut World) {
    let of = world.session_log().len();
    world.call(&[("read", &format!("{{\"of\":{of}}}"))]);
    world.finish_first("x");
}

/// A world whose agent is asked for its final summary.
fn at_its_limit(policy: RunPolicy) -> World {
    let mut world = World::start(policy);
    while !world.calls_model_for(Purpose::FinalSummary) {
        turn(&mut world);
    }
    world
}

fn final_summary(world: &World) -> Option<FinalSummaryFinished> {
    world.session_log().iter().rev().find_map(|record| match &record.entry {
        Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => Some(wrapped.clone()),
        _ => None,
    })
}

fn text(world: &World) -> String {
    match world.actors.get(&ROOT.into()) {
        Some(Actor::Session(state)) => state.last_text().to_owned(),
        _ => panic!("no session"),
    }
}

fn suspended_at(world: &World) -> Option<Dimension> {
    match world.outcome() {
        Some(Outcome::BudgetExhausted(exhausted)) => Some(exhausted.dimension),
        _ => None,
    }
}

fn resume(world: &mut World, budget: Budget, turns_max: Option<u32>) {
    world.run_event(RunEvent::Resume { agent: None, by: "a person".into(), budget, turns_max, text: None });
}

#[test]
fn a_model_that_reasons_has_room_to_think_before_its_final_summary_and_thinks_as_little_as_it_can() {
    let asked = |reasons| {
        let policy = limited(|policy| {
            policy.agent.limits.turns_max = 2;
            let model = &mut policy.agent.model;
            (model.window_tokens, model.output_tokens_max) = (Some(100_000), 20_000);
            (model.reasons, model.effort) = (reasons, Some(Effort::High));
        });
        let world = at_its_limit(policy);
        (world.cap(), world.effort())
    };
    assert_eq!(asked(false), (1_024, Some(Effort::High)));
    assert_eq!(asked(true), (1_024 + 4_096, Some(Effort::Minimal)));
}

#[test]
fn what_a_model_may_think_before_its_final_summary_is_kept_back() {
    let answers = |reasons| {
        let policy = limited(|policy| {
            (policy.budget.tokens, policy.agent.limits.turns_max) = (Some(10_000), 300);
            (policy.agent.model.reasons, policy.agent.model.output_tokens_max) = (reasons, 5_000);
        });
        let mut world = World::start(policy);
        turn(&mut world);
        world.cap()
    };
    // Half of the remainder is for the final summary's own request.
    assert_eq!(answers(false) - answers(true), 4_096 / 2);
}

#[test]
fn at_every_limit_the_agent_is_asked_how_far_it_has_come() {
    let rows = [
        (Dimension::Turns, turns(2)),
        (Dimension::Tokens, limited(|policy| policy.budget.tokens = Some(1_700))),
        (Dimension::Money, limited(|policy| policy.budget.money = Some(MicroDollars(1_700)))),
    ];
    for (dimension, policy) in rows {
        let mut world = at_its_limit(policy);
        assert_eq!(world.outcome(), None);
        world.say(" Half of it is done. ");
        assert_eq!(suspended_at(&world), Some(dimension));
        assert_eq!(text(&world), "Half of it is done.");
        let wrapped = final_summary(&world).expect("an entry");
        assert_eq!((wrapped.text.as_str(), wrapped.problem), ("Half of it is done.", None));
    }
}

#[test]
fn when_time_is_up_the_agent_is_asked_wherever_it_is() {
    let during: [(&str, Does); 4] = [
        ("a model call", |w| {
            w.tick();
            w.fail(ErrorClass::Aborted, None);
        }),
        ("a model call that comes back all the same", |w| {
            w.tick();
            w.call(&[("read", "{}")]);
        }),
        ("a tool", |w| {
            w.call(&[("shell", "{}")]);
            w.tick();
            w.finish_first("stopped");
        }),
        ("a wait", |w| {
            w.fail(ErrorClass::Overloaded, Some(8_999));
            w.advance(9_000);
            let (actor, seq, _) = w.timers()[0];
            assert_ne!(actor, ROOT.into());
            w.run_event(RunEvent::TimerFired { seq });
        }),
    ];
    for (what, reach) in during {
        let mut world = World::start(timed(10_000));
        turn(&mut world);
        reach(&mut world);
        assert!(world.calls_model_for(Purpose::FinalSummary), "{what}");
        world.say("that far");
        assert_eq!(suspended_at(&world), Some(Dimension::WallTime), "{what}");
        assert_eq!(text(&world), "that far");
    }
}

#[test]
fn when_time_is_up_while_a_summary_is_made_the_agent_is_asked_too() {
    let mut world = World::start(timed(10_000));
    world.usage = Usage::default();
    while !world.calls_model_for(Purpose::Summary) {
        let words = Block::Text("word ".repeat(700));
        world.answer(vec![words], StopReason::OutputCap);
        if world.calls_model_for(Purpose::Turn) {
            turn(&mut world);
        }
    }
    world.tick();
    world.fail(ErrorClass::Aborted, None);
    assert!(world.calls_model_for(Purpose::FinalSummary));
    world.say("that far");
    assert_eq!(suspended_at(&world), Some(Dimension::WallTime));
}

#[test]
fn the_last_tenth_of_the_time_is_for_final_summary_and_then_they_are_cut_short() {
    let mut world = World::start(timed(10_000));
    turn(&mut world);
    world.tick();
    world.fail(ErrorClass::Aborted, None);
    assert!(world.calls_model_for(Purpose::FinalSummary) && world.aborted.is_empty());
    world.tick();
    assert_eq!(world.aborted.len(), 1, "all time is over");
    world.fail(ErrorClass::Aborted, None);
    assert_eq!(suspended_at(&world), Some(Dimension::WallTime));
    assert_eq!(final_summary(&world).expect("an entry").text, "");
}

#[test]
fn final_summary_at_another_limit_are_not_cut_short_while_there_is_time_for_final_summary() {
    let mut policy = turns(1);
    policy.budget.wall_time_ms = Some(10_000);
    let mut world = at_its_limit(policy);
    world.tick();
    assert!(world.aborted.is_empty());
    world.tick();
    assert_eq!(world.aborted.len(), 1);
}

#[test]
fn a_run_of_days_keeps_a_minute_for_final_summary() {
    let day = 24 * 60 * 60 * 1_000;
    let world = World::start(timed(day));
    assert_eq!(world.timers()[0].2.0, crate::time::BEGIN.0 + day - 60_000);
}

#[test]
fn no_summary_is_asked_for_when_a_run_is_paused_or_cancelled() {
    for event in
        [RunEvent::Pause { agent: None, by: "me".into() }, RunEvent::Cancel { agent: None, by: "me".into() }]
    {
        let mut world = World::start(policy());
        turn(&mut world);
        world.run_event(event);
        world.fail(ErrorClass::Aborted, None);
        assert!(world.outcome().is_some());
        assert_eq!(final_summary(&world), None);
    }
}

#[test]
fn an_agent_that_has_not_answered_yet_has_nothing_to_say() {
    let mut world = World::start(timed(10_000));
    world.tick();
    world.fail(ErrorClass::Aborted, None);
    assert_eq!(suspended_at(&world), Some(Dimension::WallTime));
    assert_eq!(final_summary(&world), None);
    let world = World::start(limited(|policy| policy.budget.tokens = Some(100)));
    assert_eq!((suspended_at(&world), final_summary(&world)), (Some(Dimension::Tokens), None));
    let world = World::start(turns(0));
    assert_eq!((suspended_at(&world), final_summary(&world)), (Some(Dimension::Turns), None));
}

#[test]
fn an_agent_that_has_just_said_that_it_is_done_isn_t_asked_again() {
    let mut policy = policy();
    policy.budget.wall_time_ms = Some(10_000);
    let mut world = World::start(policy);
    world.say("done");
    world.tick();
    world.hook(StopHookVerdict::Error("cancelled".into()), "e");
    assert_eq!(suspended_at(&world), Some(Dimension::WallTime));
    assert_eq!((final_summary(&world), text(&world).as_str()), (None, "done"));
}

#[test]
fn an_agent_that_may_not_stop_at_its_last_turn_is_asked() {
    let mut policy = policy();
    policy.agent.limits.turns_max = 1;
    let mut world = World::start(policy);
    world.say("done");
    world.hook(StopHookVerdict::Block("a test fails".into()), "e");
    assert!(world.calls_model_for(Purpose::FinalSummary));
}

#[test]
fn final_summary_that_can_t_be_paid_for_are_done_without() {
    let mut world = World::start(limited(|policy| policy.budget.tokens = Some(1_700)));
    turn(&mut world);
    // Far more than was reserved.
    world.usage = Usage { input_tokens: 1_600, ..Usage::default() };
    turn(&mut world);
    assert_eq!(suspended_at(&world), Some(Dimension::Tokens));
    let wrapped = final_summary(&world).expect("an entry");
    assert_eq!((wrapped.text.as_str(), wrapped.call), ("", None));
    expect!["Token budget used up: 1,700 of 1,700"].assert_eq(&wrapped.problem.expect("a problem"));
}

#[test]
fn final_summary_that_fail_or_say_nothing_are_not_asked_for_again() {
    let rows: [(&str, Does, &str); 4] = [
        ("a failure", |w| w.fail(ErrorClass::Overloaded, None), "the provider is overloaded: its message"),
        ("nothing", |w| w.say(" \n"), "the model's answer was empty"),
        (
            "a call",
            |w| w.call(&[("read", "{}")]),
            "the model answered with a tool call instead of text, and none is made at a limit",
        ),
        (
            "too long",
            |w| w.fail(ErrorClass::ContextTooLong, None),
            "the request is longer than the model's window: its message",
        ),
    ];
    for (what, answer, problem) in rows {
        let mut world = at_its_limit(turns(1));
        answer(&mut world);
        assert_eq!(suspended_at(&world), Some(Dimension::Turns), "{what}");
        assert_eq!(final_summary(&world).expect("an entry").problem.as_deref(), Some(problem), "{what}");
        assert!(world.open.is_empty());
    }
}

#[test]
fn words_that_are_cut_off_or_refused_count_as_they_are() {
    for stop in [StopReason::OutputCap, StopReason::Refusal] {
        let mut world = at_its_limit(turns(1));
        world.answer(vec![Block::Text("I got as far as".into())], stop);
        assert_eq!(
            (suspended_at(&world), text(&world).as_str()),
            (Some(Dimension::Turns), "I got as far as")
        );
    }
}

#[test]
fn a_cancel_ends_final_summary() {
    let mut world = at_its_limit(turns(1));
    world.run_event(RunEvent::Cancel { agent: None, by: "me".into() });
    assert_eq!(world.aborted.len(), 1);
    world.fail(ErrorClass::Aborted, None);
    assert_eq!(world.outcome(), Some(Outcome::Cancelled { by: "me".into() }));
}

#[test]
fn after_a_crash_the_agent_is_asked_anew_and_no_more_than_thrice() {
    let mut world = at_its_limit(turns(1));
    world.read_back();
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert!(world.calls_model_for(Purpose::FinalSummary));
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert_eq!(suspended_at(&world), Some(Dimension::Turns), "a loop of crashes ends");
    let mut world = at_its_limit(turns(1));
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    world.say("that far");
    assert_eq!((suspended_at(&world), text(&world).as_str()), (Some(Dimension::Turns), "that far"));
}

#[test]
fn an_agent_that_goes_on_sees_nothing_of_it() {
    let mut world = at_its_limit(turns(1));
    world.say("secret words");
    resume(&mut world, Budget::default(), Some(3));
    assert!(world.calls_model_for(Purpose::Turn));
    let view = View::of(&world);
    assert!(view.has("the goal") && !view.has("secret words") && !view.has("reached a limit"));
    assert_eq!(text(&world), "", "they were said at a limit that is none any more");
    turn(&mut world);
    turn(&mut world);
    assert!(world.calls_model_for(Purpose::FinalSummary), "at the next limit it is asked again");
}

#[test]
fn what_final_summary_take_stays_inside_the_budget() {
    for limit in [1_500, 1_700, 2_000, 2_300, 3_100] {
        let mut world = World::start(limited(|policy| policy.budget.tokens = Some(limit)));
        while world.outcome().is_none() {
            // As much as allowed, each time.
            let cap = u64::from(world.cap());
            world.usage =
                Usage { input_tokens: world.request_tokens, output_tokens: cap, ..Usage::default() };
            if world.calls_model_for(Purpose::FinalSummary) {
                world.say("that far");
            } else {
                turn(&mut world);
            }
        }
        let charged = world.run_log().iter().map(|record| match &record.entry {
            Entry::Budget(BudgetEntry::Charged(charged)) => charged.usage.total(),
            _ => 0,
        });
        let charged = charged.sum::<u64>();
        assert!(charged <= limit, "{charged} of {limit}");
        assert_eq!(suspended_at(&world), Some(Dimension::Tokens));
    }
}

#[test]
fn calls_that_wait_for_approval_keep_their_place_behind_the_final_summary() {
    let mut policy = timed(10_000);
    policy.agent.permissions.ask = vec!["shell".to_owned()];
    let mut world = World::start(policy);
    turn(&mut world);
    world.call(&[("shell", "{}")]);
    world.tick();
    assert!(world.calls_model_for(Purpose::FinalSummary));
    // The answer may come meanwhile.
    world.resolve(ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None });
    assert!(world.tools().is_empty());
    world.say("that far");
    assert_eq!(suspended_at(&world), Some(Dimension::WallTime));
    let budget = Budget { wall_time_ms: Some(60_000), ..Budget::default() };
    resume(&mut world, budget, None);
    assert_eq!(world.tools().len(), 1, "it is made now");
}

#[test]
fn a_conversation_that_leaves_no_room_for_final_summary_is_shortened_for_them() {
    let mut policy = turns(1);
    policy.agent.model.window_tokens = Some(10_000);
    let mut world = World::start(policy);
    world.usage = Usage::default();
    world.call(&[("read", "{}"), ("read", "{\"b\":1}")]);
    world.finish_first(&"word ".repeat(5_000));
    world.finish_first(&"word ".repeat(5_000));
    assert!(world.calls_model_for(Purpose::FinalSummary));
    assert!(world.request_tokens < 9_000, "{}", world.request_tokens);
    // If hooks would have to be called first, it is skipped.
    let mut policy = guarded(&[At::PreCompact]);
    policy.agent.limits.turns_max = 1;
    let mut world = World::start(policy);
    world.usage = Usage::default();
    world.call(&[("read", "{}"), ("read", "{\"b\":1}")]);
    world.finish_first(&"word ".repeat(5_000));
    world.finish_first(&"word ".repeat(5_000));
    assert_eq!(suspended_at(&world), Some(Dimension::Turns));
    assert!(final_summary(&world).expect("an entry").problem.expect("a problem").contains("no room"));
}

#[test]
fn hooks_are_told_of_the_rest_with_the_final_summary() {
    let mut policy = guarded(&[At::Abort]);
    policy.agent.limits.turns_max = 1;
    let mut world = World::start(policy);
    turn(&mut world);
    world.say("that far");
    let (_, hook_call) = world.hook_calls().first().cloned().expect("a hook is asked");
    let provost_engine::HookCallDetails::Text { last_text, .. } = hook_call.details else {
        panic!("no text")
    };
    assert_eq!(last_text, "that far");
    world.answer_hook(Say::Continue);
    assert_eq!(suspended_at(&world), Some(Dimension::Turns));
}

#[test]
fn a_stepped_session_is_asked_too_and_waits_again_afterwards() {
    let mut policy = turns(1);
    policy.agent.step_mode = provost_event::StepMode::Stepped;
    let mut world = World::start(policy);
    world.session_event(SessionEvent::Proceed { turn: 1 });
    turn(&mut world);
    world.session_event(SessionEvent::Proceed { turn: 2 });
    assert!(world.calls_model_for(Purpose::FinalSummary));
    world.say("that far");
    assert_eq!(suspended_at(&world), Some(Dimension::Turns));
    resume(&mut world, Budget::default(), Some(2));
    assert_eq!(world.thinking(), None);
    world.session_event(SessionEvent::Proceed { turn: 2 });
    assert!(world.calls_model_for(Purpose::Turn));
}
