//! Random trees of agents: duplicate, late and lost events, crashes, pauses, cancels, preemptions. The world
//! checks the laws of the logs after each event; at the end every text is that of an undisturbed run.

mod logs;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use provost_engine::{Answer, Effect, Event, JudgeReport, RunEvent, SessionEvent};
use provost_event::{
    ActorKey, AgentEntry, ApprovalAnswer, ApprovalScope, Budget, Entry, ErrorClass, GoalPolicy,
    LifecycleEntry, MicroDollars, ModelFailure, Outcome, PauseReason, Priority, Record, RunPolicy, Seq,
    SessionId, ToolStatus, Unanswered, Usage,
};

use crate::goal_laws::goal_policy;
use crate::laws::cases;
use crate::states;
use crate::tree_world::{Tree, key, policy, result};
use crate::world::{RUN, short};

pub(crate) use logs::{RunLaws, SessionLaws};
use script::{Node, Script};

/// The errors of failing model calls.
const FAILURES: [ErrorClass; 5] =
    [ErrorClass::Server, ErrorClass::RateLimited, ErrorClass::Cut, ErrorClass::Program, ErrorClass::Refusal];

#[derive(Debug, Clone)]
enum Op {
    /// One of the open effects has its expected result.
    Next(u16),
    /// The same, this many times, each time for another effect.
    Several(u16, u8),
    Fail(u16, u8),
    Repeat(u16),
    Tick,
    Advance(u16),
    Crash(u8),
    Pause(Option<u8>),
    Cancel(Option<u8>),
    Resume(Option<u8>, bool),
    Reprioritize(u8, u8),
    Say(u8),
    Clear(u8),
    Resolve(u8, u8),
    Snapshot(u8),
    Stray(u8, u8),
}

fn op() -> impl Strategy<Value = Op> {
    let some = || proptest::option::weighted(0.9, any::<u8>());
    prop_oneof![
        40 => any::<u16>().prop_map(Op::Next),
        20 => (any::<u16>(), 1..9_u8).prop_map(|(which, times)| Op::Several(which, times)),
        2 => (any::<u16>(), any::<u8>()).prop_map(|(which, kind)| Op::Fail(which, kind)),
        4 => any::<u16>().prop_map(Op::Repeat),
        4 => Just(Op::Tick),
        2 => any::<u16>().prop_map(Op::Advance),
        2 => any::<u8>().prop_map(Op::Crash),
        2 => some().prop_map(Op::Pause),
        2 => some().prop_map(Op::Cancel),
        4 => (some(), any::<bool>()).prop_map(|(agent, more)| Op::Resume(agent, more)),
        4 => (any::<u8>(), any::<u8>()).prop_map(|(agent, priority)| Op::Reprioritize(agent, priority)),
        1 => any::<u8>().prop_map(Op::Say),
        1 => any::<u8>().prop_map(Op::Clear),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(which, kind)| Op::Resolve(which, kind)),
        2 => any::<u8>().prop_map(Op::Snapshot),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(agent, seq)| Op::Stray(agent, seq)),
    ]
}

