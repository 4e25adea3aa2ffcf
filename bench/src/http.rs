//! (b) A conversation over HTTP with a local server: Provost, a bare client that sends the same, rig's agent loop.

mod bare;
mod rig;

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use provost_event::Outcome;
use provost_harness::{NoCallback, SystemClock};
use provost_llm::{AnthropicModel, AnthropicOptions, ModelLimits};
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

/// Who talks to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Client {
    /// Provost with a log that is durable before anything goes on.
    Provost,
    /// Provost with a log in memory, as rig and the bare client keep nothing on disk.
    ProvostInMemory,
    Bare,
    Rig,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    let server = ModelServer::start()?;
    table::head("Tool calls over HTTP");
    for calls in options.sized(&[50, 200][..], &[50, 200, 2000]) {
        let runs = if *calls > OFTEN_CALLS_MAX { options.runs.min(3) } else { options.runs };
        let measure = |client| {
            let case = Case::Http { client, calls: *calls, port: server.port };
            repeated(&case, options.dir(), runs)
        };
        let bare = measure(Client::Bare)?;
        let rig = measure(Client::Rig)?;
        print("bare client", *calls, &bare, [Target::None; 3]);
        let bounds = print("rig's loop", *calls, &rig, [Target::None; 3]);
        let [cpu, rate, peak] = bounds;
        let targets = [Target::AtMost(cpu), Target::AtLeast(rate), Target::AtMost(peak)];
        print("Provost, durable", *calls, &measure(Client::Provost)?, targets);
        print("Provost, in memory", *calls, &measure(Client::ProvostInMemory)?, targets);
        let sent = bare.iter().map(|s| s.each(count(s.sent_bytes)) / 1024.0).collect::<Vec<_>>();
        table::row("bytes sent (bare client)", &format!("{calls} calls"), "KiB/turn", &sent, Target::None);
    }
    Ok(())
}

/// Prints three lines; returns their medians.
fn print(who: &str, calls: usize, samples: &[Sample], targets: [Target; 3]) -> [f64; 3] {
    let size = format!("{calls} calls");
    let [cpu, rate, peak] = targets;
    let row = |what: &str, unit: &str, target, value: &dyn Fn(&Sample) -> f64| {
        let values = samples.iter().map(value).collect::<Vec<_>>();
        table::row(&format!("{who}: {what}"), &size, unit, &values, target)
    };
    [
        row("CPU", "µs/turn", cpu, &Sample::cpu_us),
        row("rate", "turns/s", rate, &Sample::per_second),
        row("peak memory", "MiB", peak, &|s| mib(s.peak_kib)),
    ]
}

/// One conversation with `calls` tool calls: one more turn than that.
pub(crate) async fn case(client: Client, calls: usize, port: u16, dir: &Path) -> anyhow::Result<Sample> {
    let base_url = base_url(port, calls, 0);
    match client {
        Client::Provost => provost(Store::Sqlite, calls, &base_url, dir).await,
        Client::ProvostInMemory => provost(Store::Memory, calls, &base_url, dir).await,
        Client::Bare => bare::converse(calls, &base_url).await,
        Client::Rig => rig::converse(calls, &base_url).await,
    }
}

async fn provost(store: Store, calls: usize, base_url: &str, dir: &Path) -> anyhow::Result<Sample> {
    let (home, _) = agent::home(store, dir)?;
    let harness = agent::harness(Arc::new(home), Arc::new(model(base_url)?), Arc::new(NoCallback))?;
    let start = Start::now()?;
    let mut run = harness.start(agent::run_id(), agent::GOAL, agent::policy(dir)?).await?;
    let outcome = run.run(&CancellationToken::new()).await?;
    let sample = start.sample(calls + 1)?;
    ensure!(matches!(outcome, Outcome::Completed { .. }), "the run came to {outcome:?}");
    Ok(sample)
}

/// Provost's own client of the server at `base_url`.
pub(crate) fn model(base_url: &str) -> anyhow::Result<AnthropicModel> {
    Ok(AnthropicModel::new(AnthropicOptions {
        base_url: base_url.to_owned(),
        key: "bench".into(),
        limits: ModelLimits { first_token_ms: 600_000, ..ModelLimits::default() },
        clock: Arc::new(SystemClock),
    })?)
}
