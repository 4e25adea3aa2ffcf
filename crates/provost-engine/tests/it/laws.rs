//! Random, duplicate, late and lost events: the world checks the laws of the log after each.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use provost_engine::{
    Actor, Answer, Effect, RunEvent, SessionEvent, SessionStatus, StopCheckResult, ToolResult,
};
use provost_event::{
    ApprovalAnswer, ApprovalScope, Block, Budget, BudgetEntry, CallId, ConversationEntry, EffectId, Entry,
    ErrorClass, Exit, ExternalPolicy, FinalSummaryFinished, HookDecision, HookPoint, HookReport, Json,
    LifecycleEntry, MicroDollars, ModelEntry, ModelFailure, Outcome, Purpose, Record, Retry, RetryCause,
    RunPolicy, Seq, StepMode, StopHookVerdict, StopReason, TerminalEntry, TerminalEvent, TerminalNoted,
    TerminalState, ToolCall, ToolEntry, ToolStatus, Unanswered, Usage,
};

use crate::external;
use crate::states;
use crate::world::{ROOT, RUN, World, guard, policy, report};

#[derive(Debug, Clone)]
enum Op {
    /// The first awaited result.
    Next(u8, u8),
    Answer(u8, u8),
    Fail(u8),
    ToolDone(u8, u8),
    Hooks(u8),
    Hear(u8, u8),
    Resolve(u8, u8),
    Tick,
    Crash,
    Pause,
    Cancel,
    Resume(bool),
    /// A message of this percentage of a small window.
    Say(u8),
    Proceed,
    /// Of the session's log, or of the run's.
    Snapshot(bool),
    /// An event that was sent before, once more.
    Repeat(u16),
    /// A result for an effect that may not exist.
    Stray(u8, u8),
    /// An event of a program's terminal.
    Note(u8),
    /// A person answers a question at the terminal.
    Withdraw(u8),
    /// The program has ended, with or without a known exit.
    Close(bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Next(a, b)),
        8 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Answer(a, b)),
        2 => any::<u8>().prop_map(Op::Fail),
        8 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::ToolDone(a, b)),
        4 => any::<u8>().prop_map(Op::Hooks),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Hear(a, b)),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Resolve(a, b)),
        3 => Just(Op::Tick),
        1 => Just(Op::Crash),
        1 => Just(Op::Pause),
        1 => Just(Op::Cancel),
        2 => any::<bool>().prop_map(Op::Resume),
        1 => (0..150_u8).prop_map(Op::Say),
        2 => Just(Op::Proceed),
        1 => any::<bool>().prop_map(Op::Snapshot),
        3 => any::<u16>().prop_map(Op::Repeat),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Stray(a, b)),
        4 => any::<u8>().prop_map(Op::Note),
        1 => any::<u8>().prop_map(Op::Withdraw),
        3 => any::<bool>().prop_map(Op::Close),
    ]
}

fn words(tokens: usize) -> String {
    "word ".repeat(tokens)
}

fn answer(kind: u8, salt: u8, serial: usize) -> Answer {
    let text = |t: &str| Block::Text(t.to_owned());
    let call = |place: usize, name: &str| {
        Block::ToolCall(ToolCall {
            id: CallId::from(format!("{serial}-{}", if salt.is_multiple_of(5) { 0 } else { place }).as_str()),
            name: name.to_owned(),
            input: Json::parse(format!("{{\"path\":\"{}\"}}", salt % 3)).expect("JSON"),
            malformed: salt.is_multiple_of(11).then(|| "{".to_owned()),
        })
    };
    let names = ["read", "edit", "shell", "nothing", "read", "edit"];
    let (content, stop) = match kind % 8 {
        0 | 4..8 if kind < 16 && kind > 3 => (vec![text("so far")], StopReason::EndTurn),
        0 if kind < 128 => (vec![text(&words(usize::from(salt))), call(0, "read")], StopReason::ToolUse),
        0 if salt.is_multiple_of(7) => (vec![text(&words(700))], StopReason::EndTurn),
        0 => (vec![text("done")], StopReason::EndTurn),
        1 => (vec![], StopReason::EndTurn),
        2 => (vec![text("cut")], StopReason::OutputCap),
        3 if salt.is_multiple_of(8) => (vec![text("no")], StopReason::Refusal),
        n => {
            let count = usize::from(n % 3) + 1;
            let calls = (0..count).map(|i| call(i, names[(usize::from(salt) + i) % names.len()]));
            let said = salt.is_multiple_of(3).then(|| text(&words(usize::from(salt))));
            (said.into_iter().chain(calls).collect(), StopReason::ToolUse)
        }
    };
    let usage = Usage { input_tokens: 20, output_tokens: 30, ..Usage::default() };
    Answer { cost: None, content, usage, model: "m".to_owned(), stop }
}

