//! A bounded queue from tasks to a thread.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use provost_harness::BackendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum queued jobs for a thread; further senders wait for room.
const WAITING_MAX: usize = 1024;

/// The end that tasks hold.
pub(crate) struct Queue<T> {
    room: Arc<Semaphore>,
    sender: Sender<(T, Option<OwnedSemaphorePermit>)>,
}

/// The end that the thread holds.
pub(crate) struct Waiting<T> {
    receiver: Receiver<(T, Option<OwnedSemaphorePermit>)>,
}

/// A new queue.
pub(crate) fn queue<T>() -> (Queue<T>, Waiting<T>) {
    let (sender, receiver) = mpsc::channel();
    (Queue { room: Arc::new(Semaphore::new(WAITING_MAX)), sender }, Waiting { receiver })
}

impl<T> Queue<T> {
    /// Sends `job`, once there is room.
    ///
    /// # Errors
    /// [`BackendError::Closed`] when the thread is gone.
    pub(crate) async fn send(&self, job: T) -> Result<(), BackendError> {
        let permit = Arc::clone(&self.room).acquire_owned().await.map_err(|_| BackendError::Closed)?;
        self.sender.send((job, Some(permit))).map_err(|_| BackendError::Closed)
    }

    /// Sends a job that mustn't wait, of a kind that is rare.
    pub(crate) fn send_at_once(&self, job: T) {
        // A thread that is gone needs no job.
        let _ = self.sender.send((job, None));
    }
}

impl<T> Waiting<T> {
    /// Waits for a job. `Ok(None)` after `timeout`; an error when all senders are gone.
    pub(crate) fn next(&self, timeout: Option<Duration>) -> Result<Option<T>, BackendError> {
        let received = match timeout {
            Some(timeout) => self.receiver.recv_timeout(timeout),
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok((job, _room)) => Ok(Some(job)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(BackendError::Closed),
        }
    }

    /// A job that is queued already.
    pub(crate) fn next_waiting(&self) -> Option<T> {
        self.receiver.try_recv().ok().map(|(job, _room)| job)
    }
}