impl Op {
    /// Whether a run has the same result as without it, except for times and order.
    const fn is_harmless(&self) -> bool {
        match self {
            Self::Next(_)
            | Self::Several(..)
            | Self::Repeat(_)
            | Self::Tick
            | Self::Advance(_)
            | Self::Crash(_)
            | Self::Resume(..)
            | Self::Reprioritize(..)
            | Self::Snapshot(_)
            | Self::Stray(..) => true,
            Self::Fail(..)
            | Self::Pause(_)
            | Self::Cancel(_)
            | Self::Say(_)
            | Self::Clear(_)
            | Self::Resolve(..) => false,
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    nodes: Vec<Node>,
    ops: Vec<Op>,
    max_agents: u32,
    max_depth: u32,
    allow_preempt: bool,
    is_calm: bool,
    /// Of the run, and of the agents of two priorities.
    tokens: [Option<u64>; 3],
    money: Option<u64>,
    wall_time_ms: [Option<u64>; 2],
    ask_timeout_ms: Option<u64>,
    turns_max: u32,
    asks: bool,
    pauses: bool,
    /// The condition to verify, and for which agents: the root, the named agents, those that other agents request.
    goal: Option<(GoalPolicy, u8)>,
}

prop_compose! {
    fn case()(
        nodes in proptest::collection::vec(script::node(), 1..40),
        ops in proptest::collection::vec(op(), 0..120),
        (max_agents, max_depth) in (1..=8_u32, prop_oneof![1 => 0..3_u32, 3 => 3..6_u32]),
        allow_preempt in proptest::bool::weighted(0.9),
        is_calm in proptest::bool::weighted(0.3),
        run_tokens in proptest::option::weighted(0.15, 1_000..30_000_u64),
        low_tokens in proptest::option::weighted(0.15, 1_000..10_000_u64),
        high_tokens in proptest::option::weighted(0.1, 1_000..10_000_u64),
        money in proptest::option::weighted(0.1, 1_000..30_000_u64),
        run_ms in proptest::option::weighted(0.1, 1_000..200_000_u64),
        child_ms in proptest::option::weighted(0.1, 1_000..100_000_u64),
        ask_timeout_ms in proptest::option::weighted(0.1, 1_000..100_000_u64),
        turns_max in prop_oneof![1 => 1..4_u32, 4 => Just(20)],
        (asks, pauses) in (proptest::bool::weighted(0.2), any::<bool>()),
        goal in proptest::option::weighted(0.6, (goal_policy(), any::<u8>())),
    ) -> Case {
        Case {
            nodes,
            ops,
            max_agents,
            max_depth,
            allow_preempt,
            is_calm,
            tokens: [run_tokens, low_tokens, high_tokens],
            money,
            wall_time_ms: [run_ms, child_ms],
            ask_timeout_ms,
            turns_max,
            asks,
            pauses,
            goal,
        }
    }
}

impl Case {
    fn policy(&self) -> RunPolicy {
        let mut policy = policy(self.max_agents);
        (policy.spawn.max_depth, policy.spawn.allow_preempt) = (self.max_depth, self.allow_preempt);
        self.give_goals(&mut policy);
        if self.is_calm {
            policy.agent.limits.interruptions_max = u32::MAX;
            policy.agents.iter_mut().for_each(|agent| agent.agent.limits.interruptions_max = u32::MAX);
            return policy;
        }
        policy.agent.limits.turns_max = self.turns_max;
        let permissions = &mut policy.agent.permissions;
        permissions.approval_timeout_ms = 40_000;
        if self.asks {
            permissions.ask = vec!["shell".to_owned(), "high".to_owned()];
        }
        if self.pauses {
            permissions.unanswered = Unanswered::Pause;
        }
        policy.budget.tokens = self.tokens[0];
        policy.budget.money = self.money.map(MicroDollars);
        policy.budget.wall_time_ms = self.wall_time_ms[0];
        for agent in &mut policy.agents {
            agent.agent.limits.turns_max = self.turns_max;
            match agent.priority {
                Priority::Low => agent.budget.tokens = self.tokens[1],
                Priority::High => agent.budget.tokens = self.tokens[2],
                Priority::Background => agent.budget.wall_time_ms = self.wall_time_ms[1],
                Priority::Normal => agent.ask_timeout_ms = self.ask_timeout_ms,
                Priority::Critical => {}
            }
        }
        policy
    }

    fn give_goals(&self, policy: &mut RunPolicy) {
        let Some((goal, whose)) = &self.goal else { return };
        let mut goal = goal.clone();
        // Work without budget never ends.
        goal.budget_percent = goal.budget_percent.max(10);
        if self.is_calm {
            (goal.rounds_max, goal.failures_max, goal.stuck_turns) = (u32::MAX, u32::MAX, u32::MAX);
        }
        let goal = Some(Box::new(goal));
        let has = |place: usize| whose >> place & 1 == 1;
        let named = policy.agents.iter_mut().enumerate().filter(|(place, _)| has(*place));
        named.for_each(|(_, agent)| agent.agent.goal.clone_from(&goal));
        policy.agent.goal = goal.clone().filter(|_| has(5));
        policy.judging = goal.filter(|_| self.is_judged());
    }

    fn is_judged(&self) -> bool {
        self.goal.as_ref().is_some_and(|(_, whose)| *whose >= 64)
    }

    fn check(&self, seen: &mut Seen) {
        let mut driver = self.driver();
        self.play(&mut driver);
        seen.look_at(&driver);
    }

    fn driver(&self) -> Driver {
        Driver {
            tree: Tree::start(self.policy()),
            script: Script::new(&self.nodes, self.is_judged()),
            sent: Vec::new(),
            done: BTreeSet::new(),
        }
    }

    fn play(&self, driver: &mut Driver) {
        for op in self.ops.iter().filter(|op| !self.is_calm || op.is_harmless()) {
            driver.apply(op);
        }
        driver.play_to_end();
        driver.check_end();
        if self.is_calm {
            driver.check_calm();
        }
    }

    /// The logs up to where a law is broken: a line for each entry on agents or their goals.
    fn story(&self) -> String {
        let mut driver = self.driver();
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.play(&mut driver)));
        let sessions = (0..driver.agents()).map(|agent| {
            let log = driver.tree.log(key(agent)).iter();
            let kinds = log.map(|record| short(&record.entry)).collect::<Vec<_>>();
            format!("\nagent {agent}:\n{}", kinds.join("\n"))
        });
        let sessions = sessions.collect::<String>();
        format!("{}{sessions}", driver.tree.news())
    }
}

