//! One random case: a policy, the events, and a well-behaved world at the end in which all agents must stop.

use proptest::prelude::*;
use provost_engine::{Actor, Effect, JudgeReport, RunEvent, SessionEvent, SessionStatus};
use provost_event::{
    Budget, BudgetEntry, Confidence, EffectId, Entry, ErrorClass, GoalEntry, GoalPolicy, JudgeAnswer,
    LifecycleEntry, MicroDollars, ModelEntry, ModelPolicy, OnHookError, Outcome, PauseReason, Price, Purpose,
    Record, RunPolicy, Seq, StepMode, SupervisorError, Unanswered, Usage,
};

use super::answers::{answer, convinced, evidence, failure, judgement, stop_result, tool_result};
use super::{Seen, budget};
use crate::laws::{approval, guarded, said};
use crate::world::{ROOT, RUN, World, policy};

#[derive(Debug, Clone)]
enum Op {
    /// The first awaited result, mostly as expected.
    Next(u8, u8),
    Judge(u8, u8),
    Fail(u8),
    ToolDone(u8, u8),
    Hooks(u8),
    Hear(u8, u8),
    Tick,
    Advance(u16),
    Crash(u8),
    Pause,
    Cancel,
    Clear,
    Resume(bool),
    Say,
    Snapshot(bool),
    /// An event that was sent before, once more.
    Repeat(u16),
    /// A judge's answer to an effect that isn't a judge's, or another answer to one that is.
    Stray(u8, u8),
    YieldSlot(u8),
    SlotFree,
    /// This number of messages between the actors arrive.
    Deliver(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let pair = || (any::<u8>(), any::<u8>());
    prop_oneof![
        40 => pair().prop_map(|(a, b)| Op::Next(a, b)),
        20 => pair().prop_map(|(a, b)| Op::Judge(a, b)),
        1 => any::<u8>().prop_map(Op::Fail),
        4 => pair().prop_map(|(a, b)| Op::ToolDone(a, b)),
        6 => any::<u8>().prop_map(Op::Hooks),
        4 => pair().prop_map(|(a, b)| Op::Hear(a, b)),
        5 => Just(Op::Tick),
        2 => any::<u16>().prop_map(Op::Advance),
        2 => any::<u8>().prop_map(Op::Crash),
        2 => Just(Op::Pause),
        1 => Just(Op::Cancel),
        1 => Just(Op::Clear),
        4 => any::<bool>().prop_map(Op::Resume),
        1 => Just(Op::Say),
        1 => any::<bool>().prop_map(Op::Snapshot),
        3 => any::<u16>().prop_map(Op::Repeat),
        2 => pair().prop_map(|(a, b)| Op::Stray(a, b)),
        1 => any::<u8>().prop_map(Op::YieldSlot),
        2 => Just(Op::SlotFree),
        20 => (1..4_u8).prop_map(Op::Deliver),
    ]
}

fn price() -> Price {
    let one = MicroDollars(1_000_000);
    Price { input: one, output: one, cache_read: one, cache_write: one, long: None }
}

prop_compose! {
    pub(crate) fn goal_policy()(
        judges in proptest::collection::vec((20..600_u32, any::<bool>()), 1..=4),
        agree in any::<u32>(),
        threshold in prop_oneof![1 => Just(0_u8), 1 => Just(50), 3 => Just(70), 1 => Just(100)],
        limits in (1..=4_u32, 1..=4_u32, prop_oneof![1..=3_u32, Just(5)]),
        verify_every in proptest::option::weighted(0.5, 1..=3_u32),
        evidence_tokens_max in 0..2_000_u32,
        budget_percent in prop_oneof![1 => Just(0_u8), 1 => Just(10), 1 => Just(20), 3 => Just(50), 3 => Just(100)],
        errors_block in any::<bool>(),
    ) -> GoalPolicy {
        let (rounds_max, failures_max, stuck_turns) = limits;
        let named = judges.iter().enumerate().map(|(place, (output, is_priced))| ModelPolicy {
            price: is_priced.then(price),
            ..ModelPolicy::new(format!("judge-{place}"), *output)
        });
        let judges = named.collect::<Vec<_>>();
        GoalPolicy {
            agree: agree % u32::try_from(judges.len()).expect("few") + 1,
            judges,
            threshold: Confidence::hundredths(threshold),
            rounds_max,
            failures_max,
            stuck_turns,
            verify_every,
            evidence_tokens_max,
            budget_percent,
            stop_hook_errors: if errors_block { OnHookError::Block } else { OnHookError::Ignore },
            ..GoalPolicy::new("the tests pass", ModelPolicy::new("none", 1))
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    goal: GoalPolicy,
    ops: Vec<Op>,
    tokens: Option<u64>,
    money: Option<u64>,
    wall_time_ms: Option<u64>,
    turns_max: u32,
    interruptions_max: u32,
    hooks: u32,
    has_stop_hooks: bool,
    is_stepped: bool,
    asks: bool,
    cancels: bool,
    holds: bool,
}

prop_compose! {
    pub(super) fn case()(
        goal in goal_policy(),
        ops in proptest::collection::vec(op(), 0..120),
        tokens in proptest::option::weighted(0.3, 1_500..80_000_u64),
        money in proptest::option::weighted(0.2, 1_500..80_000_u64),
        wall_time_ms in proptest::option::weighted(0.3, 1_000..300_000_u64),
        turns_max in prop_oneof![1 => 1..6_u32, 2 => Just(20)],
        interruptions_max in 1..5_u32,
        hooks in prop_oneof![2 => Just(0_u32), 1 => any::<u32>()],
        (has_stop_hooks, is_stepped, asks) in (any::<bool>(), proptest::bool::weighted(0.2), proptest::bool::weighted(0.2)),
        (cancels, holds) in (proptest::bool::weighted(0.2), proptest::bool::weighted(0.3)),
    ) -> Case {
        Case {
            goal,
            ops,
            tokens,
            money,
            wall_time_ms,
            turns_max,
            interruptions_max,
            hooks,
            has_stop_hooks,
            is_stepped,
            asks,
            cancels,
            holds,
        }
    }
}

impl Case {
    fn policy(&self) -> RunPolicy {
        let mut policy = guarded(policy(), self.hooks);
        let agent = &mut policy.agent;
        agent.goal = Some(Box::new(self.goal.clone()));
        agent.model.window_tokens = None;
        agent.model.output_tokens_max = 400;
        if !self.has_stop_hooks {
            agent.stop_hooks.clear();
        }
        if self.asks {
            agent.permissions.ask = vec!["shell".to_owned()];
            agent.permissions.unanswered = Unanswered::Pause;
        }
        if self.is_stepped {
            agent.step_mode = StepMode::Stepped;
        }
        let limits = &mut agent.limits;
        (limits.turns_max, limits.interruptions_max) = (self.turns_max, self.interruptions_max);
        limits.failed_turns_max = 30;
        policy.budget = self.limits();
        policy
    }

    fn limits(&self) -> Budget {
        let money = self.money.map(MicroDollars);
        Budget { tokens: self.tokens, money, wall_time_ms: self.wall_time_ms, turns: None }
    }

    pub(super) fn check(&self, seen: &mut Seen) {
        let mut driver =
            Driver { world: World::start(self.policy()), sent: Vec::new(), limits: self.limits() };
        self.play(&mut driver);
        seen.look_at(&driver.world);
    }

    /// The log of the session up to where it breaks a law.
    pub(super) fn story(&self) -> String {
        let mut driver =
            Driver { world: World::start(self.policy()), sent: Vec::new(), limits: self.limits() };
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.play(&mut driver)));
        driver.world.news()
    }

    fn play(&self, driver: &mut Driver) {
        driver.world.holds = self.holds;
        for op in self.ops.iter().filter(|op| self.cancels || !matches!(op, Op::Cancel)) {
            driver.apply(op);
        }
        let is_unlimited = self.tokens.is_none() && self.money.is_none();
        let is_affordable = self.goal.budget_percent > 0 || is_unlimited;
        driver.play_to_end(is_affordable);
        driver.check_end(u64::from(self.goal.budget_percent));
    }
}

struct Driver {
    world: World,
    sent: Vec<SessionEvent>,
    /// A resumption raises the exhausted limits.
    limits: Budget,
}

impl Driver {
    fn send(&mut self, event: SessionEvent) {
        self.sent.push(event.clone());
        self.world.session_event(event);
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Next(kind, salt) => self.next(*kind, *salt),
            Op::Judge(kind, salt) => self.judge(judgement(*kind, *salt), *salt),
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
                let open = self.world.hook_calls();
                if let Some((seq, hook_call)) = open.get(usize::from(*which) % open.len().max(1)) {
                    let reports = said(hook_call.about.points()[0], *kind);
                    self.send(SessionEvent::HooksAnswered { seq: *seq, reports, scripts: None });
                }
            }
            Op::Tick => self.tick(),
            Op::Advance(ms) => self.world.advance(u64::from(*ms) / 4),
            Op::Snapshot(session) => {
                self.world.take_snapshot(if *session { ROOT.into() } else { RUN.into() });
            }
            Op::Repeat(which) => self.repeat(usize::from(*which)),
            Op::Stray(seq, kind) => self.stray(Seq(u64::from(*seq)), *kind),
            Op::YieldSlot(ms) => {
                let grace_ms = u64::from(*ms) * 200;
                self.world.session_event(SessionEvent::YieldSlot { to: None, grace_ms });
            }
            Op::SlotFree => self.world.session_event(SessionEvent::SlotFree),
            Op::Deliver(times) => {
                for _ in 0..*times {
                    self.world.deliver();
                }
            }
            op => self.operate(op),
        }
    }

    /// The actions of people and the machine on the run.
    fn operate(&mut self, op: &Op) {
        self.slot();
        match op {
            Op::Crash(salt) => self.crash(u64::from(*salt)),
            Op::Pause => self.world.run_event(RunEvent::Pause { agent: None, by: "p".into() }),
            Op::Cancel => self.world.run_event(RunEvent::Cancel { agent: None, by: "c".into() }),
            Op::Clear => self.world.run_event(RunEvent::ClearGoal { agent: 0, by: "l".into() }),
            Op::Resume(more) => self.resume(more.then_some(600_000)),
            Op::Say => {
                let (text, by) = ("and this".to_owned(), "s".to_owned());
                self.world.run_event(RunEvent::Say { agent: 0, text, by });
            }
            other => unreachable!("{other:?}"),
        }
    }

    /// A preempted session gets its slot again before any other event: its run has no other agents.
    fn slot(&mut self) {
        if self.world.outcome().as_ref().is_some_and(Outcome::is_preempted) {
            self.world.session_event(SessionEvent::SlotFree);
        }
    }

    fn tick(&mut self) {
        self.slot();
        self.world.tick();
    }

    fn resume(&mut self, more: Option<u64>) {
        let budget = Budget {
            tokens: self.limits.tokens.and(more),
            money: self.limits.money.and(more.map(MicroDollars)),
            wall_time_ms: self.limits.wall_time_ms.and(more),
            turns: None,
        };
        let turns_max = more.map(|_| 60);
        self.world.run_event(RunEvent::Resume { agent: None, by: "r".into(), budget, turns_max, text: None });
    }

    fn next(&mut self, kind: u8, salt: u8) {
        let serial = self.world.session_log().len();
        if let Some(seq) = self.world.thinking() {
            let kind = if self.world.calls_model_for(Purpose::FinalSummary) { kind % 8 } else { kind };
            self.send(SessionEvent::Answered { seq, answer: answer(kind, salt, serial) });
        } else if self.world.judging().is_some() {
            self.judge(judgement(kind, salt), salt);
        } else if !self.world.tools().is_empty() {
            self.apply(&Op::ToolDone(salt, kind));
        } else if self.world.checking().is_some() {
            self.apply(&Op::Hooks(kind));
        } else if !self.world.hook_calls().is_empty() {
            // Rarely a refusal.
            self.apply(&Op::Hear(salt, if kind < 30 { salt } else { 8 }));
        } else if let Some(open) = self.world.approvals().first().cloned() {
            let answer = approval(kind, &open.pattern);
            self.send(SessionEvent::Resolve { asked: open.asked, answer, by: "p".into() });
        } else if self.world.deliver() {
            // The run has ended.
        } else if self.world.outcome().is_some() {
            self.apply(&Op::Resume(kind < 128));
        } else if !self.proceed() {
            self.tick();
        }
    }

    /// The called judge answers; a judge that was told to stop mostly stops.
    fn judge(&mut self, answer: JudgeAnswer, salt: u8) {
        let Some(seq) = self.world.judging() else { return };
        let Effect::Judge(call) = &self.world.open[&(ROOT.into(), seq)] else { return };
        let cap = u64::from(call.output_tokens_max);
        let stops = self.world.aborted.contains(&(ROOT.into(), seq)) && !salt.is_multiple_of(4);
        let answer = if stops {
            let (class, message) = (ErrorClass::Aborted, "stopped".to_owned());
            JudgeAnswer::Failed(SupervisorError::Llm { class, message, hint: String::new() })
        } else {
            answer
        };
        // A provider reports no more than was reserved: the condition and the instructions are larger than this.
        let usage = Usage {
            input_tokens: u64::from(salt) * 5,
            output_tokens: cap.min(u64::from(salt)),
            ..Usage::default()
        };
        let (model, duration_ms, evidence) = ("judge".to_owned(), 3, evidence(salt));
        let report = JudgeReport { answer, usage, model, duration_ms, evidence };
        self.send(SessionEvent::Judged { seq, report });
    }

    fn proceed(&mut self) -> bool {
        let Some(Actor::Session(state)) = self.world.actors.get(&ROOT.into()) else { return false };
        let SessionStatus::BetweenTurns { next } = state.standing() else { return false };
        self.send(SessionEvent::Proceed { turn: next });
        true
    }

    /// The process dies. Messages are durable: pending ones still arrive.
    fn crash(&mut self, salt: u64) {
        self.world.read_back();
        let waits = self.world.open.iter().filter(|(_, effect)| !matches!(effect, Effect::Timer { .. }));
        let fresh = waits.filter(|(id, _)| (id.1.0 + salt).is_multiple_of(3));
        let fresh = fresh.map(|((actor, seq), _)| EffectId { actor: *actor, seq: *seq }).collect();
        self.world.run_event(RunEvent::Recover { fresh });
    }

    fn repeat(&mut self, which: usize) {
        let Some(event) = self.sent.get(which % self.sent.len().max(1)).cloned() else { return };
        let is_judged = matches!(event, SessionEvent::Judged { .. });
        let before = self.world.session_log().len();
        self.world.session_event(event);
        assert!(!is_judged || self.world.session_log().len() == before, "a judge's answer counted twice");
    }

    fn stray(&mut self, seq: Seq, kind: u8) {
        let before = self.world.session_log().len();
        if self.world.judging() != Some(seq) {
            let usage = Usage::default();
            let (model, duration_ms, evidence) = (String::new(), 0, "other".to_owned());
            let report = JudgeReport { answer: convinced(), usage, model, duration_ms, evidence };
            self.world.session_event(SessionEvent::Judged { seq, report });
        }
        if let Some(seq) = self.world.judging() {
            self.world.session_event(SessionEvent::Answered { seq, answer: answer(kind, kind, before) });
            self.world.session_event(SessionEvent::ModelFailed { seq, failure: failure(kind) });
            self.world.session_event(SessionEvent::StopChecked { seq, result: stop_result(kind) });
            self.world.session_event(SessionEvent::ToolDone { seq, result: tool_result(kind) });
            self.world.session_event(SessionEvent::TimerFired { seq });
        }
        assert_eq!(self.world.session_log().len(), before, "a stray result counted");
    }

    /// All parties behave: each question gets a good answer, and a suspended session is resumed with higher
    /// limits.
    fn play_to_end(&mut self, is_affordable: bool) {
        let mut resumes = 0;
        for _ in 0..1_000 {
            if self.world.deliver() {
                continue;
            }
            match self.world.outcome() {
                None => self.behave(),
                Some(outcome) if outcome.is_preempted() => self.slot(),
                Some(outcome) if outcome.is_final() || (resumes > 2 && !is_affordable) => return,
                Some(outcome) => {
                    resumes += 1;
                    assert!(resumes < 20, "it is suspended again and again: {outcome:?}");
                    self.resume(Some(10_000_000 * (resumes + 1)));
                }
            }
        }
        panic!("it never comes to its end: {:?}", self.world.news());
    }

    fn behave(&mut self) {
        if let Some(seq) = self.world.thinking() {
            let serial = self.world.session_log().len();
            self.send(SessionEvent::Answered { seq, answer: answer(0, 0, serial) });
        } else if self.world.judging().is_some() {
            self.judge(convinced(), 4);
        } else if let Some((seq, _)) = self.world.tools().first().cloned() {
            let kind = u8::try_from(seq.0 % 256).expect("a byte") | 3;
            self.send(SessionEvent::ToolDone { seq, result: tool_result(kind) });
        } else if self.world.checking().is_some() {
            self.apply(&Op::Hooks(0));
        } else if !self.world.hook_calls().is_empty() {
            self.apply(&Op::Hear(0, 8));
        } else if let Some(open) = self.world.approvals().first().cloned() {
            let answer = approval(0, &open.pattern);
            self.send(SessionEvent::Resolve { asked: open.asked, answer, by: "p".into() });
        } else if !self.proceed() {
            self.tick();
        }
    }

    fn check_end(&self, percent: u64) {
        let outcome = self.world.outcome().expect("it is suspended");
        let last = self
            .world
            .run_log()
            .iter()
            .rfind(|record| !matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))));
        match &last.expect("entries").entry {
            Entry::Lifecycle(LifecycleEntry::Ended(end)) => assert_eq!(end.outcome, outcome),
            Entry::Lifecycle(LifecycleEntry::Paused(rest)) => assert_eq!(rest.outcome, outcome),
            other => panic!("the run's last entry is {}", other.kind()),
        }
        let count = |log: &[Record], wanted: fn(&Entry) -> bool| {
            log.iter().filter(|record| wanted(&record.entry)).count()
        };
        let asked =
            count(self.world.session_log(), |entry| matches!(entry, Entry::Model(ModelEntry::Called(_))));
        let paid =
            count(self.world.run_log(), |entry| matches!(entry, Entry::Budget(BudgetEntry::Charged(_))));
        assert_eq!(asked, paid, "model calls, and those that were paid");
        assert!(self.world.open.is_empty(), "effects are left open");
        let is_preempted_record = |record: &Record| match &record.entry {
            Entry::Lifecycle(LifecycleEntry::Paused(rest)) => rest.outcome.is_preempted(),
            _ => false,
        };
        // This run doesn't record that the session yields, and so keeps the reservation for it.
        if !self.world.session_log().iter().any(is_preempted_record) {
            budget::check(self.world.session_log(), self.world.run_log(), percent);
        }
    }
}

