//! Goals under random answers of agents, judges and hooks, and random, duplicate, late and lost events: the state
//! of the goal always matches a plain count of the log's entries.

mod answers;
mod budget;
mod case;
mod measure;
mod model;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::ProptestConfig;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

pub(crate) use case::goal_policy;
pub(crate) use model::GoalLaws;

use crate::laws::cases;
use crate::states;

/// What happened, over all cases.
#[derive(Debug, Default)]
struct Seen(BTreeMap<String, u32>);

impl Seen {
    fn count(&mut self, what: impl Into<String>, times: u32) {
        *self.0.entry(what.into()).or_default() += times;
    }
}

/// What must happen in some cases, or the test has no value.
const WANTED: &[&str] = &[
    "check at Claim",
    "check at Interval",
    "check at Limit",
    "Achieved at Claim",
    "Achieved at Interval",
    "Achieved at Limit",
    "NotAchieved at Claim",
    "NotAchieved at Interval",
    "NotAchieved at Limit",
    "Unverified at Claim",
    "Unverified at Interval",
    "Unverified at Limit",
    "stop hooks object",
    "parsed badly once",
    "rate limited once",
    "judges failed",
    "judge's call lost",
    "stale",
    "snapshot",
    "suspended: completed",
    "suspended: blocked by judges",
    "suspended: JudgeUnreachable",
    "suspended: Stuck",
    "suspended: GoalCleared",
    "suspended: Preempted",
    "suspended: CrashLoop",
    "suspended: Turns used up",
    "suspended: Tokens used up",
    "suspended: WallTime used up",
    "completed without a goal",
];

#[test]
fn a_goal_keeps_its_laws_whatever_happens() {
    let config = cases(60);
    let count = config.cases;
    let seen = Mutex::new(Seen::default());
    let tried = runner(config).run(&case::case(), |case| {
        case.check(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    });
    match tried {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nin {case:?}\n{}", case.story()),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("in {count} cases: {seen:#?}");
    for what in WANTED {
        let times = seen.0.get(*what).copied().unwrap_or_default();
        assert!(count < 2_000 || times * 500 >= count, "{what}: {times} times in {count} cases");
    }
}

/// The same random cases each time.
pub(crate) fn walk(cases: u32) {
    let seen = Mutex::new(Seen::default());
    let walked = states::walks(cases).run(&case::case(), |case| {
        case.check(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    });
    walked.expect("the laws hold");
}

/// The same cases each time, unless a seed asks for others.
fn runner(config: ProptestConfig) -> TestRunner {
    let seed = std::env::var("PROVOST_SEED").ok().and_then(|seed| seed.parse::<u8>().ok());
    let rng = match seed {
        Some(seed) => TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]),
        None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    };
    TestRunner::new_with_rng(config, rng)
}