struct Driver {
    tree: Tree,
    script: Script,
    sent: Vec<(ActorKey, Event)>,
    /// Effects that were performed: a result may be held until earlier ones have theirs.
    done: BTreeSet<(ActorKey, Seq)>,
}

impl Driver {
    fn send(&mut self, to: ActorKey, event: SessionEvent) {
        self.sent.push((to, event.clone().into()));
        self.tree.post(to, event.into());
    }

    fn agents(&self) -> u32 {
        u32::try_from(self.tree.run().agents().count()).expect("few agents")
    }

    /// The open effects that a process performs.
    fn effects(&self) -> Vec<(ActorKey, Seq)> {
        let waits = self.tree.open.iter().filter(|(_, effect)| !matches!(effect, Effect::Timer { .. }));
        waits.map(|(id, _)| *id).filter(|id| !self.done.contains(id)).collect()
    }

    fn pick(&self, which: u16) -> Option<(ActorKey, Seq)> {
        let open = self.effects();
        open.get(usize::from(which) % open.len().max(1)).copied()
    }

    /// An effect has its expected result; an aborted one mostly stops.
    fn perform(&mut self, id: (ActorKey, Seq), salt: u16) {
        let (actor, seq) = id;
        let stops = self.tree.aborted.contains(&id) && !salt.is_multiple_of(4);
        let event = match &self.tree.open[&id] {
            Effect::CallModel(_) if stops => {
                let failure = ModelFailure::new(ErrorClass::Aborted, "stopped");
                SessionEvent::ModelFailed { seq, failure }
            }
            Effect::CallModel(model_call) => {
                let content = self.script.answer(self.tree.log(actor), model_call);
                let usage = Usage { input_tokens: 20, output_tokens: 30, ..Usage::default() };
                let (content, stop) = content;
                SessionEvent::Answered {
                    seq,
                    answer: Answer { cost: None, content, usage, model: "m".to_owned(), stop },
                }
            }
            Effect::RunTool(_) if stops => {
                SessionEvent::ToolDone { seq, result: result(ToolStatus::Cancelled, "stopped") }
            }
            Effect::RunTool(run) => {
                let output = script::output(&run.tool, run.input.text());
                SessionEvent::ToolDone { seq, result: result(ToolStatus::Ok, &output) }
            }
            Effect::Judge(call) => {
                let answer = if stops { script::aborted() } else { script::judgement(call, salt) };
                let output_tokens = u64::from(call.output_tokens_max.min(30));
                let usage = Usage { input_tokens: 20, output_tokens, ..Usage::default() };
                let (model, evidence) = ("judge".to_owned(), String::new());
                let report = JudgeReport { answer, usage, model, duration_ms: 1, evidence };
                SessionEvent::Judged { seq, report }
            }
            other => panic!("unexpected effect {other:?}"),
        };
        self.done.insert(id);
        self.send(actor, event);
    }