fn tool_result(kind: u8, size: usize) -> ToolResult {
    let status = match kind % 5 {
        0 => ToolStatus::Error,
        1 => ToolStatus::TimedOut,
        2 => ToolStatus::Cancelled,
        _ => ToolStatus::Ok,
    };
    ToolResult {
        tools: Vec::new(),
        asks: None,
        plan: None,
        facts: provost_event::CallFacts::default(),
        status,
        output: format!("{} {}", kind % 4, words(size)),
        images: Vec::new(),
        whole: None,
        duration_ms: 1,
        memory: kind.is_multiple_of(9).then(Json::empty_object),
    }
}

fn stop_result(kind: u8) -> StopCheckResult {
    let verdict = match kind % 6 {
        0 => StopHookVerdict::Allow,
        1 if kind > 200 => StopHookVerdict::Halt("h".to_owned()),
        2 => StopHookVerdict::Error("e".to_owned()),
        _ => StopHookVerdict::Block(format!("r{}", kind % 2)),
    };
    let reports = vec![HookReport::new("tests", HookPoint::Stop, verdict)];
    StopCheckResult { reports, evidence: format!("{}", kind % 3) }
}

fn failure(kind: u8) -> ModelFailure {
    let classes = [
        ErrorClass::Cut,
        ErrorClass::RateLimited,
        ErrorClass::ContextTooLong,
        ErrorClass::Server,
        ErrorClass::Overloaded,
    ];
    let class =
        if kind == 255 { ErrorClass::Unauthorized } else { classes[usize::from(kind) % classes.len()] };
    ModelFailure::new(class, "m")
}

pub(crate) fn said(point: HookPoint, kind: u8) -> Vec<HookReport> {
    let reason = || "r".to_owned();
    let decision = match kind % 16 {
        1 => HookDecision::Deny(reason()),
        2 => HookDecision::Pause(reason()),
        3 if kind > 150 => HookDecision::Abort(reason()),
        4 => HookDecision::Ask(reason()),
        5 => HookDecision::Allow,
        6 => HookDecision::Failed(reason()),
        7 => return Vec::new(),
        _ => HookDecision::Continue,
    };
    let reminders = if kind.is_multiple_of(3) { vec!["remember".to_owned()] } else { Vec::new() };
    vec![HookReport { reminders, ..report(point, decision) }]
}

pub(crate) fn approval(kind: u8, pattern: &str) -> ApprovalAnswer {
    let scope = match kind % 3 {
        0 => ApprovalScope::Once,
        1 => ApprovalScope::Run,
        _ => return ApprovalAnswer::Deny { reason: String::new() },
    };
    ApprovalAnswer::Allow { scope, pattern: Some(pattern.to_owned()) }
}

/// Each hook point whose bit is set has a hook.
pub(crate) fn guarded(mut policy: RunPolicy, bits: u32) -> RunPolicy {
    let points = HookPoint::ALL.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
    policy.agent.hooks = points.map(|(_, point)| guard(*point)).collect();
    policy
}

struct Driver {
    world: World,
    sent: Vec<SessionEvent>,
    /// The provider's reports: none, a little, the actual amount, or an impossible one.
    reports: u8,
    cancels: bool,
    /// A limit was raised.
    raised: bool,
    /// The size of results, as a percentage of the call kind's own.
    size: usize,
    is_attended: bool,
}

impl Driver {
    fn send(&mut self, event: SessionEvent) {
        self.sent.push(event.clone());
        self.world.session_event(event);
    }

