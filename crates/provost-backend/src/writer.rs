//! The single writer thread. It takes all queued posts into one transaction, so that many share one sync to disk,
//! and announces nothing before that is done. It decides for a run only while this process holds the run, or no
//! process does.

mod held;
mod import;
mod mailbox;
mod owned;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use foldhash::{HashMap, HashSet};
use provost_engine::{Event, Now};
use provost_event::{ActorKey, BudgetEntry, EffectId, Elapsed, Entry, RunId, Seq};
use provost_harness::{BackendError, Clock, Posted};

use self::held::HeldTime;
use self::mailbox::{Outbox, Sent};
use crate::cache::Cache;
use crate::decide::{Change, Decided, decide};
use crate::feed::{Feed, Written};
use crate::job::{Answer, Job, Order, Orders, Post, Reply, Server, answer, send};
use crate::queue::{Queue, Waiting};
use crate::{NewEntry, OpenEffect, RunLeases, SessionStore, StoredRun};

/// Maximum jobs in one transaction.
const BATCH_MAX: usize = 256;
/// How often the writer checks for commits of other processes while there are subscribers.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often the elapsed times of the runs that this process holds are noted beside their leases: after `kill -9`
/// about so much worked time is lost.
const NOTE_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Writer {
    store: Box<dyn SessionStore>,
    leases: Arc<dyn RunLeases>,
    clock: Arc<dyn Clock>,
    feed: Arc<Feed>,
    cache: Cache,
    random: fastrand::Rng,
    owned: HashMap<RunId, Owned>,
    /// The reading of the process's clock at which elapsed times were last noted.
    noted_at: Elapsed,
    /// Runs whose server must get all open effects.
    behind: HashSet<RunId>,
    marker: Option<u64>,
    /// Whether other processes have written since subscribers were last notified and mailboxes emptied.
    outdated: bool,
    outbox: Outbox,
}

/// A run that this process serves.
struct Owned {
    epoch: u64,
    /// The run's elapsed time, which advances while this process holds the run.
    held: HeldTime,
    /// Whether no other process has written since the store's epoch was compared with ours.
    verified: bool,
    server: Server,
}

/// What waits for the commit.
#[derive(Default)]
struct Batch {
    answers: Vec<Answer>,
    touched: Vec<ActorKey>,
    /// What was appended, in this order.
    written: Vec<Written>,
    orders: HashMap<RunId, Vec<Order>>,
    runs: BTreeSet<RunId>,
    taken: Vec<RunId>,
    removed: Vec<RunId>,
    /// Requests to other processes.
    sent: Vec<Sent>,
    /// Whether requests of other processes are answered.
    replies: bool,
}

impl Writer {
    pub(crate) fn new(
        store: Box<dyn SessionStore>,
        clock: Arc<dyn Clock>,
        feed: Arc<Feed>,
        jobs: Weak<Queue<Job>>,
    ) -> Self {
        Self {
            leases: store.leases(),
            outbox: Outbox::new(store.wake_ups(), jobs),
            store,
            clock,
            feed,
            cache: Cache::default(),
            random: fastrand::Rng::new(),
            owned: HashMap::default(),
            noted_at: Elapsed::default(),
            behind: HashSet::default(),
            marker: None,
            outdated: false,
        }
    }

    /// Works until all senders are gone.
    pub(crate) fn work(mut self, waiting: &Waiting<Job>) {
        while let Ok(job) = waiting.next(self.wakes_every()) {
            match job {
                None | Some(Job::Look) => {
                    self.outbox.hears();
                    self.look();
                }
                Some(first) => {
                    let others = std::iter::from_fn(|| waiting.next_waiting());
                    let jobs = std::iter::once(first).chain(others).take(BATCH_MAX);
                    let (alone, together) = jobs.partition::<Vec<_>, _>(Job::is_outside_of_transactions);
                    // A wake-up may be among them.
                    self.outbox.hears();
                    if !together.is_empty() {
                        self.transact(together);
                    }
                    alone.into_iter().for_each(|job| self.maintain(job));
                }
            }
            self.tell_followers();
            self.attend_outbox();
            self.note_times();
        }
    }

    /// How often to do something without a job; `None` for not at all.
    fn wakes_every(&self) -> Option<Duration> {
        let notes = (!self.owned.is_empty()).then_some(NOTE_EVERY);
        self.look_every().into_iter().chain(notes).min()
    }

    /// How often to check for commits of other processes without being woken; `None` if they don't matter.
    fn look_every(&self) -> Option<Duration> {
        self.outbox.look_every().or_else(|| self.feed.is_followed().then_some(LOOK_EVERY))
    }

