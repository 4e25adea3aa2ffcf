//! The task that has the effects of one run performed: starts them, stops them, fires timers, posts results.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::HashMap;
use futures::future::BoxFuture;
use provost_engine::{Effect, Event, RunEvent, SessionEvent};
use provost_event::{ActorKey, EffectId, Elapsed, Seq};
use provost_harness::{BackendError, Executor};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::EmbeddedBackend;
use crate::job::{Order, Orders, Post};
use crate::store::OpenEffect;

/// Who performs a run's effects.
pub(super) struct Performing {
    pub(super) backend: EmbeddedBackend,
    pub(super) executor: Arc<dyn Executor>,
    /// The owner's epoch of the run.
    pub(super) epoch: u64,
}

pub(super) struct Task {
    backend: EmbeddedBackend,
    executor: Arc<dyn Executor>,
    epoch: u64,
    orders: mpsc::Receiver<Orders>,
    failure: watch::Receiver<Option<BackendError>>,
    tasks: JoinSet<Result<Done, BackendError>>,
    /// Every started effect, until the log has closed it: none is started twice.
    begun: HashMap<EffectId, Begun>,
    /// Timers with their ends by the process's monotonic clock.
    timers: BTreeSet<(Elapsed, EffectId)>,
    alarm: Option<(Elapsed, BoxFuture<'static, ()>)>,
    /// Whether timers are being posted; the next ones wait for them, so that they are posted in order.
    firing: bool,
}

enum Begun {
    Running { cancel: CancellationToken, task: AbortHandle },
    Timer { due: Elapsed },
}

enum Done {
    Effect,
    Timers,
}

impl Task {
    pub(super) fn new(
        Performing { backend, executor, epoch }: Performing,
        orders: mpsc::Receiver<Orders>,
        failure: watch::Receiver<Option<BackendError>>,
    ) -> Self {
        Self {
            backend,
            executor,
            epoch,
            orders,
            failure,
            tasks: JoinSet::new(),
            begun: HashMap::default(),
            timers: BTreeSet::new(),
            alarm: None,
            firing: false,
        }
    }

    /// Works until `stop` fires, or until a failure, which it returns.
    pub(super) async fn work(&mut self, stop: &CancellationToken) -> Option<BackendError> {
        loop {
            self.set_alarm();
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                error = failed(&mut self.failure) => return Some(error),
                Some(orders) = self.orders.recv() => self.follow(orders),
                Some(done) = self.tasks.join_next() => if let Err(error) = self.finish(done) {
                    return Some(error);
                },
                () = ring(&mut self.alarm) => self.fire(),
            }
        }
    }

    /// Drops all running effects, and returns when they are gone.
    pub(super) async fn end(&mut self) {
        self.orders.close();
        self.tasks.shutdown().await;
    }

    fn follow(&mut self, orders: Orders) {
        match orders {
            Orders::Changed(orders) => orders.into_iter().for_each(|order| match order {
                Order::Start(id, effect, now) => self.begin(id, *effect, now),
                Order::Abort(id) => self.abort(id),
                Order::Close(id) => self.close(id),
            }),
            Orders::Open(open, now) => self.compare(open, now),
        }
    }

    /// Adjusts the running effects to those open in the store.
    fn compare(&mut self, open: Vec<OpenEffect>, now: Elapsed) {
        let named = open.iter().map(|open| open.id).collect::<BTreeSet<_>>();
        let over = self.begun.keys().filter(|id| !named.contains(id)).copied().collect::<Vec<_>>();
        over.into_iter().for_each(|id| self.close(id));
        for OpenEffect { id, effect, abort, .. } in open {
            self.begin(id, effect, now);
            if abort {
                self.abort(id);
            }
        }
    }

