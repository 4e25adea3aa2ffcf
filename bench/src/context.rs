//! (i) A session of many tool calls with large outputs in a small window: what is sent, what is kept, what it costs.

// The same job, provider and checks as in the harness's own tests: there for hundreds of calls, here for
// thousands.
#[path = "../../crates/provost-harness/tests/it/long_counter.rs"]
mod long_counter;
#[path = "../../crates/provost-harness/tests/it/long_job.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod long_job;
#[path = "../../crates/provost-harness/tests/it/long_laws.rs"]
mod long_laws;
#[path = "../../crates/provost-harness/tests/it/long_provider.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod long_provider;
#[path = "../../crates/provost-harness/tests/it/long_stage.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod long_stage;
#[path = "../../crates/provost-harness/tests/it/long_texts.rs"]
mod long_texts;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{CompactionKind, ConversationEntry, Entry, ModelFailure, Purpose, Record};
use provost_harness::{AgentHarness, DeltaSink, HarnessCallback, HarnessDeps, Model, ModelRequest};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use self::long_job::{GOAL, Job};
use self::long_provider::{Counting, Provider};
use self::long_stage::{RUN, deps, policy};
use crate::Options;
use crate::agent::{self, Store};
use crate::measure::memory_kib;
use crate::sample::{count, mib};

const WINDOW: u64 = 32_000;
/// Turns at the beginning, and at the end, whose time is reported.
const TURNS_COMPARED: usize = 1_000;
/// Parts of the job, in percent, after which memory is measured.
const LOOKS: [u32; 3] = [10, 50, 100];

/// One run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct LongJob {
    store: Store,
    calls: u32,
    /// The provider's tokens for a hundred of the tokenizer's, and the percentage of them that it reports.
    density_percent: u64,
    reported_percent: u64,
    /// Whether the policy has the window.
    is_known: bool,
}

/// The result of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Figures {
    outcome: String,
    faults: Vec<String>,
    turns: u32,
    most: u64,
    refused: u32,
    changed: u32,
    sent: u64,
    anew: u64,
    shortened: u32,
    trims: u64,
    summaries: u64,
    emergencies: u64,
    entries: u64,
    wall: Duration,
    /// Mean time between two model calls, at the beginning and at the end.
    first_turns: Duration,
    last_turns: Duration,
    /// Resident memory after each part of the job.
    resident_kib: Vec<u64>,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    let (long, short) = (options.sized(2_000, 20_000), options.sized(500, 2_000));
    let fair = LongJob {
        store: Store::Sqlite,
        calls: long,
        density_percent: 100,
        reported_percent: 100,
        is_known: true,
    };
    println!("\n### A long session in a window of {WINDOW} tokens, counted with a tokenizer");
    let other = LongJob { calls: short, store: Store::Memory, ..fair };
    for (name, job) in [
        ("log on disk", fair),
        ("log in memory", LongJob { store: Store::Memory, ..fair }),
        ("the provider reports nothing", LongJob { reported_percent: 0, ..other }),
        ("it reports a third", LongJob { reported_percent: 33, ..other }),
        ("it reports twice as much", LongJob { reported_percent: 200, ..other }),
        ("it counts twice as much", LongJob { density_percent: 200, ..other }),
        ("the window is unknown", LongJob { is_known: false, ..other }),
    ] {
        let figures = in_child(job, options.dir())?;
        println!("\n{name}, {} calls:\n{}", job.calls, figures.told());
        ensure!(figures.faults.is_empty(), "what must hold didn't");
    }
    Ok(())
}

fn in_child(job: LongJob, dir: &Path) -> anyhow::Result<Figures> {
    let output = Command::new(std::env::current_exe()?)
        .arg("long-job")
        .arg(serde_json::to_string(&job)?)
        .arg("--dir")
        .arg(dir)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("starting a child")?;
    ensure!(output.status.success(), "{job:?} failed");
    serde_json::from_slice(&output.stdout).context("reading the child's answer")
}

/// Runs `job`, a [`LongJob`] as JSON, in this process and prints the result.
pub(crate) fn case(job: &str, dir: &Path) -> anyhow::Result<()> {
    let job = serde_json::from_str::<LongJob>(job)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("{}", serde_json::to_string(&runtime.block_on(job.run(dir))?)?);
    Ok(())
}

impl LongJob {
    async fn run(self, dir: &Path) -> anyhow::Result<Figures> {
        let counting = Counting {
            window: WINDOW,
            density_percent: self.density_percent,
            reported_percent: self.reported_percent,
        };
        let provider = Provider::new(Job::of(self.calls), counting, tiktoken_rs::o200k_base_singleton());
        let looks = LOOKS.iter().filter_map(|part| self.turn_at(*part)).collect();
        let watched = Arc::new(Watched { provider, looks, times: Mutex::default() });
        let counted = Arc::<Compactions>::default();
        let (backend, _) = agent::backend(self.store, dir)?;
        let deps = deps(Arc::new(backend), watched.clone());
        let harness = AgentHarness::new(HarnessDeps { callback: counted.clone(), ..deps });
        let policy = policy(self.is_known.then_some(WINDOW), dir);
        let start = Instant::now();
        let mut run = harness.start(RUN, GOAL, policy).await?;
        let outcome = run.run(&CancellationToken::new()).await?;
        Ok(Figures { outcome: outcome.to_string(), wall: start.elapsed(), ..watched.figures(&counted) })
    }

