//! Random, doubled, late and lost events: the world checks the laws of the log after each.

use proptest::prelude::*;
use provost_engine::{Answer, Effect, RunEvent, SessionEvent, StopCheckResult, ToolResult};
use provost_event::{
    ApprovalAnswer, ApprovalScope, Block, Budget, CallId, EffectId, Entry, ErrorClass, HookDecision,
    HookMoment, HookReport, Json, ModelFailure, Outcome, RunPolicy, Seq, StopHookVerdict, StopReason,
    StopReport, ToolCall, ToolStatus, Unanswered, Usage,
};

use crate::world::{World, guard, policy, report};

#[derive(Debug, Clone)]
enum Op {
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
    Say,
    /// An event that was sent before, once more.
    Repeat(u16),
    /// A result for an effect that may never have been.
    Stray(u8, u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Answer(a, b)),
        2 => any::<u8>().prop_map(Op::Fail),
        8 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::ToolDone(a, b)),
        4 => any::<u8>().prop_map(Op::Hooks),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Hear(a, b)),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Resolve(a, b)),
        3 => Just(Op::Tick),
        1 => Just(Op::Crash),
        1 => Just(Op::Pause),
        1 => Just(Op::Cancel).prop_filter("seldom", |_| true),
        2 => any::<bool>().prop_map(Op::Resume),
        1 => Just(Op::Say),
        3 => any::<u16>().prop_map(Op::Repeat),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Op::Stray(a, b)),
    ]
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
        0 => (vec![text("done")], StopReason::EndTurn),
        1 => (vec![], StopReason::EndTurn),
        2 => (vec![text("cut")], StopReason::OutputCap),
        3 if salt.is_multiple_of(8) => (vec![text("no")], StopReason::Refusal),
        n => {
            let count = usize::from(n % 3) + 1;
            let calls = (0..count).map(|i| call(i, names[(usize::from(salt) + i) % names.len()]));
            (calls.collect(), StopReason::ToolUse)
        }
    };
    let usage = Usage { input_tokens: 20, output_tokens: 30, ..Usage::default() };
    Answer { content, usage, model: "m".to_owned(), stop }
}

fn tool_result(kind: u8) -> ToolResult {
    let status = match kind % 5 {
        0 => ToolStatus::Error,
        1 => ToolStatus::TimedOut,
        2 => ToolStatus::Cancelled,
        _ => ToolStatus::Ok,
    };
    ToolResult {
        status,
        output: format!("{}", kind % 4),
        images: Vec::new(),
        whole: None,
        duration_ms: 1,
        memory: None,
    }
}

