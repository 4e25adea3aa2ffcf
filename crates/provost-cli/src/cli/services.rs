//! Arguments of the commands about services.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::completing;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = SERVICES_HELP)]
pub(crate) struct ServicesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ServicesCommand>,
    /// List those that have ended, too.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print a line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,
}

const SERVICES_HELP: &str = "An agent keeps a command running after its run with `keep_running`, which needs the \
permission keep_running. A service ends with `services stop`, with `cancel RUN`, or when limits.keep_running_max is over.";

#[derive(Debug, Subcommand)]
pub(crate) enum ServicesCommand {
    /// Ends services, with all that they have started.
    Stop {
        /// The names of the services.
        #[arg(required = true, value_name = "NAME", add = completing::services())]
        names: Vec<String>,
    },
    /// Prints the output of a service.
    Logs {
        /// The name of the service.
        #[arg(value_name = "NAME", add = completing::services())]
        name: String,
        /// Follow the output until the service ends.
        #[arg(long, short)]
        follow: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// The service's record.
    pub(crate) record: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct UnattendedArgs {
    /// The run's id, or that of the new run.
    pub(crate) run: String,
    /// The work, as JSON.
    pub(crate) work: String,
}

#[derive(Debug, Args)]
pub(crate) struct BackgroundArgs {
    /// The new run's id. The work is read from standard input, as JSON.
    pub(crate) run: String,
}