    /// The turn by which this percentage of the calls is made.
    fn turn_at(self, hundredths: u32) -> Option<u32> {
        let job = Job::of(self.calls);
        let calls = u64::from(self.calls) * u64::from(hundredths) / 100;
        let turn = job.turn_of(u32::try_from(calls).ok()?)?;
        Some(turn.min(job.turns()))
    }
}

/// Counts the log's entries.
#[derive(Default)]
struct Compactions {
    trims: AtomicU64,
    summaries: AtomicU64,
    emergencies: AtomicU64,
    entries: AtomicU64,
}

impl HarnessCallback for Compactions {
    fn on_record(&self, record: &Arc<Record>) {
        self.entries.fetch_add(1, Ordering::Relaxed);
        if let Entry::Conversation(ConversationEntry::Compacted(compacted)) = &record.entry {
            let counter = match compacted.how {
                CompactionKind::Trim => &self.trims,
                CompactionKind::Summary => &self.summaries,
                CompactionKind::Emergency => &self.emergencies,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The provider, which also measures the time between its calls.
struct Watched {
    provider: Provider,
    /// Turns at which memory is measured.
    looks: Vec<u32>,
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    answered: Option<Instant>,
    turns: Vec<Duration>,
    resident_kib: Vec<u64>,
}

#[async_trait]
impl Model for Watched {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let asked = Instant::now();
        {
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            let since = times.answered.map(|answered| asked.duration_since(answered));
            times.turns.extend(since.filter(|_| request.purpose == Purpose::Turn));
            if request.purpose == Purpose::Turn && self.looks.contains(&request.answers_before) {
                times.resident_kib.push(memory_kib("VmRSS").unwrap_or_default());
            }
        }
        let answer = self.provider.answer(request, deltas, cancel).await;
        self.times.lock().unwrap_or_else(PoisonError::into_inner).answered = Some(Instant::now());
        answer
    }
}

impl Watched {
    fn figures(&self, counted: &Compactions) -> Figures {
        let seen = self.provider.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let compared = TURNS_COMPARED.min(times.turns.len() / 2);
        let (first, last) = (times.turns.iter().take(compared), times.turns.iter().rev().take(compared));
        let mean = |sum: Duration| sum.checked_div(u32::try_from(compared).unwrap_or(1)).unwrap_or_default();
        Figures {
            faults: seen.faults.clone(),
            turns: seen.turns,
            most: seen.most,
            refused: seen.refused,
            changed: seen.changed,
            sent: seen.sent,
            anew: seen.anew,
            shortened: seen.shortened,
            trims: counted.trims.load(Ordering::Relaxed),
            summaries: counted.summaries.load(Ordering::Relaxed),
            emergencies: counted.emergencies.load(Ordering::Relaxed),
            entries: counted.entries.load(Ordering::Relaxed),
            first_turns: mean(first.sum()),
            last_turns: mean(last.sum()),
            resident_kib: times.resident_kib.clone(),
            ..Figures::default()
        }
    }
}

impl Figures {
    fn told(&self) -> String {
        let share = |part: u64, whole: u64| 100.0 * share_of(part, whole);
        let resident = self.resident_kib.iter().map(|kib| format!("{:.1}", mib(*kib)));
        format!(
            "- {}, {} turns, {} entries, {:.1} s; faults: {:?}\n\
             - longest request and its answer's cap: {} of {WINDOW} tokens; refused as too long: {}\n\
             - {} trims, {} summaries, {} by rule; newest results shortened in {} turns\n\
             - the beginning changed in {:.1} % of the turns; {:.1} % of the tokens sent came behind it\n\
             - a turn besides the model: {:.0} µs at first, {:.0} µs at last\n\
             - resident memory after {LOOKS:?} % of the calls: {} MiB",
            self.outcome,
            self.turns,
            self.entries,
            self.wall.as_secs_f64(),
            self.faults,
            self.most,
            self.refused,
            self.trims,
            self.summaries,
            self.emergencies,
            self.shortened,
            share(self.changed.into(), self.turns.into()),
            share(self.anew, self.sent),
            self.first_turns.as_secs_f64() * 1e6,
            self.last_turns.as_secs_f64() * 1e6,
            resident.collect::<Vec<_>>().join(" · ")
        )
    }
}

fn share_of(part: u64, whole: u64) -> f64 {
    let number = |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX));
    number(part) / number(whole.max(1))
}
