//! The writer's part in serving runs: take-over, the fence, and notifying servers and subscribers of changes.

use provost_engine::{Effect, RunEvent};
use provost_event::{ActorKey, RunId, Timestamp};
use provost_harness::BackendError;
use tokio::sync::mpsc::error::TrySendError;

use super::{Batch, HeldTime, NOTE_EVERY, Owned, Writer};
use crate::OpenEffect;
use crate::decide::Change;
use crate::job::{Order, Orders, Reply, Server, answer, send};

impl Writer {
    pub(super) fn look(&mut self) {
        match self.store.change_marker() {
            Ok(marker) => self.saw(marker),
            Err(error) => tracing::warn!(%error, "can't look for what other processes wrote"),
        }
    }

    pub(super) fn saw(&mut self, marker: u64) {
        if self.marker.replace(marker) != Some(marker) {
            self.cache.distrust();
            self.owned.values_mut().for_each(|owned| owned.verified = false);
            self.outdated = true;
        }
    }

    /// The fence: a run that another process took over isn't touched any more.
    pub(super) fn verify_owner(&mut self, run: RunId) -> Result<(), BackendError> {
        let Some(owned) = self.owned.get_mut(&run).filter(|owned| !owned.verified) else { return Ok(()) };
        if self.store.owner_epoch(run)? == owned.epoch {
            owned.verified = true;
            return Ok(());
        }
        Err(BackendError::Conflict { actor: run.into() })
    }

    /// Stops serving a run whose log can't be read or written: its state may contain what the log doesn't. The
    /// next process that takes it over recovers it.
    pub(super) fn fail_owner(&mut self, run: RunId, error: &BackendError) {
        if let Some(owned) = self.owned.get(&run) {
            owned.server.failure.send_replace(Some(error.clone()));
            self.disown(run);
        }
    }

    pub(super) fn give_up(&mut self, run: RunId, epoch: u64, reply: Reply<()>) {
        if let Some(owned) = self.owned.get(&run).filter(|owned| owned.epoch == epoch) {
            let elapsed = owned.held.at(self.clock.monotonic());
            // The log of a run that was stopped ends with that time.
            match self.cache.get(run.into(), &mut *self.store).map(|state| state.status()) {
                Ok(Some(status)) if status.outcome.is_some() => self.leases.forget_note(run),
                Ok(_) | Err(_) => self.leases.note(run, elapsed),
            }
            self.disown(run);
        }
        send(reply, Ok(()));
    }

    /// Notes the elapsed times of the runs that this process holds, if it is time.
    pub(super) fn note_times(&mut self) {
        let now = self.clock.monotonic();
        let is_due = u128::from(now.since_ms(self.noted_at)) >= NOTE_EVERY.as_millis();
        if self.owned.is_empty() || !is_due {
            return;
        }
        self.noted_at = now;
        for (run, owned) in &self.owned {
            self.leases.note(*run, owned.held.at(now));
        }
    }

    pub(super) fn disown(&mut self, run: RunId) {
        self.owned.remove(&run);
        self.behind.remove(&run);
        self.feed.give_up(run);
    }

    pub(super) fn take_over(
        &mut self,
        run: RunId,
        server: Server,
        reply: Reply<u64>,
        batch: &mut Batch,
    ) -> Result<(), BackendError> {
        let epoch = match self.store.bump_owner_epoch(run) {
            Ok(epoch) => epoch,
            Err(error) => {
                send(reply, Err(error.clone()));
                return Err(error);
            }
        };
        // Before anything else of the run, and as without an owner: effects that this opens are unstarted ones.
        if let Err(error) = self.decide_requests(run, batch) {
            send(reply, Err(error.clone()));
            return Err(error);
        }
        self.outbox.listen();
        batch.taken.push(run);
        let held = HeldTime::begin(self.leases.noted(run), self.clock.monotonic());
        self.owned.insert(run, Owned { epoch, held, verified: true, server });
        self.feed.serve(run);
        match self.recover(run) {
            Ok(changes) => {
                batch.answers.push(answer(reply, epoch));
                self.keep(changes, batch)?;
                let surviving = self.begun_here(run, epoch)?.into_iter();
                let now = self.clock.monotonic();
                let orders = batch.orders.entry(run).or_default();
                orders.extend(surviving.map(|open| Order::Start(open.id, Box::new(open.effect), now)));
                Ok(())
            }
            Err(error) => {
                self.disown(run);
                send(reply, Err(error));
                Ok(())
            }
        }
    }

