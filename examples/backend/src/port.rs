//! The port, implemented.

use std::sync::Arc;

use provost_backend::{
    FileLeases, Mailbox, MailboxState, NewEntry, OpenEffect, RunLeases, SessionStore, StoreReader, StoredRun,
    WakeUps, log_begins, wake_ups_in,
};
use provost_event::{ActorKey, BlobId, EffectId, Entry, LifecycleEntry, Record, RunId, Seq};
use provost_harness::{BackendError, PlacedEntry, RunCursor, RunPosition};

use crate::change::{Change, Line};
use crate::{JournalStore, failed};

impl StoreReader for JournalStore {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        let log = self.now()?.log(actor);
        let start = log.partition_point(|record| record.seq <= after);
        Ok(log.iter().skip(start).take(max).cloned().collect())
    }

    fn head(&mut self, actor: ActorKey) -> Result<Seq, BackendError> {
        Ok(self.now()?.head(actor))
    }

    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        let is_snapshot =
            |record: &&Arc<Record>| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_)));
        Ok(self.now()?.log(actor).iter().rev().find(is_snapshot).cloned())
    }

    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        Ok(self.now()?.logs.keys().filter(|key| key.run() == run).copied().collect())
    }

    fn order(
        &mut self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        let order = self.now()?.orders.get(&run).map_or(&[][..], Vec::as_slice);
        let start = order.partition_point(|place| place.position <= after);
        Ok(order.iter().skip(start).take(max).copied().collect())
    }

    fn run_head(&mut self, run: RunId) -> Result<RunPosition, BackendError> {
        let last = self.now()?.orders.get(&run).and_then(|order| order.last());
        Ok(last.map_or(RunPosition::START, |last| last.position))
    }

    fn runs(&mut self, after: Option<RunCursor>, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        let state = self.now()?;
        let before = match after {
            Some(after) => state.starts.range(..after),
            None => state.starts.range(..),
        };
        let places = before.rev().take(max);
        Ok(places.filter_map(|place| state.runs.get(&place.run)).cloned().collect())
    }

    fn run(&mut self, run: RunId) -> Result<Option<StoredRun>, BackendError> {
        Ok(self.now()?.runs.get(&run).cloned())
    }

    fn runs_with_prefix(&mut self, prefix: &str, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        if prefix.is_empty() {
            return Ok(Vec::new());
        }
        // The ids are in the order of their texts.
        let from = format!("{prefix:0<12}").parse::<RunId>();
        let Ok(from) = from else { return Ok(Vec::new()) };
        let fitting = self.now()?.runs.range(from..).map(|(_, run)| run);
        let fitting = fitting.take_while(|run| run.run.to_string().starts_with(prefix));
        Ok(fitting.take(max).cloned().collect())
    }

    fn blobs(&mut self) -> Result<Vec<BlobId>, BackendError> {
        Ok(self.now()?.bodies.keys().cloned().collect())
    }

    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.now()?.bodies.get(id).cloned())
    }
}

impl SessionStore for JournalStore {
    fn reader(&mut self) -> Result<Box<dyn StoreReader>, BackendError> {
        Ok(Box::new(Self::open(&self.folder)?))
    }

    fn leases(&self) -> Arc<dyn RunLeases> {
        Arc::new(FileLeases::new(self.folder.join("locks")))
    }

    fn mailbox(&mut self) -> &mut dyn Mailbox {
        self
    }

    fn wake_ups(&self) -> Arc<dyn WakeUps> {
        wake_ups_in(self.folder.join("wake"))
    }

    fn begin(&mut self) -> Result<(), BackendError> {
        self.lock()
    }

    fn commit(&mut self) -> Result<(), BackendError> {
        self.write()
    }

    fn rollback(&mut self) {
        self.undo();
    }

    fn change_marker(&mut self) -> Result<u64, BackendError> {
        self.now()?;
        Ok(self.foreign)
    }

