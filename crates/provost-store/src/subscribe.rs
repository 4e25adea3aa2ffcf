//! Following a log: from the store up to its end, then as it grows.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use provost_event::{ActorKey, Record, Seq};
use provost_harness::{Backend as _, BackendError};
use tokio::sync::watch;

use crate::EmbeddedBackend;

/// Records fetched at a time; a slow reader holds no more than these.
const AT_ONCE: usize = 256;

type Item = Result<Arc<Record>, BackendError>;

/// The records of `actor` after `after`, without end. After an error there are no more.
pub(crate) fn subscribe(backend: EmbeddedBackend, actor: ActorKey, after: Seq) -> BoxStream<'static, Item> {
    let head = backend.feed().watch(actor);
    // From here on this process checks for commits of other processes.
    backend.nudge();
    let ready = VecDeque::new();
    let subscription =
        Subscription { backend, actor, after, head: Some(head), ready, reached_end: false, failed: false };
    stream::unfold(subscription, |mut subscription| async {
        let item = subscription.next().await?;
        Some((item, subscription))
    })
    .boxed()
}

struct Subscription {
    backend: EmbeddedBackend,
    actor: ActorKey,
    after: Seq,
    head: Option<watch::Receiver<Seq>>,
    ready: VecDeque<Arc<Record>>,
    /// Whether all records that existed at the beginning have been read.
    reached_end: bool,
    failed: bool,
}

impl Subscription {
    async fn next(&mut self) -> Option<Item> {
        if self.failed {
            return None;
        }
        loop {
            if let Some(record) = self.ready.pop_front() {
                self.after = record.seq;
                return Some(Ok(record));
            }
            // Read before the records: a commit in between wakes us.
            let head = *self.head.as_mut()?.borrow_and_update();
            if !self.reached_end || head > self.after {
                match self.backend.read(self.actor, self.after, AT_ONCE).await {
                    Ok(records) if records.is_empty() => self.reached_end = true,
                    Ok(mut records) => {
                        if self.reached_end {
                            // Some of them may be committed and not announced yet.
                            records.retain(|record| record.seq <= head);
                        }
                        self.ready.extend(records);
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

impl Drop for Subscription {
    fn drop(&mut self) {
        self.head = None;
        self.backend.feed().unwatch(self.actor);
    }
}
