//! The one thread that writes. It takes the posts that wait at that moment into one transaction, so that many
//! share one sync to disk, and tells nobody of anything before that is done.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use provost_engine::{Effect, Event, Now, RunEvent};
use provost_event::{ActorKey, EffectId, RunId, Seq};
use provost_harness::{Clock, HomeError, Posted};
use tokio::sync::mpsc::error::TrySendError;

use crate::cache::Cache;
use crate::decide::{Change, Decided, decide};
use crate::feed::Feed;
use crate::job::{Answer, Import, Job, Order, Orders, Reply, Server, answer, send};
use crate::queue::Waiting;
use crate::{NewEntry, OpenEffect, SessionStore, StoredRun};

/// Jobs that share one transaction at most.
const BATCH_MAX: usize = 256;
/// How often somebody who follows something has us look for what other processes wrote.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Writer {
    store: Box<dyn SessionStore>,
    clock: Arc<dyn Clock>,
    feed: Arc<Feed>,
    cache: Cache,
    random: fastrand::Rng,
    owned: HashMap<RunId, Owned>,
    /// Runs whose server must be told all that is open.
    behind: HashSet<RunId>,
    marker: Option<u64>,
    /// Whether others have written since followers were last told.
    outdated: bool,
}

/// A run that this process works on.
struct Owned {
    epoch: u64,
    /// Whether nobody has written since the store's epoch was compared with ours.
    verified: bool,
    server: Server,
}

/// What waits for the commit.
#[derive(Default)]
struct Batch {
    answers: Vec<Answer>,
    touched: Vec<ActorKey>,
    written: Vec<(ActorKey, Vec<NewEntry>)>,
    orders: HashMap<RunId, Vec<Order>>,
    runs: BTreeSet<RunId>,
    taken: Vec<RunId>,
}

impl Writer {
    pub(crate) fn new(store: Box<dyn SessionStore>, clock: Arc<dyn Clock>, feed: Arc<Feed>) -> Self {
        Self {
            store,
            clock,
            feed,
            cache: Cache::default(),
            random: fastrand::Rng::new(),
            owned: HashMap::new(),
            behind: HashSet::new(),
            marker: None,
            outdated: false,
        }
    }

    /// Works until nobody can ask for anything any more.
    pub(crate) fn work(mut self, waiting: &Waiting<Job>) {
        while let Ok(job) = waiting.next(self.feed.is_followed().then_some(LOOK_EVERY)) {
            match job {
                None | Some(Job::Look) => self.look(),
                Some(first) => {
                    let others = std::iter::from_fn(|| waiting.next_waiting());
                    let jobs = std::iter::once(first).chain(others).take(BATCH_MAX).collect();
                    self.transact(jobs);
                }
            }
            self.tell_followers();
        }
    }

    fn look(&mut self) {
        match self.store.change_marker() {
            Ok(marker) => self.saw(marker),
            Err(error) => tracing::warn!(%error, "can't look for what other processes wrote"),
        }
    }

    fn saw(&mut self, marker: u64) {
        if self.marker.replace(marker) != Some(marker) {
            self.cache.distrust();
            self.owned.values_mut().for_each(|owned| owned.verified = false);
            self.outdated = true;
        }
    }