    /// Starts an effect; a timer as of `now`.
    fn begin(&mut self, id: EffectId, effect: Effect, now: Elapsed) {
        if self.begun.contains_key(&id) {
            return;
        }
        if let Effect::Timer { remaining_ms, .. } = effect {
            return self.begin_timer(id, now.plus_ms(remaining_ms));
        }
        let cancel = CancellationToken::new();
        let backend = self.backend.clone();
        let executor = Arc::clone(&self.executor);
        let token = cancel.clone();
        let epoch = self.epoch;
        let task = self.tasks.spawn(async move {
            let event = executor.run(id, effect, token).await;
            backend.send_post(result_of(id, event, epoch)).await.map(|_| Done::Effect)
        });
        self.begun.insert(id, Begun::Running { cancel, task });
    }

    fn begin_timer(&mut self, id: EffectId, due: Elapsed) {
        self.timers.insert((due, id));
        self.begun.insert(id, Begun::Timer { due });
    }

    fn abort(&self, id: EffectId) {
        if let Some(Begun::Running { cancel, .. }) = self.begun.get(&id) {
            cancel.cancel();
        }
    }

    fn close(&mut self, id: EffectId) {
        match self.begun.remove(&id) {
            Some(Begun::Running { cancel, task }) => {
                cancel.cancel();
                // Its result is ignored from here on. If that result closed the effect, there is nothing to abort.
                task.abort();
            }
            Some(Begun::Timer { due }) => {
                self.timers.remove(&(due, id));
            }
            None => {}
        }
    }

    fn finish(&mut self, done: Result<Result<Done, BackendError>, JoinError>) -> Result<(), BackendError> {
        match done {
            Ok(Ok(Done::Effect)) => Ok(()),
            Ok(Ok(Done::Timers)) => {
                self.firing = false;
                Ok(())
            }
            Ok(Err(error)) => Err(error),
            Err(error) if error.is_panic() => Err(BackendError::Storage {
                attempt: "perform an effect",
                message: "its task panicked".to_owned(),
                hint: Some("this is a bug in Provost or in the program that embeds it"),
            }),
            Err(_cancelled) => Ok(()),
        }
    }

    fn set_alarm(&mut self) {
        let next = self.timers.first().map(|(due, _)| *due).filter(|_| !self.firing);
        if next == self.alarm.as_ref().map(|(due, _)| *due) {
            return;
        }
        self.alarm = next.map(|due| {
            let clock = self.backend.clock();
            let wait: BoxFuture<'static, ()> = Box::pin(async move { clock.sleep_until(due).await });
            (due, wait)
        });
    }

    fn fire(&mut self) {
        self.alarm = None;
        let now = self.backend.clock().monotonic();
        let mut due = Vec::new();
        while let Some((_, id)) = self.timers.first().filter(|(due, _)| *due <= now).copied() {
            self.timers.pop_first();
            due.push(id);
        }
        self.firing = true;
        let backend = self.backend.clone();
        let epoch = self.epoch;
        self.tasks.spawn(async move {
            for id in due {
                backend.send_post(result_of(id, timer_fired(id), epoch)).await?;
            }
            Ok(Done::Timers)
        });
    }
}

/// The result of an effect, which counts only while this process serves the run.
const fn result_of(id: EffectId, event: Event, epoch: u64) -> Post {
    Post { key: id.actor, event, dedup: None, epoch: Some(epoch) }
}

fn timer_fired(EffectId { actor, seq }: EffectId) -> Event {
    let fired = |seq: Seq| match actor {
        ActorKey::Run(_) => RunEvent::TimerFired { seq }.into(),
        ActorKey::Session(_) => SessionEvent::TimerFired { seq }.into(),
    };
    fired(seq)
}

/// Waits for the alarm; forever without one.
async fn ring(alarm: &mut Option<(Elapsed, BoxFuture<'static, ()>)>) {
    match alarm {
        Some((_, wait)) => wait.await,
        None => std::future::pending().await,
    }
}

/// Waits until a failure is known.
pub(super) async fn failed(failure: &mut watch::Receiver<Option<BackendError>>) -> BackendError {
    if let Ok(known) = failure.wait_for(Option::is_some).await
        && let Some(error) = &*known
    {
        return error.clone();
    }
    std::future::pending().await
}
