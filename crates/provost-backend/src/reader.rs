//! The thread that reads, so that reads wait neither for the writer nor on a task.

use provost_harness::BackendError;
use tokio::sync::oneshot;

use crate::StoreReader;
use crate::queue::{Queue, Waiting, queue};

type Job = Box<dyn FnOnce(&mut dyn StoreReader) + Send>;

/// Sends reads to their thread.
pub(crate) struct Reader {
    jobs: Queue<Job>,
}

impl Reader {
    /// Starts the thread; it ends when this is dropped and all requests are answered.
    pub(crate) fn start(store: Box<dyn StoreReader>) -> Result<Self, BackendError> {
        let (jobs, waiting) = queue::<Job>();
        crate::start_thread("provost-reader", move || work(store, &waiting))?;
        Ok(Self { jobs })
    }

    /// Runs `read` on the thread.
    pub(crate) async fn ask<T, R>(&self, read: R) -> Result<T, BackendError>
    where
        T: Send + 'static,
        R: FnOnce(&mut dyn StoreReader) -> Result<T, BackendError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |store| {
            // The requester may be gone.
            let _ = reply.send(read(store));
        });
        self.jobs.send(job).await?;
        answer.await.map_err(|_| BackendError::Closed)?
    }
}

fn work(mut store: Box<dyn StoreReader>, waiting: &Waiting<Job>) {
    while let Ok(Some(job)) = waiting.next(None) {
        job(&mut *store);
    }
}