    fn transact(&mut self, jobs: Vec<Job>) {
        let mut batch = Batch::default();
        let mut failure = self.begin().err();
        for job in jobs {
            match &failure {
                None => failure = self.take(job, &mut batch).err(),
                Some(error) => job.refuse(error.clone()),
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

    fn begin(&mut self) -> Result<(), HomeError> {
        self.store.begin()?;
        let marker = self.store.change_marker()?;
        self.saw(marker);
        Ok(())
    }

    /// Does one job but for the commit. What only concerns the job goes to whoever wants it done.
    ///
    /// # Errors
    /// When nothing more can be written in this transaction.
    fn take(&mut self, job: Job, batch: &mut Batch) -> Result<(), HomeError> {
        match job {
            Job::Post { key, event, dedup, reply } => self.post((key, event), dedup, reply, batch),
            Job::PutBlob { id, body, reply } => {
                batch.answers.push(answer(reply, ()));
                self.store.put_blob(&id, &body)
            }
            Job::TakeOver { run, server, reply } => self.take_over(run, server, reply, batch),
            Job::GiveUp { run, epoch, reply } => {
                if self.owned.get(&run).is_some_and(|owned| owned.epoch == epoch) {
                    self.disown(run);
                }
                send(reply, Ok(()));
                Ok(())
            }
            Job::Import { import, reply } => self.import(*import, reply, batch),
            Job::Look => Ok(()),
        }
    }

    fn post(
        &mut self,
        (key, event): (ActorKey, Event),
        dedup: Option<String>,
        reply: Reply<Posted>,
        batch: &mut Batch,
    ) -> Result<(), HomeError> {
        batch.touched.push(key);
        let decided = self.verify_owner(key.run()).and_then(|()| {
            match &dedup {
                Some(dedup) if self.store.has_post(key, dedup)? => self.ignored(key),
                _ => self.decide(key, event),
            }
        });
        match decided {
            Ok(decided) => {
                batch.answers.push(answer(reply, Posted { head: decided.head, changed: decided.changed }));
                dedup.map_or(Ok(()), |dedup| self.store.mark_post(key, &dedup))?;
                self.keep(decided.changes, batch)
            }
            Err(error) => {
                self.fail_owner(key.run(), &error);
                send(reply, Err(error));
                Ok(())
            }
        }
    }

    fn ignored(&mut self, key: ActorKey) -> Result<Decided, HomeError> {
        let head = self.cache.get(key, &mut *self.store)?.head();
        Ok(Decided { changes: Vec::new(), head, changed: false })
    }

    fn decide(&mut self, key: ActorKey, event: Event) -> Result<Decided, HomeError> {
        let now = Now { at: self.clock.now(), entropy: self.random.u64(..) };
        decide(&mut self.cache, &mut *self.store, (key, event), now)
    }

    /// The fence: a run that somebody else took over isn't touched any more.
    fn verify_owner(&mut self, run: RunId) -> Result<(), HomeError> {
        let Some(owned) = self.owned.get_mut(&run).filter(|owned| !owned.verified) else { return Ok(()) };
        if self.store.owner_epoch(run)? == owned.epoch {
            owned.verified = true;
            return Ok(());
        }
        Err(HomeError::Conflict { actor: run.into() })
    }

    /// A run whose log can't be read, or written, isn't worked on any more: its state may have held what the log
    /// doesn't have. Whoever takes it over next recovers it.
    fn fail_owner(&mut self, run: RunId, error: &HomeError) {
        if let Some(owned) = self.owned.get(&run) {
            owned.server.failure.send_replace(Some(error.clone()));
            self.disown(run);
        }
    }

    fn disown(&mut self, run: RunId) {
        self.owned.remove(&run);
        self.behind.remove(&run);
        self.feed.give_up(run);
    }

    fn keep(&mut self, changes: Vec<Change>, batch: &mut Batch) -> Result<(), HomeError> {
        // All of them first: whatever comes of one, the states of all are undone with it.
        batch.touched.extend(changes.iter().map(|change| change.actor));
        changes.into_iter().try_for_each(|change| self.keep_one(change, batch))
    }

    fn keep_one(&mut self, change: Change, batch: &mut Batch) -> Result<(), HomeError> {
        let (actor, run) = (change.actor, change.actor.run());
        let epoch = self.owned.get(&run).map(|owned| owned.epoch);
        let named = |seq: Seq| EffectId { actor, seq };
        let mut orders = Vec::new();
        if !change.entries.is_empty() {
            self.store.append(actor, change.before, &change.entries)?;
            batch.written.push((actor, change.entries));
            if matches!(actor, ActorKey::Run(_)) {
                batch.runs.insert(run);
            }
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
            orders.push(Order::Start(open.id, open.effect));
        }
        if epoch.is_some() && !orders.is_empty() {
            batch.orders.entry(run).or_default().extend(orders);
        }
        Ok(())
    }

    /// Puts the rows of the runs that changed as their actors now describe them.
    fn list_runs(&mut self, batch: &Batch) -> Result<(), HomeError> {
        for run in &batch.runs {
            let state = self.cache.get(ActorKey::Run(*run), &mut *self.store)?;
            if let Some(status) = state.status() {
                self.store.put_run(&StoredRun::new(*run, status))?;
            }
        }
        Ok(())
    }

    fn take_over(
        &mut self,
        run: RunId,
        server: Server,
        reply: Reply<u64>,
        batch: &mut Batch,
    ) -> Result<(), HomeError> {
        let epoch = self.store.bump_owner_epoch(run)?;
        batch.taken.push(run);
        self.owned.insert(run, Owned { epoch, verified: true, server });
        self.feed.serve(run);
        match self.recover(run) {
            Ok(changes) => {
                batch.answers.push(answer(reply, epoch));
                self.keep(changes, batch)?;
                let surviving = self.what_is_ours(run)?.into_iter();
                let orders = batch.orders.entry(run).or_default();
                orders.extend(surviving.map(|open| Order::Start(open.id, open.effect)));
                Ok(())
            }
            Err(error) => {
                self.disown(run);
                send(reply, Err(error));
                Ok(())
            }
        }
    }

    /// What the run's actor makes of it if somebody left it in the middle.
    fn recover(&mut self, run: RunId) -> Result<Vec<Change>, HomeError> {
        let open = self.store.open_effects(run)?;
        let left_undone = open.iter().any(|open| !matches!(open.effect, Effect::Timer { .. }));
        let state = self.cache.get(ActorKey::Run(run), &mut *self.store)?;
        let Some(status) = state.status() else { return Ok(Vec::new()) };
        if status.outcome.is_some() && !left_undone {
            return Ok(Vec::new());
        }
        Ok(self.decide(run.into(), RunEvent::Recover.into())?.changes)
    }

    /// What is open and ours to do: timers, what we began, and what nobody has begun yet. What somebody else had
    /// begun is left to the actors, who know whether it may be done again.
    fn what_is_ours(&mut self, run: RunId) -> Result<Vec<OpenEffect>, HomeError> {
        let ours = self.owned.get(&run).map(|owned| owned.epoch);
        let mut open = self.store.open_effects(run)?;
        open.retain(|open| matches!(open.effect, Effect::Timer { .. }) || open.epoch.is_none() || open.epoch == ours);
        Ok(open)
    }

    fn import(&mut self, import: Import, reply: Reply<bool>, batch: &mut Batch) -> Result<(), HomeError> {
        let is_new = self.store.actors(import.run.run)?.is_empty();
        batch.answers.push(answer(reply, is_new));
        if !is_new {
            return Ok(());
        }
        for (id, body) in &import.blobs {
            self.store.put_blob(id, body)?;
        }
        for (actor, entries) in import.logs {
            self.cache.forget(actor);
            self.store.append(actor, Seq::START, &entries)?;
            batch.written.push((actor, entries));
        }
        self.store.put_run(&import.run)
    }

    fn tell(&mut self, batch: Batch) {
        self.feed.publish(&batch.written);
        for (actor, _) in &batch.written {
            self.cache.tidy(*actor, |run| self.owned.contains_key(&run));
        }
        for (run, orders) in batch.orders {
            self.order(run, Orders::Changed(orders));
        }
        batch.answers.into_iter().for_each(|answer| answer(Ok(())));
    }

    fn undo(&mut self, batch: Batch, error: &HomeError) {
        self.store.rollback();
        batch.taken.into_iter().for_each(|run| self.disown(run));
        for actor in batch.touched {
            self.cache.forget(actor);
            self.fail_owner(actor.run(), error);
        }
        batch.answers.into_iter().for_each(|answer| answer(Err(error.clone())));
    }

    fn order(&mut self, run: RunId, orders: Orders) {
        let Some(owned) = self.owned.get(&run) else { return };
        match owned.server.orders.try_send(orders) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.behind.insert(run);
            }
            // A server that is gone gives the run up; the next one recovers it.
            Err(TrySendError::Closed(_)) => {}
        }
    }

    /// After a commit of somebody else's: the ends of the logs, and what there is to do.
    fn tell_followers(&mut self) {
        if std::mem::take(&mut self.outdated) {
            for actor in self.feed.followed() {
                match self.store.head(actor) {
                    Ok(head) => self.feed.advance(actor, head),
                    Err(error) => tracing::warn!(%error, %actor, "can't look for new entries"),
                }
            }
            self.behind.extend(self.owned.keys());
        }
        for run in std::mem::take(&mut self.behind) {
            match self.what_is_ours(run) {
                Ok(open) => self.order(run, Orders::Open(open)),
                Err(error) => {
                    tracing::warn!(%error, %run, "can't look for what is to be done");
                    self.behind.insert(run);
                }
            }
        }
    }
}