    fn apply(&mut self, op: &Op) {
        let agents = self.agents();
        let one = |agent: u8| u32::from(agent) % agents;
        match op {
            Op::Next(which) => {
                if let Some(id) = self.pick(*which) {
                    self.perform(id, which / 7);
                }
            }
            Op::Several(which, times) => {
                for time in 0..u16::from(*times) {
                    self.apply(&Op::Next(which.wrapping_mul(2 * time + 1)));
                }
            }
            Op::Fail(which, kind) => {
                if let Some(id) = self.pick(*which)
                    && let Effect::CallModel(_) = self.tree.open[&id]
                {
                    let class = FAILURES[usize::from(*kind) % FAILURES.len()];
                    let class = if *kind > 200 { ErrorClass::Unauthorized } else { class };
                    let usage = Usage { input_tokens: u64::from(*kind), ..Usage::default() };
                    let failure = ModelFailure { usage, ..ModelFailure::new(class, "m") };
                    self.send(id.0, SessionEvent::ModelFailed { seq: id.1, failure });
                }
            }
            Op::Repeat(which) => {
                let sent = self.sent.get(usize::from(*which) % self.sent.len().max(1)).cloned();
                if let Some((to, event)) = sent {
                    let before = self.tree.logs.values().map(Vec::len).sum::<usize>();
                    self.tree.post(to, event);
                    let after = self.tree.logs.values().map(Vec::len).sum::<usize>();
                    assert_eq!(before, after, "what is said twice counted twice");
                }
            }
            Op::Tick => self.tree.tick(),
            Op::Advance(ms) => self.tree.now = self.tree.now.plus_ms(u64::from(*ms) / 4),
            Op::Crash(salt) => {
                let salt = u64::from(*salt);
                let done = &self.done;
                self.tree
                    .crash(|id| (id.seq.0 + salt).is_multiple_of(3) && !done.contains(&(id.actor, id.seq)));
            }
            Op::Pause(agent) => self.tree.pause(agent.map(one)),
            // The whole run is cancelled only now and then.
            Op::Cancel(None) if !self.sent.len().is_multiple_of(4) => {}
            Op::Cancel(agent) => self.tree.cancel(agent.map(one)),
            Op::Resume(agent, more) => {
                let tokens = more.then_some(40_000);
                self.tree.resume_with(agent.map(one), Budget { tokens, ..Budget::default() });
            }
            Op::Reprioritize(agent, priority) => {
                self.tree.reprioritize(one(*agent), Priority::ALL[usize::from(*priority) % 5]);
            }
            Op::Say(agent) => {
                let (text, by) = ("go on".to_owned(), "s".to_owned());
                self.tree.run_event(RunEvent::Say { agent: one(*agent), text, by });
            }
            Op::Clear(agent) => {
                let by = "l".to_owned();
                self.tree.run_event(RunEvent::ClearGoal { agent: one(*agent), by });
            }
            Op::Resolve(which, kind) => self.resolve(usize::from(*which), *kind),
            Op::Snapshot(0..50) => self.tree.take_snapshot(RUN.into()),
            Op::Snapshot(agent) => self.tree.take_snapshot(key(one(*agent))),
            Op::Stray(agent, seq) => self.stray(one(*agent), Seq(u64::from(*seq) % 40)),
        }
    }

