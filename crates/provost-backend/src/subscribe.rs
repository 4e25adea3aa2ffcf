//! Following a log, or all logs of a run: from the store up to the end, then as they grow.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use provost_event::{ActorKey, Record, RunId, Seq};
use provost_harness::{BackendError, Log as _, PlacedRecord, RunPosition, read_run};
use tokio::sync::watch;

use crate::EmbeddedBackend;

/// Records fetched at a time; a slow reader holds no more than these.
const AT_ONCE: usize = 256;

/// What can be followed.
#[async_trait]
pub(crate) trait Followed: Copy + Send + Sync + 'static {
    type Position: Copy + Ord + Send + Sync;
    type Item: Send;

    fn position(item: &Self::Item) -> Self::Position;

    /// The run that it belongs to.
    fn of_run(self) -> RunId;

    /// The last announced position, as it advances.
    fn watch(self, backend: &EmbeddedBackend) -> watch::Receiver<Self::Position>;

    /// Undoes one [`Followed::watch`], whose receiver is gone.
    fn unwatch(self, backend: &EmbeddedBackend);

    /// What follows `after`; empty at the end.
    async fn read(
        self,
        backend: &EmbeddedBackend,
        after: Self::Position,
    ) -> Result<Vec<Self::Item>, BackendError>;
}

#[async_trait]
impl Followed for ActorKey {
    type Position = Seq;
    type Item = Arc<Record>;

    fn position(record: &Arc<Record>) -> Seq {
        record.seq
    }

    fn of_run(self) -> RunId {
        self.run()
    }

    fn watch(self, backend: &EmbeddedBackend) -> watch::Receiver<Seq> {
        backend.feed().watch(self)
    }

    fn unwatch(self, backend: &EmbeddedBackend) {
        backend.feed().unwatch(self);
    }

    async fn read(self, backend: &EmbeddedBackend, after: Seq) -> Result<Vec<Arc<Record>>, BackendError> {
        backend.read(self, after, AT_ONCE).await
    }
}

#[async_trait]
impl Followed for RunId {
    type Position = RunPosition;
    type Item = PlacedRecord;

    fn position(record: &PlacedRecord) -> RunPosition {
        record.position
    }

    fn of_run(self) -> RunId {
        self
    }

    fn watch(self, backend: &EmbeddedBackend) -> watch::Receiver<RunPosition> {
        backend.feed().watch_run(self)
    }

    fn unwatch(self, backend: &EmbeddedBackend) {
        backend.feed().unwatch_run(self);
    }

    async fn read(
        self,
        backend: &EmbeddedBackend,
        after: RunPosition,
    ) -> Result<Vec<PlacedRecord>, BackendError> {
        let live = backend.feed().after_in_run(self, after, AT_ONCE);
        if live.is_empty() { read_run(backend, self, after, AT_ONCE).await } else { Ok(live) }
    }
}

/// What follows `after` in `followed`, without end. After an error there is no more.
pub(crate) fn subscribe<F: Followed>(
    backend: EmbeddedBackend,
    followed: F,
    after: F::Position,
) -> BoxStream<'static, Result<F::Item, BackendError>> {
    let head = followed.watch(&backend);
    // From here on this process checks for commits of other processes.
    backend.nudge();
    let ready = VecDeque::new();
    let subscription =
        Subscription { backend, followed, after, head: Some(head), ready, reached_end: false, failed: false };
    stream::unfold(subscription, |mut subscription| async {
        let item = subscription.next().await?;
        Some((item, subscription))
    })
    .boxed()
}

struct Subscription<F: Followed> {
    backend: EmbeddedBackend,
    followed: F,
    after: F::Position,
    head: Option<watch::Receiver<F::Position>>,
    ready: VecDeque<F::Item>,
    /// Whether all records that existed at the beginning have been read.
    reached_end: bool,
    failed: bool,
}

impl<F: Followed> Subscription<F> {
    /// What follows. The first reads may find what is committed and not announced yet.
    async fn read(&mut self) -> Result<Vec<F::Item>, BackendError> {
        let items = self.followed.read(&self.backend, self.after).await?;
        if !self.reached_end && !items.is_empty() {
            self.backend.announced(self.followed.of_run()).await?;
        }
        Ok(items)
    }

    async fn next(&mut self) -> Option<Result<F::Item, BackendError>> {
        if self.failed {
            return None;
        }
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.after = F::position(&item);
                return Some(Ok(item));
            }
            // Read before the records: a commit in between wakes us.
            let head = *self.head.as_mut()?.borrow_and_update();
            if !self.reached_end || head > self.after {
                match self.read().await {
                    Ok(items) if items.is_empty() => self.reached_end = true,
                    Ok(mut items) => {
                        if self.reached_end {
                            // Some of them may be committed and not announced yet.
                            items.retain(|item| F::position(item) <= head);
                        }
                        self.ready.extend(items);
                        continue;
                    }
                    Err(error) => {
                        self.failed = true;
                        return Some(Err(error));
                    }
                }
            }
            self.head.as_mut()?.changed().await.ok()?;
        }
    }
}

impl<F: Followed> Drop for Subscription<F> {
    fn drop(&mut self) {
        self.head = None;
        self.followed.unwatch(&self.backend);
    }
}
