//! Arguments of the commands that manage the store, the settings and the models.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use provost_view::ViewKind;

use super::RUN_HELP;
use crate::completing;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[arg(help = RUN_HELP, add = completing::runs())]
    pub(crate) run: String,
    /// The file; standard output if absent.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file; `-` for standard input.
    pub(crate) file: PathBuf,
    /// Take what there is of a file that is cut or damaged, or that was exported from a damaged store; report what
    /// is missing.
    #[arg(long)]
    pub(crate) incomplete: bool,
}

#[derive(Debug, Args)]
#[command(after_help = INIT_HELP)]
pub(crate) struct InitArgs {
    /// The model: provider/model. Not asked for then.
    #[arg(long, short, value_name = "MODEL", add = completing::models())]
    pub(crate) model: Option<String>,
    /// The command that checks the agent's work, `-` for none. Not asked for then.
    #[arg(long, value_name = "COMMAND", conflicts_with = "user")]
    pub(crate) check: Option<String>,
    /// The limit of each run: US dollars such as 5, or a time such as 2h; `-` for none. Not asked for then.
    #[arg(long, value_name = "LIMIT", allow_hyphen_values = true)]
    pub(crate) budget: Option<String>,
    /// Write all settings instead, commented, with their defaults.
    #[arg(long, conflicts_with_all = ["model", "check", "budget"])]
    pub(crate) all: bool,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the user's own file instead, which counts in all folders.
    #[arg(long)]
    pub(crate) user: bool,
}

const INIT_HELP: &str = "At a terminal it asks for the model, the command that checks the agent's work, and the budget. \
Otherwise it takes what the flags say, and suggestions for the rest: the check of the project's own build tool, for one.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
    /// Only this provider's.
    #[arg(add = completing::providers())]
    pub(crate) provider: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Asks a model one short question, and reports what is wrong if it doesn't answer. Costs a few tokens.
    Check {
        /// The model; the one of the settings if absent.
        #[arg(add = completing::models())]
        name: Option<String>,
    },
    /// Imports windows, prices and new models from a public table: models.dev's api.json or litellm's
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
    /// Show also what isn't set, with its default.
    #[arg(long, short, conflicts_with_all = ["json", "schema"])]
    pub(crate) all: bool,
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

#[derive(Debug, Default, Args)]
#[command(after_help = TRUST_HELP)]
pub(crate) struct TrustArgs {
    /// Agree without being asked.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List the projects that are trusted.
    #[arg(long, conflicts_with_all = ["yes", "revoke", "dir", "config"])]
    pub(crate) list: bool,
    /// Stop trusting a project: that of this folder, or the current one.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, conflicts_with_all = ["yes", "dir", "config"])]
    #[expect(clippy::option_option, reason = "absent, without a folder, with one: clap's own form")]
    pub(crate) revoke: Option<Option<PathBuf>>,
    /// The folder to work in.
    #[arg(long, short = 'C', value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// A settings file to take instead of the project's.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The file of a workflow, whose stop hooks are to run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "revoke"])]
    pub(crate) flow: Option<PathBuf>,
}

const TRUST_HELP: &str = "A project's file that names programs (hooks, stop hooks, imports) or lets an agent do more \
counts only once you have agreed to exactly this content. What a program's own file holds isn't looked at. \
`provost run` refuses until then.";

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The command whose JSON is meant; all are listed if absent.
    #[arg(value_parser = PossibleValuesParser::new(ViewKind::ALL.iter().map(|view| view.name())))]
    pub(crate) command: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command whose page is meant, such as `run` or `goal show`; that of provost itself if absent.
    #[arg(conflicts_with = "dir")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to this folder: provost.1, provost-run.1 and so on.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}
