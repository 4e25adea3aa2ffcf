//! The port through which a process performs the effects of runs.

use std::sync::Arc;

use async_trait::async_trait;
use provost_event::RunId;
use provost_process::ProcessIdentity;
use tokio_util::sync::CancellationToken;

use super::BackendError;
use crate::Executor;

/// The holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// In words (`process 1234 since …`).
    pub by: String,
    /// The process, if known.
    pub process: Option<ProcessIdentity>,
}

/// Why other processes don't work on a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unheld {
    /// The label that a process must have to take it; any process does without one.
    pub label: Option<String>,
    /// The last process that couldn't work on it, and why, in words.
    pub failed: Option<String>,
}

/// A run served by this process; dropping it releases the run.
#[async_trait]
pub trait RunLease: Send + Sync {
    /// The run.
    fn run(&self) -> RunId;

    /// Returns why this process no longer serves the run, once that is so: an event couldn't be made durable, or
    /// another process took over. Pending forever otherwise.
    ///
    /// # Cancellation
    /// Safe.
    async fn failed(&self) -> BackendError;

    /// Releases the run; when it returns, none of its effects run here any more and another process may acquire
    /// the lease.
    ///
    /// # Cancellation
    /// Dropping the future is the same as dropping the guard: the run is released soon.
    async fn release(self: Box<Self>);
}

/// Performs the effects of runs.
///
/// A process that serves a run takes its effects, has them performed by an [`Executor`] and reports their results as
/// posts. It does so under a lease, which expires when the process is gone: at once where the system tells, else
/// after a time without renewal. [`RunLease::failed`] says so to a process that has lost it.
#[async_trait]
pub trait Worker: Send + Sync {
    /// Acquires the lease on `run` for this process: until the returned guard is dropped, its effects are
    /// performed by `executor` here and nowhere else. Effects left open by a process that is gone are recovered
    /// first (the run's actor gets `Recover`). The run needn't exist yet.
    ///
    /// When `stop` fires, nothing more is started, and what is in flight is dropped.
    ///
    /// # Errors
    /// [`BackendError::Held`] while another process holds it.
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError>;

    /// Whether [`serve`](Self::serve) has effects performed by this process, as by default. Otherwise other processes
    /// perform them, whether or not anything serves the run here: what `serve` returns then has no lease, and a run that
    /// is opened is only followed.
    fn performs_here(&self) -> bool {
        true
    }

    /// Who holds the lease on `run`; `None` if no process does.
    ///
    /// # Errors
    /// When that can't be determined.
    async fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError>;

    /// Counts what a run that no process holds waits for as not begun, or as lost, so that a stop that was requested takes
    /// effect without one. Nothing where a process only has to [`serve`](Self::serve) it, where one holds it, and where
    /// it is suspended or has ended.
    ///
    /// # Errors
    /// When that can't be made durable.
    async fn recover_unheld(&self, _run: RunId) -> Result<(), BackendError> {
        Ok(())
    }

    /// What is known of why other processes don't work on a run; `None` where a process only has to
    /// [`serve`](Self::serve) it.
    ///
    /// # Errors
    /// When that can't be determined.
    async fn unheld(&self, _run: RunId) -> Result<Option<Unheld>, BackendError> {
        Ok(None)
    }
}
