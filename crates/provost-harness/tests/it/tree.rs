//! Two hundred agents in eight slots, through the real harness and the real store, with a process that dies
//! repeatedly and with cancellations; the invariants are checked by the logs.
//!
//! `they_do_so_with_every_seed --run-ignored all` tries 200 seeds (or `PROVOST_TREE_SEEDS`), from
//! `PROVOST_TREE_FROM` on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::StreamExt as _;
use provost_backend::EmbeddedBackend;
use provost_engine::{Event, RunEvent};
use provost_event::{AgentEntry, Budget, Entry, Outcome, Priority, Record, Seq, SpawnBudget};
use provost_harness::{AgentHarness, BackendError, Harness, HarnessError, Log as _};
use provost_llm::ScriptedModel;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::tree_laws::{Counted, check, last_entries, logs};
use crate::tree_script::{FOR_THE_ROOT, Tree};
use crate::tree_stage::*;

const DEADLINE: Duration = Duration::from_secs(30);
const SLOTS: u32 = 8;
/// Default number of seeds of the long test; set by `PROVOST_TREE_SEEDS`.
const SEEDS: u64 = 200;
/// Maximum processes that die before one lives.
const DEATHS_MAX: u32 = 5;

/// The disturbances of the run: one in four has a small budget, one in ten is cancelled.
struct Seed {
    random: Rng,
    /// The run has less than it needs, and gets more when it is suspended.
    is_poor: bool,
    /// The whole run is cancelled once this many agents have been spawned.
    cancelled_at: Option<u32>,
}

/// How one process left the run.
enum Left {
    Stopped(Outcome),
    Died,
}

fn budget_of(priority: Priority) -> Budget {
    let tokens = match priority {
        Priority::Background => Some(1_500),
        Priority::Low | Priority::High => Some(4_000),
        Priority::Normal | Priority::Critical => None,
    };
    Budget { tokens, ..Budget::default() }
}

