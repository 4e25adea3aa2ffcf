//! One command each.

mod act;
mod answer;
mod approvals;
mod attach;
mod backup;
mod check;
mod completions;
mod cost;
mod descent;
mod doctor;
mod exec;
mod explain;
mod find;
mod flow;
mod follow;
mod fork;
mod goal;
mod init;
mod logs;
mod man;
mod models;
mod profile;
mod prune;
mod ps;
mod replay;
mod resume;
mod run;
mod show;
mod status;
mod target;
mod transfer;
mod trust;

pub(crate) use self::act::SentMessage;
pub(crate) use self::exec::in_shell_words;
pub(crate) use self::show::date_and_time;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use provost_store::EmbeddedBackend;
use tracing_subscriber::EnvFilter;

use self::descent::Act;
pub(crate) use self::descent::mark;
pub(crate) use self::prune::remove_files;
use crate::cli::{Cli, Command, FlowCommand};
use crate::exit::{Exit, Refusal};
use crate::input::tell_of_unread;
use crate::output;
use crate::render::visible_json;
use crate::settings::{Request, Scope, load};
use crate::wiring::{StateDir, leave_store, variables};

/// Runs the command.
///
/// # Errors
/// Why it failed.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    trace()?;
    let act = Act::of(&cli.command);
    act.allowed()?;
    let result = match cli.command {
        Command::Run(args) => block_on(run::run(args)),
        Command::Flow(FlowCommand::Run(args)) => block_on(flow::run(args)),
        Command::Flow(FlowCommand::Check(args)) => flow::check(&args),
        Command::Exec(args) => block_on(exec::exec(args)),
        Command::Fork(args) => block_on(fork::fork(args)),
        Command::Resume(args) => block_on(act::resume(args)),
        Command::Ps(args) => block_on(ps::ps(args)),
        Command::Cost(args) => block_on(cost::cost(args)),
        Command::Attach(args) => block_on(attach::attach(args)),
        Command::Replay(args) => block_on(replay::replay(args)),
        Command::Profile(command) => profile::profile(command),
        Command::Approvals(args) => block_on(approvals::approvals(args)),
        Command::Approve(args) => block_on(answer::approve(args)),
        Command::Deny(args) => block_on(answer::deny(args)),
        Command::Say(args) => block_on(act::say(args)),
        Command::Pause(args) => block_on(act::pause(args)),
        Command::Cancel(args) => block_on(act::cancel(args)),
        Command::Goal(command) => block_on(goal::goal(command)),
        Command::Reprioritize(args) => block_on(act::reprioritize(args)),
        Command::Show(args) => block_on(show::show(args)),
        Command::Explain(args) => block_on(explain::explain(args)),
        Command::Logs(args) => block_on(logs::logs(args)),
        Command::Export(args) => block_on(transfer::export(args)),
        Command::Import(args) => block_on(transfer::import(args)),
        Command::Backup(args) => backup::backup(&args),
        Command::Doctor(args) => block_on(doctor::doctor(args)),
        Command::Prune(args) => block_on(prune::prune(args)),
        Command::Models(args) => block_on(models::models(args)),
        Command::Init(args) => init::init(&args),
        Command::Check(args) => check::check(&args),
        Command::Trust(args) => trust::trust(&args),
        Command::Completions { shell } => completions::completions(shell),
        Command::Man => man::man(),
    };
    // Piped input may have arrived only now.
    if let Act::Works(_) = act {
        tell_of_unread("");
    }
    result
}

fn block_on(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    // One thread is enough for one run, and spares waking others up for each step.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("can't start the runtime")?;
    let result = runtime.block_on(async {
        let result = work.await;
        let is_whole = leave_store().await;
        result.map(|exit| if exit == Exit::Done && !is_whole { Exit::Failed } else { exit })
    });
    // The exit doesn't wait for a thread that still reads a file.
    runtime.shutdown_background();
    result
}

fn trace() -> anyhow::Result<()> {
    let Ok(filter) = std::env::var("PROVOST_LOG") else { return Ok(()) };
    let filter = EnvFilter::try_new(&filter).map_err(|error| {
        Refusal::new(format!("PROVOST_LOG: {error}"), "e.g. PROVOST_LOG=provost_harness=debug")
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would panic where standard error can't be written.
        .log_internal_errors(false)
        .init();
    Ok(())
}

/// Opens the backend that the user's settings name.
fn backend() -> anyhow::Result<Arc<EmbeddedBackend>> {
    place()?.open()
}

/// The same, to show logs: of a damaged one the part before the damage.
fn backend_to_show() -> anyhow::Result<Arc<EmbeddedBackend>> {
    place()?.open_to_show()
}

/// Opens the backend to read only, also where it can't be written.
fn backend_to_read() -> anyhow::Result<Arc<EmbeddedBackend>> {
    place()?.open_to_read()
}

/// Where runs are kept, by the user's settings.
fn place() -> anyhow::Result<StateDir> {
    let variables = variables();
    let folder = current_dir()?;
    let request =
        Request { scope: Scope::User, folder: &folder, file: None, variables: &variables, flags: &[] };
    let (loading, folders) = load(&request)?;
    Ok(StateDir::new(&loading.settled()?.settings, &folders))
}

fn current_dir() -> anyhow::Result<std::path::PathBuf> {
    std::env::current_dir().context("can't tell the current folder")
}

/// Prints to standard output.
fn print(text: &str) -> anyhow::Result<()> {
    // JSON wasn't escaped before, and text that was is left as it is here.
    output::write(visible_json(text).as_bytes()).context("can't write to standard output")
}

/// The name of a path for people.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
