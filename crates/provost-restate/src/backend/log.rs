//! Posts, and reading logs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use provost_engine::{Actor, Event, RunEvent};
use provost_event::{ActorKey, Elapsed, Record, RunId, Seq, SessionId};
use provost_harness::{BackendError, Log, PlacedEntry, PlacedRecord, Posted, RunPosition, read_run};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::RestateBackend;
use crate::api::Target;
use crate::deciders::{read_log, restore};
use crate::engine::run_key;
use crate::feeds::{Feeds, Following, Subscription};
use crate::pages::{Item, Pages};
use crate::payload::Payload;
use crate::state::{OpenEffects, actor_of};
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

    /// Follows a run or a log from a place on.
    fn follow<S: Source>(&self, source: S, at: S::At) -> BoxStream<'static, Result<S::Entry, BackendError>> {
        let subscription = self.inner.feeds.subscribe(source.run());
        let backend = self.clone();
        let reader = Reader { backend, source, at, subscription, read_at: None, wait: POLLS_AFTER };
        stream::unfold(reader, |mut reader| async move {
            let found = match reader.next().await {
                Ok(found) => {
                    reader.at = found.last().map_or(reader.at, S::place);
                    found.into_iter().map(Ok).collect()
                }
                Err(error) => {
                    tokio::time::sleep(POLLS_AT_LEAST_EVERY).await;
                    vec![Err(error)]
                }
            };
            Some((stream::iter(found), reader))
        })
        .flatten()
        .boxed()
    }
}

/// What can be followed: a log, or all logs of a run.
trait Source: Send + Sync + 'static {
    type Entry: Send + 'static;
    type At: Copy + Send + Sync;

    fn run(&self) -> RunId;
    fn place(entry: &Self::Entry) -> Self::At;
    /// The next entries as this process knows them.
    fn known(&self, feeds: &Feeds, at: Self::At) -> Following<Self::Entry>;
    /// The next entries as the engine has them.
    fn read(
        &self,
        backend: &RestateBackend,
        at: Self::At,
    ) -> impl Future<Output = Result<Vec<Self::Entry>, BackendError>> + Send;
}

struct OneLog(ActorKey);

impl Source for OneLog {
    type Entry = Arc<Record>;
    type At = Seq;

    fn run(&self) -> RunId {
        self.0.run()
    }

    fn place(entry: &Arc<Record>) -> Seq {
        entry.seq
    }

    fn known(&self, feeds: &Feeds, at: Seq) -> Following<Arc<Record>> {
        feeds.of_log(self.0, at, READ_AT_ONCE)
    }

    async fn read(&self, backend: &RestateBackend, at: Seq) -> Result<Vec<Arc<Record>>, BackendError> {
        backend.read(self.0, at, READ_AT_ONCE).await
    }
}

struct AllLogs(RunId);

impl Source for AllLogs {
    type Entry = PlacedRecord;
    type At = RunPosition;

    fn run(&self) -> RunId {
        self.0
    }

    fn place(entry: &PlacedRecord) -> RunPosition {
        entry.position
    }

    fn known(&self, feeds: &Feeds, at: RunPosition) -> Following<PlacedRecord> {
        feeds.of_run(self.0, at, READ_AT_ONCE)
    }

    async fn read(
        &self,
        backend: &RestateBackend,
        at: RunPosition,
    ) -> Result<Vec<PlacedRecord>, BackendError> {
        read_run(backend, self.0, at, READ_AT_ONCE).await
    }
}

/// A subscription to a run or a log.
struct Reader<S: Source> {
    backend: RestateBackend,
    source: S,
    /// The place of the last entry.
    at: S::At,
    subscription: Subscription,
    /// As of which change that wasn't told all was read.
    read_at: Option<u64>,
    /// The next wait of a process that isn't told of what is new.
    wait: Duration,
}

impl<S: Source> Reader<S> {
    /// Waits for the next entries.
    async fn next(&mut self) -> Result<Vec<S::Entry>, BackendError> {
        self.wait = POLLS_AFTER;
        loop {
            let news = *self.subscription.news.borrow_and_update();
            let Following { found, has_gap } = self.source.known(&self.backend.inner.feeds, self.at);
            if !found.is_empty() {
                return Ok(found);
            }
            if has_gap || !self.is_told() || self.read_at != Some(news.unknown) {
                let found = self.source.read(&self.backend, self.at).await?;
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
        let lease = self.backend.inner.leases.get(self.source.run());
        lease.is_some_and(|lease| lease.epoch().is_some())
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

    async fn state(&self, key: ActorKey) -> Result<Actor, BackendError> {
        let log = self.log(key, Seq::START).await?;
        restore(key, &log, &OpenEffects::default(), &self.inner.blobs).await
    }

    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        let standing = self.standing_of(run).await?;
        let own = standing.row.map(|_| ActorKey::Run(run));
        let agents = standing.agents.into_iter().map(|agent| ActorKey::Session(SessionId { run, agent }));
        Ok(own.into_iter().chain(agents).collect())
    }

    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>> {
        self.follow(OneLog(key), after)
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
        self.follow(AllLogs(run), after)
    }
}
