//! The runs that this process holds, and their effects in progress.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use provost_engine::{Effect, Event, RunEvent, SessionEvent};
use provost_event::{ActorKey, EffectId, Elapsed, RunId};
use provost_harness::{BackendError, Clock, Executor};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Target};
use crate::blobs::BlobStore;
use crate::engine::{Names, run_key};
use crate::payload::Payload;
use crate::wire::{BeginRequest, EffectOf, Moment, Order, Reply, Stop, StopKind};

/// Ids of effects that are done, for requests that come again.
const DONE_MAX: usize = 1024;
/// How long a timer waits for an earlier one whose event is on its way.
const TURN_MAX: Duration = Duration::from_secs(5);

/// The runs that this process holds.
#[derive(Default)]
pub(crate) struct Leases {
    held: Mutex<HashMap<RunId, Arc<Lease>>>,
    /// Whether no further effect is begun.
    draining: AtomicBool,
}

impl Leases {
    fn all(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Lease>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, run: RunId) -> Option<Arc<Lease>> {
        self.all().get(&run).map(Arc::clone)
    }

    pub(crate) fn every(&self) -> Vec<Arc<Lease>> {
        self.all().values().map(Arc::clone).collect()
    }

    /// Adds a lease; false if this process has one on that run.
    pub(crate) fn add(&self, lease: &Arc<Lease>) -> bool {
        match self.all().entry(lease.run) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(Arc::clone(lease));
                true
            }
        }
    }

    pub(crate) fn remove(&self, lease: &Arc<Lease>) {
        let mut all = self.all();
        if all.get(&lease.run).is_some_and(|held| Arc::ptr_eq(held, lease)) {
            all.remove(&lease.run);
        }
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Effects in progress.
    pub(crate) fn running(&self) -> usize {
        self.every().iter().map(|lease| lease.running()).sum()
    }
}

/// What performing an effect has come to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Performed {
    Result {
        event: Payload,
        moment: Moment,
    },
    /// Its result doesn't matter here any more.
    Gone,
    /// The holder leaves: the next one performs it.
    Deferred,
}

/// What a lease uses of its backend.
#[derive(Clone)]
pub(crate) struct LeaseTools {
    pub(crate) api: Api,
    pub(crate) blobs: BlobStore,
    pub(crate) names: Names,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) instance: String,
}

/// A run that this process holds, or is about to.
pub(crate) struct Lease {
    pub(crate) run: RunId,
    tools: LeaseTools,
    executor: Arc<dyn Executor>,
    /// `None` until the claim is decided.
    claimed: watch::Sender<Option<HeldRun>>,
    failure: watch::Sender<Option<BackendError>>,
    pub(crate) stop: CancellationToken,
    work: Mutex<Work>,
    /// Changes when a timer's turn is over.
    turns: watch::Sender<u64>,
    attempts: AtomicU64,
}

/// The hold: its epoch, and the run's elapsed time, which advances with this process's monotonic clock.
#[derive(Debug, Clone, Copy)]
struct HeldRun {
    epoch: u64,
    base: Elapsed,
    since: Elapsed,
}

#[derive(Default)]
struct Work {
    running: HashMap<EffectId, Running>,
    tasks: JoinSet<()>,
    done: VecDeque<EffectId>,
    /// Effects that were stopped before they came.
    early: HashMap<EffectId, StopKind>,
    timers: BTreeSet<(Elapsed, EffectId)>,
}

struct Running {
    cancel: CancellationToken,
    result: watch::Receiver<Option<Performed>>,
    task: AbortHandle,
}

impl Lease {
    pub(crate) fn new(
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
        tools: LeaseTools,
    ) -> Self {
        Self {
            run,
            tools,
            executor,
            claimed: watch::Sender::new(None),
            failure: watch::Sender::new(None),
            stop,
            work: Mutex::default(),
            turns: watch::Sender::new(0),
            attempts: AtomicU64::new(0),
        }
    }

    /// The claim was granted.
    pub(crate) fn claimed(&self, epoch: u64, base: Elapsed) {
        let since = self.tools.clock.monotonic();
        self.claimed.send_replace(Some(HeldRun { epoch, base, since }));
    }

    pub(crate) fn epoch(&self) -> Option<u64> {
        self.claimed.borrow().map(|held| held.epoch)
    }

