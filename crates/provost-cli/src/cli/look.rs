//! Arguments of the commands that show runs: `ps`, `show`, `diff`, `explain`, `logs`, `cost`.

use clap::{Args, ValueEnum};

use super::{AGENT_HELP, RUN_HELP};
use crate::completing;

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// List all runs.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// List at most this many.
    #[arg(short = 'n', value_name = "N", default_value_t = 20, conflicts_with = "all", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: u32,
    /// Only runs of this folder and those below it.
    #[arg(long)]
    pub(crate) here: bool,
    /// Only runs in this group; several with commas between.
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    pub(crate) status: Vec<StatusGroup>,
    /// Only runs that were started since: a time back such as 7d or 12h, `today`, or a day such as 2026-11-01.
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(crate) since: Option<String>,
    /// Print a line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A group of runs by what they need: the same as on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatusGroup {
    /// A person has to answer.
    NeedsYou,
    /// Its agents work.
    Working,
    /// It makes no progress, or isn't allowed to end.
    Stuck,
    /// It was completed within the last day.
    Finished,
    /// It failed, was aborted, has used up a budget, or its process is gone.
    Failed,
    /// It waits for its provider, or is suspended.
    Waiting,
    /// It was cancelled, or hasn't changed for a day.
    Idle,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct ShowArgs {
    #[arg(help = RUN_HELP, add = completing::runs())]
    pub(crate) run: String,
    /// Show it as it goes until it is suspended or has ended, in whichever process it runs.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Show every agent, also where many are done or have yet to begin.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print one JSON object; with --follow one for each change.
    #[arg(long)]
    pub(crate) json: bool,
}

const SHOW_HELP: &str = "Of each agent the tree has its number, which other commands take as RUN.NUMBER; TOKENS and COST \
of it and of those below it; and behind a slash the limits that are its own. TIME counts while it holds a slot.";

#[derive(Debug, Args)]
#[command(after_help = DIFF_HELP)]
pub(crate) struct DiffArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// Only these files, and those in these folders, relative to the workspace.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Print only the list of files.
    #[arg(long)]
    pub(crate) stat: bool,
    /// Print one JSON object, with a patch for each file unless --stat is given.
    #[arg(long)]
    pub(crate) json: bool,
}

const DIFF_HELP: &str = "The workspace as it is now is compared with how it was when the run began, uncommitted changes \
and untracked files included; what others changed since then is reported too. RUN.N is the git worktree of agent N, \
compared with the commit that it began with. Where the output is no terminal it is a patch, which `git apply -R` \
takes to undo the changes. Marks: A added · M changed · D deleted.";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_HELP)]
pub(crate) struct ExplainArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// Print one JSON object, with exact numbers.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXPLAIN_HELP: &str = "Marks: - was never consulted in this run · ! can't be reached as the run is configured · ? \
isn't reported. CONSULTED is how often it was asked or looked at, DECIDED how often that changed what happened or, for \
a pattern, settled a call.";

#[derive(Debug, Args)]
#[command(after_help = LOGS_HELP)]
pub(crate) struct LogsArgs {
    #[arg(help = AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// Follow the log as it grows until the run is suspended or has ended, in whichever process it runs.
    #[arg(long, short, conflicts_with_all = ["entry", "view"])]
    pub(crate) follow: bool,
    /// Print one entry in full, as it was when it was made, by its number.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) entry: Option<u64>,
    /// Print the conversation as the model sees it now, with what stands for its older part.
    #[arg(long, conflicts_with = "entry")]
    pub(crate) view: bool,
    /// Only the log of this agent (0 is the first), or the run's own (`run`); for --entry and --view 0 if absent.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<Whose>,
    /// Print the entries as they are kept, a line of JSON each; with --view the conversation as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

const LOGS_HELP: &str = "Each line has the time, whose log it is in, the entry's number, its kind, and what it says. On \
a terminal, what an agent no longer sees as it was, since its conversation was shortened, is dim: --entry still shows it \
in full.";

/// One of a run's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The run's own.
    Run,
    /// An agent's.
    Agent(u32),
}

impl std::str::FromStr for Whose {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "run" {
            return Ok(Self::Run);
        }
        text.parse().map(Self::Agent).map_err(|_| "must be the number of an agent, or `run`")
    }
}

#[derive(Debug, Args)]
#[command(after_help = COST_HELP)]
pub(crate) struct CostArgs {
    /// Only this run: its id, the beginning of one, or `last`; or one agent of it: RUN.3.
    #[arg(add = completing::agents())]
    pub(crate) run: Option<String>,
    /// What to sum up by, several with commas between [default: model; of one run: agent,model].
    #[arg(long, value_name = "GROUP", value_delimiter = ',')]
    pub(crate) by: Vec<CostGroup>,
    /// Only what was spent since: a time back such as 7d or 12h, `today`, or a day such as 2026-11-01.
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(crate) since: Option<String>,
    /// Print one JSON object, with exact numbers; money in millionths of a US dollar.
    #[arg(long)]
    pub(crate) json: bool,
}

const COST_HELP: &str = "INPUT came from no cache, CACHED from the provider's; WRITTEN went into it. OUTPUT includes \
REASONING, where a provider tells of it. Attempts that failed count as calls; `?` stands for calls whose price isn't \
known. Days are those of your time zone (TZ).";

/// By what spending is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostGroup {
    /// The model that was asked.
    Model,
    /// The agent that asked.
    Agent,
    /// What the call was for: a turn, a summary, a final summary, a judge's verdict, an external agent's own call, or a
    /// hook.
    Purpose,
    /// The run.
    Run,
    /// The segment of its run, from a start or a resume to the outcome: 1 is the first.
    Segment,
    /// The day of your time zone.
    Day,
}
