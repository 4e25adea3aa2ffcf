//! The embedded backend: actors in this process, on top of a store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use provost_engine::Event;
use provost_event::{ActorKey, BlobId, Record, RunId, Seq};
use provost_harness::{
    BackendError, Blobs, Catalog, Clock, Executor, Holder, Log, PlacedEntry, PlacedRecord, Posted, RunFilter,
    RunLease, RunPosition, RunQuery, RunStatus, RunSummary, Worker,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::feed::Feed;
use crate::job::{Import, Job, Post, Reply, Unfit};
use crate::queue::{Queue, queue};
use crate::reader::Reader;
use crate::transfer::Imported;
use crate::writer::Writer;
use crate::{RunLeases, SessionStore, StoreReader, StoredRun, serve, subscribe};

/// Runs read at a time where only some of them are asked for.
const LIST_AT_ONCE: usize = 500;

/// The backend of one machine: decides in this process and stores the results in a [`SessionStore`].
///
/// One thread writes, another reads; both end when the last clone, subscription and served run are gone. Several
/// backends, in one process or many, may share one store. A run is decided on by the backend that serves it: a post
/// from another one is a request in the run's [`Mailbox`](crate::Mailbox), which the first one answers at once. Each
/// sees within a quarter of a second what another wrote to the logs that it has subscribed to, and at once in all
/// others.
#[derive(Clone)]
pub struct EmbeddedBackend {
    inner: Arc<Inner>,
    /// Damage found while reading, if damage ends a log instead of failing the read.
    noted: Option<Arc<Mutex<BTreeMap<ActorKey, Damage>>>>,
}

/// Damage of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The actor of the log.
    pub actor: ActorKey,
    /// The first entry that can't be read.
    pub seq: Seq,
    /// Why.
    pub message: String,
}

struct Inner {
    jobs: Arc<Queue<Job>>,
    reader: Reader,
    feed: Arc<Feed>,
    leases: Arc<dyn RunLeases>,
    clock: Arc<dyn Clock>,
}

impl EmbeddedBackend {
    /// A backend on top of `store`, with the time by `clock`.
    ///
    /// # Errors
    /// [`BackendError::Storage`] when the store gives no reader or the system no thread.
    pub fn new(mut store: impl SessionStore, clock: Arc<dyn Clock>) -> Result<Self, BackendError> {
        let reader = Reader::start(store.reader()?)?;
        let (leases, feed) = (store.leases(), Arc::<Feed>::default());
        let (jobs, waiting) = queue();
        let jobs = Arc::new(jobs);
        let writer =
            Writer::new(Box::new(store), Arc::clone(&clock), Arc::clone(&feed), Arc::downgrade(&jobs));
        crate::start_thread("provost-writer", move || writer.work(&waiting))?;
        let inner = Inner { jobs, reader, feed, leases, clock };
        Ok(Self { inner: Arc::new(inner), noted: None })
    }

    /// The same backend for inspection only: a damaged log ends before its first damaged entry, and
    /// [`noted_damage`](Self::noted_damage) reports it.
    #[must_use]
    pub fn noting_damage(self) -> Self {
        Self { noted: Some(Arc::default()), ..self }
    }

    /// The damage found in what was read.
    #[must_use]
    pub fn noted_damage(&self) -> Vec<Damage> {
        let noted = self.noted.iter().flat_map(|noted| {
            noted.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect::<Vec<_>>()
        });
        noted.collect()
    }

    /// Leaves the store so that its files can be copied by themselves: called before a process ends. If other
    /// processes use the store, nothing is done.
    ///
    /// # Errors
    /// When the store can't be written.
    pub async fn settle(&self) -> Result<(), BackendError> {
        self.ask(|reply| Job::Settle { reply }).await
    }

    fn standing(&self) -> Standing {
        Standing { leases: self.leases(), feed: Arc::clone(&self.inner.feed) }
    }

    /// Whether reading ended with damage that is only noted.
    fn note(&self, error: &BackendError) -> bool {
        let (Some(noted), BackendError::Unreadable { actor, seq, message }) = (&self.noted, error) else {
            return false;
        };
        let damage = Damage { actor: *actor, seq: *seq, message: message.clone() };
        noted.lock().unwrap_or_else(PoisonError::into_inner).insert(*actor, damage);
        true
    }

    /// Sends the writer the job that `job` makes of the reply channel.
    pub(crate) async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, BackendError> {
        let (reply, answer) = oneshot::channel();
        self.inner.jobs.send(job(reply)).await?;
        answer.await.map_err(|_| BackendError::Closed)?
    }

    /// Posts, and returns the result.
    pub(crate) async fn send_post(&self, post: Post) -> Result<Posted, BackendError> {
        let post = Box::new(post);
        self.ask(|reply| Job::Post { post, reply }).await
    }

    /// Has the writer check for commits of other processes.
    pub(crate) fn nudge(&self) {
        self.inner.jobs.send_at_once(Job::Look);
    }

    /// Waits until all that this process has committed for `run` is announced, and its effects are under way.
    pub(crate) async fn announced(&self, run: RunId) -> Result<(), BackendError> {
        if self.inner.feed.is_served(run) { self.ask(|reply| Job::Announced { reply }).await } else { Ok(()) }
    }

    /// Imports runs.
    pub(crate) async fn import(&self, import: Import) -> Result<Result<Vec<Imported>, Unfit>, BackendError> {
        self.ask(|reply| Job::Import { import: Box::new(import), reply }).await
    }

