//! (k) Thousands of agents in one process and one run, each a conversation over HTTP: what a turn costs, what an
//! agent takes of memory, and how long a free slot stays empty.

mod tree;
mod watch;

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use clap::Args;
use provost_event::Outcome;
use provost_harness::{AgentHarness, HarnessDeps, Models, NoCallback, ToolRegistry};
use provost_llm::WireFormat;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::agent::{self, Noop, Store};
use crate::case::Case;
use crate::http;
use crate::measure::{Start, raise_open_files};
use crate::model_server::{ModelServer, scripted_url};
use crate::sample::{Sample, count, mib, repeated};
use crate::table::{self, Target};
use tree::Tree;
use watch::{Memory, Watched, Watching};

/// The memory that an agent may take besides its own messages.
const AGENT_KIB_MAX: f64 = 64.0;
/// From the answer that ends an agent to the first model call of the agent that gets its slot.
const FREED_MS_MAX: f64 = 5.0;

/// How many agents, and how they work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args, Serialize, Deserialize)]
pub(crate) struct Size {
    /// Agents in all, the root among them; rounded to a full tree.
    #[arg(long, default_value_t = 1000)]
    pub(crate) agents: usize,
    /// How many of them work at a time [default: all; with fewer, the root asks for all others itself].
    #[arg(long)]
    pub(crate) slots: Option<usize>,
    /// Answers of the model that each of them gets.
    #[arg(long, default_value_t = 20)]
    pub(crate) turns: usize,
    /// Milliseconds that the model takes for each answer.
    #[arg(long, default_value_t = 0)]
    pub(crate) answer_ms: u64,
}

/// Measures and prints.
pub(crate) fn report(options: &Options, size: Size) -> anyhow::Result<()> {
    let server = ModelServer::start()?;
    table::head("Agents of one run, over HTTP");
    for (name, store) in [("log on disk", Store::Sqlite), ("log in memory", Store::Memory)] {
        let case = Case::Agents { store, size, port: server.port };
        print(name, &Tree::of(size), &repeated(&case, options.dir(), options.runs)?);
    }
    Ok(())
}

fn print(name: &str, tree: &Tree, samples: &[Sample]) {
    let size = format!("{} agents, {} slots, {} ms", tree.agents(), tree.slots, tree.answer_ms);
    let row = |what: &str, unit: &str, target, value: &dyn Fn(&Sample) -> f64| {
        let values = samples.iter().map(value).collect::<Vec<_>>();
        table::row(&format!("{name}: {what}"), &size, unit, &values, target);
    };
    row("turns", "/s", Target::None, &Sample::per_second);
    row("CPU", "µs/turn", Target::None, &Sample::cpu_us);
    row("memory besides messages", "KiB/agent", Target::AtMost(AGENT_KIB_MAX), &Sample::agent_kib);
    row("messages", "KiB/agent", Target::None, &|s| mib(s.message_kib) * 1024.0 / count(s.live.max(1)));
    row("agents at the peak", "", Target::None, &|s| count(s.live));
    row("peak of the process", "MiB", Target::None, &|s| mib(s.peak_kib));
    row("asked for until running, median", "ms", Target::None, &|s| ms(s.asked_us[0]));
    row("asked for until running, p99", "ms", Target::None, &|s| ms(s.asked_us[1]));
    row("slot free until running, median", "ms", Target::None, &|s| ms(s.freed_us[0]));
    row("slot free until running, p99", "ms", Target::AtMost(FREED_MS_MAX), &|s| ms(s.freed_us[1]));
}

#[expect(clippy::cast_precision_loss, reason = "no delay has 2^52 µs")]
fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

/// One run of the whole tree.
pub(crate) async fn case(store: Store, size: Size, port: u16, dir: &Path) -> anyhow::Result<Sample> {
    raise_open_files()?;
    let tree = Tree::of(size);
    let watching = Arc::new(Watching::of(tree.agents()));
    let mut models = Models::new();
    for (name, script) in tree.scripts() {
        let model = http::model(WireFormat::Anthropic, &scripted_url(port, &script))?;
        models = models.with(name, Arc::new(Watched::new(model, Arc::clone(&watching))));
    }
    let (backend, spent) = agent::backend(store, dir)?;
    let backend = Arc::new(backend);
    let harness = AgentHarness::new(HarnessDeps {
        callback: Arc::new(NoCallback),
        ..HarnessDeps::new(backend.clone(), models, ToolRegistry::new().with(Noop::new()?))
    });
    let memory = Memory::watch(&watching)?;
    let start = Start::now()?;
    let run = agent::run_id();
    let mut root = harness.start(run, agent::GOAL, tree.policy(dir)?).await?;
    let outcome = root.run(&CancellationToken::new()).await?;
    let mut sample = start.sample(watching.answers())?;
    ensure!(matches!(outcome, Outcome::Completed { .. }), "the run came to {outcome:?}");
    let turns = tree.agents() * size.turns;
    ensure!(sample.count == turns, "{} turns, not {turns}", sample.count);
    (sample.commits, sample.commit_cpu) = spent.so_far();
    memory.end()?.tell(&mut sample);
    (sample.asked_us, sample.freed_us) = watching.delays(&*backend, run).await?;
    Ok(sample)
}
