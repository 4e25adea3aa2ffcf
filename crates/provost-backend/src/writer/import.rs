//! Importing runs into the store, and merging them with existing ones.

use std::collections::HashMap;

use provost_event::{ActorKey, Entry, LifecycleEntry, Record, RunId, Seq};
use provost_harness::BackendError;

use super::{Batch, Writer};
use crate::HeldLease;
use crate::feed::Written;
use crate::job::{Import, ImportRun, Reply, Unfit, answer, send};
use crate::store::log_begins;
use crate::transfer::{ImportChange, Imported};

/// Records compared at a time.
const COMPARED_AT_ONCE: usize = 256;

impl Writer {
    /// All of it, or nothing: it is checked before anything is written.
    pub(super) fn import(
        &mut self,
        import: Import,
        reply: Reply<Result<Vec<Imported>, Unfit>>,
        batch: &mut Batch,
    ) -> Result<(), BackendError> {
        let planned = match self.plan(&import) {
            Ok(Ok(planned)) => planned,
            Ok(Err(unfit)) => {
                send(reply, Ok(Err(unfit)));
                return Ok(());
            }
            Err(error) => {
                send(reply, Err(error));
                return Ok(());
            }
        };
        let imported = planned.iter().map(|planned| planned.imported).collect::<Vec<_>>();
        batch.answers.push(answer(reply, Ok(imported)));
        for (id, body) in &import.blobs {
            self.store.put_blob(id, body)?;
        }
        for (run, planned) in import.runs.into_iter().zip(planned) {
            if planned.imported.change != ImportChange::Known {
                self.add(run, batch)?;
            }
        }
        Ok(())
    }

    fn plan(&mut self, import: &Import) -> Result<Result<Vec<Planned>, Unfit>, BackendError> {
        let mut planned = Vec::with_capacity(import.runs.len());
        for run in &import.runs {
            match self.compare(run)? {
                Ok(change) => {
                    let run = run.run.run;
                    // A process that serves it would continue from its old state.
                    let lease = match change {
                        ImportChange::Extended(_) => Some(self.leases.claim(run)?),
                        ImportChange::New | ImportChange::Known => None,
                    };
                    planned.push(Planned { imported: Imported { run, change }, _lease: lease });
                }
                Err(unfit) => return Ok(Err(unfit)),
            }
        }
        for base in &import.bases {
            let session = base.session;
            let at = base.through;
            let is_in_file = import.runs.iter().any(|run| run.run.run == session.run);
            if !is_in_file && self.store.head(session.into())? < at {
                return Ok(Err(Unfit::Missing { session, at }));
            }
        }
        Ok(Ok(planned))
    }

    /// The entries of a run that only the file has.
    fn compare(&mut self, run: &ImportRun) -> Result<Result<ImportChange, Unfit>, BackendError> {
        let known = self.store.actors(run.run.run)?;
        if known.is_empty() {
            return Ok(Ok(ImportChange::New));
        }
        let (mut more, mut first_new) = (0, None);
        // Entries that only the store has.
        let mut is_behind = known.iter().any(|key| run.logs.iter().all(|(actor, _)| actor != key));
        for (actor, entries) in &run.logs {
            let head = self.store.head(*actor)?;
            let mut after = Seq::START;
            let mut entries = entries.iter().peekable();
            while after < head {
                let there = self.store.read(*actor, after, COMPARED_AT_ONCE)?;
                let Some(last) = there.last() else { break };
                after = last.seq;
                for record in &there {
                    match entries.next() {
                        None => is_behind = true,
                        Some(entry) if is_same(&entry.record, record) => {}
                        Some(_) => return Ok(Err(Unfit::Diverges { actor: *actor, seq: record.seq })),
                    }
                }
            }
            if let Some(new) = entries.peek() {
                first_new.get_or_insert((*actor, new.record.seq));
            }
            more += entries.count();
        }
        Ok(match first_new {
            Some((actor, seq)) if is_behind => Err(Unfit::Diverges { actor, seq }),
            Some(_) => Ok(ImportChange::Extended(more)),
            None => Ok(ImportChange::Known),
        })
    }

    /// Adds the missing entries. The run's open effects are over: the entries contain their results.
    fn add(&mut self, run: ImportRun, batch: &mut Batch) -> Result<(), BackendError> {
        self.close_all(run.run.run)?;
        let mut logs = HashMap::with_capacity(run.logs.len());
        for (actor, entries) in run.logs {
            self.cache.forget(actor);
            logs.insert(actor, (self.store.head(actor)?, entries.into_iter()));
        }
        for group in run.order.chunk_by(|one, next| one == next) {
            let [actor, ..] = *group else { continue };
            let Some((head, entries)) = logs.get_mut(&actor) else { continue };
            let group = entries.by_ref().take(group.len());
            let entries = group.filter(|entry| entry.record.seq > *head).collect::<Vec<_>>();
            let Some(last) = entries.last() else { continue };
            let before = if head.is_start() { log_begins(&entries) } else { *head };
            *head = last.record.seq;
            let last = self.store.append(actor, before, &entries)?;
            batch.written.push(Written { actor, entries, last });
        }
        self.store.put_run(&run.run)
    }

    fn close_all(&mut self, run: RunId) -> Result<(), BackendError> {
        let open = self.store.open_effects(run)?;
        open.into_iter().try_for_each(|open| self.store.close_effect(open.id))
    }
}

/// The plan for a run.
struct Planned {
    imported: Imported,
    /// Held while entries are added to it.
    _lease: Option<HeldLease>,
}

/// Whether two records are equal. A snapshot only repeats the others.
fn is_same(one: &Record, other: &Record) -> bool {
    let is_snapshot = |record: &Record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_)));
    let place = |record: &Record| (record.actor, record.seq, record.at) as (ActorKey, Seq, _);
    place(one) == place(other) && (one.entry == other.entry || (is_snapshot(one) && is_snapshot(other)))
}
