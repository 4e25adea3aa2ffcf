//! Any history in any window that isn't tiny: providers accept every request.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fastrand::Rng;
use proptest::prelude::*;
use provost_engine::{Answer, CallModel, Effect, SessionEvent, ToolResult, ToolRun, tokens_of};
use provost_event::{
    BlobId, Block, CallId, CompactionKind, ConversationEntry, Entry, ErrorClass, Image, ImageKind, Json,
    LifecycleEntry, Limits, ModelFailure, Outcome, Purpose, RunPolicy, Seq, StopReason, ToolCall, ToolStatus,
    Usage,
};
use provost_harness::{ImageData, Message, Part, Role, Transcript};

use super::long_desk::SessionFixture;
use super::long_laws::{fault_of, is_said};
use super::long_stage::policy;
use super::long_texts::{KINDS, filled};

const GOAL: &str = "Whatever comes, keep to the goal.";
/// The windows of the histories; an answer may use an eighth of one.
const WINDOWS: std::ops::Range<u64> = 4_000..20_000;
/// The maximum result of a tool with small results.
const LITTLE_BYTES: usize = 200;

/// One answer of the model, and its effects.
#[derive(Debug, Clone)]
struct Turn {
    trouble: Trouble,
    thinks: bool,
    /// Bytes of text.
    words: usize,
    calls: Vec<Call>,
    /// Bytes of a message during the model call, and during the tool calls.
    said: (Option<usize>, Option<usize>),
}

/// What happens before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    Fails(ErrorClass),
    IsEmpty,
    IsCutOff,
    TooLong,
}

#[derive(Debug, Clone)]
struct Call {
    does: Does,
    kind: u8,
    bytes: usize,
    status: ToolStatus,
    pictures: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Look,
    LookAgain,
    Write,
    Plan,
}

/// The answer to a summary request.
#[derive(Debug, Clone, Copy)]
enum Summary {
    Good(usize),
    Empty,
    CallsTool,
    CutOff,
    Refusal,
    Fails(ErrorClass),
}

#[derive(Debug, Clone)]
struct History {
    window: u64,
    /// The provider's report as a percentage of the engine's own estimate.
    reported_percent: u64,
    sees: bool,
    /// Tools have small results, so that the model's answers are most of the conversation.
    talks: bool,
    turns: Vec<Turn>,
    summaries: Vec<Summary>,
}

fn history() -> impl Strategy<Value = History> {
    let reported = prop_oneof![3 => Just(0_u64), 2 => Just(100), 2 => 30_u64..300];
    let summaries = proptest::collection::vec(summary(), 1..6);
    let turns = proptest::collection::vec(turn(), 1..50);
    let flags = (any::<bool>(), any::<bool>());
    (WINDOWS, reported, flags, turns, summaries).prop_map(
        |(window, reported_percent, (sees, talks), turns, summaries)| History {
            window,
            reported_percent,
            sees,
            talks,
            turns,
            summaries,
        },
    )
}

fn turn() -> impl Strategy<Value = Turn> {
    let said = || prop_oneof![9 => Just(None), 1 => (1_usize..3_000).prop_map(Some)];
    let words = prop_oneof![2 => Just(0_usize), 3 => 1_usize..600, 3 => 600_usize..8_000];
    let calls = prop_oneof![4 => proptest::collection::vec(call(), 1..2), 2 => proptest::collection::vec(call(), 1..7)];
    (trouble(), any::<bool>(), words, calls, (said(), said()))
        .prop_map(|(trouble, thinks, words, calls, said)| Turn { trouble, thinks, words, calls, said })
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        20 => Just(Trouble::None),
        1 => Just(Trouble::Fails(ErrorClass::Overloaded)),
        1 => Just(Trouble::Fails(ErrorClass::Cut)),
        1 => Just(Trouble::IsEmpty),
        1 => Just(Trouble::IsCutOff),
        2 => Just(Trouble::TooLong),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let does = prop_oneof![
        6 => Just(Does::Look), 2 => Just(Does::LookAgain), 1 => Just(Does::Write), 1 => Just(Does::Plan)
    ];
    let bytes = prop_oneof![3 => 0_usize..500, 4 => 500_usize..8_000, 2 => 8_000_usize..20_000];
    let status =
        prop_oneof![8 => Just(ToolStatus::Ok), 1 => Just(ToolStatus::Error), 1 => Just(ToolStatus::TimedOut)];
    let pictures = prop_oneof![12 => Just(0_usize), 1 => 1_usize..3];
    (does, 0..KINDS, bytes, status, pictures).prop_map(|(does, kind, bytes, status, pictures)| Call {
        does,
        kind,
        bytes,
        status,
        pictures,
    })
}