    /// Jobs that can't be part of a transaction.
    fn maintain(&mut self, job: Job) {
        match job {
            Job::Announced { reply } => send(reply, Ok(())),
            Job::Settle { reply } => {
                self.outbox.close();
                send(reply, self.store.settle());
            }
            Job::Shrink { reply } => send(reply, self.store.shrink()),
            other => other.refuse(BackendError::Closed),
        }
    }

    fn transact(&mut self, jobs: Vec<Job>) {
        let mut batch = Batch::default();
        let mut failure = self.begin().err();
        for job in jobs {
            match (job, &failure) {
                // Needs no store, and must not depend on a failing one.
                (Job::GiveUp { run, epoch, reply }, _) => self.give_up(run, epoch, reply),
                (job, None) => failure = self.take(job, &mut batch).err(),
                (job, Some(error)) => job.refuse(error.clone()),
            }
        }
        let committed = match failure {
            None => self.list_runs(&batch).and_then(|()| self.store.commit()),
            Some(error) => Err(error),
        };
        match committed {
            Ok(()) => self.tell(batch),
            Err(error) => self.undo(batch, &error),
        }
    }

    fn begin(&mut self) -> Result<(), BackendError> {
        self.store.begin()?;
        let marker = self.store.change_marker()?;
        self.saw(marker);
        Ok(())
    }

    /// Does one job except for the commit. Errors of a single job go to its caller.
    ///
    /// # Errors
    /// When nothing more can be written in this transaction.
    fn take(&mut self, job: Job, batch: &mut Batch) -> Result<(), BackendError> {
        match job {
            Job::Post { post, reply } => self.post(*post, reply, batch),
            Job::EmptyMailbox { run } => self.empty_mailbox(run, batch),
            Job::PutBlob { id, body, reply } => {
                batch.answers.push(answer(reply, ()));
                self.store.put_blob(&id, &body)
            }
            Job::TakeOver { run, server, reply } => self.take_over(run, server, reply, batch),
            Job::Import { import, reply } => self.import(*import, reply, batch),
            Job::Remove { run, reply } => self.remove(run, reply, batch),
            Job::RemoveBlobs { names, reply } => {
                batch.answers.push(answer(reply, ()));
                self.store.remove_blobs(&names)
            }
            Job::GiveUp { .. }
            | Job::Look
            | Job::Announced { .. }
            | Job::Settle { .. }
            | Job::Shrink { .. } => Ok(()),
        }
    }

    /// Removes a run, unless a process serves it.
    fn remove(&mut self, run: RunId, reply: Reply<()>, batch: &mut Batch) -> Result<(), BackendError> {
        let lease = match self.leases.claim(run) {
            Ok(lease) => lease,
            Err(error) => {
                send(reply, Err(error));
                return Ok(());
            }
        };
        batch.touched.extend(self.store.actors(run)?);
        batch.removed.push(run);
        let leases = Arc::clone(&self.leases);
        batch.answers.push(Box::new(move |committed| {
            if committed.is_ok() {
                leases.forget_note(run);
            }
            drop(lease);
            send(reply, committed);
        }));
        self.store.remove_run(run)
    }

    fn post(&mut self, post: Post, reply: Reply<Posted>, batch: &mut Batch) -> Result<(), BackendError> {
        let run = post.key.run();
        let epoch = self.owned.get(&run).map(|owned| owned.epoch);
        if post.epoch.is_some() && post.epoch != epoch {
            send(reply, Err(BackendError::Conflict { actor: post.key }));
            return Ok(());
        }
        if epoch.is_none() {
            match self.leases.is_claimed(run) {
                Ok(true) => return self.send_to_holder(post, reply, batch),
                Ok(false) => {}
                Err(error) => {
                    send(reply, Err(error));
                    return Ok(());
                }
            }
            if let Err(error) = self.decide_requests(run, batch) {
                send(reply, Err(error.clone()));
                return Err(error);
            }
        }
        match self.decide_and_keep(post, batch) {
            Ok(Ok(posted)) => batch.answers.push(answer(reply, posted)),
            Ok(Err(error)) => send(reply, Err(error)),
            Err(error) => {
                send(reply, Err(error.clone()));
                return Err(error);
            }
        }
        Ok(())
    }

    /// The result of a post, which the commit makes durable. Errors of this post alone are the inner result.
    ///
    /// # Errors
    /// When nothing more can be written in this transaction.
    fn decide_and_keep(
        &mut self,
        post: Post,
        batch: &mut Batch,
    ) -> Result<Result<Posted, BackendError>, BackendError> {
        let Post { key, event, dedup, .. } = post;
        batch.touched.push(key);
        let decided = self.verify_owner(key.run()).and_then(|()| match &dedup {
            Some(dedup) if self.store.has_post(key, dedup)? => self.ignored(key),
            _ => self.decide(key, event),
        });
        match decided {
            Ok(decided) => {
                let posted = Posted { head: decided.head, changed: decided.changed };
                dedup.map_or(Ok(()), |dedup| self.store.mark_post(key, &dedup))?;
                self.keep(decided.changes, batch)?;
                Ok(Ok(posted))
            }
            Err(error) => {
                self.fail_owner(key.run(), &error);
                Ok(Err(error))
            }
        }
    }

