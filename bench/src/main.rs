//! Measures Provost. Each case runs in a process of its own; see the README for what the numbers mean.

mod agent;
mod agents;
mod answer;
mod appends;
mod case;
mod context;
mod disk;
mod dispatch;
mod fold;
mod gateway;
mod hooks;
mod http;
mod log;
mod mcp;
mod measure;
mod model_script;
mod model_server;
mod observers;
mod sample;
mod sessions;
mod slots;
mod snapshots;
mod spawn;
mod start;
mod table;
mod terminal;
mod timed_store;
mod turn;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::case::Case;

/// Measures Provost.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Larger sizes; minutes instead of seconds.
    #[arg(long, global = true)]
    large: bool,
    /// Runs of each case.
    #[arg(long, global = true, default_value_t = 5)]
    runs: usize,
    /// A folder for the logs, on the disk that is to be measured [default: a temporary one beside this program].
    #[arg(long, global = true)]
    dir: Option<PathBuf>,
    /// The `provost` program for `start` [default: the release build of the workspace].
    #[arg(long, global = true)]
    provost: Option<PathBuf>,
}

#[derive(Clone, Subcommand)]
enum Command {
    /// A turn with a scripted model.
    Turn,
    /// Tool calls over HTTP, beside a bare client and rig's loop.
    Http,
    /// Durable appends of 1 to 256 sessions.
    Appends,
    /// The first request after process start.
    Start,
    /// A long log folded, and what its snapshots cost.
    Fold,
    /// The memory of live sessions.
    Sessions,
    /// What it costs to ask hooks.
    Dispatch,
    /// What a script costs as a hook.
    Hooks,
    /// What observers cost a run.
    Observers,
    /// A long session in a small window.
    Context,
    /// Slots that come and go, a million times.
    Slots,
    /// Thousands of agents in one run.
    Agents(agents::Size),
    /// Programs that are started, with and without a guard.
    Spawn,
    /// Programs at a terminal.
    Terminal,
    /// Requests and streams through the model gateway, and directly.
    Gateway,
    /// Tools of MCP servers.
    Mcp {
        /// Also those that a user has agreed to: the folder `mcp` of a state folder.
        #[arg(long)]
        pins: Option<PathBuf>,
    },
    /// Everything.
    All,
    /// One case, as a parent asks for it.
    #[command(hide = true)]
    Case { case: String },
    /// A long session, as a parent asks for it.
    #[command(hide = true)]
    LongJob { job: String },
    /// The model server.
    #[command(hide = true)]
    ServeModel,
    /// A gateway in front of the model server at this address.
    #[command(hide = true)]
    ServeGateway { models: String },
}

/// How much is measured, and where.
struct Options {
    large: bool,
    runs: usize,
    dir: tempfile::TempDir,
    provost: Option<PathBuf>,
}

impl Options {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let beside = program.parent().context("this program has no folder")?;
        let dir = tempfile::tempdir_in(arguments.dir.as_deref().unwrap_or(beside))?;
        let provost = arguments.provost.clone().or_else(|| {
            let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
            Some(workspace.join("target/release/provost"))
        });
        Ok(Self { large: arguments.large, runs: arguments.runs.max(1), dir, provost })
    }

    const fn sized<T: Copy>(&self, small: T, large: T) -> T {
        if self.large { large } else { small }
    }

    fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn provost(&self) -> Option<PathBuf> {
        self.provost.clone()
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match &arguments.command {
        Command::ServeModel => model_server::serve(),
        Command::Case { case } => {
            let case = serde_json::from_str::<Case>(case)?;
            let dir = tempfile::tempdir_in(arguments.dir.as_deref().context("a case needs --dir")?)?;
            println!("{}", serde_json::to_string(&case.run(dir.path())?)?);
            Ok(())
        }
        Command::ServeGateway { models } => {
            let dir = tempfile::tempdir_in(arguments.dir.as_deref().context("a gateway needs --dir")?)?;
            gateway::serve(models, dir.path())
        }
        Command::LongJob { job } => {
            let dir = tempfile::tempdir_in(arguments.dir.as_deref().context("a job needs --dir")?)?;
            context::case(job, dir.path())
        }
        command => report(command, &Options::new(&arguments)?),
    }
}

fn report(command: &Command, options: &Options) -> anyhow::Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores, load before: {}", load.trim());
    match command {
        Command::Turn => turn::report(options),
        Command::Http => http::report(options),
        Command::Appends => appends::report(options),
        Command::Start => start::report(options),
        Command::Fold => fold::report(options),
        Command::Sessions => sessions::report(options),
        Command::Dispatch => dispatch::report(options),
        Command::Hooks => hooks::report(options),
        Command::Observers => observers::report(options),
        Command::Context => context::report(options),
        Command::Slots => slots::report(options),
        Command::Spawn => spawn::report(options),
        Command::Terminal => terminal::report(options),
        Command::Gateway => gateway::report(options),
        Command::Mcp { pins } => mcp::report(options, pins.as_deref()),
        Command::Agents(size) => agents::report(options, *size),
        Command::All
        | Command::Case { .. }
        | Command::LongJob { .. }
        | Command::ServeModel
        | Command::ServeGateway { .. } => {
            turn::report(options)?;
            http::report(options)?;
            appends::report(options)?;
            start::report(options)?;
            fold::report(options)?;
            sessions::report(options)?;
            dispatch::report(options)?;
            hooks::report(options)?;
            observers::report(options)?;
            context::report(options)?;
            slots::report(options)?;
            spawn::report(options)?;
            terminal::report(options)?;
            gateway::report(options)?;
            mcp::report(options, None)
        }
    }
}
