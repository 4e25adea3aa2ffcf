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
use crate::sample::{Sample, count, in_child, mib};
use crate::table::{self, Target};

/// Longer conversations than this are measured fewer times.
const OFTEN_CALLS_MAX: usize = 200;
/// In shorter conversations the start still shows.
const TARGET_CALLS_MIN: usize = 200;
/// The target for Provost's CPU time a turn, log durable: at most this many times the bare client's.
const BARE_TIMES_MAX: f64 = 4.0;

/// The client.
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

/// Each round measures all clients one after the other, so that the load of a shared machine affects all of them
/// alike; the median of the rounds' ratios is compared.
fn compare(options: &Options, server: &ModelServer, wire: WireFormat, calls: usize) -> anyhow::Result<()> {
    let rounds = if calls > OFTEN_CALLS_MAX { options.runs.min(3) } else { options.runs };
    let mut clients = vec![
        Measured::new("bare client", Client::Bare),
        Measured::new("Provost, durable", Client::Provost),
        Measured::new("Provost, in memory", Client::ProvostInMemory),
    ];
    if wire == WireFormat::Anthropic {
        clients.push(Measured::new("rig's loop", Client::Rig));
    }
    for _ in 0..rounds {
        for measured in &mut clients {
            let case = Case::Http { client: measured.client, wire, calls, port: server.port };
            server.received()?;
            measured.samples.push(in_child(&case, options.dir())?);
            let (connections, bytes) = server.received()?;
            measured.connections.push(count(connections));
            measured.sent_kib.push(count(bytes) / count(calls + 1) / 1024.0);
        }
    }
    clients.iter().for_each(|measured| measured.print(calls));
    if let [bare, durable, ..] = clients.as_slice() {
        let ratios = durable.samples.iter().zip(&bare.samples);
        let ratios = ratios.map(|(durable, bare)| durable.cpu_us() / bare.cpu_us()).collect::<Vec<_>>();
        let target = if calls >= TARGET_CALLS_MIN { Target::AtMost(BARE_TIMES_MAX) } else { Target::None };
        table::row("Provost, durable: CPU, times the bare client's", &size(calls), "", &ratios, target);
    }
    Ok(())
}

/// The results of one client in each round.
struct Measured {
    who: &'static str,
    client: Client,
    samples: Vec<Sample>,
    connections: Vec<f64>,
    /// Bodies, a turn.
    sent_kib: Vec<f64>,
}

impl Measured {
    const fn new(who: &'static str, client: Client) -> Self {
        Self { who, client, samples: Vec::new(), connections: Vec::new(), sent_kib: Vec::new() }
    }

    fn print(&self, calls: usize) {
        let row = |what: &str, unit: &str, values: &[f64]| {
            table::row(&format!("{}: {what}", self.who), &size(calls), unit, values, Target::None);
        };
        let each = |value: &dyn Fn(&Sample) -> f64| self.samples.iter().map(value).collect::<Vec<_>>();
        row("CPU", "µs/turn", &each(&Sample::cpu_us));
        row("rate", "turns/s", &each(&Sample::per_second));
        row("peak memory", "MiB", &each(&|sample| mib(sample.peak_kib)));
        row("sent", "KiB/turn", &self.sent_kib);
        row("connections", "", &self.connections);
    }
}

fn size(calls: usize) -> String {
    format!("{calls} calls")
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
    let (backend, _) = agent::backend(store, dir)?;
    let harness = agent::harness(Arc::new(backend), Arc::new(model(wire, base_url)?), Arc::new(NoCallback))?;
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
        limits: ModelLimits { first_event_ms: 600_000, ..ModelLimits::default() },
        clock: Arc::new(SystemClock),
    })?)
}
