//! A child with the standard streams of this process: no byte passes through this process.

use std::sync::Arc;

use provost_event::Exit;
use tokio_util::sync::CancellationToken;

use super::keeper::{self, Keeper};
use super::{PipedEnding, end};
use crate::{Launch, OwnStreams, PtySignal, SpawnError};

/// A child with the standard streams of this process, below a guard of its own: its descendants end with it, and with
/// Provost, however that ends. It is in a session of its own, so that signals reach it only by [`signal`](Self::signal).
///
/// Dropping this doesn't block, and kills the child.
pub struct OwnStreamsChild {
    keeper: Keeper,
}

impl OwnStreamsChild {
    /// Starts the program.
    ///
    /// # Errors
    /// When it couldn't be started; no process is left of the attempt.
    ///
    /// # Cancellation
    /// What was started is killed.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled.
    pub async fn spawn(launch: Launch<OwnStreams>) -> Result<Self, SpawnError> {
        let launch = Arc::new(launch);
        let started = keeper::start_with_own(Arc::clone(&launch)).await;
        Ok(Self { keeper: started.map_err(|error| SpawnError::new(&launch, error))? })
    }

    /// Its process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.keeper.pid()
    }

    /// Its exit, if it has ended.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.keeper.exit()
    }

    /// Waits for its exit. Its descendants may go on until [`end`](Self::end).
    ///
    /// # Cancellation
    /// Safe.
    pub async fn exited(&self) -> Exit {
        self.keeper.exited().await
    }

    /// Sends a signal to its process group; nothing once it has ended, and where the platform has no signals.
    ///
    /// # Cancellation
    /// Not safe: the signal may be lost.
    pub async fn signal(&mut self, signal: PtySignal) {
        self.keeper.signal(signal).await;
    }

    /// Ends it and its descendants: SIGTERM once `ending.own` is over or it has ended by itself, SIGKILL after the
    /// grace. Returns its exit once none is left.
    ///
    /// # Cancellation
    /// When `cancel` fires, the rest is killed at once. After a drop it may be called again.
    pub async fn end(&mut self, ending: PipedEnding, cancel: &CancellationToken) -> Exit {
        end(&mut self.keeper, ending, cancel).await
    }

    /// Whether all its processes were observed to end, after [`end`](Self::end).
    #[must_use]
    pub fn is_all_ended(&self) -> bool {
        self.keeper.is_all_ended()
    }
}