    /// Recovers the run's actor if its last process left it in the middle.
    pub(super) fn recover(&mut self, run: RunId) -> Result<Vec<Change>, BackendError> {
        let open = self.store.open_effects(run)?;
        let left_undone = open.iter().any(|open| !matches!(open.effect, Effect::Timer { .. }));
        let state = self.cache.get(ActorKey::Run(run), &mut *self.store)?;
        let Some(status) = state.status() else { return Ok(Vec::new()) };
        if status.outcome.is_some() && !left_undone {
            return Ok(Vec::new());
        }
        let is_fresh = |open: &&OpenEffect| open.epoch.is_none();
        let fresh = open.iter().filter(is_fresh).map(|open| open.id).collect();
        Ok(self.decide(run.into(), RunEvent::Recover { fresh }.into())?.changes)
    }

    /// The open effects that this process performs: timers, effects it started, and unstarted ones. Effects that
    /// another process started are left to the actors, which know whether they may be repeated.
    pub(super) fn what_is_ours(&mut self, run: RunId) -> Result<Vec<OpenEffect>, BackendError> {
        let ours = self.owned.get(&run).map(|owned| owned.epoch);
        let mut open = self.store.open_effects(run)?;
        open.retain(|open| {
            matches!(open.effect, Effect::Timer { .. }) || open.epoch.is_none() || open.epoch == ours
        });
        open.iter_mut().for_each(|open| found_in_store(open, self.clock.now()));
        Ok(open)
    }

    /// The open effects that this process performs, each marked as started in our epoch: should we be gone before
    /// its result is stored, it isn't taken for an unstarted one.
    fn begun_here(&mut self, run: RunId, epoch: u64) -> Result<Vec<OpenEffect>, BackendError> {
        let mut open = self.what_is_ours(run)?;
        for open in open.iter_mut().filter(|open| is_unbegun(open)) {
            open.epoch = Some(epoch);
            self.store.put_effect(open)?;
        }
        Ok(open)
    }

    pub(super) fn order(&mut self, run: RunId, orders: Orders) {
        let Some(owned) = self.owned.get(&run) else { return };
        match owned.server.orders.try_send(orders) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.behind.insert(run);
            }
            // Its task was ended from outside, and its lease with it; the next process recovers the run.
            Err(TrySendError::Closed(_)) => self.disown(run),
        }
    }

    /// After a commit of another process: decides on its requests, and updates the ends of the logs. And sends all
    /// open effects to servers that are behind.
    pub(super) fn tell_followers(&mut self) {
        if std::mem::take(&mut self.outdated) {
            self.feed.committed();
            self.empty_mailboxes();
            let followed = self.feed.followed();
            for actor in followed.into_iter().filter(|actor| !self.owned.contains_key(&actor.run())) {
                match self.store.head(actor) {
                    Ok(head) => self.feed.advance(actor, head),
                    Err(error) => tracing::warn!(%error, %actor, "can't look for new entries"),
                }
            }
            let followed = self.feed.followed_runs();
            for run in followed.into_iter().filter(|run| !self.owned.contains_key(run)) {
                match self.store.run_head(run) {
                    Ok(head) => self.feed.advance_run(run, head),
                    Err(error) => tracing::warn!(%error, %run, "can't look for new entries"),
                }
            }
        }
        for run in std::mem::take(&mut self.behind) {
            match self.what_is_ours(run) {
                Ok(open) => self.order(run, Orders::Open(open, self.clock.monotonic())),
                Err(error) => {
                    tracing::warn!(%error, %run, "can't look for what is to be done");
                    self.behind.insert(run);
                }
            }
        }
    }
}

/// Shortens a timer that another process may have set by the time that has passed. Only the wall clock tells that,
/// and it may have been set: it never makes a wait longer.
fn found_in_store(open: &mut OpenEffect, now: Timestamp) {
    let Effect::Timer { due, remaining_ms } = &mut open.effect else { return };
    *remaining_ms = match open.id.actor {
        // The run measures its own time, and returns the rest when asked.
        ActorKey::Run(_) => 0,
        ActorKey::Session(_) => due.since_ms(now).min(*remaining_ms),
    };
}

/// Whether an effect was decided while no process served its run, and hasn't been started since.
fn is_unbegun(open: &OpenEffect) -> bool {
    open.epoch.is_none() && !matches!(open.effect, Effect::Timer { .. })
}
