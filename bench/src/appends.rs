//! (c) Durable appends of many sessions at once: each waits for its own before it makes the next.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::future::try_join_all;
use provost_engine::{RunEvent, SessionEvent};
use provost_event::SessionId;
use provost_harness::Backend;

use crate::Options;
use crate::agent::{self, Store};
use crate::case::Case;
use crate::disk;
use crate::measure::Start;
use crate::sample::{Sample, count, repeated};
use crate::table::{self, Target};

/// The target for 64 sessions: this many times the rate of one.
const TARGET_TIMES: f64 = 30.0;
/// The number of sessions that the target is set for.
const TARGET_SESSIONS: usize = 64;

/// The additional time of a sync on a disk that writes the data before it acknowledges it.
const SLOW_DISK_MS: u64 = 2;

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("Durable appends");
    table::row(
        "raw fsync of this disk",
        "4 KiB",
        "/s",
        &[disk::syncs(options.dir(), 1)?.per_second],
        Target::None,
    );
    print(options, "", Store::Sqlite)?;
    print(options, &format!(", {SLOW_DISK_MS} ms added to each sync"), Store::SlowSqlite(SLOW_DISK_MS))
}

fn print(options: &Options, note: &str, store: Store) -> anyhow::Result<()> {
    let seconds = options.sized(2, 10);
    let mut alone = f64::NAN;
    for sessions in [1, 8, 64, 256] {
        let case = Case::Appends { store, sessions, seconds };
        let samples = repeated(&case, options.dir(), options.runs)?;
        let size = format!("{sessions} sessions");
        let row = |what: &str, unit: &str, target, value: &dyn Fn(&Sample) -> f64| {
            let values = samples.iter().map(value).collect::<Vec<_>>();
            table::row(&format!("{what}{note}"), &size, unit, &values, target)
        };
        let rate = row("appends", "/s", Target::None, &Sample::per_second);
        if sessions == 1 {
            alone = rate;
        }
        let target = if sessions == TARGET_SESSIONS { Target::AtLeast(TARGET_TIMES) } else { Target::None };
        if sessions > 1 {
            row("times one session's rate", "×", target, &|s| s.per_second() / alone);
        }
        row("appends that share a commit", "", Target::None, &|s| count(s.count) / count(s.commits));
        row("CPU", "µs/append", Target::None, &Sample::cpu_us);
    }
    Ok(())
}

/// Appends from `sessions` sessions for some seconds.
pub(crate) async fn case(store: Store, sessions: usize, seconds: u64, dir: &Path) -> anyhow::Result<Sample> {
    let (backend, spent) = agent::backend(store, dir)?;
    let backend: Arc<dyn Backend> = Arc::new(backend);
    // No process works on these runs: they stay at their first model call, and messages to them are stored.
    let started = (0..sessions).map(|_| start(&*backend, dir));
    let started = try_join_all(started).await?;
    let (commits_before, _) = spent.so_far();
    let start = Start::now()?;
    let until = Instant::now() + Duration::from_secs(seconds);
    let speakers =
        started.into_iter().map(|session| tokio::spawn(speak(Arc::clone(&backend), session, until)));
    let mut appended = 0;
    for speaker in try_join_all(speakers).await? {
        appended += speaker?;
    }
    let sample = start.sample(appended)?;
    Ok(Sample { commits: spent.so_far().0 - commits_before, ..sample })
}

async fn start(backend: &dyn Backend, dir: &Path) -> anyhow::Result<SessionId> {
    let (run, policy) = (agent::run_id(), Box::new(agent::policy(dir)?));
    let start = RunEvent::Start { goal: agent::GOAL.to_owned(), images: Vec::new(), policy, baseline: None };
    backend.post(run.into(), start.into(), None).await?;
    Ok(SessionId::root(run))
}

async fn speak(backend: Arc<dyn Backend>, session: SessionId, until: Instant) -> anyhow::Result<usize> {
    let mut appended = 0;
    while Instant::now() < until {
        let say = SessionEvent::Say { text: agent::tool_output(), by: "bench".to_owned() };
        let posted = backend.post(session.into(), say.into(), None).await?;
        ensure!(posted.changed, "nothing was appended");
        appended += 1;
    }
    Ok(appended)
}