    fn resolve(&mut self, which: usize, kind: u8) {
        let open = (0..self.agents())
            .flat_map(|agent| self.tree.approvals(agent).into_iter().map(move |open| (agent, open)))
            .collect::<Vec<_>>();
        let Some((agent, open)) = open.get(which % open.len().max(1)).cloned() else { return };
        let answer = match kind % 4 {
            0 => ApprovalAnswer::Deny { reason: String::new() },
            1 => ApprovalAnswer::Allow { scope: ApprovalScope::Run, pattern: Some(open.pattern) },
            _ => ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None },
        };
        self.tree.event(agent, SessionEvent::Resolve { asked: open.asked, answer, by: "p".into() });
    }

    /// Results that no task waits for.
    fn stray(&mut self, agent: u32, seq: Seq) {
        if self.tree.open.contains_key(&(key(agent), seq)) || self.tree.session(agent).is_none() {
            return;
        }
        let before = self.tree.log(key(agent)).len();
        let failure = ModelFailure::new(ErrorClass::Server, "m");
        self.tree.event(agent, SessionEvent::ModelFailed { seq, failure });
        self.tree.event(agent, SessionEvent::ToolDone { seq, result: result(ToolStatus::Ok, "stray") });
        self.tree.event(agent, SessionEvent::TimerFired { seq });
        let report = JudgeReport {
            answer: script::aborted(),
            usage: Usage::default(),
            model: String::new(),
            duration_ms: 1,
            evidence: "other".to_owned(),
        };
        self.tree.event(agent, SessionEvent::Judged { seq, report });
        assert_eq!(self.tree.log(key(agent)).len(), before, "a stray event counted");
    }

    /// A well-behaved world that resumes the run whenever it is suspended: it must come to its end.
    fn play_to_end(&mut self) {
        let mut resumes = 0;
        for step in 0..3_000_u16 {
            let outcome = self.tree.outcome();
            if let Some(id) = self.pick(step) {
                self.perform(id, 1);
            } else if outcome.as_ref().is_some_and(Outcome::is_final) {
                return;
            } else if self.approves() {
                self.resolve(0, 2);
            } else if outcome.is_some() {
                resumes += 1;
                assert!(resumes < 60, "it is suspended again and again: {outcome:?}");
                let more = 10_000_000 * (resumes + 1);
                let budget = Budget {
                    tokens: Some(more),
                    money: Some(MicroDollars(more)),
                    wall_time_ms: Some(more),
                    turns: None,
                };
                let (by, turns_max) = ("r".to_owned(), Some(1_000));
                self.tree.run_event(RunEvent::Resume { agent: None, by, budget, turns_max, text: None });
            } else {
                self.tree.tick();
            }
        }
        panic!("it never comes to its end: {:?}", self.tree.outcome());
    }

    fn approves(&self) -> bool {
        (0..self.agents()).any(|agent| !self.tree.approvals(agent).is_empty())
    }

    fn check_end(&mut self) {
        assert!(self.tree.open.is_empty(), "effects are left open");
        for agent in 0..self.agents() {
            // Every model call was paid, once.
            let asked = self.tree.sessions.get(&key(agent)).map_or(0, |laws| laws.model_calls.len());
            assert_eq!(asked, self.tree.laws.paid(agent), "calls of agent {agent} that were paid");
            self.check_victim(agent);
            if let Some(expected) = self.script.expected(&self.tree, agent) {
                assert_eq!(script::last_text(self.tree.log(key(agent))), expected, "text of agent {agent}");
            }
        }
    }

    /// Each preempted agent continued, unless it was cancelled.
    fn check_victim(&self, agent: u32) {
        let log = self.tree.log(key(agent));
        let suspension_of = |record: &Record| match &record.entry {
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => Some(paused.outcome.is_preempted()),
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => Some(false),
            _ => None,
        };
        let is_preempted_by_another = log.iter().rev().find_map(suspension_of).unwrap_or(false);
        let Some(Record { entry: Entry::Lifecycle(LifecycleEntry::Ended(end)), .. }) = log.last() else {
            assert!(log.is_empty(), "agent {agent} has no end");
            return;
        };
        assert!(
            !is_preempted_by_another || matches!(end.outcome, Outcome::Cancelled { .. }),
            "agent {agent} yielded, never went on and ended: {}",
            end.outcome
        );
    }

    /// There were only crashes and preemptions: all work is done.
    fn check_calm(&self) {
        for agent in 0..self.agents() {
            if !self.tree.log(key(agent)).is_empty() {
                let end = self.tree.suspended(agent);
                assert!(matches!(end, Some(Outcome::Completed { .. })), "agent {agent}: {end:?}");
                assert!(self.script.expected(&self.tree, agent).is_some(), "agent {agent} was disturbed");
            }
        }
    }
}

/// What happened, over all cases.
#[derive(Debug, Default)]
struct Seen(BTreeMap<String, u32>);

