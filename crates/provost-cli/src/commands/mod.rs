//! The command line: its commands, one module each, and what runs them.

mod acp;
mod act;
mod answer;
mod approvals;
mod approved;
mod attach;
mod backup;
mod check;
mod cluster;
mod completions;
mod cost;
mod demo;
mod descent;
mod diff;
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
mod mcp;
mod models;
mod policy;
mod profile;
mod prune;
mod ps;
mod replay;
mod resume;
mod run;
mod sandbox;
mod schema;
mod serve;
mod services;
mod show;
mod status;
mod supervise;
mod target;
mod top;
mod transfer;
mod trust;
mod unattended;
mod worker;

pub(crate) use self::act::SentMessage;
pub(crate) use self::exec::in_shell_words;
pub(crate) use self::resume::limits::lacking;
pub(crate) use self::services::left_running;
pub(crate) use self::show::date_and_time;

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use provost_config::{EngineUrl, Folders, Request, Scope, load};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use self::descent::Act;
pub(crate) use self::descent::mark;
pub(crate) use self::find::find;
use crate::cli::{
    AcpArgs, ActArgs, ApprovalsArgs, ApproveArgs, AttachArgs, BackgroundArgs, BackupArgs, CancelArgs,
    CheckArgs, ClusterCommand, CostArgs, DemoArgs, DenyArgs, DiffArgs, DoctorArgs, ExecArgs, ExplainArgs,
    ExportArgs, FlowCommand, ForkArgs, GatewayArgs, GoalCommand, ImportArgs, InitArgs, LogsArgs, ManArgs,
    McpCommand, ModelsArgs, PolicyCommand, ProfileCommand, PruneArgs, PsArgs, ReplayArgs, ReprioritizeArgs,
    ResumeArgs, RunArgs, SandboxCommand, SayArgs, SchemaArgs, ServeArgs, ServicesArgs, ShowArgs,
    SuperviseArgs, TopArgs, TrustArgs, UnattendedArgs, WorkerArgs,
};
use crate::exit::{Exit, Refusal};
use crate::input::tell_of_unread;
use crate::output;
use crate::render::visible_json;
use crate::wiring::{leave_store, state_dir, use_engine, variables};
use provost_harness::{Backend, Clock as _, SystemClock};
use provost_runtime::{SUPERVISE, StateDir, available_tools};