    fn next(&mut self, kind: u8, salt: u8) {
        if self.world.thinking().is_some() {
            self.apply(&Op::Answer(kind, salt));
        } else if !self.world.tools().is_empty() {
            self.apply(&Op::ToolDone(salt, kind));
        } else if self.world.checking().is_some() {
            self.apply(&Op::Hooks(kind));
        } else if !self.world.hook_calls().is_empty() {
            // Rarely a refusal.
            self.apply(&Op::Hear(salt, if kind < 30 { salt } else { 8 }));
        } else if self.world.closing().is_some() {
            self.close(kind < 128);
        } else if !self.world.approvals().is_empty() {
            self.apply(&Op::Resolve(salt, kind));
        } else if self.world.outcome().is_some() {
            self.apply(&Op::Resume(kind < 128));
        } else {
            self.proceed();
        }
    }

    fn apply(&mut self, op: &Op) {
        let serial = self.world.session_log().len();
        match op {
            Op::Next(kind, salt) => self.next(*kind, *salt),
            Op::Answer(kind, salt) => {
                if let Some(seq) = self.world.thinking() {
                    // The answer to a request for a summary is mostly one.
                    let kind = if self.world.calls_model_for(Purpose::Summary) { kind % 16 } else { *kind };
                    let answer = Answer { usage: self.report(), ..answer(kind, *salt, serial) };
                    self.send(SessionEvent::Answered { seq, answer });
                }
            }
            Op::Fail(kind) => {
                if let Some(seq) = self.world.thinking() {
                    self.send(SessionEvent::ModelFailed { seq, failure: failure(*kind) });
                }
            }
            Op::ToolDone(which, kind) => {
                let tools = self.world.tools();
                if let Some((seq, _)) = tools.get(usize::from(*which) % tools.len().max(1)) {
                    let result = tool_result(*kind, usize::from(*kind) * self.size / 100);
                    self.send(SessionEvent::ToolDone { seq: *seq, result });
                }
            }
            Op::Hooks(kind) => {
                if let Some(seq) = self.world.checking() {
                    self.send(SessionEvent::StopChecked { seq, result: stop_result(*kind) });
                }
            }
            Op::Hear(which, kind) => {
                let open = self.world.hook_calls();
                if let Some((seq, hook_call)) = open.get(usize::from(*which) % open.len().max(1)) {
                    let reports = said(hook_call.about.points()[0], *kind);
                    self.send(SessionEvent::HooksAnswered { seq: *seq, reports, scripts: None });
                }
            }
            Op::Resolve(which, kind) => {
                let open = self.world.approvals();
                if let Some(open) = open.get(usize::from(*which) % open.len().max(1)) {
                    let answer = approval(*kind, &open.pattern);
                    self.send(SessionEvent::Resolve { asked: open.asked, answer, by: "p".into() });
                }
            }
            Op::Tick => self.world.tick(),
            Op::Crash => self.crash(),
            Op::Pause => self.world.run_event(RunEvent::Pause { agent: None, by: "p".into() }),
            Op::Cancel if !self.cancels => {}
            Op::Cancel => self.world.run_event(RunEvent::Cancel { agent: None, by: "c".into() }),
            Op::Resume(more) => self.resume(*more),
            Op::Say(size) => {
                let text = words(usize::from(*size) * 20);
                self.world.run_event(RunEvent::Say { agent: 0, text, by: "s".into() });
            }
            Op::Proceed => self.proceed(),
            Op::Snapshot(session) => {
                self.world.take_snapshot(if *session { ROOT.into() } else { RUN.into() });
            }
            Op::Repeat(which) => {
                if let Some(event) = self.sent.get(usize::from(*which) % self.sent.len().max(1)).cloned() {
                    self.world.session_event(event);
                }
            }
            Op::Stray(seq, kind) => self.stray(Seq(u64::from(*seq)), *kind),
            Op::Note(kind) => self.note(*kind),
            Op::Withdraw(which) => self.withdraw(*which),
            Op::Close(is_seen) => self.close(*is_seen),
        }
    }

    fn resume(&mut self, more: bool) {
        self.raised |= more;
        let budget = Budget { tokens: more.then_some(100_000), ..Budget::default() };
        let turns_max = more.then_some(40);
        let resume = RunEvent::Resume { agent: None, by: "r".into(), budget, turns_max, text: None };
        self.world.run_event(resume);
    }

    fn withdraw(&mut self, which: u8) {
        let open = self.world.approvals();
        if let Some(open) = open.get(usize::from(which) % open.len().max(1)) {
            self.send(SessionEvent::AskWithdrawn { call: open.call.clone() });
        }
    }

