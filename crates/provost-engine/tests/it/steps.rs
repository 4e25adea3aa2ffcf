//! The steps of a workflow: random workflows and random ends against a plain, readable model.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use provost_engine::{Attempt, FlowProblem, StepStatus, StepTracker, check_flow};
use provost_event::{
    Budget, Dimension, Elapsed, ErrorClass, Exhausted, FlowPolicy, LimitOwner, OnStepFailure, Outcome,
    Priority, RunId, SessionId, StepEnd, StepEnded, StepPolicy, Timestamp, Verdict,
};

/// The wall clock's constant time, which must have no effect.
const WALL: Timestamp = Timestamp(5_000_000);
const THEN: [OnStepFailure; 3] = [OnStepFailure::Abort, OnStepFailure::Skip, OnStepFailure::Ask];

fn step(name: &str, needs: &[&str]) -> StepPolicy {
    StepPolicy {
        name: name.to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        agent: None,
        goal: "g".to_owned(),
        stop_hooks: Vec::new(),
        attempts_max: 1,
        restarts_max: None,
        on_failure: OnStepFailure::Abort,
        priority: Priority::Normal,
        budget: Budget::default(),
    }
}

fn flow(steps: Vec<StepPolicy>) -> FlowPolicy {
    FlowPolicy { name: "flow".to_owned(), file: None, steps }
}

/// Random bytes as a workflow without cycles: a step depends on some of those before it, by the bits of a number;
/// they are written in another order.
fn random_flow(bytes: &[u32]) -> FlowPolicy {
    let mut steps = Vec::new();
    for (number, bytes) in bytes.iter().enumerate() {
        let [needs, more, attempts, rest] = bytes.to_le_bytes();
        let bits = u16::from_le_bytes([needs, more]) & u16::from_le_bytes([more, needs]);
        let needs = (0..number).filter(|before| bits >> (before % 16) & 1 == 1);
        steps.push(StepPolicy {
            needs: needs.map(|before| format!("s{before}")).collect(),
            attempts_max: 1 + u32::from(attempts % 3),
            on_failure: THEN[usize::from(rest) % 3],
            priority: Priority::ALL[usize::from(rest / 3) % 5],
            ..step(&format!("s{number}"), &[])
        });
    }
    let turn = bytes.len() / 2;
    steps.rotate_left(turn);
    flow(steps)
}