fn summary() -> impl Strategy<Value = Summary> {
    prop_oneof![
        8 => (20_usize..2_000).prop_map(Summary::Good),
        1 => Just(Summary::Good(200_000)),
        1 => Just(Summary::Empty),
        1 => Just(Summary::CallsTool),
        1 => Just(Summary::CutOff),
        1 => Just(Summary::Refusal),
        1 => Just(Summary::Fails(ErrorClass::ContextTooLong)),
        1 => Just(Summary::Fails(ErrorClass::InvalidRequest)),
        1 => Just(Summary::Fails(ErrorClass::Refusal)),
    ]
}

/// A history being played.
struct Play<'a> {
    history: &'a History,
    fixture: SessionFixture,
    kept: Transcript,
    pictures: HashMap<BlobId, ImageData>,
    /// The model's answers so far, as messages have them.
    said: Vec<Vec<Part>>,
    /// Results in their original form.
    results: HashMap<CallId, String>,
    /// Answers whose fault is over.
    troubled: HashSet<usize>,
    summaries: usize,
    calls: u64,
    /// The newest plan.
    plan: Option<String>,
    /// The counts of messages, with the messages, so that their addresses aren't reused.
    counted: HashMap<usize, (Arc<Message>, u64)>,
}

type Checked = Result<(), TestCaseError>;

/// Plays a history to its end. Returns its log.
fn played(history: &History) -> Result<SessionFixture, TestCaseError> {
    let mut play = Play {
        history,
        fixture: SessionFixture::start(GOAL.to_owned(), policy_of(history)),
        kept: Transcript::new(),
        pictures: HashMap::new(),
        said: Vec::new(),
        results: HashMap::new(),
        troubled: HashSet::new(),
        summaries: 0,
        calls: 0,
        plan: None,
        counted: HashMap::new(),
    };
    while let Some(open) = play.fixture.next() {
        match open.effect {
            Effect::CallModel(model_call) => play.call_model(open.seq, &model_call)?,
            Effect::RunTool(run) => play.run_tool(open.seq, &run),
            Effect::Timer { .. } => play.fixture.tell_session(SessionEvent::TimerFired { seq: open.seq }),
            effect => return Err(TestCaseError::fail(format!("unexpected effect {effect:?}"))),
        }
    }
    let outcome = play.fixture.outcome();
    prop_assert_eq!(outcome, Some(&Outcome::UNVERIFIED), "{}", play.fixture.story());
    Ok(play.fixture)
}

fn policy_of(history: &History) -> RunPolicy {
    let mut policy = policy(Some(history.window), std::path::Path::new("/w"));
    policy.agent.model.output_tokens_max = u32::try_from(history.window / 8).unwrap();
    policy.agent.model.images = history.sees;
    policy.agent.limits = Limits {
        turns_max: u32::MAX,
        failed_turns_max: u32::MAX,
        stuck_turns: 0,
        repeated_call_notice_at: u32::MAX,
        repeated_call_max: u32::MAX,
        ..Limits::default()
    };
    policy
}

