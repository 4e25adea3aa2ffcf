//! The logs of a run as they grow: its own, and those of all its agents, also of such that begin later.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll};
use provost_event::{ActorKey, AgentEntry, Entry, Record, RunId, Seq};
use provost_harness::{Backend as _, BackendError};
use provost_store::EmbeddedBackend;

const READ_MAX: usize = 1_000;

/// Follows a run, whichever process holds it.
pub(super) struct Following<'a> {
    backend: &'a EmbeddedBackend,
    heads: HashMap<ActorKey, Seq>,
    records: SelectAll<BoxStream<'static, Result<Arc<Record>, BackendError>>>,
}

impl<'a> Following<'a> {
    /// Follows these logs from behind these entries.
    pub(super) fn new(
        backend: &'a EmbeddedBackend,
        heads: impl IntoIterator<Item = (ActorKey, Seq)>,
    ) -> Self {
        let mut following = Self { backend, heads: HashMap::new(), records: SelectAll::new() };
        heads.into_iter().for_each(|(actor, head)| following.follow(actor, head));
        following
    }

    fn follow(&mut self, actor: ActorKey, head: Seq) {
        if let std::collections::hash_map::Entry::Vacant(place) = self.heads.entry(actor) {
            place.insert(head);
            self.records.push(self.backend.subscribe(actor, head));
        }
    }

    /// The next entry of any of them.
    ///
    /// # Errors
    /// When they can't be read.
    ///
    /// # Cancellation
    /// Safe.
    pub(super) async fn next(&mut self) -> Result<Arc<Record>, BackendError> {
        let record = self.records.next().await.unwrap_or(Err(BackendError::Closed))?;
        self.heads.insert(record.actor, record.seq);
        if let (ActorKey::Run(_), Entry::Agent(AgentEntry::Started(started))) = (record.actor, &record.entry)
        {
            self.follow(started.child.into(), Seq::START);
        }
        Ok(record)
    }

    /// The rest of the agents' logs, now that the run is suspended or has ended: their final summaries may come a
    /// little later than the run's last entry.
    ///
    /// # Errors
    /// When they can't be read.
    pub(super) async fn rest(&mut self, run: RunId) -> Result<Vec<Arc<Record>>, BackendError> {
        let mut all = Vec::new();
        let sessions = self.heads.iter_mut().filter(|(actor, _)| **actor != ActorKey::Run(run));
        for (actor, head) in sessions {
            loop {
                let records = self.backend.read(*actor, *head, READ_MAX).await?;
                let Some(last) = records.last() else { break };
                *head = last.seq;
                all.extend(records);
            }
        }
        all.sort_by_key(|record| (record.elapsed, record.actor, record.seq));
        Ok(all)
    }
}