/// Runs the tree of `seed` to its end, in as many processes as necessary.
async fn round(seed: u64) -> (Counted, u32) {
    let model = Arc::new(ScriptedModel::parse(&Tree::of(seed).script, "tree").unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("provost.db");
    let (decisions, at_work) = (Decisions::default(), AtWork::default());
    let random = Rng::with_seed(!seed);
    let mut seed = Seed { random, is_poor: seed % 4 == 3, cancelled_at: (seed % 10 == 7).then_some(150) };
    let spawn = SpawnBudget { max_agents: SLOTS, max_depth: 4, ..SpawnBudget::default() };
    let mut policy = policy(spawn, budget_of);
    policy.budget.tokens = Some(if seed.is_poor { 60_000 } else { 1_000_000 });
    let (mut deaths, mut outcome) = (0, None);
    while outcome.is_none() {
        let dies_after = (deaths < DEATHS_MAX).then(|| seed.random.u32(10..200));
        let store = Mortal::open(&path, decisions.clone(), dies_after);
        let (harness, backend) = harness(store, &model, &at_work);
        let life = timeout(DEADLINE, live(&harness, &backend, &policy, &mut seed)).await;
        let Ok(life) = life else {
            panic!("it hangs in its life {deaths}:\n{}", last_entries(&logs(&*backend, RUN).await))
        };
        match life {
            Left::Stopped(rest) => outcome = Some(rest),
            Left::Died => deaths += 1,
        }
    }
    let store = Mortal::open(&path, decisions.clone(), None);
    let (_, backend) = harness(store, &model, &at_work);
    let logs = logs(&*backend, RUN).await;
    let counted = check(RUN, &logs, &decisions.lock().unwrap());
    let expected = if seed.cancelled_at.is_some() { "cancelled" } else { "completed" };
    assert_eq!(outcome.unwrap().word(), expected);
    assert!(at_work.most() <= SLOTS as usize, "{} agents were seen at work", at_work.most());
    if seed.cancelled_at.is_none() {
        assert!(counted.agents >= FOR_THE_ROOT as usize, "{counted:?}");
        assert_eq!(counted.at_work_most, SLOTS as usize, "the slots are used");
    }
    (counted, deaths)
}

/// One process serves the run until the run is suspended or ends, or the process dies.
async fn live(
    harness: &AgentHarness,
    backend: &Arc<EmbeddedBackend>,
    policy: &provost_event::RunPolicy,
    seed: &mut Seed,
) -> Left {
    let mut run = match claimed(harness, policy).await {
        Ok(run) => run,
        Err(_) => return Left::Died,
    };
    let cancel = CancellationToken::new();
    loop {
        let outcome = tokio::select! {
            outcome = run.run(&cancel) => outcome,
            () = meddle(backend, seed) => return Left::Died,
        };
        match outcome {
            Err(_) => return Left::Died,
            Ok(outcome) if outcome.is_final() => return Left::Stopped(outcome),
            Ok(Outcome::BudgetExhausted(_)) => {
                let more = Budget { tokens: Some(2_000_000), ..Budget::default() };
                if run.resume("ann", more, None).await.is_err() {
                    return Left::Died;
                }
            }
            Ok(other) => panic!("it is suspended at {other}"),
        }
    }
}

/// The run, as soon as the previous process has released it.
async fn claimed(harness: &AgentHarness, policy: &provost_event::RunPolicy) -> Result<Harness, HarnessError> {
    loop {
        let opened = match harness.open(RUN).await {
            Err(HarnessError::UnknownRun(_)) => harness.start(RUN, "all of it", policy.clone()).await,
            opened => opened,
        };
        match opened {
            Err(HarnessError::Backend(BackendError::Held { .. })) => {
                tokio::time::sleep(Duration::from_millis(1)).await
            }
            other => return other,
        }
    }
}

/// Follows the run's log and intervenes at intervals; returns when the process is to be dropped during its work.
async fn meddle(backend: &Arc<EmbeddedBackend>, seed: &mut Seed) {
    let before = backend.read(RUN.into(), Seq::START, 100_000).await.unwrap_or_default();
    let number = |record: &Arc<Record>| match &record.entry {
        Entry::Agent(AgentEntry::Spawned(spawned)) => Some(spawned.child.agent),
        _ => None,
    };
    let mut spawned = before.iter().rev().find_map(number).unwrap_or_default();
    let mut log = backend.subscribe(RUN.into(), before.last().map_or(Seq::START, |record| record.seq));
    let mut next = seed.random.u32(1..80);
    let mut cancel_at = seed.cancelled_at;
    while let Some(Ok(record)) = log.next().await {
        spawned = number(&record).unwrap_or(spawned);
        if cancel_at.take_if(|at| spawned >= *at).is_some() {
            let event = RunEvent::Cancel { agent: None, by: "ann".to_owned() };
            let _ = backend.post(RUN.into(), Event::Run(event), None).await;
        }
        next -= 1;
        if next > 0 {
            continue;
        }
        next = seed.random.u32(1..80);
        let agent = spawned.saturating_sub(seed.random.u32(0..30)).max(1);
        let by = "ann".to_owned();
        let event = match seed.random.u32(0..100) {
            0..15 => RunEvent::Cancel { agent: Some(agent), by },
            15..17 => return,
            17..60 => {
                let priority = *seed.random.choice(&Priority::ALL).unwrap();
                RunEvent::Reprioritize { agent, priority, by }
            }
            _ => continue,
        };
        let _ = backend.post(RUN.into(), Event::Run(event), None).await;
    }
    std::future::pending().await
}

// Each seed has other disturbances, see [`Seed`]; their timing varies.

#[tokio::test]
async fn two_hundred_agents_share_eight_slots_through_crashes_and_cancels() {
    let (counted, deaths) = round(0).await;
    assert!(deaths > 0 && counted.preempted > 0 && counted.waited > 0, "{deaths} deaths, {counted:?}");
}

#[tokio::test]
async fn they_do_so_when_the_budget_of_all_is_used_up_in_between() {
    round(3).await;
}

#[tokio::test]
async fn they_all_end_when_the_run_is_cancelled() {
    round(7).await;
}

#[tokio::test]
#[ignore = "takes minutes; run it by its name"]
async fn they_do_so_with_every_seed() {
    let seeds = std::env::var("PROVOST_TREE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let first = std::env::var("PROVOST_TREE_FROM").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + seeds {
        let began = Instant::now();
        let (counted, deaths) = round(seed).await;
        println!("seed {seed}: {deaths} deaths, {:?}, {counted:?}", began.elapsed());
    }
}