    fn ignored(&mut self, key: ActorKey) -> Result<Decided, BackendError> {
        let head = self.cache.get(key, &mut *self.store)?.head();
        Ok(Decided { changes: Vec::new(), head, changed: false, elapsed: Elapsed::default() })
    }

    fn decide(&mut self, key: ActorKey, event: Event) -> Result<Decided, BackendError> {
        let run = key.run();
        let monotonic = self.clock.monotonic();
        let elapsed = match self.owned.get(&run) {
            Some(owned) => owned.held.at(monotonic),
            None => self.leases.noted(run),
        };
        let now = Now { at: self.clock.now(), elapsed, entropy: self.random.u64(..) };
        let decided = decide(&mut self.cache, &mut *self.store, (key, event), now)?;
        if let Some(owned) = self.owned.get_mut(&run) {
            owned.held.is_at_least(decided.elapsed, monotonic);
        }
        Ok(decided)
    }

    fn keep(&mut self, changes: Vec<Change>, batch: &mut Batch) -> Result<(), BackendError> {
        // All of them first: whatever happens to one, the states of all are undone with it.
        batch.touched.extend(changes.iter().map(|change| change.actor));
        changes.into_iter().try_for_each(|change| self.keep_one(change, batch))
    }

    fn keep_one(&mut self, change: Change, batch: &mut Batch) -> Result<(), BackendError> {
        let (actor, run) = (change.actor, change.actor.run());
        let epoch = self.owned.get(&run).map(|owned| owned.epoch);
        let named = |seq: Seq| EffectId { actor, seq };
        let mut orders = Vec::new();
        if !change.entries.is_empty() {
            let last = self.store.append(actor, change.before, &change.entries)?;
            if matches!(actor, ActorKey::Run(_)) && change.entries.iter().any(shows_in_a_list) {
                batch.runs.insert(run);
            }
            batch.written.push(Written { actor, entries: change.entries, last });
        }
        for id in change.closed.into_iter().map(named) {
            self.store.close_effect(id)?;
            orders.push(Order::Close(id));
        }
        for id in change.aborts.into_iter().map(named) {
            match epoch {
                Some(_) => orders.push(Order::Abort(id)),
                None => self.store.request_abort(id)?,
            }
        }
        for request in change.effects {
            let open = OpenEffect { id: named(request.seq), effect: request.effect, epoch, abort: false };
            self.store.put_effect(&open)?;
            orders.push(Order::Start(open.id, Box::new(open.effect), self.clock.monotonic()));
        }
        if epoch.is_some() && !orders.is_empty() {
            batch.orders.entry(run).or_default().extend(orders);
        }
        Ok(())
    }

    /// Stores the rows of the changed runs.
    fn list_runs(&mut self, batch: &Batch) -> Result<(), BackendError> {
        for run in &batch.runs {
            let state = self.cache.get(ActorKey::Run(*run), &mut *self.store)?;
            if let Some(status) = state.status() {
                self.store.put_run(&StoredRun::new(*run, status))?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, batch: Batch) {
        for actor in batch.touched.iter().filter(|actor| batch.removed.contains(&actor.run())) {
            self.cache.forget(*actor);
        }
        // Effects begin with reading what led to them.
        self.feed.keep(&batch.written);
        // Then servers: a subscriber may rely on the effects of the entries it sees being under way, with timers
        // set.
        for (run, orders) in batch.orders {
            self.order(run, Orders::Changed(orders));
        }
        self.feed.announce(&batch.written);
        self.feed.committed();
        for Written { actor, .. } in &batch.written {
            self.cache.tidy(*actor, |run| self.owned.contains_key(&run));
        }
        batch.answers.into_iter().for_each(|answer| answer(Ok(())));
        if batch.replies || !batch.sent.is_empty() {
            self.outbox.sent(batch.sent);
        }
    }

    fn undo(&mut self, batch: Batch, error: &BackendError) {
        self.store.rollback();
        batch.taken.into_iter().for_each(|run| self.disown(run));
        for actor in batch.touched {
            self.cache.forget(actor);
            self.fail_owner(actor.run(), error);
        }
        batch.answers.into_iter().for_each(|answer| answer(Err(error.clone())));
        batch.sent.into_iter().for_each(|sent| sent.refuse(error));
    }
}

/// A reservation changes only the time of the last change in a list, and comes with every turn.
fn shows_in_a_list(entry: &NewEntry) -> bool {
    !matches!(entry.record.entry, Entry::Budget(BudgetEntry::Reserved(_)))
}
