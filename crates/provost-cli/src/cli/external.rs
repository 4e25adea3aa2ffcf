//! The commands for external programs: `exec`, `attach`, `replay` and `profile`.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use provost_config::{DetachKey, Override};
use provost_event::Channel;
use serde::{Deserialize, Serialize};

use super::{BudgetArgs, ShownArgs, WorkArgs};
use crate::completing;

#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = EXEC_HELP)]
pub(crate) struct ExecArgs {
    /// The program and its arguments, behind `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<String>,
    /// Unattended: permissions decide what it may do, and the rest is asked here or by `provost approvals`.
    #[arg(long)]
    pub(crate) unattended: bool,
    /// Its prompt once it is ready; `-` reads that from standard input. Absent: its arguments say what it does.
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Read the prompt from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) file: Option<PathBuf>,
    /// Read standard input too: it follows the prompt, or is the prompt. Only with --unattended.
    #[arg(long, requires = "unattended")]
    pub(crate) stdin: bool,
    /// The profile of its screens [default: the one that matches the program, else generic].
    #[arg(long, value_name = "NAME", add = completing::profiles())]
    pub(crate) profile: Option<String>,
    /// The channel to the program.
    #[arg(long, value_enum, default_value_t = ChannelArg::Auto)]
    pub(crate) channel: ChannelArg,
    /// The rows and columns of its window while no terminal is attached, such as 40x120.
    #[arg(long, value_name = "ROWSxCOLUMNS", allow_hyphen_values = true)]
    pub(crate) size: Option<String>,
    /// Don't record what it shows.
    #[arg(long)]
    pub(crate) no_record: bool,
    #[command(flatten)]
    pub(crate) calls: RecordedCallsArgs,
    /// What must be true before it counts as done: a judge verifies it. Alone it is also the prompt.
    #[arg(long = "goal", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
    /// The model that judges, agent.model if absent; give it again for more, of which most must agree.
    #[arg(long = "judge", value_name = "MODEL", add = completing::models())]
    pub(crate) judges: Vec<String>,
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
    /// How long it may wait for you until the run is suspended, such as 30m.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Limits of the whole run")]
    pub(crate) idle_time: Option<String>,
    /// Let it work although money is limited: only the usage that it reports counts.
    #[arg(long, help_heading = "Limits of the whole run")]
    pub(crate) allow_unpriced: bool,
    /// Let it call models past the gateway, such as with its vendor's login: --usd doesn't bind it then.
    #[arg(long, help_heading = "Limits of the whole run")]
    pub(crate) unmetered: bool,
    /// Whether it stands for its program: it may only run if its calls pass the gateway, and this command ends as it does.
    #[arg(skip)]
    pub(crate) stands_for_program: bool,
}

const EXEC_HELP: &str = "A turn is one exchange with the program: a prompt or an answer goes in, and a question or the \
    end of its work comes out. If its profile says how, the program calls models through the gateway, where --tokens and \
    --usd bind each call (docs/gateway.md); otherwise only the usage that it reports counts. See docs/external.md.";

#[derive(Debug, Args)]
#[command(after_help = GATEWAY_HELP)]
pub(crate) struct GatewayArgs {
    /// The program and its arguments, behind `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<String>,
    /// Without a person at the terminal.
    #[arg(long)]
    pub(crate) unattended: bool,
    /// Don't record what it shows.
    #[arg(long)]
    pub(crate) no_record: bool,
    #[command(flatten)]
    pub(crate) calls: RecordedCallsArgs,
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
}

const GATEWAY_HELP: &str = "Where standard input, output and error are the terminal, the program has a terminal of its own. \
Otherwise, in a pipe or a script, it has these streams as they are, and signals are forwarded to it. The exit status is \
that of the program, or 3 if a budget ended it. The program gets the addresses of Provost's model gateway and a token in \
the variables that the official client libraries read: ANTHROPIC_BASE_URL and _API_KEY, OPENAI_BASE_URL and _API_KEY, \
GOOGLE_GEMINI_BASE_URL and GEMINI_API_KEY; others take PROVOST_GATEWAY_URL and _TOKEN. It never gets a provider's key. \
See docs/gateway.md.";

impl From<GatewayArgs> for ExecArgs {
    fn from(args: GatewayArgs) -> Self {
        let GatewayArgs { command, unattended, no_record, calls, dir, config, shown, budget } = args;
        let is_at_terminal = std::io::stdin().is_terminal()
            && std::io::stdout().is_terminal()
            && std::io::stderr().is_terminal();
        let channel = if is_at_terminal { ChannelArg::Terminal } else { ChannelArg::Streams };
        Self {
            command,
            unattended: unattended || !is_at_terminal,
            prompt: None,
            file: None,
            stdin: false,
            profile: Some("gateway".to_owned()),
            channel,
            size: None,
            no_record,
            calls,
            condition: None,
            judges: Vec::new(),
            dir,
            config,
            shown,
            budget,
            idle_time: None,
            allow_unpriced: false,
            unmetered: false,
            stands_for_program: true,
        }
    }
}

impl ExecArgs {
    /// Where it works, and how that is shown.
    pub(crate) fn work(&self) -> WorkArgs {
        WorkArgs {
            model: None,
            dir: self.dir.clone(),
            config: self.config.clone(),
            shown: self.shown,
            budget: self.budget.clone(),
            max_agents: None,
            allow_unpriced: self.allow_unpriced,
        }
    }