impl Seen {
    fn look_at(&mut self, world: &World) {
        for (what, times) in &world.goal_laws().counts {
            self.count(what.clone(), *times);
        }
        self.count("snapshot", u32::try_from(world.snapshots).expect("few"));
        let mut has_goal = true;
        for record in world.session_log() {
            match &record.entry {
                Entry::Lifecycle(LifecycleEntry::Paused(rest)) => {
                    self.count(format!("suspended: {}", word(&rest.outcome)), 1)
                }
                Entry::Lifecycle(LifecycleEntry::Ended(end)) => {
                    self.count(format!("suspended: {}", word(&end.outcome)), 1);
                    let is_done = matches!(end.outcome, Outcome::Completed { .. });
                    self.count("completed without a goal", u32::from(is_done && !has_goal));
                }
                Entry::Goal(GoalEntry::Cleared(_)) => has_goal = false,
                _ => {}
            }
        }
    }
}

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::BudgetExhausted(exhausted) => format!("{:?} used up", exhausted.dimension),
        Outcome::Blocked { reasons } if reasons.iter().any(|reason| reason.starts_with("judge: ")) => {
            "blocked by judges".to_owned()
        }
        Outcome::Paused { why: PauseReason::Hook { .. } } => "Hook".to_owned(),
        Outcome::Paused { why } => {
            format!("{why:?}").split_whitespace().next().unwrap_or_default().to_owned()
        }
        other => other.word().to_owned(),
    }
}
