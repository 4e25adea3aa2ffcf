//! Posts, and reading logs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use provost_engine::{Event, RunEvent};
use provost_event::{ActorKey, Elapsed, Record, RunId, Seq, SessionId};
use provost_harness::{BackendError, Log, PlacedEntry, PlacedRecord, Posted, RunPosition, read_run};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::RestateBackend;
use crate::api::Target;
use crate::deciders::read_log;
use crate::engine::run_key;
use crate::feeds::{Feeds, Following, Subscription};
use crate::pages::{Item, Pages};
use crate::payload::Payload;
use crate::state::actor_of;
use crate::wire::{LogHead, Moment, OrderRow, PostRequest, ReadLog, Reply};

/// How long the holder of a run is asked for the run's elapsed time.
const ELAPSED_WITHIN: Duration = Duration::from_secs(1);
/// The first wait of a subscription that finds nothing new, unless this process knows of something earlier...
const POLLS_AFTER: Duration = Duration::from_millis(40);
/// ... which doubles up to this.
const POLLS_AT_LEAST_EVERY: Duration = Duration::from_millis(640);
/// How often a holder looks for entries that it wasn't told of: it is told of all.
const HOLDER_LOOKS_EVERY: Duration = Duration::from_secs(30);
/// How long an effect waits for entries while the engine can't be reached.
const EFFECTS_WAIT: Duration = Duration::from_secs(600);
/// Entries read at a time.
const READ_AT_ONCE: usize = 256;

impl RestateBackend {
    /// The run's elapsed time by its holder; `None` without one, and while it is silent.
    async fn elapsed_by_holder(&self, run: RunId) -> Result<Option<Elapsed>, BackendError> {
        if let Some(lease) = self.inner.leases.get(run) {
            return Ok(lease.elapsed());
        }
        let Some(owner) = self.standing_of(run).await?.owner else { return Ok(None) };
        if !self.is_alive(&owner).await? {
            return Ok(None);
        }
        let service = self.inner.names.effects(&owner.worker);
        let target = Target { service: &service, key: None, handler: "elapsed" };
        let asked = self.api().read_within::<Option<Elapsed>>(target, &run, ELAPSED_WITHIN).await;
        // The decision doesn't wait for it: the time is then what the log has.
        Ok(asked.inspect_err(|error| tracing::debug!(%run, %error, "the holder is silent")).ok().flatten())
    }

    async fn log(&self, key: ActorKey, after: Seq) -> Result<LogHead, BackendError> {
        let (service, run) = (self.inner.names.run(), run_key(key.run()));
        let target = Target { service: &service, key: Some(&run), handler: "read" };
        self.read_entries(target, &ReadLog { actor: key, after }).await
    }

    /// Reads for a command, or for an effect: that waits longer, as an agent whose log can't be read has failed. The
    /// effects of a worker that has lost their run meanwhile are dropped.
    async fn read_entries<T: DeserializeOwned>(
        &self,
        target: Target<'_>,
        request: &impl Serialize,
    ) -> Result<T, BackendError> {
        match self.identity() {
            Some(_) => self.api().read_for(target, request, EFFECTS_WAIT).await,
            None => self.api().read(target, request).await,
        }
    }

    /// Follows a run or a log from a place on: what this process knows of it, and else what it reads.
    fn follow<T: Send + 'static, At: Copy + Send + 'static, Reading>(
        &self,
        run: RunId,
        from: At,
        known: impl Fn(&Feeds, At) -> Following<T> + Send + Sync + 'static,
        read: impl Fn(Self, At) -> Reading + Send + Sync + 'static,
        place: impl Fn(&T) -> At + Send + 'static,
    ) -> BoxStream<'static, Result<T, BackendError>>
    where
        Reading: Future<Output = Result<Vec<T>, BackendError>> + Send + 'static,
    {
        let subscription = self.inner.feeds.subscribe(run);
        let reader =
            Reader { backend: self.clone(), run, at: from, subscription, read_at: None, wait: POLLS_AFTER };
        stream::unfold((reader, known, read, place), |(mut reader, known, read, place)| async move {
            let found = match reader.next(&known, &read).await {
                Ok(found) => {
                    reader.at = found.last().map_or(reader.at, &place);
                    found.into_iter().map(Ok).collect()
                }
                Err(error) => {
                    tokio::time::sleep(POLLS_AT_LEAST_EVERY).await;
                    vec![Err(error)]
                }
            };
            Some((stream::iter(found), (reader, known, read, place)))
        })
        .flatten()
        .boxed()
    }
}

/// A subscription to a run or a log.
struct Reader<At> {
    backend: RestateBackend,
    run: RunId,
    /// The place of the last entry.
    at: At,
    subscription: Subscription,
    /// As of which change that wasn't told all was read.
    read_at: Option<u64>,
    /// The next wait of a process that isn't told of what is new.
    wait: Duration,
}

