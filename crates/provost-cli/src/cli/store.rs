//! Arguments of the commands that maintain the store.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};

#[derive(Debug, Args)]
#[command(after_help = BACKUP_HELP)]
pub(crate) struct BackupArgs {
    /// The file to write; it must not exist.
    pub(crate) file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

const BACKUP_HELP: &str = "A backup is a whole store in one file. To restore it, put it into a state folder as `provost.db`, with no \
other `provost.db-…` file beside it.";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct DoctorArgs {
    /// Check all of the store: every log from its first entry on, outputs, and what is derived from them.
    #[arg(long)]
    pub(crate) store: bool,
    /// Write what can be read of each damaged run to this folder, for `import --incomplete`.
    #[arg(long, value_name = "DIR", requires = "store")]
    pub(crate) salvage: Option<PathBuf>,
    /// Take note of entries that were lost, so that no command warns of them any more.
    #[arg(long, requires = "store")]
    pub(crate) acknowledge: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

const DOCTOR_HELP: &str = "Exit status without --store, where a sandbox is tried: 0 it works, 1 it doesn't. With \
    --store: 0 nothing is lost, 1 something is damaged or lost; what is derived from logs is made anew from them, and is \
    no loss.";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).multiple(true)))]
pub(crate) struct PruneArgs {
    /// Only runs in which nothing has happened for this long, such as 30d.
    #[arg(long, value_name = "DURATION", group = "which", value_parser = humantime::parse_duration)]
    pub(crate) older: Option<Duration>,
    /// All but the N newest runs.
    #[arg(long, value_name = "N", group = "which")]
    pub(crate) keep: Option<usize>,
    /// Also runs that are suspended, interrupted or at a limit, and could go on.
    #[arg(long)]
    pub(crate) suspended: bool,
    /// Only list what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove without being asked.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
