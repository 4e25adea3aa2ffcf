//! Model calls that an external agent's program makes itself: each is reserved, settled and recorded, whatever happens.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use provost_engine::{Actor, Effect, ExternalCallRequest, ExternalCallResult, RunEvent, SessionEvent};
use provost_event::{
    Budget, BudgetEntry, Certainty, Dimension, Entry, ErrorClass, Exit, ExternalCall, ExternalCallEnd,
    ExternalPolicy, Json, Metering, MicroDollars, ModelEntry, ModelPolicy, Outcome, Price, Purpose,
    RequestedTool, RunPolicy, Usage,
};

use crate::external::{external, started};
use crate::world::{RUN, World, without_hooks};

/// A dollar a million tokens, whichever.
const PRICE: Price = Price {
    input: MicroDollars(1_000_000),
    output: MicroDollars(1_000_000),
    cache_read: MicroDollars(1_000_000),
    cache_write: MicroDollars(1_000_000),
    long: None,
};

fn metered(budget: Budget) -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.external = Some(Box::new(ExternalPolicy { metering: Metering::Gateway, ..external() }));
    policy.agent.model = ModelPolicy::new("external/codex", 1);
    policy.budget = budget;
    policy
}

fn usd(micros: u64) -> Budget {
    Budget { money: Some(MicroDollars(micros)), ..Budget::default() }
}

impl World {
    fn program_calls(&mut self, request: &str, input_tokens: u64, output_tokens_max: u32) {
        let call = ExternalCall {
            purpose: Purpose::External,
            request: request.to_owned(),
            model: "openai/gpt".to_owned(),
            wire: "openai-chat".to_owned(),
            price: Some(PRICE),
            body: None,
        };
        let request = ExternalCallRequest { call, input_tokens, output_tokens_max };
        self.session_event(SessionEvent::ExternalCall(Box::new(request)));
    }

    fn program_hears(&mut self, request: &str, end: ExternalCallEnd, usage: Usage) {
        let result = ExternalCallResult { usage, ..ExternalCallResult::new(request.to_owned(), end) };
        self.session_event(SessionEvent::ExternalAnswered(Box::new(result)));
    }

    fn spent(&self) -> (u64, u64) {
        match self.actors.get(&RUN.into()) {
            Some(Actor::Run(run)) => {
                let tracker = run.ledger().run();
                (tracker.cost.0, tracker.cost_set_aside.0)
            }
            _ => (0, 0),
        }
    }

    fn end_program(&mut self) {
        if self.closing().is_some() {
            self.close(Some(Exit::Code(0)));
        }
    }

    fn go_on(&mut self, budget: Budget) {
        let by = "a person".to_owned();
        self.run_event(RunEvent::Resume { agent: None, by, budget, turns_max: None, text: None });
    }
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}