impl<At: Copy> Reader<At> {
    /// Waits for the next entries.
    async fn next<T, Reading>(
        &mut self,
        known: &impl Fn(&Feeds, At) -> Following<T>,
        read: &impl Fn(RestateBackend, At) -> Reading,
    ) -> Result<Vec<T>, BackendError>
    where
        Reading: Future<Output = Result<Vec<T>, BackendError>> + Send,
    {
        self.wait = POLLS_AFTER;
        loop {
            let news = *self.subscription.news.borrow_and_update();
            let Following { found, has_gap } = known(&self.backend.inner.feeds, self.at);
            if !found.is_empty() {
                return Ok(found);
            }
            if has_gap || !self.is_told() || self.read_at != Some(news.unknown) {
                let found = read(self.backend.clone(), self.at).await?;
                if !found.is_empty() {
                    return Ok(found);
                }
                self.read_at = Some(news.unknown);
            }
            self.changed(has_gap).await;
        }
    }

    /// Waits until there may be something new.
    async fn changed(&mut self, has_gap: bool) {
        let wait = if self.is_told() && !has_gap {
            HOLDER_LOOKS_EVERY
        } else {
            let wait = self.wait;
            self.wait = (wait * 2).min(POLLS_AT_LEAST_EVERY);
            wait
        };
        if tokio::time::timeout(wait, self.subscription.news.changed()).await.is_err() {
            self.read_at = None;
        }
    }

    /// Whether this process holds the run, and so is told of what is new.
    fn is_told(&self) -> bool {
        self.backend.inner.leases.get(self.run).is_some_and(|lease| lease.epoch().is_some())
    }
}

/// Whether an event starts a run whose files any worker can fetch.
fn has_remote(event: &Event) -> bool {
    match event {
        Event::Run(RunEvent::Start { policy, .. }) => policy.remote.is_some(),
        Event::Run(RunEvent::Fork(request)) => request.policy.remote.is_some(),
        Event::Run(_) | Event::Session(_) => false,
    }
}

#[async_trait]
impl Log for RestateBackend {
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, BackendError> {
        let run = key.run();
        let elapsed = self.elapsed_by_holder(run).await?;
        let holds = self.inner.leases.get(run).and_then(|lease| lease.epoch());
        let moment = Moment { at: self.inner.clock.now(), entropy: fastrand::u64(..), elapsed };
        let request = PostRequest {
            dedup: dedup.map(str::to_owned),
            holds,
            label: self.inner.engine.label.clone().filter(|_| !has_remote(&event)),
            ..PostRequest::new(key, Payload::of(&event, &self.inner.blobs).await?, moment)
        };
        match self.have_decided(run, request).await? {
            Reply::Done(done) => Ok(done.into()),
            Reply::Failed(failure) => Err(failure.into()),
            Reply::Lost | Reply::Held(_) => Err(BackendError::Conflict { actor: run.into() }),
        }
    }

    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        // All that is asked for is known.
        let known = self.inner.feeds.of_log(key, after, max).found;
        if known.len() == max {
            return Ok(known);
        }
        let log = self.log(key, after).await?;
        let records = read_log(key, &log, after, max, &self.inner.blobs).await?;
        Ok(records.into_iter().map(Arc::new).collect())
    }

    async fn newest_snapshot(&self, key: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        let Some(at) = self.log(key, Seq(u64::MAX)).await?.snapshot else { return Ok(None) };
        Ok(self.read(key, Seq(at.0.saturating_sub(1)), 1).await?.into_iter().next())
    }

    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        let standing = self.standing_of(run).await?;
        let own = standing.row.map(|_| ActorKey::Run(run));
        let agents = standing.agents.into_iter().map(|agent| ActorKey::Session(SessionId { run, agent }));
        Ok(own.into_iter().chain(agents).collect())
    }

    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>> {
        let read = move |backend: Self, at: Seq| async move { backend.read(key, at, READ_AT_ONCE).await };
        let known = move |feeds: &Feeds, at: Seq| feeds.of_log(key, at, READ_AT_ONCE);
        self.follow(key.run(), after, known, read, |record: &Arc<Record>| record.seq)
    }

    async fn order(
        &self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        let (service, key) = (self.inner.names.run(), run_key(run));
        let target = Target { service: &service, key: Some(&key), handler: "order" };
        let pages: Pages = self.read_entries(target, &after.0).await?;
        // A row has one entry at least.
        let rows = pages.read(after.0, max, &self.inner.blobs).await?;
        let mut places = Vec::new();
        for Item(last, row) in rows {
            let row: OrderRow = serde_json::from_str(row.get()).map_err(|error| BackendError::Storage {
                attempt: "read the order of a run's entries",
                message: error.to_string(),
                hint: None,
            })?;
            let first = last.saturating_sub(row.count) + 1;
            places.extend((0..row.count).map(|number| PlacedEntry {
                position: RunPosition(first + number),
                actor: actor_of(run, row.agent),
                seq: Seq(row.first.0 + number),
            }));
        }
        places.retain(|place| place.position > after);
        places.truncate(max);
        Ok(places)
    }

    async fn run_head(&self, run: RunId) -> Result<RunPosition, BackendError> {
        Ok(RunPosition(self.standing_of(run).await?.position))
    }

    fn subscribe_run(
        &self,
        run: RunId,
        after: RunPosition,
    ) -> BoxStream<'static, Result<PlacedRecord, BackendError>> {
        let read = move |backend: Self, at: RunPosition| async move {
            read_run(&backend, run, at, READ_AT_ONCE).await
        };
        let known = move |feeds: &Feeds, at: RunPosition| feeds.of_run(run, at, READ_AT_ONCE);
        self.follow(run, after, known, read, |placed: &PlacedRecord| placed.position)
    }
}