fn outcome(kind: u8) -> Outcome {
    let exhausted = |dimension| Outcome::BudgetExhausted(Exhausted::new(dimension, 2, 1));
    match kind % 12 {
        0..4 => Outcome::UNVERIFIED,
        4 => Outcome::Completed {
            verdict: Some(Verdict::Pass),
            verification: provost_event::Verification::Passed,
        },
        5 => Outcome::Completed {
            verdict: Some(Verdict::Fail),
            verification: provost_event::Verification::None,
        },
        6 | 7 => Outcome::Failed { class: ErrorClass::Server, message: "m".to_owned() },
        8 => Outcome::Blocked { reasons: Vec::new() },
        // The agent's own limit.
        9 => Outcome::BudgetExhausted(Exhausted {
            owner: LimitOwner::Agent,
            ..Exhausted::new(Dimension::Turns, 2, 1)
        }),
        10 => exhausted(Dimension::Tokens),
        _ => Outcome::Cancelled { by: "alice".to_owned() },
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Open,
    Work(u32),
    Later(Elapsed),
    Done,
    Failed,
    Asks,
    Skipped,
}

/// The rules, looked up in a list each time.
struct Naive {
    flow: FlowPolicy,
    all: Vec<(At, u32)>,
}

impl Naive {
    fn place(&self, name: &str) -> usize {
        self.flow.steps.iter().position(|step| step.name == name).expect("a step")
    }

    fn is_ready(&self, place: usize) -> bool {
        let needs = &self.flow.steps[place].needs;
        self.all[place].0 == At::Open && needs.iter().all(|need| self.all[self.place(need)].0 == At::Done)
    }

    fn next(&self, now: Elapsed) -> Option<usize> {
        let mut best: Option<usize> = None;
        for place in 0..self.all.len() {
            let waited = matches!(self.all[place].0, At::Later(due) if due <= now);
            let is_before = |best: usize| self.flow.steps[place].priority > self.flow.steps[best].priority;
            if (waited || self.is_ready(place)) && best.is_none_or(is_before) {
                best = Some(place);
            }
        }
        best
    }

    fn needs(&self, place: usize, other: usize) -> bool {
        let needs = self.flow.steps[place].needs.iter().map(|need| self.place(need));
        needs.into_iter().any(|need| need == other || self.needs(need, other))
    }

    /// The expected consequence, except for the time of a retry.
    fn ended(&mut self, place: usize, outcome: &Outcome, due: Option<Elapsed>) {
        let policy = &self.flow.steps[place];
        let failures = &mut self.all[place].1;
        let may = match outcome {
            Outcome::Completed { verdict: None | Some(Verdict::Pass), .. } => {
                self.all[place].0 = At::Done;
                return;
            }
            Outcome::Cancelled { .. } => false,
            // Its agent has been restarted before.
            outcome if outcome.may_restart() => false,
            Outcome::BudgetExhausted(exhausted) => exhausted.owner == LimitOwner::Agent,
            _ => true,
        };
        *failures += 1;
        if may && *failures < policy.attempts_max {
            self.all[place].0 = At::Later(due.expect("it is tried again"));
            return;
        }
        assert!(due.is_none(), "it isn't tried again");
        self.all[place].0 = match policy.on_failure {
            OnStepFailure::Ask => At::Asks,
            OnStepFailure::Abort => At::Failed,
            OnStepFailure::Skip => {
                let lost = (0..self.all.len()).filter(|other| self.needs(*other, place)).collect::<Vec<_>>();
                lost.into_iter().for_each(|other| self.all[other].0 = At::Skipped);
                At::Failed
            }
        };
    }
}

struct Both {
    tracker: StepTracker,
    naive: Naive,
    now: Elapsed,
    next_agent: u32,
}

impl Both {
    fn new(flow: FlowPolicy) -> Self {
        let all = flow.steps.iter().map(|_| (At::Open, 0)).collect();
        let tracker = StepTracker::new(&flow);
        Self { tracker, naive: Naive { flow, all }, now: Elapsed(1_000), next_agent: 1 }
    }

    fn begin(&mut self) -> Result<(), TestCaseError> {
        let next = self.tracker.next(self.now);
        prop_assert_eq!(next, self.naive.next(self.now));
        let Some(step) = next else { return Ok(()) };
        let needed = &self.naive.flow.steps[step].needs;
        for (name, text) in self.tracker.told(step) {
            prop_assert!(needed.iter().any(|need| need == name));
            prop_assert_eq!(text.to_owned(), format!("said of {}", name));
        }
        prop_assert_eq!(self.tracker.told(step).count(), needed.len());
        self.tracker.began(step, self.next_agent);
        self.naive.all[step].0 = At::Work(self.next_agent);
        self.next_agent += 1;
        Ok(())
    }

    fn end(&mut self, which: u8, kind: u8) -> Result<(), TestCaseError> {
        let at_work = |place: &usize| matches!(self.naive.all[*place].0, At::Work(_));
        let at_work = (0..self.naive.all.len()).filter(at_work).collect::<Vec<_>>();
        let Some(step) = at_work.get(usize::from(which) % at_work.len().max(1)).copied() else {
            return Ok(());
        };
        let (name, outcome) = (self.naive.flow.steps[step].name.clone(), outcome(kind));
        let text = format!(" said of {name}\n");
        let attempt = Attempt { outcome: &outcome, text: &text, at: WALL, entropy: u64::from(kind) * 977 };
        let end = self.tracker.after(step, &attempt).expect("a step");
        let due = match &end {
            StepEnd::Again { delay_ms, due, .. } => {
                prop_assert!((1..=30_000).contains(delay_ms));
                prop_assert_eq!(*due, WALL.plus_ms(*delay_ms));
                Some(self.now.plus_ms(*delay_ms))
            }
            StepEnd::Done { .. } | StepEnd::Failed { .. } => None,
        };
        let child = SessionId { run: RunId::from_entropy(1), agent: 1 };
        self.tracker.ended(&StepEnded { step: name, child, attempt: 1, end }, self.now);
        self.naive.ended(step, &outcome, due);
        Ok(())
    }

    fn resume(&mut self) {
        self.tracker.resumed();
        for (at, failures) in &mut self.naive.all {
            if *at == At::Asks {
                (*at, *failures) = (At::Open, 0);
            }
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for place in 0..self.naive.all.len() {
            let fits = match (self.tracker.standing(place).expect("a step"), self.naive.all[place].0) {
                (StepStatus::Waiting, At::Open) => !self.naive.is_ready(place),
                (StepStatus::Ready, At::Open) => self.naive.is_ready(place),
                (StepStatus::AtWork(agent), At::Work(same)) => {
                    *agent == same && self.tracker.attempts(place).last() == Some(agent)
                }
                (StepStatus::Later(wait), At::Later(same)) => wait.ready == same,
                (StepStatus::Done, At::Done)
                | (StepStatus::Failed(_), At::Failed)
                | (StepStatus::Asks(_), At::Asks)
                | (StepStatus::Skipped, At::Skipped) => true,
                _ => false,
            };
            prop_assert!(
                fits,
                "step {place}: {:?} {:?}",
                self.tracker.standing(place),
                self.naive.all[place]
            );
        }
        let all = self.naive.all.iter().map(|(at, _)| *at);
        let due = all.clone().filter_map(|at| if let At::Later(due) = at { Some(due) } else { None });
        prop_assert_eq!(self.tracker.first_due(), due.min());
        prop_assert_eq!(self.tracker.asks().is_some(), all.clone().any(|at| at == At::Asks));
        let is_over = all.clone().all(|at| matches!(at, At::Done | At::Failed | At::Skipped));
        prop_assert_eq!(self.tracker.is_over(), is_over);
        Ok(())
    }

    fn read_back(&mut self) -> Result<(), TestCaseError> {
        let text = serde_json::to_string(&self.tracker).expect("JSON");
        let read = serde_json::from_str::<StepTracker>(&text).expect("a tracker");
        prop_assert_eq!(&read, &self.tracker);
        self.tracker = read;
        Ok(())
    }

    /// Begins and ends steps until nothing is left; each question is answered with a resumption.
    fn play_out(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..10 * self.naive.all.len() {
            if self.tracker.is_over() {
                break;
            }
            self.now = self.now.plus_ms(60_000);
            self.begin()?;
            self.end(0, 0)?;
            self.resume();
        }
        // A workflow that has failed is never over: the dependents of the failed step are never begun.
        let was_given_up = (0..self.naive.all.len()).any(|place| {
            self.naive.all[place].0 == At::Failed
                && self.naive.flow.steps[place].on_failure == OnStepFailure::Abort
        });
        prop_assert!(was_given_up || self.tracker.is_over(), "nothing is left undone");
        Ok(())
    }
}

/// The number of cases, unless the variable sets another.
fn cases() -> u32 {
    std::env::var("PROVOST_FLOW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_500)
}

#[test]
fn steps_stand_as_the_rules_say() {
    let sequence = (
        proptest::collection::vec(any::<u32>(), 1..=10),
        proptest::collection::vec(any::<u32>(), 0..=40),
        0..40_usize,
    );
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let told = TestRunner::new(config).run(&sequence, |(steps, ops, read_back_at)| {
        let flow = random_flow(&steps);
        prop_assert_eq!(check_flow(&flow, &[]), Vec::new());
        let mut both = Both::new(flow);
        for (place, op) in ops.into_iter().enumerate() {
            let [kind, which, end, ms] = op.to_le_bytes();
            match kind % 8 {
                0..3 => both.begin()?,
                3..6 => both.end(which, end)?,
                6 => both.now = both.now.plus_ms(u64::from(ms) * 4),
                _ => both.resume(),
            }
            both.check()?;
            if place == read_back_at {
                both.read_back()?;
            }
        }
        both.play_out()?;
        both.check()
    });
    told.unwrap_or_else(|problem| panic!("{problem}"));
}

#[test]
fn what_keeps_a_flow_from_being_gone_through_is_told() {
    let told = |steps| check_flow(&flow(steps), &[]).iter().map(FlowProblem::to_string).collect::<Vec<_>>();
    assert_eq!(told(vec![]), ["the workflow has no steps"]);
    assert_eq!(told(vec![step("a", &[]), step("b", &["a"])]), [""; 0]);
    assert_eq!(told(vec![step("a", &["a"])]), ["the steps need each other: a → a"]);
    let cycle = vec![step("z", &["a"]), step("a", &["b"]), step("b", &["c"]), step("c", &["a"])];
    assert_eq!(told(cycle), ["the steps need each other: a → b → c → a"]);
    let wrong = vec![
        step("a", &["c"]),
        StepPolicy { goal: " ".to_owned(), attempts_max: 0, ..step("a", &[]) },
        StepPolicy { agent: Some("unknown".to_owned()), ..step("", &[]) },
    ];
    assert_eq!(
        told(wrong),
        [
            "there are two steps named `a`",
            "step 3 has no name",
            "step `a` needs `c`, and there is no such step",
            "step `a` has no goal",
            "step `a` is never tried: it needs at least one attempt",
            "step `` is for agent `unknown`, and there is no such agent",
        ]
    );
}