/// Runs autonomous agents under supervision: they work until the goal is verified, a budget is used up or a hook
/// stops them, and every step is in a log from which they resume.
#[derive(Debug, Parser)]
#[command(name = "provost", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = EXIT_STATUSES)]
pub(crate) struct Cli {
    /// Let `last` be the newest run of all folders, not of this one.
    #[arg(long, global = true)]
    pub(crate) global: bool,
    /// Use the runs of this engine, not those of engine.url or of this machine: restate://HOST:PORT, or `local` for the cluster of
    /// `provost cluster up`.
    #[arg(long, global = true, value_name = "URL", value_parser = engine)]
    pub(crate) engine: Option<EngineUrl>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn engine(text: &str) -> Result<EngineUrl, String> {
    text.parse()
}

const EXIT_STATUSES: &str = "Exit status of run, exec and resume: 0 completed, which says whether anything verified it · 1 failed, \
the agent's own verdict is FAIL or PARTIAL, a workflow's step failed or was skipped, output couldn't be written, or not verified with --require-verified · 2 wrong usage or settings · 3 a budget ended it · 4 it waits (paused, blocked, needs approval) · 5 a hook aborted it · \
130 interrupted or cancelled.";

const COMPLETIONS_HELP: &str = "\
For bash, in ~/.bashrc: source <(provost completions bash) · for zsh, in ~/.zshrc: source <(provost completions zsh) · \
for fish, in config.fish: provost completions fish | source";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows a whole run in a few seconds, without a key: a scripted agent repairs a small project.
    Demo(DemoArgs),
    /// Runs an agent on a goal, in the current folder.
    Run(RunArgs),
    /// Runs a program as an external agent, at this terminal or unattended, under permissions, stop hooks and judges.
    Exec(ExecArgs),
    /// Runs any program with a budget for its model calls: they pass a gateway with the provider's key.
    Gateway(GatewayArgs),
    /// Resumes a run that is suspended, was interrupted or has ended.
    Resume(ResumeArgs),
    /// Starts a run from the conversation of another, up to an entry; nothing of it is paid for again.
    Fork(ForkArgs),
    /// Runs a workflow from a file: steps that wait for each other.
    #[command(subcommand)]
    Flow(FlowCommand),
    /// Lists runs, the newest first.
    Ps(PsArgs),
    /// Shows one run: its status, what it used, all its agents as a tree, the last message of the first one.
    Show(ShowArgs),
    /// Shows which limits, hooks, permissions and observers took effect in a run, and what they decided.
    Explain(ExplainArgs),
    /// Prints the log of a run, one line per entry.
    Logs(LogsArgs),
    /// Shows what was changed in the workspace of a run since it began: a list of files, and a patch.
    Diff(DiffArgs),
    /// Connects this terminal to the program of an external agent.
    Attach(AttachArgs),
    /// Plays a recording of what a program showed.
    Replay(ReplayArgs),
    /// Lists, shows and tests the profiles of external programs.
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Serves an API and a web page for all runs, by default on this machine only.
    Serve(ServeArgs),
    /// Works on the runs of an engine, beside other workers, on this machine or many.
    Worker(WorkerArgs),
    /// Starts, ends and shows an engine with workers on this machine.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Serves an editor that speaks the Agent Client Protocol: its sessions are runs.
    Acp(AcpArgs),
    /// Shows all runs in this terminal, live: find what needs you, answer, steer, start.
    Top(TopArgs),
    /// Lists the tool calls that wait for approval.
    Approvals(ApprovalsArgs),
    /// Allows a tool call that waits for approval.
    Approve(ApproveArgs),
    /// Refuses a tool call that waits for approval.
    Deny(DenyArgs),
    /// Sends a message to an agent of a run; it gets the message before its next model call.
    Say(SayArgs),
    /// Suspends a run, or one of its agents and those below it; `resume` goes on with it.
    Pause(ActArgs),
    /// Ends a run, or one of its agents and those below it.
    Cancel(CancelArgs),
    /// Shows, pauses, resumes or clears the goals of agents: conditions that judges verify before an agent counts as
    /// done.
    #[command(subcommand)]
    Goal(GoalCommand),
    /// Changes the priority of an agent of a run.
    Reprioritize(ReprioritizeArgs),
    /// Lists the services: commands that agents keep running after their runs. Or ends one, or shows its output.
    Services(ServicesArgs),
    /// Shows what was spent: calls, tokens and money, by model, agent, run or day.
    Cost(CostArgs),
    /// Writes a run to a file for `import`.
    Export(ExportArgs),
    /// Imports a run that `export` wrote.
    Import(ImportArgs),
    /// Copies the whole store to a file, also while runs are worked on, and checks the copy.
    Backup(BackupArgs),
    /// Checks whether this machine can sandbox agents; with --store, checks the store and saves what can be read of it.
    Doctor(DoctorArgs),
    /// Removes runs that are over, and frees their space.
    Prune(PruneArgs),
    /// Writes provost.toml to the current folder, after asking for the most important settings.
    Init(InitArgs),
    /// Lists providers and models with key, window and price. Or checks whether a model answers.
    Models(ModelsArgs),
    /// Shows the settings and where each is set, and what is wrong with them.
    Check(CheckArgs),
    /// Tests permissions and sandbox against the tool calls of past runs.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Runs a command in the sandbox of agents, or says what that allows.
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Manages the MCP servers whose tools agents may have; serves runs as tools of MCP clients.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Shows what a project's files would run or allow, and asks for your consent.
    Trust(TrustArgs),
    /// Prints a shell's completion script, for commands, options, runs, agents, models and profiles.
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Prints the JSON Schema of what a command prints with --json.
    Schema(SchemaArgs),
    /// Prints a manual page, or writes all of them to a folder.
    Man(ManArgs),
    /// Supervises a service. Started by Provost itself.
    #[command(name = SUPERVISE, hide = true)]
    Supervise(SuperviseArgs),
    /// Works on a run for a server. Started by Provost itself.
    #[command(name = unattended::UNATTENDED, hide = true)]
    Unattended(UnattendedArgs),
    /// Works on a run whose program a person's terminal is attached to. Started by Provost itself.
    #[command(name = exec::IN_BACKGROUND, hide = true)]
    Background(BackgroundArgs),
}

