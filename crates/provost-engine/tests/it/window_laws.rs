//! Any history in any window that isn't too small: every request fits, and the required content stays in it.

use proptest::prelude::*;
use provost_engine::{RunEvent, tokens_of};
use provost_event::{
    BlobId, Block, CompactionKind, ConversationEntry, Entry, ErrorClass, Image, ImageKind, Json, Outcome,
    Purpose, RunPolicy, StopReason, ToolCall, ToolStatus, Usage,
};

use crate::laws::cases;
use crate::view::View;
use crate::world::{World, without_hooks};

/// A text of about this number of tokens, of one of several shapes.
fn text(shape: u8, tokens: usize) -> String {
    let piece = ["word ", "a1", "こ", "{\"k\": 7},\n", "    \n"][usize::from(shape) % 5];
    let times = tokens / usize::try_from(tokens_of(piece)).expect("small").max(1);
    piece.repeat(times)
}

#[derive(Debug, Clone)]
enum Op {
    /// Parallel calls, with results of this percentage of the room, and text of the agent before them.
    Calls {
        sizes: Vec<usize>,
        said: usize,
        same: bool,
        picture: bool,
        fails: bool,
        shape: u8,
    },
    Remember(usize),
    Say(usize, u8),
    Fail(ErrorClass),
    Empty,
    Crash,
    Snapshot,
}

fn op() -> impl Strategy<Value = Op> {
    let size = || prop_oneof![4 => 0..12_usize, 2 => 5..40_usize, 1 => 20..150_usize];
    let calls = (
        proptest::collection::vec(size(), 1..5),
        prop_oneof![4 => 0..3_usize, 1 => 0..30_usize],
        (any::<bool>(), proptest::bool::weighted(0.2), proptest::bool::weighted(0.2)),
        any::<u8>(),
    );
    let classes = vec![ErrorClass::ContextTooLong, ErrorClass::Server, ErrorClass::Cut];
    prop_oneof![
        12 => calls.prop_map(|(sizes, said, (same, picture, fails), shape)| {
            Op::Calls { sizes, said, same, picture, fails, shape }
        }),
        1 => (0..60_usize).prop_map(Op::Remember),
        1 => (0..150_usize, any::<u8>()).prop_map(|(size, shape)| Op::Say(size, shape)),
        1 => proptest::sample::select(classes).prop_map(Op::Fail),
        1 => Just(Op::Empty),
        1 => Just(Op::Crash),
        1 => Just(Op::Snapshot),
    ]
}

/// The model's answer to the request for a summary.
#[derive(Debug, Clone, Copy)]
enum Summary {
    Good,
    Empty,
    Cut,
    Calls,
    Fails,
    TooLong,
    Long,
}

struct Driver {
    world: World,
    room: usize,
    /// The providers' reports, in percent of the request.
    report: u64,
    summaries: Vec<Summary>,
    summed_up: usize,
    view: View,
    viewed: usize,
}

