//! The command line.

mod act;
mod external;
mod look;
mod manage;
mod run;
mod segment;
mod store;

use clap::{Parser, Subcommand};

pub(crate) use act::{
    ActArgs, ApprovalsArgs, ApproveArgs, CancelArgs, DenyArgs, GoalCommand, GoalShowArgs, ReprioritizeArgs,
    SayArgs,
};
pub(crate) use external::{AttachArgs, ChannelArg, ExecArgs, ProfileCommand, ProfileTestArgs, ReplayArgs};
pub(crate) use look::{CostArgs, CostGroup, ExplainArgs, LogsArgs, PsArgs, ShowArgs, Whose};
pub(crate) use manage::{CheckArgs, ExportArgs, ImportArgs, InitArgs, ModelsArgs, ModelsCommand, TrustArgs};
pub(crate) use run::{BudgetArgs, FlowCheckArgs, FlowCommand, FlowRunArgs, RunArgs, ShownArgs, WorkArgs};
pub(crate) use segment::{ForkArgs, ResumeArgs};
pub(crate) use store::{BackupArgs, DoctorArgs, PruneArgs};

/// Runs autonomous agents under supervision: they work until the goal is verified, a budget is used up or a hook
/// stops them, and every step is in a log from which they resume.
#[derive(Debug, Parser)]
#[command(name = "provost", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = EXIT_STATUSES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_STATUSES: &str = "Exit status of run, exec and resume: 0 completed, which says whether anything verified it · 1 failed, \
the agent's own verdict is FAIL or PARTIAL, output couldn't be written, or not verified with --require-verified · 2 wrong usage or settings · 3 a budget ended it · 4 it waits (paused, blocked, needs approval) · 5 a hook aborted it · \
130 interrupted or cancelled.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs an agent on a goal, in the current folder.
    Run(RunArgs),
    /// Runs an external program as an agent, at this terminal or unattended: its questions pass the permissions,
    /// its end the stop hooks and judges.
    Exec(ExecArgs),
    /// Resumes a run after a crash, a suspension or any end.
    Resume(ResumeArgs),
    /// Starts a run from another's conversation up to an entry, which is referred to and not paid again.
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
    /// Connects this terminal to the program of an external agent.
    Attach(AttachArgs),
    /// Plays a recording of what a program showed.
    Replay(ReplayArgs),
    /// Lists, shows and tests the profiles of external programs.
    #[command(subcommand)]
    Profile(ProfileCommand),
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
    /// Shows what must be confirmed before an agent counts as done, and the verdicts of its judges; or acts on
    /// that.
    #[command(subcommand)]
    Goal(GoalCommand),
    /// Changes the priority of an agent of a run.
    Reprioritize(ReprioritizeArgs),
    /// Shows what was spent: calls, tokens and money, by model, agent, run or day.
    Cost(CostArgs),
    /// Writes a run to a file for `import`.
    Export(ExportArgs),
    /// Imports a run that `export` wrote.
    Import(ImportArgs),
    /// Copies the whole store to a file, also while runs are worked on, and checks the copy.
    Backup(BackupArgs),
    /// Checks the store, reports what is damaged or lost, and saves what can be read.
    Doctor(DoctorArgs),
    /// Removes runs that are over, and frees their space.
    Prune(PruneArgs),
    /// Writes a commented provost.toml to the current folder.
    Init(InitArgs),
    /// Lists providers and models with key, window and price. Or checks whether a model answers.
    Models(ModelsArgs),
    /// Checks the settings and shows where each came from.
    Check(CheckArgs),
    /// Shows what a project's files would run or allow, and asks for your consent.
    Trust(TrustArgs),
    /// Prints completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page.
    Man,
}

const RUN_HELP: &str = "The run: its id, the beginning of one, or `last`";
const AGENT_HELP: &str =
    "The run, as its id, the beginning of one, or `last`; or one of its agents: RUN.3, last.3";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_makes_sense() {
        super::Cli::command().debug_assert();
    }
}
