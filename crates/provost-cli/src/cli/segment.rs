//! Arguments of the commands that go on with a run: `resume` and `fork`.

use std::path::PathBuf;

use clap::Args;
use provost_config::EFFORTS;

use super::{AGENT_HELP, BudgetArgs, ShownArgs};
use crate::completing;

const RESUME_HELP: &str = "The run goes on in the same log and with what is left of its limits; amounts given here are \
added to them. Results that were delivered stay as they are. The settings are those that the run was started with, \
unless --with-settings takes the current ones.";

#[derive(Debug, Args)]
#[command(after_help = RESUME_HELP)]
pub(crate) struct ResumeArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// A message to the agent.
    pub(crate) text: Vec<String>,
    /// A settings file over the user's, for the provider's address and key; with --with-settings for all of it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Take the current settings in place of those that the run was started with: checks, hooks, permissions, limits,
    /// models and prices, and a workflow's file. The log records what is different.
    #[arg(long)]
    pub(crate) with_settings: bool,
    /// Replace the goal: the condition that judges verify before the run counts as done.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) goal: Option<String>,
    /// Remove the goal: no judge is asked from here on.
    #[arg(long, conflicts_with = "goal")]
    pub(crate) no_goal: bool,
    /// Ask this model from here on, in place of the run's own and of one that can't be asked any more.
    #[arg(long, short, value_name = "NAME", add = completing::models())]
    pub(crate) model: Option<String>,
    /// The model's reasoning effort from here on.
    #[arg(long, value_name = "LEVEL", value_parser = EFFORTS)]
    pub(crate) effort: Option<String>,
    /// Resume it for the workers of the engine, and exit.
    #[arg(long, conflicts_with_all = ["json", "require_verified"])]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
}

impl ResumeArgs {
    /// The flags given that change what binds the run.
    pub(crate) fn changes(&self) -> Vec<&'static str> {
        let all = [
            (self.with_settings, "--with-settings"),
            (self.goal.is_some(), "--goal"),
            (self.no_goal, "--no-goal"),
        ];
        all.into_iter().filter_map(|(is_given, flag)| is_given.then_some(flag)).collect()
    }
}

const FORK_HELP: &str = "The new run has limits of its own, as `run` takes them, and works where the other did unless --dir says \
otherwise. Its agent keeps model, tools and rules of the other, unless --with-settings takes the current ones. A call \
that had no result there gets one that says so.";

#[derive(Debug, Args)]
#[command(after_help = FORK_HELP)]
pub(crate) struct ForkArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// The message to the agent.
    pub(crate) text: Vec<String>,
    /// The last entry of the conversation, by its number in the agent's log; the newest if absent.
    #[arg(long, value_name = "ENTRY", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) at: Option<u64>,
    /// The folder to work in.
    #[arg(long, short = 'C', value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// A settings file to take instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Take the rules of the current settings too, in place of those of the other run.
    #[arg(long)]
    pub(crate) with_settings: bool,
    /// Ask this model instead.
    #[arg(long, short, value_name = "MODEL", add = completing::models())]
    pub(crate) model: Option<String>,
    /// The model's reasoning effort.
    #[arg(long, value_name = "LEVEL", value_parser = EFFORTS)]
    pub(crate) effort: Option<String>,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Agents that may work at the same time; 1 is without sub-agents.
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Limits of the whole run")]
    pub(crate) max_agents: Option<String>,
    /// Let a model whose price isn't known work although money is limited.
    #[arg(long, help_heading = "Limits of the whole run")]
    pub(crate) allow_unpriced: bool,
}
