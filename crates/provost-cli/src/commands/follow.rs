//! The entries of a run as they are committed: its own, and those of all its agents, also of such that begin later.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use provost_event::{ActorKey, Record, RunId, Seq};
use provost_harness::{Backend, BackendError, PlacedRecord, RunPosition};

/// Follows a run, whichever process holds it.
pub(super) struct Following {
    /// What is known already of each log.
    heads: HashMap<ActorKey, Seq>,
    records: BoxStream<'static, Result<PlacedRecord, BackendError>>,
}

impl Following {
    /// Follows `run` from behind `after`, except for what these heads include.
    pub(super) fn new(
        backend: &dyn Backend,
        run: RunId,
        after: RunPosition,
        heads: HashMap<ActorKey, Seq>,
    ) -> Self {
        Self { heads, records: backend.subscribe_run(run, after) }
    }

    /// The next entry.
    ///
    /// # Errors
    /// When it can't be read.
    ///
    /// # Cancellation
    /// Safe.
    pub(super) async fn next(&mut self) -> Result<Arc<Record>, BackendError> {
        loop {
            let PlacedRecord { record, .. } =
                self.records.next().await.unwrap_or(Err(BackendError::Closed))?;
            if self.heads.get(&record.actor).is_none_or(|head| record.seq > *head) {
                return Ok(record);
            }
        }
    }
}
