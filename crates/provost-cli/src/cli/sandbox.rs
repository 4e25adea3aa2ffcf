//! Arguments of the commands about the sandbox.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use provost_event::{SandboxMode, SandboxNetwork};

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Runs a command in the sandbox that the settings describe.
    Run(SandboxRunArgs),
    /// Says what agents' programs may read, write and reach here, and why.
    Explain(SandboxExplainArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SandboxPolicyArgs {
    /// The mode instead of that of the settings.
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(SandboxMode::ALL.map(SandboxMode::name)))]
    pub(crate) mode: Option<String>,
    /// The network instead of that of the settings.
    #[arg(long, value_name = "NETWORK", value_parser = PossibleValuesParser::new(SandboxNetwork::ALL.map(SandboxNetwork::name)))]
    pub(crate) network: Option<String>,
    /// A host that may be reached besides, with --network proxy; can be given more than once.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// The folder to work in.
    #[arg(long, short = 'C', value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// A settings file to take instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
pub(crate) struct SandboxRunArgs {
    #[command(flatten)]
    pub(crate) policy: SandboxPolicyArgs,
    /// The command and its arguments.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

const RUN_HELP: &str = "Exit status: that of the command; 125 if no sandbox can be made, 127 if there is no such program. Without settings the mode is `workspace`.";

#[derive(Debug, Args)]
pub(crate) struct SandboxExplainArgs {
    #[command(flatten)]
    pub(crate) policy: SandboxPolicyArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// A command whose paths are explained.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Tests a settings file's permissions, hook matchers and sandbox against the tool calls of past runs, and lists
    /// the rules that decide nothing. Only logs are read; nothing is run.
    Test(PolicyTestArgs),
}

#[derive(Debug, Args)]
#[command(after_help = TEST_HELP)]
pub(crate) struct PolicyTestArgs {
    /// The settings file.
    pub(crate) file: PathBuf,
    /// The runs: ids, the beginnings of ids, `last`, or last:N for the N newest.
    #[arg(long, num_args = 1.., default_value = "last:200", value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

const TEST_HELP: &str = "Exit status: 0 no call would be denied or asked about that wasn't, 1 some would. Of the sandbox the paths of file \
tools are judged; what a command would touch isn't known before it runs, nor is a hook's answer.";
