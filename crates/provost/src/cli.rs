//! The command line.

mod external;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use provost_event::Priority;

pub(crate) use external::{AttachArgs, ChannelArg, ExecArgs, ProfileCommand, ProfileTestArgs, ReplayArgs};

/// Runs autonomous agents under supervision: they work until the goal is verified, a budget ends or a hook stops
/// them, and every step is in a log from which they go on.
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
    /// Runs somebody else's program as an agent, at this terminal or unattended: its questions pass the permissions,
    /// its end the stop hooks and judges.
    Exec(ExecArgs),
    /// Goes on with a run after a crash, a suspension or any end.
    Resume(ResumeArgs),
    /// Begins a run with another's conversation up to an entry, which is referred to and not paid again.
    Fork(ForkArgs),
    /// Goes through a flow: work that a file lays out in steps that wait for each other.
    #[command(subcommand)]
    Flow(FlowCommand),
    /// Lists runs, the newest first.
    Ps(PsArgs),
    /// Shows one run: how it stands, what it used, all its agents as a tree, what the first one said last.
    Show(ShowArgs),
    /// Says which limits, hooks, permissions and observers really had a say in a run, and what they decided.
    Explain(ExplainArgs),
    /// Prints the log of a run, a line an entry.
    Logs(LogsArgs),
    /// Connects this terminal to the program of an agent that somebody else's program is.
    Attach(AttachArgs),
    /// Plays what a program showed.
    Replay(ReplayArgs),
    /// Lists, shows and tests what is known of other people's programs.
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Lists what waits for somebody's approval.
    Approvals(ApprovalsArgs),
    /// Allows a tool call that waits for approval.
    Approve(ApproveArgs),
    /// Refuses a tool call that waits for approval.
    Deny(DenyArgs),
    /// Says something to an agent of a run; it hears it before it thinks the next time.
    Say(SayArgs),
    /// Lets a run, or one of its agents and those below it, come to rest; `resume` goes on with it.
    Pause(ActArgs),
    /// Ends a run, or one of its agents and those below it.
    Cancel(ActArgs),
    /// Shows what must be confirmed before an agent counts as done, and what its judges have said; or acts on that.
    #[command(subcommand)]
    Goal(GoalCommand),
    /// Gives an agent of a run another priority.
    Reprioritize(ReprioritizeArgs),
    /// Says what was spent: calls, tokens and money, by model, agent, run or day.
    Cost(CostArgs),
    /// Writes a run to a file, to be read by `import`.
    Export(ExportArgs),
    /// Takes in a run that `export` wrote.
    Import(ImportArgs),
    /// Writes a commented provost.toml to the current folder.
    Init(InitArgs),
    /// Lists providers and models: whether a key is there, window, price. Or asks one whether it answers.
    Models(ModelsArgs),
    /// Checks the settings and says where each came from.
    Check(CheckArgs),
    /// Shows what a project's files would run or allow, and agrees to it.
    Trust(TrustArgs),
    /// Prints completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page.
    Man,
}

/// Limits that `run` sets and `resume` changes.
#[derive(Debug, Clone, Args)]
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
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("--max-turns", &self.max_turns),
            ("--tokens", &self.tokens),
            ("--usd", &self.usd),
            ("--wall-time", &self.wall_time),
        ];
        all.into_iter().filter_map(|(flag, value)| Some((flag, value.clone()?))).collect()
    }
}

/// How a run is shown while it goes, and what its exit status asks for.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ShownArgs {
    /// Print each log entry as a line of JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress.
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Exit with status 1 where the run is completed but no stop hook or judge has verified it.
    #[arg(long)]
    pub(crate) require_verified: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What is to be reached; `-` reads it from standard input.
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
    /// What must be true before it counts as done: a judge verifies it. Alone it is also what the agent is to reach.
    #[arg(long = "goal", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
    /// The model that judges, the agent's own if absent; give it again for more, of which most must agree.
    #[arg(long = "judge", value_name = "MODEL")]
    pub(crate) judges: Vec<String>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// Where and with what a run works, and how it is shown.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// The model: provider/model, or script:FILE.
    #[arg(long, short, value_name = "MODEL")]
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
    /// Goes through the steps of a flow until all are done; `provost resume` goes on with one that rests.
    Run(FlowRunArgs),
    /// Checks the file of a flow and says which steps it comes to, in an order in which they can be done.
    Check(FlowCheckArgs),
}

const FLOW_HELP: &str = "The flow's file: TOML with [flow] and [[flow.steps]]; docs/flows.md tells more";

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

const RUN_HELP: &str = "The run: its id, the beginning of one, or `last`";
const RESUME_HELP: &str = "Goes on with a run that is suspended, interrupted or has ended, in the same log and with what is left of its \
limits; amounts given here are added to them. What was delivered stays delivered.";

const AGENT_HELP: &str =
    "The run, as its id, the beginning of one, or `last`; or one of its agents: RUN.3, last.3";

#[derive(Debug, Args)]
#[command(after_help = RESUME_HELP)]
pub(crate) struct ResumeArgs {
    #[arg(help = AGENT_HELP)]
    pub(crate) run: String,
    /// What to say to the agent with it.
    pub(crate) text: Vec<String>,
    /// A settings file over the user's, for the provider's address and key.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Ask this model from here on, in place of the run's own and of one that can't be asked any more.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// How much the model thinks from here on.
    #[arg(long, value_name = "LEVEL", value_parser = ["minimal", "low", "medium", "high"])]
    pub(crate) effort: Option<String>,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
}

