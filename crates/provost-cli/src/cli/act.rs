//! Arguments of the commands that act on a run from outside.

use clap::{Args, Subcommand};
use provost_event::Priority;

use super::{AGENT_HELP, ResumeArgs};
use crate::completing;

const QUESTION_HELP: &str = "The question: RUN#NUMBER as `approvals` lists it, or its run where that has only one; \
nothing if only one waits at all";

#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// Print a line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    #[arg(help = QUESTION_HELP, add = completing::runs())]
    pub(crate) question: Option<String>,
    /// Allow such calls for the rest of this run.
    #[arg(long, conflicts_with = "always")]
    pub(crate) for_run: bool,
    /// Allow such calls in all runs from now on: adds their pattern to `permissions.approved` in your settings.
    #[arg(long)]
    pub(crate) always: bool,
    /// Which calls, instead of those like this one; must cover this one. Only with --for-run or --always.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,
    /// The answer to what a tool asks, as a JSON object with the fields that `provost approvals` shows.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["for_run", "always", "pattern"])]
    pub(crate) answer: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    #[arg(help = QUESTION_HELP, add = completing::runs())]
    pub(crate) question: Option<String>,
    /// The reason, which the agent is told.
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) reason: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// The message; several words are one text.
    #[arg(required = true, allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) text: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ActArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// First end the process that works on the run, with all that it has started, without asking it: for one that is
    /// stopped or doesn't answer. Linux only.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GoalCommand {
    /// Shows the goals of a run's agents: the condition, its status, its judges and all their verdicts.
    Show(GoalShowArgs),
    /// Suspends an agent with a goal, also while the goal is being verified.
    Pause(ActArgs),
    /// Resumes an agent that has a goal, in this process; its rounds and failures are counted anew.
    Resume(Box<ResumeArgs>),
    /// Removes an agent's goal: what is in flight stops, and the agent is suspended until `resume` goes on without
    /// it.
    Clear(ActArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GoalShowArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// Print one JSON object with all of it.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReprioritizeArgs {
    /// The agent: RUN.3, last.3.
    #[arg(value_name = "AGENT", add = completing::agents())]
    pub(crate) run: String,
    /// Background, low, normal, high or critical: with a high or critical one a waiting agent gets a slot sooner,
    /// with one below normal an agent yields its slot to those that wait.
    pub(crate) priority: Priority,
}
