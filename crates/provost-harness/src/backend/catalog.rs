//! The port to the list of runs.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use provost_engine::Uncertain;
use provost_event::{Elapsed, MicroDollars, Outcome, RunId, Timestamp};

use super::BackendError;

/// How often a backend that can't tell of changes says that there may be some.
const CHANGES_EVERY: Duration = Duration::from_secs(1);

/// Which runs to list, the latest start first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuery {
    /// Only these.
    pub filter: RunFilter,
    /// Only those that come after this place of the list; from its beginning if absent.
    pub after: Option<RunCursor>,
    /// Maximum number of runs.
    pub max: usize,
}

impl RunQuery {
    /// The `max` newest runs.
    #[must_use]
    pub fn newest(max: usize) -> Self {
        Self { filter: RunFilter::default(), after: None, max }
    }

    /// All runs with a status of this kind.
    #[must_use]
    pub fn with_status(status: RunStatusFilter) -> Self {
        Self { filter: RunFilter { status, workspace: None }, after: None, max: usize::MAX }
    }
}

/// A condition on runs; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The kind of status.
    pub status: RunStatusFilter,
    /// The root agent's workspace, if it matters; those in folders below it don't count.
    pub workspace: Option<PathBuf>,
}

impl RunFilter {
    /// Whether `run` fulfils it.
    #[must_use]
    pub fn matches(&self, run: &RunSummary) -> bool {
        let has_status = match self.status {
            RunStatusFilter::Any => true,
            RunStatusFilter::Running => run.status == RunStatus::Running,
            RunStatusFilter::NotEnded => {
                !matches!(&run.status, RunStatus::Stopped(outcome) if outcome.is_final())
            }
        };
        has_status && self.workspace.as_ref().is_none_or(|workspace| run.workspace == *workspace)
    }
}

/// A kind of status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunStatusFilter {
    /// Every status.
    #[default]
    Any,
    /// A process serves it.
    Running,
    /// It is running, interrupted or suspended.
    NotEnded,
}

/// A place in the list of runs: that of a run in it. Of two runs with the same start, the greater id comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunCursor {
    /// When the run was started.
    pub started_at: Timestamp,
    /// The run.
    pub run: RunId,
}

/// The status of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus {
    /// A process serves it.
    Running,
    /// No process serves it, though it isn't suspended or ended: its process is gone.
    Interrupted,
    /// It is suspended or has ended.
    Stopped(Outcome),
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub run: RunId,
    /// Its goal.
    pub goal: String,
    /// Its root agent's workspace.
    pub workspace: std::path::PathBuf,
    /// Its root agent's model.
    pub model: String,
    /// Its status.
    pub status: RunStatus,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Turns of all its agents.
    pub turns: u32,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// The cost, as far as prices are known.
    pub cost: MicroDollars,
    /// The share of both that no provider has reported: estimated, or lost to a crash.
    pub uncertain: Uncertain,
    /// How long processes have held the run: of a run without an outcome until now, as far as its process has noted it.
    pub elapsed: Elapsed,
    /// The damage of its log, if known: then the other fields show the state before it.
    pub damage: Option<String>,
}

impl RunSummary {
    /// Its place in the list of runs.
    #[must_use]
    pub const fn cursor(&self) -> RunCursor {
        RunCursor { started_at: self.started_at, run: self.run }
    }
}

/// The list of runs. Finding one doesn't read the others.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// Runs, the latest start first; fewer than the maximum at the end of the list.
    ///
    /// # Errors
    /// When they can't be read.
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, BackendError>;

    /// The run with this id; `None` if there is none.
    ///
    /// # Errors
    /// When it can't be read.
    async fn get(&self, run: RunId) -> Result<Option<RunSummary>, BackendError>;

    /// Runs whose ids begin with `prefix`, in the order of their ids, at most `max`; none if `prefix` is empty.
    ///
    /// # Errors
    /// When they can't be read.
    async fn find(&self, prefix: &str, max: usize) -> Result<Vec<RunSummary>, BackendError>;

    /// Yields soon after anything of any run may have been written, by any process, without end; several writes may be
    /// told of at once. What isn't written isn't told of: that a process is gone, that time has passed. Costs next to
    /// nothing while nothing is written.
    ///
    /// Must be polled in a tokio runtime with time enabled. A backend that can't tell says so each second, as by
    /// default.
    fn changes(&self) -> BoxStream<'static, ()> {
        stream::unfold((), |()| async {
            tokio::time::sleep(CHANGES_EVERY).await;
            Some(((), ()))
        })
        .boxed()
    }
}