impl Seen {
    fn count(&mut self, what: impl Into<String>, times: u32) {
        *self.0.entry(what.into()).or_default() += times;
    }

    fn look_at(&mut self, driver: &Driver) {
        let laws = &driver.tree.laws;
        self.count("yielded", laws.preempted);
        self.count("asked again", laws.again);
        self.count("quiet with a queued agent", laws.waited);
        self.count(format!("{} at work", laws.most_at_work), 1);
        self.count("agents", driver.agents());
        for record in driver.tree.log(RUN.into()) {
            match &record.entry {
                Entry::Agent(AgentEntry::Finished(done)) => {
                    self.count(format!("child {}", word(&done.outcome)), 1)
                }
                Entry::Agent(AgentEntry::Suspended(rest)) => {
                    self.count(format!("child suspended: {}", word(&rest.outcome)), 1)
                }
                Entry::Lifecycle(LifecycleEntry::Paused(rest)) => {
                    self.count(format!("run suspended: {}", word(&rest.outcome)), 1)
                }
                Entry::Lifecycle(LifecycleEntry::Ended(end)) => {
                    self.count(format!("run {}", word(&end.outcome)), 1)
                }
                Entry::Agent(AgentEntry::Spawned(spawned)) => {
                    let slot = format!("{:?}", spawned.slot);
                    self.count(slot.split('(').next().unwrap_or_default(), 1);
                }
                other => self.count(other.kind(), 1),
            }
        }
        for agent in 0..driver.agents() {
            if let Some(laws) = driver.tree.sessions.get(&key(agent)) {
                laws.goal.counts.iter().for_each(|(what, times)| self.count(what.clone(), *times));
            }
        }
        let texts =
            (0..driver.agents()).filter(|agent| driver.script.expected(&driver.tree, *agent).is_some());
        self.count("texts as in a calm run", u32::try_from(texts.count()).unwrap_or(0));
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

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::BudgetExhausted(exhausted) => format!("{:?} used up", exhausted.dimension),
        Outcome::Paused { why } => match why {
            PauseReason::Preempted { .. } => "preempted".to_owned(),
            why => format!("{why:?}").split_whitespace().next().unwrap_or_default().to_owned(),
        },
        Outcome::Cancelled { by } if by.starts_with("its ask timeout") => "asked too long".to_owned(),
        other => other.word().to_owned(),
    }
}

/// The agent of a case that a session belongs to.
pub(crate) fn goal(tree: &Tree, agent: SessionId) -> String {
    let started = tree.log(agent.into()).first();
    match started.map(|record| &record.entry) {
        Some(Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) => started.goal.clone(),
        _ => String::new(),
    }
}

#[test]
fn a_tree_of_agents_keeps_its_laws_whatever_happens() {
    let config = cases(60);
    let count = config.cases;
    let seen = Mutex::new(Seen::default());
    let tried = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)).run(
        &case(),
        |case| {
            case.check(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
            Ok(())
        },
    );
    match tried {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nin {case:?}\n{}", case.story()),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("in {count} cases: {seen:#?}");
    for what in [
        "yielded",
        "quiet with a queued agent",
        "1 at work",
        "8 at work",
        "After",
        "Free",
        "Queued",
        "child completed",
        "child cancelled",
        "child failed",
        "child Turns used up",
        "child Tokens used up",
        "child WallTime used up",
        "child asked too long",
        "child suspended: Asked",
        "child suspended: Approval",
        "child suspended: Tokens used up",
        "asked again",
        "child suspended: preempted",
        "agent_resume_requested",
        "reprioritized",
        "run suspended: Asked",
        "run cancelled",
        "run completed",
        "snapshot",
        "texts as in a calm run",
        "judge asked",
        "judge's call lost",
        "stale",
        "Achieved at Claim",
        "NotAchieved at Claim",
        "NotAchieved at Interval",
        "Unverified at Claim",
        "check at Limit",
        "child suspended: JudgeUnreachable",
        "child suspended: GoalCleared",
    ] {
        let times = seen.0.get(what).copied().unwrap_or_default();
        assert!(count < 2_000 || times * 500 >= count, "{what}: {times} times in {count} cases");
    }
}
