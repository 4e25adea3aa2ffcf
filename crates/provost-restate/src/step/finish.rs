//! The end of a request: what has changed is written, and what follows from it is sent.

use std::time::Duration;

use provost_event::{ActorKey, EffectId, Timestamp};
use provost_harness::BackendError;
use restate_sdk::context::{ContextClient as _, ContextWriteState as _, RequestTarget, SendHandle};
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;

use super::{Step, StepError};
use crate::engine::{ACTIVE_KEY, INDEX_KEY};
use crate::shared_objects::is_active;
use crate::state::{EffectKind, HEAD, ROW, get, log_key, open_key, part_of};
use crate::wire::{Decided, EffectOf, IndexPhase, IndexPut, Order, Reply, RunRow};

/// Bytes of a log's last entries in the object's state, which are written with each decision.
const LOG_TAIL_BYTES: usize = 32 << 10;
/// The same of the run's order.
const ORDER_TAIL_BYTES: usize = 4 << 10;
/// How long a tool may take beyond its timeout before it counts as hung: its programs are ended first, and what it has
/// changed is pushed where files go by git, after what another agent pushes.
const TOOL_GRACE_MS: u64 = 180_000;

impl Step<'_> {
    /// Writes what has changed, and sends what follows from it.
    pub(crate) async fn finish(mut self) -> Result<(), StepError> {
        self.close_pages().await?;
        let row = self.changed_row().await?;
        let index = self.index_change(row.as_ref()).await?;
        for (actor, loaded) in &self.actors {
            if loaded.log_changed {
                self.ctx.set(&log_key(part_of(*actor)), Json(loaded.log.clone()));
            }
        }
        let orders = self.hand_over().await?;
        for (actor, loaded) in &self.actors {
            let part = part_of(*actor);
            if loaded.open.is_empty() {
                self.head.open.remove(&part)
            } else {
                self.head.open.insert(part)
            };
        }
        let watch = self.next_watch();
        // Readers begin with this: what it names is written.
        self.ctx.set(HEAD, Json(self.head.clone()));
        if let Some(row) = row {
            self.ctx.set(ROW, Json(row));
        }
        if let Some(index) = index {
            let in_active = is_active(&index.key) || index.replaces.as_deref().is_some_and(is_active);
            let lists = [Some(INDEX_KEY), in_active.then_some(ACTIVE_KEY)];
            let puts = lists.into_iter().flatten().map(|list| {
                let target = RequestTarget::object(self.deciders.names.index(), list, "put");
                self.ctx.request::<_, ()>(target, Json(index.clone())).call()
            });
            // All are on their way before one is awaited.
            for put in puts.collect::<Vec<_>>() {
                put.await?;
            }
        }
        self.post_elsewhere().await?;
        let sent = self.send_orders(orders);
        self.send_others(watch);
        for (id, handle) in sent {
            let invocation = handle.await?.invocation_id().to_owned();
            if let Some(open) = self.actors.get_mut(&id.actor).and_then(|loaded| loaded.open.get_mut(&id.seq))
            {
                open.invocation = Some(invocation);
            }
        }
        self.write_open();
        for (actor, loaded) in self.actors {
            if let Some(state) = loaded.state {
                self.deciders.keep(actor, state, loaded.log.version);
            }
        }
        Ok(())
    }

    async fn close_pages(&mut self) -> Result<(), BackendError> {
        for loaded in self.actors.values_mut().filter(|loaded| loaded.log_changed) {
            loaded.log.pages.close_full(LOG_TAIL_BYTES, &self.deciders.blobs).await?;
        }
        self.head.order.close_full(ORDER_TAIL_BYTES, &self.deciders.blobs).await
    }

    /// Takes over into the head how the run stands. Returns its row, if that has changed.
    async fn changed_row(&mut self) -> Result<Option<RunRow>, StepError> {
        if !self.row_changed {
            return Ok(None);
        }
        let run = self.run;
        let Some(status) = self.state(ActorKey::Run(run)).await?.status() else { return Ok(None) };
        let row = RunRow::new(run, status);
        self.head.started = Some((row.started_at, IndexPhase::of(row.outcome.as_ref())));
        Ok(Some(row))
    }

    /// The change of the index, if there is one.
    async fn index_change(&mut self, row: Option<&RunRow>) -> Result<Option<IndexPut>, TerminalError> {
        let Some(key) = self.head.index_entry(self.run).map(|entry| entry.key()) else { return Ok(None) };
        if self.head.listed.as_ref() == Some(&key) {
            return Ok(None);
        }
        let workspace = match row {
            Some(row) => row.workspace.clone(),
            None => get::<RunRow>(self.ctx, ROW).await?.map(|row| row.workspace).unwrap_or_default(),
        };
        let replaces = self.head.listed.replace(key.clone());
        Ok(Some(IndexPut { key, replaces, workspace }))
    }

    /// Marks the effects that are handed to the holder, and returns what it gets.
    async fn hand_over(&mut self) -> Result<Vec<(Order, Option<Duration>)>, TerminalError> {
        let epoch = self.head.epoch;
        let (at, elapsed, lead) = (self.at, self.head.elapsed, self.deciders.timer_lead);
        let overdue_after = u64::try_from(self.deciders.effect_deadline.as_millis()).unwrap_or(u64::MAX);
        let mut orders = Vec::with_capacity(self.orders.len());
        for id in std::mem::take(&mut self.orders) {
            let Some(open) = self.open_to_change(id.actor).await?.get_mut(&id.seq) else { continue };
            open.epoch = Some(epoch);
            open.begun = None;
            let (mut due, mut delay) = (None, None);
            match open.kind {
                EffectKind::Timer { remaining_ms, .. } => {
                    due = Some(elapsed.plus_ms(remaining_ms));
                    delay =
                        Duration::from_millis(remaining_ms).checked_sub(lead).filter(|wait| !wait.is_zero());
                }
                EffectKind::Tool { timeout_ms } => {
                    let after = timeout_ms.saturating_add(TOOL_GRACE_MS).min(overdue_after);
                    open.deadline = Some(at.plus_ms(after));
                }
                EffectKind::Other => open.deadline = Some(at.plus_ms(overdue_after)),
            }
            let order = Order {
                of: EffectOf { id, epoch },
                effect: open.effect.clone(),
                permit: matches!(open.kind, EffectKind::Tool { .. }),
                abort: open.abort,
                due,
            };
            orders.push((order, delay));
        }
        Ok(orders)
    }

    /// Sets when deadlines are looked at next, if that has become earlier. Returns the wait.
    fn next_watch(&mut self) -> Option<(Timestamp, Duration)> {
        let open = self.actors.values().flat_map(|loaded| loaded.open.values());
        let deadlines = open.filter_map(|open| open.deadline).filter(|_| self.head.owner.is_some());
        let earliest = deadlines.chain(self.watch).min()?;
        if self.head.watch.is_some_and(|watch| watch <= earliest) {
            return None;
        }
        self.head.watch = Some(earliest);
        Some((earliest, Duration::from_millis(earliest.since_ms(self.at))))
    }

    /// Has the objects of other runs decide on the messages to them.
    async fn post_elsewhere(&mut self) -> Result<(), TerminalError> {
        for post in std::mem::take(&mut self.elsewhere) {
            let run = post.actor.run();
            let target = RequestTarget::object(self.deciders.names.run(), run.to_string(), "post");
            let request = self.ctx.request::<_, Json<Decided>>(target, Json(vec![post]));
            for reply in request.call().await?.into_inner().replies {
                if let Reply::Failed(failure) = reply {
                    tracing::error!(%run, by = %self.run, ?failure, "a message of another run can't be decided on");
                }
            }
        }
        Ok(())
    }

    fn send_orders(&self, orders: Vec<(Order, Option<Duration>)>) -> Vec<(EffectId, SendHandle)> {
        let Some(owner) = &self.head.owner else { return Vec::new() };
        let service = self.deciders.names.effects(&owner.worker);
        let sent = orders.into_iter().map(|(order, delay)| {
            let id = order.of.id;
            let target = RequestTarget::service(service.clone(), "perform");
            let request = self.ctx.request::<_, ()>(target, Json(order));
            let handle = match delay {
                Some(delay) => request.send_after(delay),
                None => request.send(),
            };
            (id, handle)
        });
        sent.collect()
    }

    fn send_others(&self, watch: Option<(Timestamp, Duration)>) {
        if let Some(owner) = &self.head.owner {
            let service = self.deciders.names.effects(&owner.worker);
            for stop in &self.stops {
                let target = RequestTarget::service(service.clone(), "stop");
                drop(self.ctx.request::<_, ()>(target, Json(*stop)).send());
            }
            if self.tells_holder && !self.appended.is_empty() {
                let target = RequestTarget::service(service, "wake");
                drop(self.ctx.request::<_, ()>(target, Json(self.run)).send());
            }
        }
        if let Some((worker, dismissal)) = &self.dismissed {
            let target = RequestTarget::service(self.deciders.names.effects(worker), "dismiss");
            drop(self.ctx.request::<_, ()>(target, Json(dismissal.clone())).send());
        }
        if !self.kills.is_empty() {
            let target = RequestTarget::service(self.deciders.names.janitor(), "kill");
            drop(self.ctx.request::<_, ()>(target, Json(self.kills.clone())).send());
        }
        if let Some((due, wait)) = watch {
            let target = RequestTarget::object(self.deciders.names.run(), self.run.to_string(), "watch");
            drop(self.ctx.request::<_, ()>(target, Json(due)).send_after(wait));
        }
    }

    fn write_open(&self) {
        for (actor, loaded) in self.actors.iter().filter(|(_, loaded)| loaded.open_changed) {
            let key = open_key(part_of(*actor));
            if loaded.open.is_empty() {
                self.ctx.clear(&key);
            } else {
                self.ctx.set(&key, Json(loaded.open.clone()));
            }
        }
    }
}