/// A run with every kind of entry about a program's calls.
pub(crate) fn eventful() -> World {
    let mut world = World::start(metered(usd(2_000)));
    world.note(started());
    world.program_calls("a", 1_000, 900);
    world.program_calls("b", 1_000, 900);
    let input = Json::parse(r#"{"command":"make"}"#.to_owned()).unwrap_or_else(|_| Json::empty_object());
    let tools = vec![RequestedTool { name: "shell".to_owned(), input }];
    let result = ExternalCallResult {
        usage: tokens(1_000, 200),
        status: Some(200),
        request_id: Some("req_1".to_owned()),
        duration_ms: 1_200,
        tools,
        ..ExternalCallResult::new("a".to_owned(), ExternalCallEnd::Answered)
    };
    world.session_event(SessionEvent::ExternalAnswered(Box::new(result)));
    world.say("The budget is used up.");
    world.end_program();
    world.go_on(usd(20_000));
    world.note(started());
    world.program_calls("c", 1_000, 900);
    let message = "overloaded".to_owned();
    let end = ExternalCallEnd::Failed { class: ErrorClass::Overloaded, message };
    world.program_hears("c", end, Usage::default());
    world.say("It is made.");
    world.end_program();
    world
}

fn check(budget: Budget, script: impl FnOnce(&mut World), expected: Expect) {
    let mut world = World::start(metered(budget));
    world.note(started());
    script(&mut world);
    expected.assert_eq(&world.news());
}

#[test]
fn several_calls_of_a_program_may_be_open_at_once_and_each_is_charged_once() {
    let mut world = World::start(metered(usd(10_000)));
    world.note(started());
    world.program_calls("a", 1_000, 500);
    world.program_calls("b", 2_000, 500);
    assert_eq!(world.spent(), (0, 4_000));
    world.program_hears("b", ExternalCallEnd::Answered, tokens(1_500, 100));
    world.program_hears("b", ExternalCallEnd::Answered, tokens(1_500, 100));
    assert_eq!(world.spent(), (1_600, 1_500));
    world.program_hears(
        "a",
        ExternalCallEnd::Aborted,
        Usage { certainty: Certainty::Estimated, ..tokens(900, 10) },
    );
    assert_eq!(world.spent(), (2_510, 0));
    world.usage = tokens(7_000, 7_000);
    world.say("It is made.");
    assert_eq!(world.spent(), (2_510, 0), "what the program tells of its calls was charged already");
}

#[test]
fn a_call_gets_the_cap_that_the_budget_leaves() {
    check(
        usd(2_000),
        |w| {
            w.program_calls("a", 1_000, 8_000);
            w.program_hears("a", ExternalCallEnd::Answered, tokens(1_000, 200));
            w.program_calls("b", 100, 8_000);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            terminal_noted started as process 7: codex
            external_model_called 1 of a cap 500
            external_model_answered 1 Answered: 1200 tokens, Reported
            external_model_called 2 of b cap 350
              → #2 call model (turn 1, cap 1)
        "#]],
    );
}

#[test]
fn a_program_without_budget_shows_that_and_is_suspended_and_a_resume_goes_on() {
    check(
        usd(2_000),
        |w| {
            w.program_calls("a", 1_000, 900);
            w.program_calls("b", 1_000, 900);
            w.program_hears("a", ExternalCallEnd::Answered, tokens(1_000, 200));
            w.program_calls("c", 1, 1);
            w.say("The budget is used up.");
            w.end_program();
            w.go_on(usd(20_000));
            w.program_calls("d", 1_000, 900);
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            terminal_noted started as process 7: codex
            external_model_called 1 of a cap 500
            external_model_queued b
            external_model_answered 1 Answered: 1200 tokens, Reported
            external_model_refused b: Some(Money)
            retry Interrupted in 0 ms
            terminal_ending
            terminal_noted ended (exit status 0)
            terminal_noted exited
            paused: Money budget too small to go on: $0.0012 of $0.0020 used; the next call needs about $0.0013; $0.0008 is left
            resumed
            model_called turn 1 call 2 attempt 1
            external_model_called 2 of d cap 900
              → #14 call model (turn 1, cap 1)
        "#]],
    );
}

#[test]
fn a_program_that_does_not_end_its_exchange_is_stopped_after_five_seconds() {
    let mut world = World::start(metered(usd(100)));
    world.note(started());
    world.program_calls("a", 1_000, 900);
    assert!(world.aborted.is_empty(), "it may show that first");
    world.tick();
    assert_eq!(world.aborted.len(), 1, "the exchange is aborted");
    world.fail(ErrorClass::Aborted, None);
    world.end_program();
    let outcome = world.outcome();
    let Some(Outcome::BudgetExhausted(exhausted)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(exhausted.dimension, Dimension::Money);
    assert!(world.open.is_empty(), "{:?}", world.open);
}

#[test]
fn a_call_waits_while_others_of_its_program_have_reserved_what_is_left() {
    check(
        usd(3_000),
        |w| {
            w.program_calls("a", 1_000, 8_000);
            w.program_calls("b", 1_000, 8_000);
            w.program_calls("c", 500, 300);
            w.program_hears("a", ExternalCallEnd::Answered, tokens(500, 100));
        },
        expect![[r#"
            session_started
            model_called turn 1 call 1 attempt 1
            terminal_noted started as process 7: codex
            external_model_called 1 of a cap 1000
            external_model_queued b
            external_model_called 2 of c cap 256
            external_model_answered 1 Answered: 600 tokens, Reported
            external_model_called 3 of b cap 322
              → #2 call model (turn 1, cap 1)
        "#]],
    );
}

#[test]
fn a_model_without_a_price_is_refused_where_money_is_limited_and_the_program_may_go_on() {
    let mut world = World::start(metered(usd(10_000)));
    world.note(started());
    let call = ExternalCall {
        purpose: Purpose::External,
        request: "a".to_owned(),
        model: "openai/unknown".to_owned(),
        wire: "openai-chat".to_owned(),
        price: None,
        body: None,
    };
    let request = ExternalCallRequest { call, input_tokens: 1, output_tokens_max: 1 };
    world.session_event(SessionEvent::ExternalCall(Box::new(request)));
    world.program_calls("b", 100, 100);
    let kinds = world.session_log().iter().map(|record| record.entry.kind()).collect::<Vec<_>>();
    assert!(kinds.ends_with(&["external_model_refused", "external_model_called"]), "{kinds:?}");
}

#[test]
fn a_crash_leaves_open_calls_unconfirmed_and_they_stay_counted() {
    let mut world = World::start(metered(usd(10_000)));
    world.note(started());
    world.program_calls("a", 1_000, 500);
    world.run_event(RunEvent::Recover { fresh: Vec::new() });
    assert_eq!(world.spent(), (1_500, 0));
    world.program_hears("a", ExternalCallEnd::Answered, tokens(1, 1));
    assert_eq!(world.spent(), (1_500, 0), "a late answer counts no more");
    let Some(Actor::Run(run)) = world.actors.get(&RUN.into()) else { panic!("there is no run") };
    assert_eq!(run.ledger().unconfirmed.cost, MicroDollars(1_500));
}

#[test]
fn a_stopped_session_and_a_program_that_is_not_metered_make_no_calls() {
    let mut world = World::start(metered(Budget::default()));
    world.note(started());
    world.run_event(RunEvent::Pause { agent: None, by: "a person".to_owned() });
    world.program_calls("a", 1, 1);
    assert_eq!(world.spent(), (0, 0));
    let mut policy = metered(Budget::default());
    policy.agent.external = Some(Box::new(external()));
    let mut world = World::start(policy);
    world.program_calls("a", 1, 1);
    assert_eq!(world.spent(), (0, 0));
}

/// A step of a random run.
#[derive(Debug, Clone)]
enum Step {
    Call { input: u64, output: u32 },
    Hear { which: usize, percent: u64, end: ExternalCallEnd },
    Recover,
    Pause,
    Say,
    Tick,
    GoOn { more: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = prop_oneof![Just(ExternalCallEnd::Answered), Just(ExternalCallEnd::Aborted)];
    let step = prop_oneof![
        6 => (1..2_000_u64, 1..2_000_u32).prop_map(|(input, output)| Step::Call { input, output }),
        5 => (any::<prop::sample::Index>(), 0..=100_u64, end)
            .prop_map(|(which, percent, end)| Step::Hear { which: which.index(4), percent, end }),
        1 => Just(Step::Recover),
        1 => Just(Step::Pause),
        1 => Just(Step::Say),
        1 => Just(Step::Tick),
        2 => (1..5_000_u64).prop_map(|more| Step::GoOn { more }),
    ];
    prop::collection::vec(step, 0..40)
}

/// What a naive observer knows of a run.
#[derive(Default)]
struct Naive {
    limit: u64,
    asked: u32,
}

impl Naive {
    fn apply(&mut self, world: &mut World, step: &Step) {
        match step {
            Step::Call { input, output } => {
                self.asked += 1;
                world.program_calls(&format!("r{}", self.asked), *input, *output);
            }
            Step::Hear { which, percent, end } => {
                let open = open_calls(world);
                let Some((request, cap)) = open.get(*which).cloned() else { return };
                let output = u64::from(cap) * percent / 100;
                world.program_hears(&request, end.clone(), tokens(1, output));
            }
            Step::Recover => world.run_event(RunEvent::Recover { fresh: Vec::new() }),
            Step::Pause => {
                world.run_event(RunEvent::Pause { agent: None, by: "a person".to_owned() });
                if world.thinking().is_some() {
                    world.fail(ErrorClass::Aborted, None);
                }
            }
            Step::Say if world.thinking().is_some() => world.say("Done."),
            Step::Say => {}
            Step::Tick => world.tick(),
            Step::GoOn { more } => {
                self.limit = self.limit.max(*more);
                world.go_on(usd(self.limit));
            }
        }
        if world.thinking().is_some_and(|seq| world.aborted.iter().any(|(_, aborted)| *aborted == seq)) {
            world.fail(ErrorClass::Aborted, None);
        }
        world.end_program();
    }
}

/// The open calls with their caps.
fn open_calls(world: &World) -> Vec<(String, u32)> {
    let mut open = Vec::new();
    for record in world.session_log() {
        match &record.entry {
            Entry::Model(ModelEntry::ExternalCalled(called)) => {
                open.push((called.of.request.clone(), called.output_tokens_max));
            }
            Entry::Model(ModelEntry::ExternalAnswered(answered)) => {
                open.retain(|(request, _)| *request != answered.request);
            }
            _ => {}
        }
    }
    open
}

proptest! {
    #[test]
    fn laws_of_a_program_s_calls(all in steps()) {
        let mut world = World::start(metered(usd(3_000)));
        world.note(started());
        let mut naive = Naive { limit: 3_000, asked: 0 };
        for step in &all {
            naive.apply(&mut world, step);
            let (spent, reserved) = world.spent();
            // The provider's counts never exceed what was reserved here.
            prop_assert!(spent + reserved <= naive.limit, "{spent} and {reserved} of {}", naive.limit);
        }
        world.run_event(RunEvent::Cancel { agent: None, by: "a person".to_owned() });
        if world.thinking().is_some() {
            world.fail(ErrorClass::Aborted, None);
        }
        world.end_program();
        prop_assert!(open_calls(&world).is_empty(), "each call is over, once");
        prop_assert_eq!(world.spent().1, 0, "nothing stays reserved");
        let is_called = |entry: &Entry| matches!(entry, Entry::Model(ModelEntry::ExternalCalled(_)));
        let called = world.session_log().iter().filter(|record| is_called(&record.entry)).count();
        let is_charged = |entry: &Entry| {
            matches!(entry, Entry::Budget(BudgetEntry::Charged(charged))
                if charged.purpose == provost_event::Purpose::External)
        };
        let charged = world.run_log().iter().filter(|record| is_charged(&record.entry)).count();
        prop_assert_eq!(called, charged, "each call is charged once");
        let has_timer = world.open.values().any(|effect| matches!(effect, Effect::Timer { .. }));
        prop_assert!(!has_timer, "no timer is left");
    }
}