    fn append(
        &mut self,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError> {
        let log = self.now()?.log(actor);
        let head = log.last().map_or_else(|| log_begins(entries), |last| last.seq);
        if head != expected {
            return Err(BackendError::Conflict { actor });
        }
        for entry in entries {
            let line = Line::new(Arc::clone(&entry.record))
                .map_err(|error| failed("append to the journal", &std::io::Error::other(error)))?;
            self.change(Change::Append(line))?;
        }
        Ok(RunPosition(self.state.appended))
    }

    fn put_effect(&mut self, effect: &OpenEffect) -> Result<(), BackendError> {
        self.change(Change::put_effect(effect))
    }

    fn close_effect(&mut self, id: EffectId) -> Result<(), BackendError> {
        self.change(Change::CloseEffect(id))
    }

    fn request_abort(&mut self, id: EffectId) -> Result<(), BackendError> {
        match self.now()?.effects.get(&id).cloned() {
            Some(open) => self.put_effect(&OpenEffect { abort: true, ..open }),
            None => Ok(()),
        }
    }

    fn open_effects(&mut self, run: RunId) -> Result<Vec<OpenEffect>, BackendError> {
        let effects = self.now()?.effects.values();
        Ok(effects.filter(|open| open.id.actor.run() == run).cloned().collect())
    }

    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Result<bool, BackendError> {
        Ok(self.now()?.posts.contains(&(actor, dedup.to_owned())))
    }

    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Result<(), BackendError> {
        self.change(Change::MarkPost { actor, dedup: dedup.to_owned() })
    }

    fn put_run(&mut self, run: &StoredRun) -> Result<(), BackendError> {
        self.change(Change::PutRun(run.into()))
    }

    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Result<(), BackendError> {
        if self.now()?.bodies.contains_key(id) {
            return Ok(());
        }
        self.change(Change::PutBody { id: id.clone(), body: body.to_owned() })
    }

    fn remove_run(&mut self, run: RunId) -> Result<(), BackendError> {
        self.change(Change::RemoveRun(run))
    }

    fn remove_blobs(&mut self, names: &[BlobId]) -> Result<(), BackendError> {
        self.change(Change::RemoveBodies(names.to_vec()))
    }

    fn owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        Ok(self.now()?.epochs.get(&run).copied().unwrap_or_default())
    }

    fn bump_owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        let epoch = self.owner_epoch(run)? + 1;
        self.change(Change::SetEpoch { run, epoch })?;
        Ok(epoch)
    }
}

impl Mailbox for JournalStore {
    fn put_request(&mut self, run: RunId, request: &str) -> Result<u64, BackendError> {
        let number = self.now()?.requested + 1;
        self.change(Change::PutRequest { number, run, text: request.to_owned() })?;
        Ok(number)
    }

    fn runs_with_requests(&mut self) -> Result<Vec<RunId>, BackendError> {
        let waiting = self.now()?.requests.values().filter(|request| request.state == MailboxState::Waiting);
        let mut runs = waiting.map(|request| request.run).collect::<Vec<_>>();
        runs.sort_unstable();
        runs.dedup();
        Ok(runs)
    }

    fn waiting_requests(&mut self, run: RunId, max: usize) -> Result<Vec<(u64, String)>, BackendError> {
        let requests = self.now()?.requests.iter();
        let waiting =
            requests.filter(|(_, request)| request.run == run && request.state == MailboxState::Waiting);
        Ok(waiting.take(max).map(|(number, request)| (*number, request.text.clone())).collect())
    }

    fn answer_request(&mut self, number: u64, reply: &str) -> Result<(), BackendError> {
        self.change(Change::Answer { number, reply: reply.to_owned() })
    }

    fn request_state(&mut self, number: u64) -> Result<Option<MailboxState>, BackendError> {
        Ok(self.now()?.requests.get(&number).map(|request| request.state.clone()))
    }

    fn withdraw_request(&mut self, number: u64) -> Result<bool, BackendError> {
        let is_waiting = self.request_state(number)? == Some(MailboxState::Waiting);
        if is_waiting {
            self.change(Change::RemoveRequest { number })?;
        }
        Ok(is_waiting)
    }
}