    fn note(&mut self, kind: u8) {
        let heard = self.world.session_log().len() as u64;
        let event = match kind % 6 {
            0 | 1 => external::started(),
            2 => TerminalEvent::Exited { exit: Exit::Code(i32::from(kind % 2)) },
            3 => TerminalEvent::State(TerminalState::Exited),
            4 => TerminalEvent::Submitted { text: "so".to_owned(), through: Seq(heard % u64::from(kind)) },
            _ => TerminalEvent::State(TerminalState::Working),
        };
        self.send(SessionEvent::Terminal(Box::new(TerminalNoted::certain(event))));
    }

    fn close(&mut self, is_seen: bool) {
        if let Some(seq) = self.world.closing() {
            let exit = is_seen.then_some(Exit::Code(0));
            self.send(SessionEvent::TerminalClosed { seq, exit });
        }
    }

    /// The provider's report on the request in flight.
    fn report(&self) -> Usage {
        let sent = self.world.request_tokens;
        let (input_tokens, output_tokens) = match self.reports % 4 {
            0 => (20, 30),
            1 => (0, 0),
            2 => (sent, 30),
            _ => (sent.saturating_mul(1 << (self.reports / 4)), 30),
        };
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    fn proceed(&mut self) {
        let Some(Actor::Session(state)) = self.world.actors.get(&ROOT.into()) else { return };
        if let SessionStatus::BetweenTurns { next } = state.standing() {
            self.send(SessionEvent::Proceed { turn: next });
        }
    }

    /// The process dies: the states are folded from the logs anew, and no process performs the open effects.
    fn crash(&mut self) {
        self.world.read_back();
        let fresh = self.world.open.iter().filter(|(id, effect)| {
            matches!(effect, Effect::RunTool(_) | Effect::CallModel(_)) && id.1.0.is_multiple_of(3)
        });
        let fresh = fresh.map(|((actor, seq), _)| EffectId { actor: *actor, seq: *seq }).collect();
        self.world.run_event(RunEvent::Recover { fresh });
    }

    fn stray(&mut self, seq: Seq, kind: u8) {
        if self.world.open.iter().any(|(id, effect)| id.1 == seq && !matches!(effect, Effect::Timer { .. })) {
            return;
        }
        let before = self.world.session_log().len();
        self.world.session_event(SessionEvent::ToolDone { seq, result: tool_result(kind, 0) });
        self.world.session_event(SessionEvent::StopChecked { seq, result: stop_result(kind) });
        self.world.session_event(SessionEvent::Answered { seq, answer: answer(kind, kind, before) });
        self.world.session_event(SessionEvent::ModelFailed { seq, failure: failure(kind) });
        let reports = said(HookPoint::PreToolCall, kind);
        self.world.session_event(SessionEvent::HooksAnswered { seq, reports, scripts: None });
        assert_eq!(self.world.session_log().len(), before, "a stray result counted");
    }

    /// Plays a well-behaved world until the session stops, which it must.
    fn play_until_suspended(&mut self) {
        for _ in 0..400 {
            if self.world.outcome().is_some() {
                return;
            }
            if self.is_attended {
                // With a person at the terminal it ends when that person's program does.
                let exited = TerminalEvent::Exited { exit: Exit::Code(0) };
                self.send(SessionEvent::Terminal(Box::new(TerminalNoted::certain(exited))));
            }
            if self.world.thinking().is_some() {
                self.apply(&Op::Answer(128, 1));
            } else if let Some((seq, _)) = self.world.tools().first().cloned() {
                self.send(SessionEvent::ToolDone { seq, result: tool_result(3, 0) });
            } else if self.world.checking().is_some() {
                self.apply(&Op::Hooks(0));
            } else if !self.world.hook_calls().is_empty() {
                self.apply(&Op::Hear(0, 0));
            } else if self.world.closing().is_some() {
                self.close(true);
            } else if !self.world.approvals().is_empty() {
                self.apply(&Op::Resolve(0, 0));
            } else {
                self.proceed();
                self.world.tick();
            }
        }
        panic!("it is never suspended");
    }
}

fn charged(world: &World) -> u64 {
    let usage = |entry: &Entry| match entry {
        Entry::Budget(BudgetEntry::Charged(charged)) => charged.usage.total(),
        _ => 0,
    };
    world.run_log().iter().map(|record| usage(&record.entry)).sum()
}

/// What happened, over all cases.
#[derive(Debug, Default)]
struct Seen(BTreeMap<String, u32>);

impl Seen {
    fn count(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn look_at(&mut self, world: &World) {
        for record in world.session_log() {
            match &record.entry {
                Entry::Conversation(ConversationEntry::Compacted(compacted)) => {
                    self.count(format!("{:?}", compacted.how))
                }
                Entry::Model(ModelEntry::Called(called)) => {
                    self.count(format!("call for {:?}", called.purpose))
                }
                Entry::Conversation(ConversationEntry::FinalSummary(FinalSummaryFinished {
                    call: None,
                    ..
                })) => self.count("final summary refused"),
                Entry::Conversation(ConversationEntry::FinalSummary(FinalSummaryFinished {
                    problem: None,
                    ..
                })) => self.count("final summary said"),
                Entry::Conversation(ConversationEntry::FinalSummary(_)) => self.count("final summary failed"),
                Entry::Model(ModelEntry::Retried(Retry {
                    cause: RetryCause::UselessSummary { why },
                    ..
                })) => {
                    let why = why.split(':').next().unwrap_or_default();
                    let why = why.split('(').next().unwrap_or_default();
                    self.count(format!("useless summary: {why}"));
                }
                Entry::Model(ModelEntry::Retried(Retry { cause: RetryCause::Compacted, .. })) => {
                    self.count("refused as too long")
                }
                Entry::Tool(ToolEntry::Finished(done)) if done.output.len() > 2_000 => {
                    self.count("large output")
                }
                Entry::Terminal(TerminalEntry::Ending(_)) => self.count("program ended"),
                _ => {}
            }
        }
        (0..world.snapshots).for_each(|_| self.count("snapshot"));
        match world.outcome() {
            Some(Outcome::BudgetExhausted(exhausted)) => {
                self.count(format!("{:?} used up", exhausted.dimension))
            }
            Some(Outcome::Failed { class, .. }) => self.count(format!("{class:?}")),
            Some(other) => self.count(other.word()),
            None => {}
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    ops: Vec<Op>,
    tokens: Option<u64>,
    money: Option<u64>,
    wall_time_ms: Option<u64>,
    window: Option<u64>,
    turns_max: u32,
    hooks: u32,
    asks: bool,
    pauses: bool,
    is_stepped: bool,
    cancels: bool,
    reports: u8,
    size: usize,
    /// Whether its agent is a program, and whether a person works at it.
    program: Option<bool>,
}

fn case() -> impl Strategy<Value = Case> {
    let limits = (
        prop_oneof![4 => Just(None), 1 => (1_500_u64..20_000).prop_map(Some)],
        prop_oneof![5 => Just(None), 1 => (1_500_u64..20_000).prop_map(Some)],
        prop_oneof![3 => Just(None), 2 => (1_000_u64..100_000).prop_map(Some)],
        prop_oneof![1 => Just(None), 5 => (1_200_u64..8_000).prop_map(Some)],
        prop_oneof![1 => 1_u32..6, 2 => Just(20)],
    );
    let hooks = prop_oneof![2 => Just(0_u32), 3 => any::<u32>()];
    let seldom = || proptest::bool::weighted(0.2);
    let flags = (any::<bool>(), any::<bool>(), seldom(), seldom());
    let ops = proptest::collection::vec(op(), 0..160);
    let program = prop_oneof![3 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (ops, limits, hooks, flags, any::<u8>(), 0..300_usize, program).prop_map(
        |(ops, limits, hooks, flags, reports, size, program)| {
            let (tokens, money, wall_time_ms, window, turns_max) = limits;
            let (asks, pauses, is_stepped, cancels) = flags;
            Case {
                ops,
                tokens,
                money,
                wall_time_ms,
                window,
                turns_max,
                hooks,
                asks,
                pauses,
                is_stepped,
                cancels,
                reports,
                size,
                program,
            }
        },
    )
}

impl Case {
    fn policy(&self) -> RunPolicy {
        let mut policy = guarded(policy(), self.hooks);
        if self.asks {
            policy.agent.permissions.ask = vec!["shell".to_owned(), "read".to_owned()];
            policy.agent.permissions.deny = vec!["edit".to_owned()];
        }
        if self.pauses {
            policy.agent.permissions.unanswered = Unanswered::Pause;
        }
        if self.is_stepped {
            policy.agent.step_mode = StepMode::Stepped;
        }
        if let Some(attended) = self.program {
            policy.agent.external = Some(Box::new(ExternalPolicy { attended, ..external::external() }));
        }
        policy.agent.model.window_tokens = self.window;
        policy.agent.model.output_tokens_max = 600;
        let limits = &mut policy.agent.limits;
        (limits.turns_max, limits.failed_turns_max, limits.stop_blocks_max) = (self.turns_max, 30, 30);
        policy.budget.tokens = self.tokens;
        policy.budget.money = self.money.map(MicroDollars);
        policy.budget.wall_time_ms = self.wall_time_ms;
        policy
    }

    fn check(&self, seen: &mut Seen) {
        // If tokens or money are limited, the provider reports no more than was reserved.
        let is_bound = self.tokens.is_some() || self.money.is_some();
        let reports = if is_bound { self.reports % 3 } else { self.reports };
        let mut driver = Driver {
            world: World::start(self.policy()),
            sent: Vec::new(),
            reports,
            size: self.size,
            cancels: self.cancels,
            raised: false,
            is_attended: self.program == Some(true),
        };
        for op in &self.ops {
            driver.apply(op);
        }
        driver.play_until_suspended();
        let outcome = driver.world.outcome().expect("it is suspended");
        // The run's status is its root agent's.
        let last = driver
            .world
            .run_log()
            .iter()
            .rfind(|record| !matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))));
        match last.expect("entries").entry.clone() {
            Entry::Lifecycle(LifecycleEntry::Ended(end)) => assert_eq!(end.outcome, outcome),
            Entry::Lifecycle(LifecycleEntry::Paused(rest)) => assert_eq!(rest.outcome, outcome),
            other => panic!("the run's last entry is {}", other.kind()),
        }
        if let Some(limit) = self.tokens {
            // The script's answers never exceed their reservations.
            let limit = limit.max(if driver.raised { 100_000 } else { 0 });
            let charged = charged(&driver.world);
            assert!(charged <= limit, "{charged} charged of {limit}");
        }
        // Every model call was paid for, once.
        let is_call = |record: &&Record| matches!(record.entry, Entry::Model(ModelEntry::Called(_)));
        let asked = driver.world.session_log().iter().filter(is_call).count();
        let is_paid = |record: &&Record| matches!(record.entry, Entry::Budget(BudgetEntry::Charged(_)));
        let paid = driver.world.run_log().iter().filter(is_paid).count();
        assert_eq!(asked, paid);
        if let Outcome::Completed { .. } = outcome {
            assert!(driver.world.open.is_empty(), "effects are left open");
        }
        seen.look_at(&driver.world);
    }
}

/// The same random cases each time.
pub(crate) fn walk(cases: u32) {
    let seen = Mutex::new(Seen::default());
    let walked = states::walks(cases).run(&case(), |case| {
        case.check(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    });
    walked.expect("the laws hold");
}

/// `PROPTEST_CASES` sets another number.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let own = ProptestConfig::with_cases(256).cases;
    ProptestConfig { cases: if config.cases == own { usual } else { config.cases }, ..config }
}

#[test]
fn the_laws_hold_under_random_doubled_late_and_lost_events() {
    let config = cases(60);
    let count = config.cases;
    let seen = Mutex::new(Seen::default());
    let tried = TestRunner::new(config).run(&case(), |case| {
        case.check(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    });
    if let Err(failure) = tried {
        panic!("{failure}");
    }
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("in {count} cases: {seen:#?}");
    for what in [
        "Trim",
        "Summary",
        "Emergency",
        "call for Summary",
        "call for FinalSummary",
        "final summary said",
        "final summary failed",
        "final summary refused",
        "useless summary: it is empty",
        "useless summary: it calls tools instead of summing up",
        "useless summary: it was cut off",
        "refused as too long",
        "large output",
        "snapshot",
        "ContextExhausted",
        "Turns used up",
        "Tokens used up",
        "Money used up",
        "WallTime used up",
        "completed",
        "program ended",
    ] {
        let times = seen.0.get(what).copied().unwrap_or_default();
        assert!(count < 2_000 || times * 500 >= count, "{what}: {times} times in {count} cases");
    }
}