    /// The run's elapsed time.
    pub(crate) fn elapsed(&self) -> Option<Elapsed> {
        let now = self.tools.clock.monotonic();
        self.claimed.borrow().map(|held| held.base.plus_ms(now.since_ms(held.since)))
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { at: self.tools.clock.now(), entropy: fastrand::u64(..), elapsed: self.elapsed() }
    }

    /// This process can't hold the run any more.
    pub(crate) fn fail(&self, error: BackendError) {
        self.failure.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(error);
            is_first
        });
    }

    /// Why this process can't hold the run, if it can't.
    pub(crate) fn failure(&self) -> Option<BackendError> {
        self.failure.borrow().clone()
    }

    pub(crate) async fn failed(&self) -> BackendError {
        let mut failure = self.failure.subscribe();
        if let Ok(known) = failure.wait_for(Option::is_some).await
            && let Some(error) = &*known
        {
            return error.clone();
        }
        std::future::pending().await
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Effects in progress, and those whose results are on their way.
    fn running(&self) -> usize {
        self.work().running.len()
    }

    /// Whether the lease is that of `epoch`, once the claim is decided.
    async fn is_of(&self, epoch: u64) -> bool {
        let mut claimed = self.claimed.subscribe();
        let decided = claimed.wait_for(|held| held.is_some_and(|held| held.epoch >= epoch));
        tokio::select! {
            decided = decided => decided.is_ok_and(|held| held.is_some_and(|held| held.epoch == epoch)),
            () = self.stop.cancelled() => false,
        }
    }

    /// Performs an effect, or waits for it if that is in progress. What a caller that is gone has begun goes on.
    pub(crate) async fn perform(self: &Arc<Self>, order: Order, leases: &Leases) -> Performed {
        if !self.is_of(order.of.epoch).await {
            return Performed::Gone;
        }
        if let Some(due) = order.due {
            return self.wait(order.of.id, due).await;
        }
        let id = order.of.id;
        let mut result = match self.begin(order, leases) {
            Ok(result) => result,
            Err(performed) => return performed,
        };
        let performed = tokio::select! {
            result = result.wait_for(Option::is_some) => result.ok().and_then(|result| result.clone()),
            () = self.stop.cancelled() => Some(Performed::Gone),
        };
        performed.unwrap_or_else(|| {
            // Its task is gone without a result: it was stopped, or it panicked.
            if self.work().running.contains_key(&id) {
                self.fail(BackendError::Storage {
                    attempt: "perform an effect",
                    message: "its task panicked".to_owned(),
                    hint: Some("this is a bug in Provost or in the program that embeds it"),
                });
            }
            Performed::Gone
        })
    }

    fn begin(
        self: &Arc<Self>,
        order: Order,
        leases: &Leases,
    ) -> Result<watch::Receiver<Option<Performed>>, Performed> {
        let id = order.of.id;
        let mut work = self.work();
        if let Some(running) = work.running.get(&id) {
            return Ok(running.result.clone());
        }
        let early = work.early.remove(&id);
        if work.done.contains(&id) || early == Some(StopKind::Close) || self.stop.is_cancelled() {
            return Err(Performed::Gone);
        }
        // Asked with the work locked: what is begun before a drain is seen by it.
        if leases.is_draining() {
            return Err(Performed::Deferred);
        }
        let cancel = CancellationToken::new();
        if order.abort || early == Some(StopKind::Abort) {
            cancel.cancel();
        }
        let (sender, result) = watch::channel(None);
        let (lease, token) = (Arc::clone(self), cancel.clone());
        let task = work.tasks.spawn(async move {
            let performed = lease.execute(order, token).await;
            sender.send_replace(Some(performed));
        });
        work.running.insert(id, Running { cancel, result: result.clone(), task });
        // Tasks that are over are taken out of the set.
        while work.tasks.try_join_next().is_some() {}
        Ok(result)
    }

    async fn execute(&self, order: Order, cancel: CancellationToken) -> Performed {
        match self.try_execute(order, cancel).await {
            Ok(performed) => performed,
            Err(error) => {
                self.fail(error);
                Performed::Gone
            }
        }
    }

    async fn try_execute(&self, order: Order, cancel: CancellationToken) -> Result<Performed, BackendError> {
        if order.permit && !self.may_begin(order.of).await? {
            return Ok(Performed::Gone);
        }
        let effect: Effect = order.effect.read(&self.tools.blobs).await?;
        let event = self.executor.run(order.of.id, effect, cancel).await;
        let event = Payload::of(&event, &self.tools.blobs).await?;
        Ok(Performed::Result { event, moment: self.moment() })
    }

    /// Asks the run's object for the permit to begin; another attempt may have it.
    async fn may_begin(&self, of: EffectOf) -> Result<bool, BackendError> {
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        let attempt = format!("{}-{number}", self.tools.instance);
        let (service, key) = (self.tools.names.run(), run_key(self.run));
        let target = Target { service: &service, key: Some(&key), handler: "begin" };
        let reply: Reply<bool> = self.tools.api.call(target, &BeginRequest { of, attempt }).await?;
        match reply {
            Reply::Done(granted) => Ok(granted),
            Reply::Lost | Reply::Held(_) => Err(BackendError::Conflict { actor: self.run.into() }),
            Reply::Failed(failure) => Err(failure.into()),
        }
    }

    /// Waits until the run's elapsed time is `due`, and for earlier timers whose events are on their way.
    async fn wait(&self, id: EffectId, due: Elapsed) -> Performed {
        if self.work().early.remove(&id).is_some() {
            return Performed::Gone;
        }
        self.work().timers.insert((due, id));
        let waited = async {
            while let Some(left) = self.elapsed().map(|now| due.since_ms(now)).filter(|left| *left > 0) {
                let clock = &self.tools.clock;
                clock.sleep_until(clock.monotonic().plus_ms(left)).await;
            }
            let mut turns = self.turns.subscribe();
            let first = || self.work().timers.first().is_none_or(|first| *first >= (due, id));
            let turn = async { while !first() && turns.changed().await.is_ok() {} };
            // One that never comes must not hold up the others.
            let _ = tokio::time::timeout(TURN_MAX, turn).await;
        };
        tokio::select! {
            () = waited => {}
            () = self.stop.cancelled() => return Performed::Gone,
        }
        if !self.work().timers.contains(&(due, id)) {
            return Performed::Gone;
        }
        match Payload::of(&timer_fired(id), &self.tools.blobs).await {
            Ok(event) => Performed::Result { event, moment: self.moment() },
            Err(error) => {
                self.fail(error);
                Performed::Gone
            }
        }
    }

    /// The event of an effect is decided on, or is no longer awaited; that of a timer for this `due`, or any.
    pub(crate) fn finished(&self, id: EffectId, due: Option<Elapsed>) {
        let mut work = self.work();
        work.running.remove(&id);
        // The run may have set it again by now, for later.
        work.timers.retain(|(at, timer)| *timer != id || due.is_some_and(|due| due != *at));
        work.done.push_back(id);
        if work.done.len() > DONE_MAX {
            work.done.pop_front();
        }
        drop(work);
        self.turns.send_modify(|turn| *turn += 1);
    }

    /// Stops an effect of this lease.
    pub(crate) async fn stop_effect(&self, stop: Stop) {
        let Stop { of: EffectOf { id, epoch }, how } = stop;
        if !self.is_of(epoch).await {
            return;
        }
        {
            let mut work = self.work();
            let is_known =
                work.running.contains_key(&id) || work.timers.iter().any(|(_, timer)| *timer == id);
            if !is_known {
                if !work.done.contains(&id) {
                    work.early.insert(id, how);
                }
                return;
            }
            if let Some(running) = work.running.get(&id) {
                running.cancel.cancel();
            }
            if how == StopKind::Abort {
                return;
            }
            if let Some(running) = work.running.remove(&id) {
                running.task.abort();
            }
        }
        self.finished(id, None);
    }

    /// Drops all effects in progress, and returns them when they are gone.
    pub(crate) async fn end(&self) -> Vec<EffectId> {
        self.stop.cancel();
        let (begun, mut tasks) = {
            let mut work = self.work();
            let begun = work.running.drain().map(|(id, _)| id).collect();
            (begun, std::mem::take(&mut work.tasks))
        };
        tasks.shutdown().await;
        begun
    }
}

fn timer_fired(EffectId { actor, seq }: EffectId) -> Event {
    match actor {
        ActorKey::Run(_) => RunEvent::TimerFired { seq }.into(),
        ActorKey::Session(_) => SessionEvent::TimerFired { seq }.into(),
    }
}
