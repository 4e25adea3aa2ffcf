//! A model that doesn't answer: patience, suspension, waiting without a person at the terminal, fallbacks.

use provost_engine::{Effect, RunEvent};
use provost_event::{
    Budget, BudgetEntry, Certainty, Entry, ErrorClass, ModelChange, ModelEntry, ModelFailure, ModelPolicy,
    Outcome, PauseReason, RunPolicy, TroubleCause, Usage,
};

use crate::world::{World, without_hooks};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// A policy without a person at the terminal.
fn unattended() -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.limits.outage_max_ms = 8 * HOUR_MS;
    policy.budget = Budget { wall_time_ms: Some(HOUR_MS / 2), ..Budget::default() };
    policy
}

fn cause(world: &World) -> Option<TroubleCause> {
    match world.outcome() {
        Some(Outcome::Paused { why: PauseReason::Model(trouble) }) => Some(trouble.cause()),
        _ => None,
    }
}

/// Fails until `ms` have passed or the run is suspended; returns how long it took.
fn down(world: &mut World, class: ErrorClass, ms: u64) -> u64 {
    let began = world.now;
    while world.thinking().is_some() && world.now.since_ms(began) < ms {
        world.fail(class, None);
        if world.outcome().is_none() {
            world.tick();
        }
    }
    world.now.since_ms(began)
}

fn asked(world: &World) -> String {
    let models = world.open.values().filter_map(|effect| match effect {
        Effect::CallModel(model_call) => Some(model_call.model.clone()),
        _ => None,
    });
    models.collect()
}

fn resume(world: &mut World) {
    world.run_event(RunEvent::Resume {
        agent: None,
        by: "me".to_owned(),
        budget: Budget::default(),
        turns_max: None,
        text: None,
    });
}

#[test]
fn a_provider_that_is_down_is_tried_again_for_fifteen_minutes_and_then_the_run_is_suspended_until_a_resume() {
    for class in [ErrorClass::Transport, ErrorClass::RateLimited, ErrorClass::Overloaded, ErrorClass::Silent]
    {
        let mut world = World::start(without_hooks());
        let lasted = down(&mut world, class, 8 * HOUR_MS);
        assert!((13 * MINUTE_MS..=15 * MINUTE_MS).contains(&lasted), "{class:?}: {lasted}");
        assert_eq!(cause(&world), Some(TroubleCause::Provider));
        resume(&mut world);
        world.say("done");
        assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
    }
}

#[test]
fn a_wait_that_is_longer_than_patience_is_named() {
    let mut world = World::start(without_hooks());
    world.fail(ErrorClass::RateLimited, Some(3 * HOUR_MS + MINUTE_MS / 2));
    let outcome = world.outcome().expect("it is suspended").to_string();
    assert!(outcome.contains("its message (asks to wait 3 h 1 min)"), "{outcome}");
}

#[test]
fn in_unattended_runs_an_hour_without_a_provider_is_waited_out_and_is_no_worked_time() {
    let mut world = World::start(unattended());
    let lasted = down(&mut world, ErrorClass::Transport, HOUR_MS);
    assert!((HOUR_MS..HOUR_MS + 6 * MINUTE_MS).contains(&lasted), "{lasted}");
    let suspended = |entry: &Entry| matches!(entry, Entry::Model(ModelEntry::ProviderAwaited(awaited)) if awaited.suspended);
    assert!(world.run_log().iter().any(|record| suspended(&record.entry)), "the list shows that it waits");
    world.say("done");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{:?}", world.outcome());
}

#[test]
fn an_outage_is_waited_out_for_so_long_and_no_longer_and_a_crash_amid_it_loses_nothing() {
    let mut world = World::start(unattended());
    down(&mut world, ErrorClass::Server, HOUR_MS);
    world.fail(ErrorClass::Server, None);
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert!(world.thinking().is_some(), "it is tried again at once");
    let lasted = down(&mut world, ErrorClass::Server, 24 * HOUR_MS);
    assert!((7 * HOUR_MS..8 * HOUR_MS).contains(&lasted), "{lasted}");
    assert_eq!(cause(&world), Some(TroubleCause::Provider));
    resume(&mut world);
    world.say("done");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })));
}

#[test]
fn what_waiting_doesnt_help_suspends_at_once_wherever_it_runs() {
    for (class, expected) in [
        (ErrorClass::Unauthorized, TroubleCause::Key),
        (ErrorClass::Forbidden, TroubleCause::Key),
        (ErrorClass::QuotaUsedUp, TroubleCause::Quota),
        (ErrorClass::NotFound, TroubleCause::ModelUnknown),
        (ErrorClass::InvalidRequest, TroubleCause::Request),
    ] {
        let mut world = World::start(unattended());
        world.fail(class, None);
        assert_eq!(cause(&world), Some(expected));
        resume(&mut world);
        world.say("done");
        assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })), "{class:?}");
    }
}

#[test]
fn a_quota_that_is_renewed_at_a_named_time_is_waited_for_in_unattended_runs() {
    let mut world = World::start(unattended());
    world.fail(ErrorClass::QuotaUsedUp, Some(2 * HOUR_MS));
    assert_eq!(world.outcome(), None);
    let began = world.now;
    world.tick();
    assert_eq!(world.now.since_ms(began), 2 * HOUR_MS);
    world.say("done");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })));
}

