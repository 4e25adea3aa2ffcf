//! Arguments of `worker` and `cluster`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use provost_config::engine_label;

#[derive(Debug, Args)]
#[command(after_help = WORKER_HELP)]
pub(crate) struct WorkerArgs {
    /// A label besides that of this machine: runs that ask for it are taken too; give it again for more.
    #[arg(long = "serves", value_name = "LABEL", value_parser = label)]
    pub(crate) serves: Vec<String>,
    /// Where the engine calls this worker. Beyond loopback engine.identity_key_env is needed.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9080")]
    pub(crate) listen: SocketAddr,
    /// The address by which the engine reaches it, http:// or https:// [default: the one of --listen].
    #[arg(long, value_name = "URL")]
    pub(crate) advertise: Option<String>,
    /// A further address that the workers of one build share: on one machine they may all listen there, else a load
    /// balancer is in front of them. Without it, decisions wait while the worker that registered last is gone.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) shared: Option<SocketAddr>,
    /// The address by which the engine reaches that one [default: the one of --shared].
    #[arg(long, value_name = "URL", requires = "shared")]
    pub(crate) advertise_shared: Option<String>,
    /// Where /live and /ready answer.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9081")]
    pub(crate) health: SocketAddr,
    /// Its name among the workers of the engine, the same after a restart [default: the host name and the port of --listen].
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub(crate) name: Option<String>,
    /// Runs that it works on at a time, from 1 to 10000.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// How long running model and tool calls may take to end once it is told to stop, such as 10m; the others wait for the
    /// next worker.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration)]
    pub(crate) drain: Duration,
    /// The member of a cluster on this machine that it is; only tells its process from others.
    #[arg(long, hide = true)]
    pub(crate) member: Option<OsString>,
}

const WORKER_HELP: &str = "It takes runs from the engine of --engine or engine.url, and works on them with the models, keys and \
settings of this machine. Ctrl-C or SIGTERM drains it: it takes nothing new and lets running calls end, then other workers \
go on with its runs; a second one ends it at once. See docs/cluster.md.";

fn label(text: &str) -> Result<String, String> {
    engine_label(text.to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Starts an engine and workers on this machine; what runs already goes on running.
    Up(ClusterUpArgs),
    /// Ends the engine and its workers. Runs and their data are kept for the next `up`.
    Down(ClusterDownArgs),
    /// Shows the nodes and workers of the cluster on this machine.
    Status(ClusterStatusArgs),
    /// Installs the engine's server with npm, for this user.
    Install(ClusterInstallArgs),
}

#[derive(Debug, Args)]
#[command(after_help = UP_HELP)]
pub(crate) struct ClusterUpArgs {
    /// Nodes of the engine, from 1 to 7: of 3 or 4 one may be gone, of 1 or 2 none. A cluster keeps its number [default: that number, or 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=7))]
    pub(crate) nodes: Option<u32>,
    /// Workers [default: as many as it has, or 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(crate) workers: Option<u32>,
    /// A bucket that the nodes write snapshots to, such as s3://bucket/prefix; the AWS_… variables say how it is reached.
    /// `none`: they keep their whole log. Used by nodes from their next start on [default: as before; none at first].
    #[arg(long, value_name = "URL")]
    pub(crate) snapshots: Option<SnapshotsArg>,
}

/// Where nodes write snapshots: `None` is nowhere.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotsArg(pub(crate) Option<String>);

impl FromStr for SnapshotsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bucket = text.strip_prefix("s3://").filter(|path| !path.is_empty() && !path.starts_with('/'));
        match (text, bucket) {
            ("none", _) => Ok(Self(None)),
            (_, Some(_)) => Ok(Self(Some(text.to_owned()))),
            _ => Err("must be s3://BUCKET/PREFIX, or none".to_owned()),
        }
    }
}

const UP_HELP: &str = "For trying, and for tests: all of it is on one machine. `--engine local` is its address: provost run \
--engine local \"…\". Ports are chosen and kept; data and logs are in the state folder. See docs/cluster.md for an \
engine on several machines.";

#[derive(Debug, Args)]
pub(crate) struct ClusterDownArgs {
    /// Remove its data too: its runs are gone then.
    #[arg(long)]
    pub(crate) remove: bool,
    /// How long workers may take to finish what they do.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) drain: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterStatusArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterInstallArgs {
    /// Install it again.
    #[arg(long)]
    pub(crate) force: bool,
}
