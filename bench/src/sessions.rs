//! (f) The memory of active sessions: each has taken some turns and waits for a slow model.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use provost_event::{Entry, ModelEntry, Record};
use provost_harness::{AgentHarness, HarnessCallback, Model};
use provost_llm::{ScriptedModel, WireFormat};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::agent::{self, Store};
use crate::case::Case;
use crate::measure::{Start, memory_kib, raise_open_files};
use crate::model_server::{ModelServer, base_url};
use crate::sample::{Sample, count, mib, repeated};
use crate::table::{self, Target};
use crate::{http, turn};

const TURNS: usize = 20;
/// How long the model thinks before its last answer: longer than the measurement.
const HOLD_MS: u64 = 600_000;
/// The deadline for everything.
const DEADLINE: Duration = Duration::from_secs(300);
/// The time for messages still in flight when the last session has begun to wait.
const SETTLING: Duration = Duration::from_millis(500);

/// The model that the sessions wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SlowModel {
    /// A server, each over a connection of its own.
    Http,
    /// A scripted model in this process.
    Scripted,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    let server = ModelServer::start()?;
    let sessions = options.sized(1000, 5000);
    table::head(&format!("Live sessions, {TURNS} turns each, waiting for a model"));
    for (name, model) in [("over HTTP", SlowModel::Http), ("scripted model", SlowModel::Scripted)] {
        let case = Case::Sessions { model, sessions, port: server.port };
        let samples = repeated(&case, options.dir(), options.runs.min(3))?;
        let size = format!("{sessions} sessions");
        let row = |what: &str, unit: &str, value: &dyn Fn(&Sample) -> f64| {
            let values = samples.iter().map(value).collect::<Vec<_>>();
            table::row(&format!("{name}: {what}"), &size, unit, &values, Target::None);
        };
        row("resident memory", "KiB/session", &|s| s.each(mib(s.grown_kib) * 1024.0));
        row("peak of the process", "MiB", &|s| mib(s.peak_kib));
        row("turns", "/s", &|s| s.per_second() * count(TURNS));
    }
    Ok(())
}

/// Runs `sessions` sessions until they wait, and measures the memory.
pub(crate) async fn case(model: SlowModel, sessions: usize, port: u16, dir: &Path) -> anyhow::Result<Sample> {
    raise_open_files()?;
    let model: Arc<dyn Model> = match model {
        SlowModel::Http => Arc::new(http::model(WireFormat::Anthropic, &base_url(port, TURNS, HOLD_MS))?),
        SlowModel::Scripted => {
            let script = turn::script(TURNS + 1, HOLD_MS);
            Arc::new(ScriptedModel::parse(&script, "bench")?)
        }
    };
    let (backend, _) = agent::backend(Store::Sqlite, dir)?;
    let waiting = watch::Sender::new(0);
    let all_waiting = waiting.subscribe();
    let harness = Arc::new(agent::harness(Arc::new(backend), model, Arc::new(Watch { waiting }))?);
    // The runs' own tasks only watch; effects are performed on all threads.
    LocalSet::new().run_until(live(&harness, sessions, all_waiting, dir)).await
}

async fn live(
    harness: &Arc<AgentHarness>,
    sessions: usize,
    mut all_waiting: watch::Receiver<usize>,
    dir: &Path,
) -> anyhow::Result<Sample> {
    let mut live = JoinSet::new();
    // One first, so that what all share isn't counted.
    live.spawn_local(work(Arc::clone(harness), dir.to_owned()));
    until(&mut all_waiting, 1).await?;
    let before_kib = memory_kib("VmRSS")?;
    let start = Start::now()?;
    for _ in 0..sessions {
        live.spawn_local(work(Arc::clone(harness), dir.to_owned()));
    }
    until(&mut all_waiting, sessions + 1).await?;
    let sample = start.sample(sessions)?;
    tokio::time::sleep(SETTLING).await;
    ensure!(live.try_join_next().is_none(), "a session has ended");
    let grown_kib = memory_kib("VmRSS")?.saturating_sub(before_kib);
    Ok(Sample { grown_kib, ..sample })
}

async fn work(harness: Arc<AgentHarness>, dir: std::path::PathBuf) -> anyhow::Result<()> {
    let mut run = harness.start(agent::run_id(), agent::GOAL, agent::policy(&dir)?).await?;
    run.run(&CancellationToken::new()).await?;
    Ok(())
}

async fn until(waiting: &mut watch::Receiver<usize>, sessions: usize) -> anyhow::Result<()> {
    let enough = waiting.wait_for(|waiting| *waiting >= sessions);
    tokio::time::timeout(DEADLINE, enough).await.context("not all sessions got to where they wait")??;
    Ok(())
}

/// Counts the sessions that have made their last model call.
struct Watch {
    waiting: watch::Sender<usize>,
}

impl HarnessCallback for Watch {
    fn on_record(&self, record: &Arc<Record>) {
        if let Entry::Model(ModelEntry::Called(called)) = &record.entry
            && usize::try_from(called.turn).is_ok_and(|turn| turn > TURNS)
        {
            self.waiting.send_modify(|waiting| *waiting += 1);
        }
    }
}