    /// The ids of all bodies.
    pub(crate) async fn blobs(&self) -> Result<Vec<BlobId>, BackendError> {
        self.inner.reader.ask(|store| store.blobs()).await
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.inner.feed
    }

    pub(crate) fn leases(&self) -> Arc<dyn RunLeases> {
        Arc::clone(&self.inner.leases)
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.inner.clock)
    }
}

/// The id of a body: its BLAKE3 hash in hexadecimal digits.
#[must_use]
pub fn blob_id(body: &[u8]) -> BlobId {
    BlobId(blake3::hash(body).to_hex().as_str().into())
}

#[async_trait]
impl Blobs for EmbeddedBackend {
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, BackendError> {
        let id = blob_id(&body);
        let kept = id.clone();
        self.ask(|reply| Job::PutBlob { id, body, reply }).await?;
        Ok(kept)
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        let id = id.clone();
        self.inner.reader.ask(move |store| store.get_blob(&id)).await
    }
}

#[async_trait]
impl Log for EmbeddedBackend {
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, BackendError> {
        self.send_post(Post { key, event, dedup: dedup.map(str::to_owned), epoch: None }).await
    }

    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        let live = self.inner.feed.after(key, after, max);
        if !live.is_empty() {
            return Ok(live);
        }
        match self.inner.reader.ask(move |store| store.read(key, after, max)).await {
            Err(error) if self.note(&error) => Ok(Vec::new()),
            read => read,
        }
    }

    async fn newest_snapshot(&self, key: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        self.inner.reader.ask(move |store| store.newest_snapshot(key)).await
    }

    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        self.inner.reader.ask(move |store| store.actors(run)).await
    }

    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>> {
        subscribe::subscribe(self.clone(), key, after)
    }

    async fn order(
        &self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        self.inner.reader.ask(move |store| store.order(run, after, max)).await
    }

    async fn run_head(&self, run: RunId) -> Result<RunPosition, BackendError> {
        self.inner.reader.ask(move |store| store.run_head(run)).await
    }

    fn subscribe_run(
        &self,
        run: RunId,
        after: RunPosition,
    ) -> BoxStream<'static, Result<PlacedRecord, BackendError>> {
        subscribe::subscribe(self.clone(), run, after)
    }
}

#[async_trait]
impl Catalog for EmbeddedBackend {
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, BackendError> {
        let standing = self.standing();
        self.inner.reader.ask(move |store| listed(store, &standing, query)).await
    }

    async fn get(&self, run: RunId) -> Result<Option<RunSummary>, BackendError> {
        let standing = self.standing();
        self.inner.reader.ask(move |store| store.run(run)?.map(|run| standing.summary(run)).transpose()).await
    }

    async fn find(&self, prefix: &str, max: usize) -> Result<Vec<RunSummary>, BackendError> {
        let standing = self.standing();
        let prefix = prefix.to_owned();
        let find = move |store: &mut dyn StoreReader| {
            let found = store.runs_with_prefix(&prefix, max)?.into_iter();
            found.map(|run| standing.summary(run)).collect()
        };
        self.inner.reader.ask(find).await
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        let commits = self.inner.feed.commits();
        // From here on this process checks for commits of other processes.
        self.nudge();
        // The backend goes along: its writer is what looks.
        stream::unfold((commits, self.clone()), |(mut commits, backend)| async {
            commits.next().await.map(|()| ((), (commits, backend)))
        })
        .boxed()
    }
}

#[async_trait]
impl Worker for EmbeddedBackend {
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError> {
        serve::serve(self.clone(), run, executor, stop).await
    }

    async fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        self.inner.leases.holder(run)
    }
}

/// Which runs are being worked on.
struct Standing {
    leases: Arc<dyn RunLeases>,
    feed: Arc<Feed>,
}

impl Standing {
    /// A run as a list shows it.
    fn summary(&self, run: StoredRun) -> Result<RunSummary, BackendError> {
        let status = match run.outcome {
            Some(outcome) => RunStatus::Stopped(outcome),
            None if self.feed.is_served(run.run) || self.leases.is_claimed(run.run)? => RunStatus::Running,
            None => RunStatus::Interrupted,
        };
        let elapsed = match &status {
            RunStatus::Stopped(_) => run.elapsed,
            RunStatus::Running | RunStatus::Interrupted => run.elapsed.max(self.leases.noted(run.run)),
        };
        Ok(RunSummary {
            run: run.run,
            goal: run.goal,
            workspace: run.workspace,
            model: run.model,
            status,
            started_at: run.started_at,
            updated_at: run.updated_at,
            turns: run.turns,
            tokens: run.tokens,
            cost: run.cost,
            uncertain: run.uncertain,
            elapsed,
            damage: run.damage,
        })
    }
}

/// The runs that `query` asks for, read in pages.
fn listed(
    store: &mut dyn StoreReader,
    standing: &Standing,
    query: RunQuery,
) -> Result<Vec<RunSummary>, BackendError> {
    let RunQuery { filter, mut after, max } = query;
    let page = if filter == RunFilter::default() { max } else { LIST_AT_ONCE };
    let mut found = Vec::new();
    loop {
        let runs = store.runs(after, page)?;
        let is_last = runs.len() < page;
        after = runs.last().map(StoredRun::cursor);
        for run in runs {
            let run = standing.summary(run)?;
            if found.len() < max && filter.matches(&run) {
                found.push(run);
            }
        }
        if is_last || found.len() == max {
            return Ok(found);
        }
    }
}