#[test]
fn another_model_stands_in_and_the_first_is_asked_again_after_a_resume() {
    let mut policy = without_hooks();
    let first = policy.agent.model.name.clone();
    policy.agent.model.fallbacks = vec![ModelPolicy::new("other/model", 500)];
    let mut world = World::start(policy);
    assert_eq!(asked(&world), first);
    world.fail(ErrorClass::Unauthorized, None);
    assert_eq!(asked(&world), "other/model");
    world.fail(ErrorClass::NotFound, None);
    assert_eq!(cause(&world), Some(TroubleCause::ModelUnknown), "none is left");
    let charged = world.run_log().iter().filter_map(|record| match &record.entry {
        Entry::Budget(BudgetEntry::Charged(charged)) => {
            Some((charged.model.as_str(), charged.cost.is_some()))
        }
        _ => None,
    });
    assert_eq!(
        charged.collect::<Vec<_>>(),
        [(first.as_str(), true), ("other/model", true)],
        "a call that took nothing costs nothing, also without a price"
    );
    resume(&mut world);
    assert_eq!(asked(&world), first);
}

#[test]
fn a_model_that_is_named_is_asked_from_there_on() {
    let mut world = World::start(without_hooks());
    world.fail(ErrorClass::Unauthorized, None);
    let model = Some(Box::new(ModelPolicy::new("other/model", 500)));
    world.run_event(RunEvent::Retune { model, outage_max_ms: None, by: "me".to_owned() });
    resume(&mut world);
    assert_eq!(asked(&world), "other/model");
    let shown = world.session_log().iter().any(|record| {
        matches!(&record.entry, Entry::Model(ModelEntry::Changed(changed)) if changed.why == ModelChange::Asked { by: "me".to_owned() })
    });
    assert!(shown, "the log says so");
    world.say("done");
    assert!(matches!(world.outcome(), Some(Outcome::Completed { .. })));
}

#[test]
fn after_two_calls_without_any_event_the_third_may_be_silent_three_times_as_long() {
    let mut world = World::start(without_hooks());
    let mut patience = Vec::new();
    for class in [ErrorClass::Silent, ErrorClass::Silent, ErrorClass::Cut, ErrorClass::Silent] {
        patience.extend(world.open.values().filter_map(|effect| match effect {
            Effect::CallModel(model_call) => Some(model_call.patience),
            _ => None,
        }));
        world.fail(class, None);
        world.tick();
    }
    assert_eq!(patience, [1, 1, 3, 1]);
}

/// The tokens that calls were charged with, one number for each.
fn charged_tokens(world: &World) -> Vec<u64> {
    let charged = world.run_log().iter().filter_map(|record| match &record.entry {
        Entry::Budget(BudgetEntry::Charged(charged)) => Some(charged.usage.total()),
        _ => None,
    });
    charged.collect()
}

#[test]
fn connections_that_break_before_an_answer_are_charged_once_an_outage_and_model() {
    let mut policy = without_hooks();
    let fallback = ModelPolicy { name: "fallback".to_owned(), ..policy.agent.model.clone() };
    policy.agent.model.fallbacks.push(fallback);
    let mut world = World::start(policy);
    let breaks = |world: &mut World, class| {
        let usage = Usage { input_tokens: 700, certainty: Certainty::Estimated, ..Usage::default() };
        world.fail_with(ModelFailure { usage, ..ModelFailure::new(class, "its message") });
        world.tick();
    };
    for class in [ErrorClass::Transport, ErrorClass::Transport, ErrorClass::Cut, ErrorClass::Transport] {
        breaks(&mut world, class);
    }
    assert_eq!(charged_tokens(&world), [700, 0, 700, 0], "an answer that was cut is charged each time");
    while asked(&world) != "fallback" {
        breaks(&mut world, ErrorClass::Transport);
    }
    breaks(&mut world, ErrorClass::Transport);
    breaks(&mut world, ErrorClass::Transport);
    let charged = charged_tokens(&world);
    assert_eq!((charged.iter().sum::<u64>(), &charged[charged.len() - 2..]), (2_100, &[700, 0][..]));
    world.call(&[("read", "{}")]);
    world.finish_first("text");
    breaks(&mut world, ErrorClass::Transport);
    assert_eq!(charged_tokens(&world).last(), Some(&700), "after an answer it's another call");
}

#[test]
fn a_call_that_is_lost_to_a_crash_counts_with_what_was_set_aside_for_it() {
    let mut world = World::start(without_hooks());
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    let charged = world.run_log().iter().find_map(|record| match &record.entry {
        Entry::Budget(BudgetEntry::Charged(charged)) => Some(charged.clone()),
        _ => None,
    });
    let charged = charged.expect("it is charged");
    assert_eq!(charged.usage.certainty, Certainty::Unconfirmed);
    assert!(charged.usage.total() > 1_000 && charged.cost.is_some_and(|cost| cost.0 > 0), "{charged:?}");
}
