//! (b) A conversation over HTTP with a local server: Provost, a bare client that sends the same, rig's agent loop.

mod bare;
mod rig;

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use provost_event::Outcome;
use provost_harness::{NoCallback, SystemClock};
use provost_llm::{ModelLimits, Provider, ProviderModel, ProviderOptions, WireFormat};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::agent::{self, Store};
use crate::case::Case;
use crate::measure::Start;
use crate::model_server::{ModelServer, base_url};
use crate::sample::{Sample, count, mib, repeated};
use crate::table::{self, Target};

/// Longer conversations than this are measured fewer times.
const OFTEN_CALLS_MAX: usize = 200;
/// In shorter conversations the start still shows.
const TARGET_CALLS_MIN: usize = 200;
/// Provost's CPU time a turn, log durable, is at most so many times the bare client's.
const BARE_TIMES_MAX: f64 = 4.0;

/// Who talks to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Client {
    /// Provost with a log that is durable before anything goes on.
    Provost,
    /// Provost with a log in memory, as rig and the bare client keep nothing on disk.
    ProvostInMemory,
    Bare,
    /// Speaks Anthropic's format only.
    Rig,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    let server = ModelServer::start()?;
    for wire in WireFormat::ALL {
        table::head(&format!("Tool calls over HTTP: {wire}"));
        for calls in options.sized(&[50, 200][..], &[50, 200, 2000]) {
            compare(options, &server, wire, *calls)?;
        }
    }
    Ok(())
}

fn compare(options: &Options, server: &ModelServer, wire: WireFormat, calls: usize) -> anyhow::Result<()> {
    let runs = if calls > OFTEN_CALLS_MAX { options.runs.min(3) } else { options.runs };
    let measure = |client| {
        let case = Case::Http { client, wire, calls, port: server.port };
        server.received()?;
        let samples = repeated(&case, options.dir(), runs)?;
        let (connections, bytes) = server.received()?;
        anyhow::Ok((samples, count(connections) / count(runs), count(bytes) / count(runs * (calls + 1))))
    };
    let bare = measure(Client::Bare)?;
    let cpu = print("bare client", calls, &bare, Target::None);
    let durable = measure(Client::Provost)?;
    let target = if calls >= TARGET_CALLS_MIN { Target::AtMost(BARE_TIMES_MAX * cpu) } else { Target::None };
    print("Provost, durable", calls, &durable, target);
    print("Provost, in memory", calls, &measure(Client::ProvostInMemory)?, Target::None);
    if wire == WireFormat::Anthropic {
        print("rig's loop", calls, &measure(Client::Rig)?, Target::None);
    }
    Ok(())
}

/// What one client came to: its samples, connections a run, bytes of bodies a turn.
type Measured = (Vec<Sample>, f64, f64);

/// Prints a client's lines; returns the median of its CPU time.
fn print(who: &str, calls: usize, (samples, connections, bytes): &Measured, target: Target) -> f64 {
    let size = format!("{calls} calls");
    let row = |what: &str, unit: &str, target, value: &dyn Fn(&Sample) -> f64| {
        let values = samples.iter().map(value).collect::<Vec<_>>();
        table::row(&format!("{who}: {what}"), &size, unit, &values, target)
    };
    let cpu = row("CPU", "µs/turn", target, &Sample::cpu_us);
    row("rate", "turns/s", Target::None, &Sample::per_second);
    row("peak memory", "MiB", Target::None, &|s| mib(s.peak_kib));
    row("sent", "KiB/turn", Target::None, &|_| bytes / 1024.0);
    row("connections", "", Target::None, &|_| *connections);
    cpu
}

/// One conversation with `calls` tool calls: one more turn than that.
pub(crate) async fn case(
    client: Client,
    wire: WireFormat,
    calls: usize,
    port: u16,
    dir: &Path,
) -> anyhow::Result<Sample> {
    let base_url = base_url(port, calls, 0);
    match client {
        Client::Provost => provost(Store::Sqlite, wire, calls, &base_url, dir).await,
        Client::ProvostInMemory => provost(Store::Memory, wire, calls, &base_url, dir).await,
        Client::Bare => bare::converse(wire, calls, &base_url).await,
        Client::Rig => rig::converse(calls, &base_url).await,
    }
}

async fn provost(
    store: Store,
    wire: WireFormat,
    calls: usize,
    base_url: &str,
    dir: &Path,
) -> anyhow::Result<Sample> {
    let (home, _) = agent::home(store, dir)?;
    let harness = agent::harness(Arc::new(home), Arc::new(model(wire, base_url)?), Arc::new(NoCallback))?;
    let start = Start::now()?;
    let mut run = harness.start(agent::run_id(), agent::GOAL, agent::policy(dir)?).await?;
    let outcome = run.run(&CancellationToken::new()).await?;
    let sample = start.sample(calls + 1)?;
    ensure!(matches!(outcome, Outcome::Completed { .. }), "the run came to {outcome:?}");
    Ok(sample)
}

/// Provost's own client of the server at `base_url`.
pub(crate) fn model(wire: WireFormat, base_url: &str) -> anyhow::Result<ProviderModel> {
    let version = match wire {
        WireFormat::Anthropic | WireFormat::Gemini => "",
        WireFormat::OpenaiResponses | WireFormat::OpenaiChat => "/v1",
    };
    Ok(ProviderModel::new(ProviderOptions {
        provider: Provider::new("bench", wire, format!("{base_url}{version}")),
        model: "a-model".to_owned(),
        key: Some("bench".into()),
        reasoning: None,
        limits: ModelLimits { first_token_ms: 600_000, ..ModelLimits::default() },
        clock: Arc::new(SystemClock),
    })?)
}