/// Runs the command.
///
/// # Errors
/// Why it failed.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    trace(matches!(cli.command, Command::Worker(_)))?;
    if cli.global {
        find::make_global();
    }
    if let Some(engine) = &cli.engine {
        use_engine(engine);
    }
    let Planned { act, work } = plan(cli.command);
    act.allowed()?;
    let result = work();
    // Piped input may have arrived only now.
    if let Act::Works(_) = act {
        tell_of_unread("");
    }
    result
}

/// What a command will do.
struct Planned {
    act: Act,
    work: Box<dyn FnOnce() -> anyhow::Result<Exit>>,
}

fn plan(command: Command) -> Planned {
    match command {
        Command::Run(args) => works("run", || block_on(run::run(args))),
        Command::Demo(args) => works("demo", || block_on(demo::demo(args))),
        Command::Flow(FlowCommand::Run(args)) => works("flow run", || block_on(flow::run(args))),
        Command::Flow(FlowCommand::Check(args)) => looks(move || flow::check(&args)),
        Command::Exec(args) => executes("exec", args),
        Command::Gateway(args) => executes("gateway", args.into()),
        Command::Fork(args) => works("fork", || block_on(fork::fork(args))),
        Command::Resume(args) => works("resume", || block_on(act::resume(args))),
        Command::Ps(args) => looks(|| block_on(ps::ps(args))),
        Command::Cost(args) => looks(|| block_on(cost::cost(args))),
        Command::Diff(args) => looks(|| block_on(diff::diff(args))),
        Command::Serve(args) => acts("serve", || block_on(serve::serve(args))),
        Command::Worker(args) => works("worker", move || worker::worker(args)),
        Command::Cluster(command) => {
            planned(cluster::act_of(&command), || block_on(cluster::cluster(command)))
        }
        Command::Acp(args) => acts("acp", || block_on(acp::acp(args))),
        Command::Top(args) => acts("top", move || top::top(&args)),
        Command::Attach(args) => acts("attach", || block_on(attach::attach(args))),
        Command::Replay(args) => looks(|| block_on(replay::replay(args))),
        Command::Profile(command) => looks(|| profile::profile(command)),
        Command::Approvals(args) => looks(|| block_on(approvals::approvals(args))),
        Command::Approve(args) => acts("approve", || block_on(answer::approve(args))),
        Command::Deny(args) => acts("deny", || block_on(answer::deny(args))),
        Command::Say(args) => acts("say", || block_on(act::say(args))),
        Command::Pause(args) => acts("pause", || block_on(act::pause(args))),
        Command::Cancel(args) => acts("cancel", || block_on(act::cancel(args))),
        Command::Goal(command) => planned(goal::act_of(&command), || block_on(goal::goal(command))),
        Command::Reprioritize(args) => acts("reprioritize", || block_on(act::reprioritize(args))),
        Command::Show(args) => looks(|| block_on(show::show(args))),
        Command::Explain(args) => looks(|| block_on(explain::explain(args))),
        Command::Logs(args) => looks(|| block_on(logs::logs(args))),
        Command::Export(args) => looks(|| block_on(transfer::export(args))),
        Command::Import(args) => acts("import", || block_on(transfer::import(args))),
        Command::Backup(args) => looks(move || backup::backup(&args)),
        Command::Doctor(args) => planned(doctor::act_of(&args), || block_on(doctor::doctor(args))),
        Command::Prune(args) => acts("prune", || block_on(prune::prune(args))),
        Command::Models(args) => planned(models::act_of(&args), || block_on(models::models(args))),
        Command::Mcp(command) => planned(mcp::act_of(&command), || block_on(mcp::mcp(command))),
        Command::Policy(command) => looks(|| block_on(policy::policy(command))),
        Command::Sandbox(command) => looks(|| sandbox::sandbox(command)),
        Command::Init(args) => acts("init", move || init::init(&args)),
        Command::Check(args) => looks(move || check::check(&args)),
        Command::Trust(args) => planned(trust::act_of(&args), move || trust::trust(&args)),
        Command::Completions { shell } => looks(move || completions::completions(shell)),
        Command::Schema(args) => looks(move || schema::schema(&args)),
        Command::Man(args) => looks(move || man::man(&args)),
        Command::Services(args) => planned(services::act_of(&args), || block_on(services::services(args))),
        Command::Background(args) => works("exec", || block_on(exec::in_background(args))),
        Command::Unattended(args) => works("serve", || block_on(unattended::unattended(args))),
        // What a run has started may supervise what it started: that gives it no right over a run.
        Command::Supervise(args) => looks(|| block_on(supervise::supervise(args))),
    }
}