    /// The flags that only this command has, and that are settings.
    pub(crate) fn flags(&self) -> Vec<Override> {
        let judges = (!self.judges.is_empty()).then(|| Override::new("--judge", self.judges.join(",")));
        let all = [
            self.condition.clone().map(|condition| Override::new("--goal", condition)),
            judges,
            self.size.clone().map(|size| Override::new("--size", size)),
            self.idle_time.clone().map(|time| Override::new("--idle-time", time)),
            self.no_record.then(|| Override::new("--no-record", "false")),
            self.unmetered.then(|| Override::new("--unmetered", "true")),
            self.calls.record_calls.then(|| Override::new("--record-calls", "true")),
            self.calls.replay_calls.clone().map(|run| Override::new("--replay-calls", run)),
        ];
        all.into_iter().flatten().collect()
    }
}

/// Whether model calls that pass the gateway are recorded or replayed.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub(crate) struct RecordedCallsArgs {
    /// Keep its requests to models and their answers in the log, without known secrets.
    #[arg(long)]
    pub(crate) record_calls: bool,
    /// Answer its requests to models from this run, which was recorded with --record-calls: without key, network or cost.
    #[arg(long, value_name = "RUN", add = completing::runs())]
    pub(crate) replay_calls: Option<String>,
}

/// The channel to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum ChannelArg {
    /// The first one that its profile names and that fits; the terminal where a person works at it.
    Auto,
    /// A terminal.
    Terminal,
    /// Its structured stream.
    Structured,
    /// The standard streams of this command.
    #[value(skip)]
    Streams,
}

impl From<ChannelArg> for Channel {
    fn from(arg: ChannelArg) -> Self {
        match arg {
            ChannelArg::Auto => Self::Auto,
            ChannelArg::Terminal => Self::Terminal,
            ChannelArg::Structured => Self::Structured,
            ChannelArg::Streams => Self::Streams,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = ATTACH_HELP)]
pub(crate) struct AttachArgs {
    #[arg(help = super::AGENT_HELP, add = completing::agents())]
    pub(crate) run: String,
    /// The agent whose program is meant, by its number; the first if absent.
    #[arg(long, value_name = "N")]
    pub(crate) agent: Option<u32>,
    /// Only watch: what you type isn't sent.
    #[arg(long)]
    pub(crate) read_only: bool,
}

const ATTACH_HELP: &str = "Ctrl-\\ detaches (exec.detach_key), and the program goes on. While a person is attached who \
may type, Provost answers none of the program's questions by itself.";

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The run, as its id, the beginning of one, or `last`; one of its agents, last.3; or a recording, FILE.cast.
    #[arg(value_name = "RUN|FILE", add = completing::agents())]
    pub(crate) what: String,
    /// The agent whose program is meant, by its number; the first if absent.
    #[arg(long, value_name = "N")]
    pub(crate) agent: Option<u32>,
    /// The speed, as a factor.
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub(crate) speed: f64,
    /// The longest pause, such as 2s.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) max_idle: Option<std::time::Duration>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Lists the profiles of external programs.
    List {
        /// Print a line of JSON for each.
        #[arg(long)]
        json: bool,
    },
    /// Prints a profile, as a starting point for your own.
    Show {
        /// The name of the profile.
        #[arg(add = completing::profiles())]
        name: String,
    },
    /// Runs the detector over recordings and reports how well it does.
    Test(ProfileTestArgs),
    /// Runs a program at this terminal, records it with what the kernel says, and asks what it showed: a labelled
    /// recording for `test`.
    Record(ProfileRecordArgs),
    /// Asks what a recording shows, and writes the labels.
    Mark(ProfileMarkArgs),
}

#[derive(Debug, Args)]
#[command(after_help = PROFILE_RECORD_HELP)]
pub(crate) struct ProfileRecordArgs {
    /// The program and its arguments, behind `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<String>,
    /// The folder for the recording.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// The recording's name [default: the program's name and a number].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The key that marks a moment, so that it is asked about afterwards.
    #[arg(long, value_name = "KEY", default_value = "ctrl-]")]
    pub(crate) mark_key: DetachKey,
    /// Ask nothing afterwards; `provost profile mark` does it later.
    #[arg(long)]
    pub(crate) no_marks: bool,
}

const PROFILE_RECORD_HELP: &str = "Nothing supervises the program: it isn't a run. Passwords aren't recorded, and what has the \
shape of a key is masked; look at a recording before you pass it on. See docs/profiles.md.";

#[derive(Debug, Args)]
pub(crate) struct ProfileMarkArgs {
    /// The recording: any of its files, or its folder and name.
    pub(crate) recording: PathBuf,
    /// The profile whose detection is proposed [default: the one that matches the program, else generic].
    #[arg(long, value_name = "NAME", add = completing::profiles())]
    pub(crate) profile: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = PROFILE_TEST_HELP)]
pub(crate) struct ProfileTestArgs {
    /// A profile's name or file, unless it is chosen by each recording's command; then recordings, or folders of
    /// them; the current folder if absent.
    #[arg(value_name = "PROFILE|RECORDING|FOLDER")]
    pub(crate) what: Vec<PathBuf>,
    /// Write what was detected to this folder: NAME.jsonl for each recording, a line {"t", "kind"} each.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) predictions: Option<PathBuf>,
    /// Leave out what programs report of themselves: OSC 7501, titles.
    #[arg(long)]
    pub(crate) without_signals: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

const PROFILE_TEST_HELP: &str = "A recording is a NAME.raw.jsonl with what the program wrote and when; beside it NAME.json \
with the program and the labels, and NAME.proc.jsonl with what the kernel said. Without labels nothing is scored, and the \
predictions are still written.";
