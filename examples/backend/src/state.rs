//! What the journal's lines add up to.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use provost_backend::{ANSWERED_REQUESTS_MAX, MailboxState, OpenEffect, StoredRun};
use provost_event::{ActorKey, BlobId, EffectId, Record, RunId, Seq};
use provost_harness::{PlacedEntry, RunCursor, RunPosition};

use crate::change::Change;

/// A request to the process that holds a run.
pub(crate) struct Request {
    pub(crate) run: RunId,
    pub(crate) text: String,
    pub(crate) state: MailboxState,
}

/// Everything that is stored.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) logs: BTreeMap<ActorKey, Vec<Arc<Record>>>,
    pub(crate) orders: HashMap<RunId, Vec<PlacedEntry>>,
    /// Records ever appended.
    pub(crate) appended: u64,
    pub(crate) effects: BTreeMap<EffectId, OpenEffect>,
    pub(crate) posts: HashSet<(ActorKey, String)>,
    pub(crate) runs: BTreeMap<RunId, StoredRun>,
    /// The list of runs, the oldest first.
    pub(crate) starts: BTreeSet<RunCursor>,
    pub(crate) epochs: HashMap<RunId, u64>,
    pub(crate) bodies: HashMap<BlobId, Vec<u8>>,
    pub(crate) requests: BTreeMap<u64, Request>,
    /// Requests ever made.
    pub(crate) requested: u64,
}

impl State {
    pub(crate) fn log(&self, actor: ActorKey) -> &[Arc<Record>] {
        self.logs.get(&actor).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn head(&self, actor: ActorKey) -> Seq {
        self.log(actor).last().map_or(Seq::START, |record| record.seq)
    }

    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Append(line) => self.append(line.record),
            Change::PutEffect { id, effect, epoch, abort } => {
                self.effects.insert(id, OpenEffect { id, effect, epoch, abort });
            }
            Change::CloseEffect(id) => drop(self.effects.remove(&id)),
            Change::MarkPost { actor, dedup } => drop(self.posts.insert((actor, dedup))),
            Change::PutRun(row) => self.put_run(row.into()),
            Change::PutBody { id, body } => drop(self.bodies.insert(id, body)),
            Change::RemoveBodies(ids) => ids.iter().for_each(|id| drop(self.bodies.remove(id))),
            Change::RemoveRun(run) => self.remove_run(run),
            Change::SetEpoch { run, epoch } => drop(self.epochs.insert(run, epoch)),
            Change::PutRequest { number, run, text } => {
                self.requested = number;
                self.requests.insert(number, Request { run, text, state: MailboxState::Waiting });
            }
            Change::Answer { number, reply } => self.answer(number, reply),
            Change::RemoveRequest { number } => drop(self.requests.remove(&number)),
        }
    }

    fn append(&mut self, record: Arc<Record>) {
        self.appended += 1;
        let position = RunPosition(self.appended);
        let place = PlacedEntry { position, actor: record.actor, seq: record.seq };
        self.orders.entry(record.actor.run()).or_default().push(place);
        self.logs.entry(record.actor).or_default().push(record);
    }

    fn put_run(&mut self, run: StoredRun) {
        self.starts.insert(run.cursor());
        if let Some(before) = self.runs.insert(run.run, run.clone())
            && before.cursor() != run.cursor()
        {
            self.starts.remove(&before.cursor());
        }
    }

    fn remove_run(&mut self, run: RunId) {
        self.logs.retain(|actor, _| actor.run() != run);
        self.orders.remove(&run);
        self.effects.retain(|id, _| id.actor.run() != run);
        self.posts.retain(|(actor, _)| actor.run() != run);
        if let Some(row) = self.runs.remove(&run) {
            self.starts.remove(&row.cursor());
        }
        self.epochs.remove(&run);
        self.requests.retain(|_, request| request.run != run);
    }

    fn answer(&mut self, number: u64, reply: String) {
        if let Some(request) = self.requests.get_mut(&number) {
            request.state = MailboxState::Answered(reply);
        }
        let oldest = number.saturating_sub(ANSWERED_REQUESTS_MAX);
        self.requests.retain(|number, request| *number > oldest || request.state == MailboxState::Waiting);
    }
}