impl Play<'_> {
    fn call_model(&mut self, seq: Seq, model_call: &CallModel) -> Checked {
        self.fold(model_call.through);
        let rebuilt = self.rebuilt(model_call);
        prop_assert!(
            same(self.kept.messages(), rebuilt.messages()),
            "a restart sees {}",
            differs(&self.kept, &rebuilt)
        );
        let messages = match &model_call.question {
            Some(question) => {
                prop_assert_ne!(model_call.purpose, Purpose::Turn);
                self.kept.asked(question)
            }
            None => self.kept.messages().to_vec(),
        };
        let own = self.estimated(&messages);
        self.check(model_call, &messages, own)?;
        let input_tokens = own * self.history.reported_percent / 100;
        let usage = Usage { input_tokens, ..Usage::default() };
        match model_call.purpose {
            Purpose::Turn => self.answer(seq, usage, own),
            Purpose::Summary => self.sum_up(seq, usage),
            Purpose::FinalSummary => return Err(TestCaseError::fail("there is no limit to be reached")),
            Purpose::Judge => return Err(TestCaseError::fail("there is no goal")),
            Purpose::External | Purpose::Hook => return Err(TestCaseError::fail("there is no program")),
        }
        Ok(())
    }

    fn fold(&mut self, through: Seq) {
        let images = if self.history.sees { &self.pictures } else { &HashMap::new() };
        self.fixture
            .log
            .iter()
            .filter(|record| record.seq <= through)
            .for_each(|record| self.kept.fold(record, images));
    }

    /// The conversation rebuilt from the log alone.
    fn rebuilt(&self, model_call: &CallModel) -> Transcript {
        let at = model_call.view.summed_up_at;
        let summed_up = self.fixture.log.iter().find(|record| record.seq == at).map(|record| &record.entry);
        let mut transcript = match summed_up {
            Some(Entry::Conversation(ConversationEntry::Compacted(compacted))) => {
                let Some(Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) =
                    self.fixture.log.first().map(|first| &first.entry)
                else {
                    panic!("it begins with its start");
                };
                Transcript::from_summary(at, compacted, started)
            }
            _ => Transcript::new(),
        };
        let images = if self.history.sees { &self.pictures } else { &HashMap::new() };
        let seen = self
            .fixture
            .log
            .iter()
            .filter(|record| record.seq > model_call.view.from && record.seq <= model_call.through);
        seen.for_each(|record| transcript.fold(record, images));
        transcript
    }

    /// The tokens of a request, counted part by part.
    fn estimated(&mut self, messages: &[Arc<Message>]) -> u64 {
        let mut counted = HashMap::with_capacity(messages.len());
        let mut sum = estimated_fixed();
        for message in messages {
            let place = Arc::as_ptr(message).addr();
            let tokens = match self.counted.get(&place) {
                Some((_, tokens)) => *tokens,
                None => message.parts.iter().map(estimated_part).sum::<u64>(),
            };
            counted.insert(place, (message.clone(), tokens));
            sum += tokens;
        }
        self.counted = counted;
        sum
    }

    fn check(&self, model_call: &CallModel, messages: &[Arc<Message>], own: u64) -> Checked {
        prop_assert_eq!(fault_of(messages), None);
        prop_assert!(is_said(messages, GOAL), "the goal is gone");
        if let Some(plan) = &self.plan {
            prop_assert!(is_said(messages, plan), "the plan is gone");
        }
        let wished = self.fixture.wished.clone().unwrap();
        let room = self.history.window - u64::from(model_call.output_tokens_max);
        prop_assert!(wished.input_tokens <= room, "{} of {room} tokens", wished.input_tokens);
        if self.history.reported_percent == 0 {
            let parts = messages.iter().map(|message| message.parts.len() as u64).sum::<u64>();
            prop_assert!(own <= room, "{own} of {room} tokens by another count");
            let apart = own.abs_diff(wished.input_tokens);
            prop_assert!(apart <= 20 * parts + 200, "{own} tokens count as {}", wished.input_tokens);
        }
        self.check_answers(messages)?;
        self.check_results(messages)
    }

    /// The model's answers are unchanged: all of them, or the newest ones.
    fn check_answers(&self, messages: &[Arc<Message>]) -> Checked {
        let shown = messages.iter().filter(|message| message.role == Role::Assistant).collect::<Vec<_>>();
        let newest = &self.said[self.said.len() - shown.len()..];
        for (said, shown) in newest.iter().zip(shown) {
            prop_assert_eq!(said, &shown.parts);
        }
        Ok(())
    }

    fn check_results(&self, messages: &[Arc<Message>]) -> Checked {
        for part in messages.iter().flat_map(|message| &message.parts) {
            if let Part::ToolResult { call, output, .. } = part
                && let Some(whole) = self.results.get(call)
                && !output.starts_with(whole.as_str())
            {
                prop_assert!(output.contains("left out") && output.contains("entry "), "{output}");
                prop_assert!(output.len() < whole.len() || output.contains(" picture"));
            }
        }
        Ok(())
    }

    fn answer(&mut self, seq: Seq, usage: Usage, own: u64) {
        let place = self.said.len();
        let Some(turn) = self.history.turns.get(place).cloned() else {
            let content = vec![Block::Text("Done.".to_owned())];
            return self.says(seq, content, usage, StopReason::EndTurn);
        };
        if let Some(bytes) = turn.said.0 {
            self.user_says(bytes);
        }
        if self.troubled.insert(place) {
            match turn.trouble {
                Trouble::None => {}
                Trouble::Fails(class) => return self.fails(seq, class, usage),
                // In a smaller request nothing could be left out.
                Trouble::TooLong if own * 2 < self.history.window => {}
                Trouble::TooLong => return self.fails(seq, ErrorClass::ContextTooLong, Usage::default()),
                Trouble::IsEmpty => {
                    let answer = answer(Vec::new(), usage, StopReason::EndTurn);
                    return self.fixture.tell_session(SessionEvent::Answered { seq, answer });
                }
                Trouble::IsCutOff => {
                    let content = vec![Block::Text(format!("Cut off at {place}, for"))];
                    return self.says(seq, content, usage, StopReason::OutputCap);
                }
            }
        }
        let content = self.content_of(place, &turn);
        self.says(seq, content, usage, StopReason::ToolUse);
    }

    fn fails(&mut self, seq: Seq, class: ErrorClass, usage: Usage) {
        let failure = ModelFailure { usage, ..ModelFailure::new(class, "as told") };
        self.fixture.tell_session(SessionEvent::ModelFailed { seq, failure });
    }

    fn says(&mut self, seq: Seq, content: Vec<Block>, usage: Usage, stop: StopReason) {
        self.said.push(content.iter().cloned().map(Part::Block).collect());
        self.fixture.tell_session(SessionEvent::Answered { seq, answer: answer(content, usage, stop) });
    }

    fn user_says(&mut self, bytes: usize) {
        let text = filled("By the way: ".to_owned(), bytes, 0, &mut Rng::with_seed(bytes as u64));
        self.fixture.tell_run(provost_engine::RunEvent::Say { agent: 0, text, by: "ann".to_owned() });
    }

    fn content_of(&mut self, place: usize, turn: &Turn) -> Vec<Block> {
        let mut rng = Rng::with_seed(place as u64);
        let mut content = Vec::new();
        if turn.thinks {
            let text = filled(format!(" thought {place} "), 100, 0, &mut rng);
            let signature = Some(format!("{:032x}==", rng.u128(..)));
            content.push(Block::Thinking {
                text,
                signature,
                wire: Some("anthropic".to_owned()),
                prefix: None,
            });
        }
        if turn.words > 0 {
            let text = filled(format!("I say {place}: "), turn.words.min(self.share()), 0, &mut rng);
            content.push(Block::Text(text));
        }
        for (nth, call) in turn.calls.iter().enumerate() {
            content.push(self.call(place, nth, call, &mut rng));
        }
        content
    }

    /// Maximum bytes of one part of an answer: the whole answer is within its cap.
    fn share(&self) -> usize {
        usize::try_from(self.history.window / 8).unwrap()
    }

    fn call(&mut self, place: usize, nth: usize, call: &Call, rng: &mut Rng) -> Block {
        self.calls += 1;
        let number = self.calls;
        let bytes = call.bytes.min(self.share() / 4);
        let (name, input) = match call.does {
            Does::Look => ("look", format!(r#"{{"n":{number}}}"#)),
            Does::LookAgain => ("look", r#"{"n":0}"#.to_owned()),
            Does::Write => {
                let text = filled(String::new(), bytes, 0, rng).replace('\n', " ");
                ("write", format!(r#"{{"path":"file_{}","text":"{text}"}}"#, number % 9))
            }
            Does::Plan => {
                let plan = format!("open item {number}");
                ("update_plan", format!(r#"{{"items":["{plan}"]}}"#))
            }
        };
        let input = Json::parse(input).unwrap();
        let id = CallId(format!("c{place}-{nth}").into());
        Block::ToolCall(ToolCall { id, name: name.to_owned(), input, malformed: None })
    }

    fn run_tool(&mut self, seq: Seq, run: &ToolRun) {
        let (place, nth) = run.call.0.strip_prefix('c').and_then(|id| id.split_once('-')).unwrap();
        let turn = &self.history.turns[place.parse::<usize>().unwrap()];
        let call = turn.calls[nth.parse::<usize>().unwrap()].clone();
        if nth == "0"
            && let Some(bytes) = turn.said.1
        {
            self.user_says(bytes);
        }
        let mut rng = Rng::with_seed(seq.0);
        let mut output = filled(format!("{} {}: ", run.tool, run.call), call.bytes, call.kind, &mut rng);
        let bytes_max = if self.history.talks { LITTLE_BYTES } else { run.output_bytes_max };
        output.truncate(output.floor_char_boundary(bytes_max));
        let memory = (call.does == Does::Plan).then(|| run.input.clone());
        if let Some(memory) = &memory {
            self.plan = Some(memory.text().split('"').nth(3).unwrap().to_owned());
        }
        self.results.insert(run.call.clone(), output.clone());
        let images = (0..call.pictures).map(|nth| self.picture(seq, nth)).collect();
        let result = ToolResult {
            tools: Vec::new(),
            asks: None,
            plan: None,
            facts: provost_event::CallFacts::default(),
            status: call.status,
            output,
            images,
            whole: None,
            duration_ms: 1,
            memory,
        };
        self.fixture.tell_session(SessionEvent::ToolDone { seq, result });
    }

    fn picture(&mut self, seq: Seq, nth: usize) -> Image {
        let mut bytes = vec![0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
        bytes.extend(seq.0.to_be_bytes());
        bytes.extend(nth.to_be_bytes());
        let blob = BlobId(format!("{:0>64}", format!("{seq}{nth}")).into());
        let image = Image { kind: ImageKind::Png, blob: blob.clone(), bytes: bytes.len() as u64 };
        self.pictures.insert(blob, ImageData::new(bytes).unwrap());
        image
    }

    fn sum_up(&mut self, seq: Seq, usage: Usage) {
        let summary = self.history.summaries[self.summaries % self.history.summaries.len()];
        self.summaries += 1;
        let text = |bytes| {
            vec![Block::Text(filled("So far: ".to_owned(), bytes, 0, &mut Rng::with_seed(bytes as u64)))]
        };
        let (content, stop) = match summary {
            Summary::Good(bytes) => (text(bytes), StopReason::EndTurn),
            Summary::Empty => (vec![Block::Text(" \n".to_owned())], StopReason::EndTurn),
            Summary::CallsTool => {
                let id = CallId("s".into());
                let input = Json::empty_object();
                let call = ToolCall { id, name: "look".to_owned(), input, malformed: None };
                (vec![Block::ToolCall(call)], StopReason::ToolUse)
            }
            Summary::CutOff => (text(2_000), StopReason::OutputCap),
            Summary::Refusal => (text(40), StopReason::Refusal),
            Summary::Fails(class) => return self.fails(seq, class, usage),
        };
        self.fixture.tell_session(SessionEvent::Answered { seq, answer: answer(content, usage, stop) });
    }
}

fn answer(content: Vec<Block>, usage: Usage, stop: StopReason) -> Answer {
    Answer { cost: None, content, usage, model: "m".to_owned(), stop }
}

/// Whether two conversations are the same, byte for byte.
fn same(one: &[Arc<Message>], other: &[Arc<Message>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.role == b.role && a.parts == b.parts)
}

fn differs(one: &Transcript, other: &Transcript) -> String {
    let short = |transcript: &Transcript| {
        let begin = |message: &Arc<Message>| format!("{:?} {:.80?}", message.role, message.parts.first());
        transcript.messages().iter().map(begin).collect::<Vec<_>>().join("\n")
    };
    format!("{}\nin place of\n{}", short(other), short(one))
}

/// The tokens before the conversation.
fn estimated_fixed() -> u64 {
    let policy = policy(None, std::path::Path::new("/w"));
    let tools = policy.agent.tools.iter().map(|tool| {
        8 + tokens_of(&tool.name) + tokens_of(&tool.description) + tokens_of(tool.input_schema.text())
    });
    let preamble = 4 + tokens_of(&policy.agent.preamble);
    tokens_of(&policy.agent.system_prompt) + preamble + tools.sum::<u64>()
}

fn estimated_part(part: &Part) -> u64 {
    8 + match part {
        Part::Block(Block::Text(text)) => tokens_of(text),
        Part::Block(Block::Thinking { text, signature, .. }) => {
            tokens_of(text) + signature.as_ref().map_or(0, |seal| seal.len() as u64 / 8)
        }
        Part::Block(Block::ToolCall(call)) => tokens_of(&call.name) + tokens_of(call.input.text()),
        Part::Block(Block::Opaque { json, .. }) => tokens_of(json.text()),
        Part::ToolResult { output, images, .. } => tokens_of(output) + 1_600 * images.len() as u64,
        Part::Image(_) | Part::Block(Block::Image(_)) => 1_600,
    }
}

/// `PROPTEST_CASES` sets more cases.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_request_is_one_that_providers_take(history in history()) {
        played(&history)?;
    }

    #[test]
    fn the_same_history_comes_to_the_same_log(history in history()) {
        prop_assert_eq!(played(&history)?.lines(), played(&history)?.lines());
    }
}

/// Checks that the histories cover every kind of compaction.
#[test]
fn histories_meet_every_kind_of_compaction() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut met = HashMap::new();
    for _ in 0..40 {
        let history = history().new_tree(&mut runner).unwrap().current();
        let Ok(fixture) = played(&history) else { continue };
        for record in fixture.log {
            if let Entry::Conversation(ConversationEntry::Compacted(compacted)) = record.entry {
                *met.entry(format!("{:?}", compacted.how)).or_insert(0) += 1;
            }
        }
    }
    println!("{met:?}");
    for how in [CompactionKind::Trim, CompactionKind::Summary, CompactionKind::Emergency] {
        assert!(met.get(&format!("{how:?}")).is_some_and(|times| *times > 10), "{met:?}");
    }
}