fn stop_result(kind: u8) -> StopCheckResult {
    let verdict = match kind % 6 {
        0 => StopHookVerdict::Allow,
        1 if kind > 200 => StopHookVerdict::Halt("h".to_owned()),
        2 => StopHookVerdict::Error("e".to_owned()),
        _ => StopHookVerdict::Block(format!("r{}", kind % 2)),
    };
    let reports = vec![StopReport { name: "tests".to_owned(), verdict, duration_ms: 1, note: None }];
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

fn said(moment: HookMoment, kind: u8) -> Vec<HookReport> {
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
    vec![HookReport { reminders, ..report(moment, decision) }]
}

fn approval(kind: u8, pattern: &str) -> ApprovalAnswer {
    let scope = match kind % 3 {
        0 => ApprovalScope::Once,
        1 => ApprovalScope::Run,
        _ => return ApprovalAnswer::Deny { reason: String::new() },
    };
    ApprovalAnswer::Allow { scope, pattern: Some(pattern.to_owned()) }
}

/// Every moment whose bit is set has a hook.
fn guarded(mut policy: RunPolicy, bits: u32) -> RunPolicy {
    let moments = HookMoment::ALL.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
    policy.agent.hooks = moments.map(|(_, moment)| guard(*moment)).collect();
    policy
}

struct Driver {
    world: World,
    sent: Vec<SessionEvent>,
}

impl Driver {
    fn send(&mut self, event: SessionEvent) {
        self.sent.push(event.clone());
        self.world.session_event(event);
    }

    fn apply(&mut self, op: &Op) {
        let serial = self.world.session_log().len();
        match op {
            Op::Answer(kind, salt) => {
                if let Some(seq) = self.world.thinking() {
                    self.send(SessionEvent::Answered { seq, answer: answer(*kind, *salt, serial) });
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
                    self.send(SessionEvent::ToolDone { seq: *seq, result: tool_result(*kind) });
                }
            }
            Op::Hooks(kind) => {
                if let Some(seq) = self.world.checking() {
                    self.send(SessionEvent::StopChecked { seq, result: stop_result(*kind) });
                }
            }
            Op::Hear(which, kind) => {
                let open = self.world.consults();
                if let Some((seq, consult)) = open.get(usize::from(*which) % open.len().max(1)) {
                    let reports = said(consult.about.moments()[0], *kind);
                    self.send(SessionEvent::HooksAnswered { seq: *seq, reports });
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
            Op::Pause => self.world.run_event(RunEvent::Pause { by: "p".into() }),
            Op::Cancel => self.world.run_event(RunEvent::Cancel { by: "c".into() }),
            Op::Resume(more) => {
                let budget = Budget { tokens: more.then_some(3_000), ..Budget::default() };
                let turns_max = more.then_some(20);
                self.world.run_event(RunEvent::Resume { by: "r".into(), budget, turns_max });
            }
            Op::Say => self.world.run_event(RunEvent::Say { text: "t".into(), by: "s".into() }),
            Op::Repeat(which) => {
                if let Some(event) = self.sent.get(usize::from(*which) % self.sent.len().max(1)).cloned() {
                    self.world.session_event(event);
                }
            }
            Op::Stray(seq, kind) => self.stray(Seq(u64::from(*seq)), *kind),
        }
    }

    /// The process dies: the states are folded from the logs anew, and what was open is nobody's any more.
    fn crash(&mut self) {
        for (key, log) in &self.world.logs {
            let mut folded = provost_engine::Actor::new(*key);
            log.iter().for_each(|record| folded.replay(record).expect("it replays"));
            self.world.actors.insert(*key, folded);
        }
        let fresh = self.world.open.iter().filter(|(id, effect)| {
            matches!(effect, Effect::RunTool(_) | Effect::Think(_)) && id.1.0.is_multiple_of(3)
        });
        let fresh = fresh.map(|((actor, seq), _)| EffectId { actor: *actor, seq: *seq }).collect();
        self.world.run_event(RunEvent::Recover { fresh });
    }

    fn stray(&mut self, seq: Seq, kind: u8) {
        if self.world.open.iter().any(|(id, effect)| id.1 == seq && !matches!(effect, Effect::Timer { .. })) {
            return;
        }
        let before = self.world.session_log().len();
        self.world.session_event(SessionEvent::ToolDone { seq, result: tool_result(kind) });
        self.world.session_event(SessionEvent::StopChecked { seq, result: stop_result(kind) });
        self.world.session_event(SessionEvent::Answered { seq, answer: answer(kind, kind, before) });
        self.world.session_event(SessionEvent::ModelFailed { seq, failure: failure(kind) });
        let reports = said(HookMoment::PreToolCall, kind);
        self.world.session_event(SessionEvent::HooksAnswered { seq, reports });
        assert_eq!(self.world.session_log().len(), before, "a stray result counted");
    }

    /// Plays a well-behaved world until the session rests: it must get there.
    fn play_to_rest(&mut self) {
        for _ in 0..400 {
            if self.world.outcome().is_some() {
                return;
            }
            if self.world.thinking().is_some() {
                self.apply(&Op::Answer(0, 1));
            } else if let Some((seq, _)) = self.world.tools().first().cloned() {
                self.send(SessionEvent::ToolDone { seq, result: tool_result(3) });
            } else if self.world.checking().is_some() {
                self.apply(&Op::Hooks(0));
            } else if !self.world.consults().is_empty() {
                self.apply(&Op::Hear(0, 0));
            } else if !self.world.approvals().is_empty() {
                self.apply(&Op::Resolve(0, 0));
            } else {
                self.world.tick();
            }
        }
        panic!("it never comes to rest");
    }
}

fn charged(world: &World) -> u64 {
    let usage = |entry: &Entry| match entry {
        Entry::BudgetCharged(charged) => charged.usage.total(),
        _ => 0,
    };
    world.run_log().iter().map(|record| usage(&record.entry)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_under_random_doubled_late_and_lost_events(
        ops in proptest::collection::vec(op(), 0..120),
        tokens in proptest::option::of(400_u64..3_000),
        wall in proptest::option::of(1_000_u64..100_000),
        hooks in prop_oneof![2 => Just(0_u32), 3 => any::<u32>()],
        (asks, pauses) in (any::<bool>(), any::<bool>()),
    ) {
        let mut policy = guarded(policy(), hooks);
        if asks {
            policy.agent.permissions.ask = vec!["shell".to_owned(), "read".to_owned()];
            policy.agent.permissions.deny = vec!["edit".to_owned()];
        }
        if pauses {
            policy.agent.permissions.unanswered = Unanswered::Pause;
        }
        policy.budget.tokens = tokens;
        policy.budget.wall_time_ms = wall;
        let mut driver = Driver { world: World::start(policy), sent: Vec::new() };
        for op in &ops {
            driver.apply(op);
        }
        driver.play_to_rest();
        let outcome = driver.world.outcome().expect("it rests");
        // The run stands as its root agent does.
        let last = driver.world.run_log().last().expect("entries").entry.clone();
        match last {
            Entry::Ended(end) => prop_assert_eq!(end.outcome, outcome),
            Entry::Paused(rest) => prop_assert_eq!(rest.outcome, outcome),
            other => prop_assert!(false, "the run's last entry is {}", other.kind()),
        }
        if let Some(limit) = tokens {
            // The script's answers never exceed what was set aside for them.
            let limit = limit.max(if ops.iter().any(|op| matches!(op, Op::Resume(true))) { 3_000 } else { 0 });
            prop_assert!(charged(&driver.world) <= limit, "{} charged of {}", charged(&driver.world), limit);
        }
        // Every model call was paid for, once.
        let asked = driver.world.session_log().iter().filter(|r| matches!(r.entry, Entry::ModelCalled(_))).count();
        let paid = driver.world.run_log().iter().filter(|r| matches!(r.entry, Entry::BudgetCharged(_))).count();
        prop_assert_eq!(asked, paid);
        if let Outcome::Completed { .. } = driver.world.outcome().expect("it rests") {
            prop_assert!(driver.world.open.is_empty(), "effects are left open");
        }
    }
}
