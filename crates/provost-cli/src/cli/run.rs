//! Arguments of the commands that start a run.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use provost_config::Override;
use serde::{Deserialize, Serialize};

use crate::completing;

/// Limits that `run` sets and `resume` changes.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Limits of the whole run")]
pub(crate) struct BudgetArgs {
    /// Turns of all agents together.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) max_turns: Option<String>,
    /// Tokens of all kinds.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) tokens: Option<String>,
    /// Money in US dollars, such as 5.00.
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) usd: Option<String>,
    /// Time worked on it, such as 2h.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) wall_time: Option<String>,
}

impl BudgetArgs {
    /// Those that were given, by flag.
    pub(crate) fn given(&self) -> Vec<Override> {
        let all = [
            ("--max-turns", &self.max_turns),
            ("--tokens", &self.tokens),
            ("--usd", &self.usd),
            ("--wall-time", &self.wall_time),
        ];
        all.into_iter().filter_map(|(flag, value)| Some(Override::new(flag, value.clone()?))).collect()
    }
}

/// How a run is shown while it goes, and what its exit status asks for.
#[derive(Debug, Clone, Copy, Default, Args, Serialize, Deserialize)]
pub(crate) struct ShownArgs {
    /// Print each log entry as a line of JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress, and how the run ended only if it isn't completed.
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Show every entry of the log, also those that only help to find the cause of a problem.
    #[arg(long, short, conflicts_with_all = ["json", "quiet"])]
    pub(crate) verbose: bool,
    /// Exit with status 1 where the run is completed but no stop hook or judge has verified it.
    #[arg(long)]
    pub(crate) require_verified: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// The goal; `-` reads it from standard input.
    pub(crate) goal: Option<String>,
    /// Read the goal from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "goal")]
    pub(crate) file: Option<PathBuf>,
    /// Read standard input too: it follows the goal, or is the goal where there is none.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Show a picture with the goal: a PNG, JPEG, GIF or WebP; give it again for more.
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// What must be true before it counts as done: a judge verifies it. Alone it is also the agent's goal.
    #[arg(long = "goal", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
    /// The model that judges, the agent's own if absent; give it again for more, of which most must agree.
    #[arg(long = "judge", value_name = "MODEL", add = completing::models())]
    pub(crate) judges: Vec<String>,
    /// Start it for the workers of the engine, print its id, and exit.
    #[arg(long, conflicts_with_all = ["json", "require_verified"])]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

impl RunArgs {
    /// A run with this goal in `dir`, on a terminal as `run` shows it.
    pub(crate) fn of_demo(goal: &str, dir: PathBuf, model: String) -> Self {
        let work = WorkArgs { model: Some(model), dir: Some(dir), ..WorkArgs::default() };
        Self { goal: Some(goal.to_owned()), work, ..Self::default() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder for the project, which must be new or empty [default: a new one for temporary files].
    pub(crate) folder: Option<PathBuf>,
}

/// Where and with what a run works, and how it is shown.
#[derive(Debug, Default, Args)]
pub(crate) struct WorkArgs {
    /// The model: provider/model, or script:FILE.
    #[arg(long, short, value_name = "MODEL", add = completing::models())]
    pub(crate) model: Option<String>,
    /// The folder to work in.
    #[arg(long, short = 'C', value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// A settings file to take instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
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

#[derive(Debug, Subcommand)]
pub(crate) enum FlowCommand {
    /// Runs the steps of a workflow until all are done; `provost resume` goes on with one that is suspended.
    Run(FlowRunArgs),
    /// Checks the file of a workflow and lists its steps, in an order in which they can be done.
    Check(FlowCheckArgs),
}

const FLOW_HELP: &str = "The workflow's file: TOML with [flow] and [[flow.steps]]; see docs/flows.md";

#[derive(Debug, Args)]
pub(crate) struct FlowRunArgs {
    #[arg(help = FLOW_HELP)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FlowCheckArgs {
    #[arg(help = FLOW_HELP)]
    pub(crate) file: PathBuf,
    /// The folder whose settings count.
    #[arg(long, short = 'C', value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// A settings file to take instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