impl Driver {
    fn new(policy: RunPolicy, report: u64, summaries: Vec<Summary>) -> Self {
        let room = crate::log_laws::room(&policy.agent).expect("a window");
        let room = usize::try_from(room).expect("small");
        Self {
            world: World::start(policy),
            room,
            report,
            summaries,
            summed_up: 0,
            view: View::default(),
            viewed: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.world.outcome().is_some()
    }

    fn look(&mut self) {
        let log = self.world.session_log();
        log[self.viewed..].iter().for_each(|record| self.view.fold(record));
        self.viewed = log.len();
    }

    /// The report on a request.
    fn report(&mut self) {
        let input_tokens = self.view.tokens() * self.report / 100;
        self.world.usage = Usage { input_tokens, output_tokens: input_tokens.min(10), ..Usage::default() };
    }

    /// Plays until the model is called for a turn.
    fn settle(&mut self) {
        while !self.is_over() && !self.world.calls_model_for(Purpose::Turn) {
            if self.world.thinking().is_none() {
                self.world.tick();
                continue;
            }
            let how = self.summaries[self.summed_up % self.summaries.len()];
            self.summed_up += 1;
            match how {
                Summary::Good => self.world.say("It is half done."),
                Summary::Empty => self.world.say(" "),
                Summary::Cut => self.world.answer(vec![Block::Text("So".into())], StopReason::OutputCap),
                Summary::Calls => self.world.call(&[("read", "{}")]),
                Summary::Fails => self.world.fail(ErrorClass::InvalidRequest, None),
                Summary::TooLong => self.world.fail(ErrorClass::ContextTooLong, None),
                Summary::Long => self.world.say(&"word ".repeat(self.room)),
            }
        }
        self.look();
        if self.report == 0 && !self.is_over() {
            let (found, sent) = (self.world.request_tokens, self.view.tokens());
            assert!(found.abs_diff(sent) <= 20, "{found} is {sent}");
        }
    }

    fn apply(&mut self, op: &Op) {
        self.settle();
        if self.is_over() {
            return;
        }
        assert!(self.view.has("the goal"));
        self.report();
        let part = |size: &usize| size * self.room / 100;
        match op {
            Op::Calls { sizes, said, same, picture, fails, shape } => {
                let at = self.world.session_log().len();
                let call = |place: usize| {
                    let of = if *same { 0 } else { at };
                    Block::ToolCall(ToolCall {
                        id: format!("{at}-{place}").as_str().into(),
                        name: "read".to_owned(),
                        input: Json::parse(format!("{{\"of\":{of},\"place\":{place}}}")).expect("JSON"),
                        malformed: None,
                    })
                };
                let mut content = vec![Block::Text(text(*shape, part(said)))];
                content.extend((0..sizes.len()).map(call));
                self.world.answer(content, StopReason::ToolUse);
                for size in sizes {
                    let Some((seq, _)) = self.world.tools().first().cloned() else { break };
                    let status = if *fails { ToolStatus::Error } else { ToolStatus::Ok };
                    let image = Image { kind: ImageKind::Png, blob: BlobId("p".into()), bytes: 100 };
                    let images = if *picture { vec![image] } else { Vec::new() };
                    // A part that differs from result to result.
                    let output = format!("{at} {}", text(*shape, part(size)));
                    self.world.finish_with(seq, status, &output, images);
                }
            }
            Op::Remember(size) => {
                self.world.call(&[("read", "{}")]);
                let seq = self.world.tools()[0].0;
                let memory = format!("{{\"plan\":{:?}}}", text(0, part(size)));
                self.world.finish_remembering(seq, &memory);
            }
            Op::Say(size, shape) => {
                let text = text(*shape, part(size));
                self.world.run_event(RunEvent::Say { agent: 0, text, by: "a person".into() });
            }
            // A provider doesn't refuse a request that is far below its room as too long.
            Op::Fail(ErrorClass::ContextTooLong)
                if self.world.request_tokens * 100 < self.room as u64 * 90 => {}
            Op::Fail(class) => self.world.fail(*class, None),
            Op::Empty => self.world.answer(vec![], StopReason::EndTurn),
            Op::Crash => {
                self.world.read_back();
                self.world.run_event(RunEvent::Recover { fresh: Vec::new() });
            }
            Op::Snapshot => self.world.take_snapshot(crate::world::ROOT.into()),
        }
    }
}

fn policy(room: u64, prompt: usize) -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.system_prompt = "word ".repeat(prompt);
    policy.agent.model.window_tokens = Some(room + 1_000);
    let limits = &mut policy.agent.limits;
    (limits.turns_max, limits.failed_turns_max, limits.repeated_call_max) = (10_000, 10_000, 10_000);
    (limits.failed_turns_notice_at, limits.stuck_turns) = (10_000, 0);
    (limits.repeated_call_notice_at, limits.interruptions_max) = (10_000, 10_000);
    limits.model_patience_ms = u64::MAX;
    limits.empty_answers_max = 10_000;
    policy
}

fn played(policy: RunPolicy, report: u64, summaries: &[Summary], ops: &[Op]) -> World {
    let mut driver = Driver::new(policy, report, summaries.to_vec());
    ops.iter().for_each(|op| driver.apply(op));
    driver.settle();
    driver.world
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn every_request_fits_the_window_and_the_same_history_is_shortened_the_same(
        ops in proptest::collection::vec(op(), 1..40),
        (factor, more) in (0..15_u64, 0..3_000_u64),
        prompt in 0..1_500_usize,
        report in prop_oneof![2 => Just(0_u64), 1 => Just(100), 1 => 40..250_u64],
        summaries in proptest::collection::vec(
            proptest::sample::select(&[
                Summary::Good, Summary::Good, Summary::Good, Summary::Empty, Summary::Cut, Summary::Calls,
                Summary::Fails, Summary::TooLong, Summary::Long,
            ][..]), 1..5),
    ) {
        // The smallest room that is documented as sufficient, by the providers' counts.
        let fixed = (prompt as u64 + 60) * report.max(100) / 100;
        let room = (fixed * 3 + 400 * report.max(100) / 100 + more).max(2_500) * (10 + factor) / 10;
        let policy = policy(room, prompt);
        let world = played(policy.clone(), report, &summaries, &ops);
        // The laws of the log have checked each request's size.
        if let Some(Outcome::Paused { why: provost_event::PauseReason::Model(trouble) }) = world.outcome() {
            let (class, message) = (trouble.class, &trouble.message);
            let is_refused_twice = class == ErrorClass::ContextTooLong && message.starts_with("its message");
            prop_assert!(is_refused_twice, "{class:?}: {message}");
        }
        let emergencies = |world: &World| {
            let entries = world.session_log().iter().map(|record| record.entry.clone());
            entries.filter(|entry| {
                matches!(entry, Entry::Conversation(ConversationEntry::Compacted(it)) if it.how == CompactionKind::Emergency)
            }).collect::<Vec<_>>()
        };
        let again = played(policy, report, &summaries, &ops);
        prop_assert_eq!(emergencies(&world), emergencies(&again));
    }
}