const FORK_HELP: &str = "The new run has limits of its own, as `run` takes them, and works where the other did unless --dir says \
otherwise. Its agent keeps model, tools and rules of the other. A call that had no result there gets one that says so.";

#[derive(Debug, Args)]
#[command(after_help = FORK_HELP)]
pub(crate) struct ForkArgs {
    #[arg(help = AGENT_HELP)]
    pub(crate) run: String,
    /// What to say to the agent.
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
    /// Ask this model instead.
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How much the model thinks.
    #[arg(long, value_name = "LEVEL", value_parser = ["minimal", "low", "medium", "high"])]
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

#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// List all runs.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// List at most so many.
    #[arg(short = 'n', value_name = "N", default_value_t = 20, conflicts_with = "all")]
    pub(crate) max: usize,
    /// Print a line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct ShowArgs {
    #[arg(help = RUN_HELP)]
    pub(crate) run: String,
    /// Show it as it goes, until it rests or ends, whoever works on it.
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
#[command(after_help = EXPLAIN_HELP)]
pub(crate) struct ExplainArgs {
    #[arg(help = AGENT_HELP)]
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
    #[arg(help = AGENT_HELP)]
    pub(crate) run: String,
    /// Go on as the log grows, until the run rests or ends, whoever works on it.
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
    #[arg(help = QUESTION_HELP)]
    pub(crate) question: Option<String>,
    /// Allow such calls for the rest of this run.
    #[arg(long, conflicts_with = "always")]
    pub(crate) for_run: bool,
    /// Allow such calls in all runs from now on: adds their pattern to `permissions.approved` in your own settings.
    #[arg(long)]
    pub(crate) always: bool,
    /// Which calls, instead of those like this one; must cover this one. Only with --for-run or --always.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    #[arg(help = QUESTION_HELP)]
    pub(crate) question: Option<String>,
    /// Why; the agent is told.
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) reason: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    #[arg(help = AGENT_HELP)]
    pub(crate) run: String,
    /// What; several words are one text.
    #[arg(required = true, allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) text: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ActArgs {
    #[arg(help = AGENT_HELP)]
    pub(crate) run: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GoalCommand {
    /// Shows the goals of a run's agents: the condition, how it stands, its judges and all their verdicts.
    Show(GoalShowArgs),
    /// Lets an agent with a goal come to rest, also while that is being verified.
    Pause(ActArgs),
    /// Goes on with an agent that has a goal, in this process; it has all its rounds and failures again.
    Resume(ResumeArgs),
    /// Takes an agent's goal away: what is in flight stops, and the agent rests until `resume` goes on without it.
    Clear(ActArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GoalShowArgs {
    #[arg(help = AGENT_HELP)]
    pub(crate) run: String,
    /// Print one JSON object with all of it.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReprioritizeArgs {
    /// The agent: RUN.3, last.3.
    #[arg(value_name = "AGENT")]
    pub(crate) run: String,
    /// Background, low, normal, high or critical: with a high or critical one a waiting agent comes sooner, with one
    /// below normal an agent makes way for those that wait.
    pub(crate) priority: Priority,
}

#[derive(Debug, Args)]
#[command(after_help = COST_HELP)]
pub(crate) struct CostArgs {
    /// Only this run: its id, the beginning of one, or `last`; or one agent of it: RUN.3.
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
    /// What the call was for: a turn, a summary, last words, or a judge's verdict.
    Purpose,
    /// The run.
    Run,
    /// The segment of its run, from a start or a resume to the outcome: 1 is the first.
    Segment,
    /// The day of your time zone.
    Day,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[arg(help = RUN_HELP)]
    pub(crate) run: String,
    /// The file; standard output if absent.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file; `-` for standard input.
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Replace a file that is there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the user's own file instead, with the settings that a project may not have.
    #[arg(long)]
    pub(crate) user: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
    /// Only this provider's.
    pub(crate) provider: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Asks a model one short question, and says what is wrong if it doesn't answer. Costs a few tokens.
    Check {
        /// The model; the one of the settings if absent.
        name: Option<String>,
    },
    /// Takes windows, prices and new models over from a public table: models.dev's api.json or litellm's
    /// model_prices_and_context_window.json. What your settings say of a model stays.
    Update {
        /// The table.
        file: PathBuf,
        /// Only show what would change.
        #[arg(long)]
        dry_run: bool,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A settings file to take instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON Schema of a settings file.
    #[arg(long, conflicts_with_all = ["json", "config"])]
    pub(crate) schema: bool,
}

#[derive(Debug, Args)]
#[command(after_help = TRUST_HELP)]
pub(crate) struct TrustArgs {
    /// Agree without being asked.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List the projects that are trusted.
    #[arg(long, conflicts_with_all = ["yes", "revoke", "dir", "config"])]
    pub(crate) list: bool,
    /// Trust a project no longer: this folder's, or the one here.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, conflicts_with_all = ["yes", "dir", "config"])]
    #[expect(clippy::option_option, reason = "absent, without a folder, with one: clap's own form")]
    pub(crate) revoke: Option<Option<PathBuf>>,
    /// The folder that is worked in.
    #[arg(long, short = 'C', value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// The settings file that is taken instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A flow's file, whose stop hooks are to run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "revoke"])]
    pub(crate) flow: Option<PathBuf>,
}

const TRUST_HELP: &str = "A project's file that names programs (hooks, stop hooks, imports) or lets an agent do more \
counts only once you have agreed to exactly this content. What a program's own file holds isn't looked at. \
`provost run` refuses until then.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_makes_sense() {
        super::Cli::command().debug_assert();
    }
}