fn planned(act: Act, work: impl FnOnce() -> anyhow::Result<Exit> + 'static) -> Planned {
    Planned { act, work: Box::new(work) }
}

fn looks(work: impl FnOnce() -> anyhow::Result<Exit> + 'static) -> Planned {
    planned(Act::Looks, work)
}

fn acts(name: &'static str, work: impl FnOnce() -> anyhow::Result<Exit> + 'static) -> Planned {
    planned(Act::Acts(name), work)
}

fn works(name: &'static str, work: impl FnOnce() -> anyhow::Result<Exit> + 'static) -> Planned {
    planned(Act::Works(name), work)
}

/// Works on a run itself, or is the terminal of a process that does.
fn executes(name: &'static str, args: ExecArgs) -> Planned {
    let act = if args.unattended { Act::Works(name) } else { Act::Acts(name) };
    planned(act, || block_on(exec::exec(args)))
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

/// What a worker logs unasked: what goes wrong there is read later.
const WORKER_LOG: &str = "provost=warn,provost_restate=info";

fn trace(is_worker: bool) -> anyhow::Result<()> {
    let asked = std::env::var("PROVOST_LOG").ok();
    let Some(filter) = asked.as_deref().or(is_worker.then_some(WORKER_LOG)) else { return Ok(()) };
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Refusal::new(format!("PROVOST_LOG: {error}"), "e.g. PROVOST_LOG=provost_harness=debug")
    })?;
    // What these say below that holds codes of logins, and messages of servers, which may repeat what they were sent.
    let quiet = ["rmcp=info", "rmcp::transport::auth=info"];
    let quiet = quiet
        .into_iter()
        .filter_map(|directive| directive.parse::<tracing_subscriber::filter::Directive>().ok());
    let filter = quiet.fold(filter, EnvFilter::add_directive);
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // It would panic where standard error can't be written.
        .log_internal_errors(false);
    match asked {
        Some(_) => log.init(),
        None => log.with_timer(LineTime).with_target(false).init(),
    }
    Ok(())
}

/// The time of a line as a worker's other lines have it.
struct LineTime;

impl FormatTime for LineTime {
    fn format_time(&self, line: &mut Writer<'_>) -> std::fmt::Result {
        line.write_str(&date_and_time(SystemClock.now()))
    }
}

/// Opens the backend that the user's settings name.
async fn backend() -> anyhow::Result<Arc<dyn Backend>> {
    Ok(place()?.open().await?)
}

/// The same, to show logs: of a damaged one the part before the damage.
async fn backend_to_show() -> anyhow::Result<Arc<dyn Backend>> {
    Ok(place()?.open_to_show().await?)
}

/// Opens the backend to read only, also where it can't be written.
async fn backend_to_read() -> anyhow::Result<Arc<dyn Backend>> {
    Ok(place()?.open_to_read().await?)
}

/// Where runs are kept, by the user's settings.
fn place() -> anyhow::Result<StateDir> {
    Ok(place_and_folders()?.0)
}

/// The same, with the folders of the user's settings.
fn place_and_folders() -> anyhow::Result<(StateDir, Folders)> {
    let variables = variables();
    let folder = current_dir()?;
    let request = Request::new(Scope::User, &folder, &variables, available_tools());
    let (loading, folders) = load(&request)?;
    Ok((state_dir(&loading.settled()?.settings, &folders), folders))
}

fn current_dir() -> anyhow::Result<std::path::PathBuf> {
    std::env::current_dir().context("can't tell the current folder")
}

/// Prints to standard output.
fn print(text: &str) -> anyhow::Result<()> {
    // JSON wasn't escaped before, and text that was is left as it is here.
    output::write(visible_json(text).as_bytes()).context("can't write to standard output")
}

/// Prints a view as one line of JSON.
fn print_json(view: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string(view)?))
}

/// The name of a path for people.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_makes_sense() {
        super::Cli::command().debug_assert();
    }
}
