//! A whole run with a provider, and access to its results.

use std::sync::Arc;
use std::time::Duration;

use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::Actor;
use provost_event::{
    CompactionKind, ConversationEntry, Entry, ModelEntry, Outcome, Record, RetryCause, RunPolicy, Seq,
};
use provost_harness::{Backend, SystemClock};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::long_job::{GOAL, Job};
use super::long_provider::{Counting, Interference, Provider, Seen};
use super::long_stage::{RUN, SESSION, harness, policy};

pub(crate) const DONE: Outcome = Outcome::UNVERIFIED;
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A run to be played.
pub(crate) struct Trial {
    pub(crate) job: Job,
    pub(crate) counting: Counting,
    /// The window in the policy.
    pub(crate) known: Option<u64>,
    pub(crate) interference: Option<Interference>,
    /// Further changes of the policy.
    pub(crate) bound: fn(&mut RunPolicy),
}

/// A finished run.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) seen: Seen,
    pub(crate) log: Vec<Arc<Record>>,
    /// Tokens charged to the run.
    pub(crate) charged: u64,
}

impl Trial {
    pub(crate) fn new(job: Job, counting: Counting) -> Self {
        Self { job, counting, known: Some(counting.window), interference: None, bound: |_| {} }
    }

    pub(crate) async fn run(self) -> Ran {
        let tokenizer = tiktoken_rs::cl100k_base_singleton();
        let mut provider = Provider::new(self.job, self.counting, tokenizer);
        if let Some(interference) = self.interference {
            provider = provider.interfered(interference);
        }
        let provider = Arc::new(provider);
        let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).unwrap());
        let mut policy = policy(self.known, &std::env::temp_dir());
        (self.bound)(&mut policy);
        let mut run = harness(backend.clone(), provider.clone()).start(RUN, GOAL, policy).await.unwrap();
        let ends = timeout(DEADLINE, run.run(&CancellationToken::new())).await;
        let outcome = ends.expect("it ends").unwrap();
        let seen = std::mem::take(&mut *provider.seen.lock().unwrap());
        Ran { outcome, seen, log: read_log(&*backend).await, charged: charged(&*backend).await }
    }
}

impl Ran {
    /// It reached its end, every invariant held, and every token is charged.
    #[track_caller]
    pub(crate) fn went_well(&self) {
        assert_eq!(self.outcome, DONE, "{}", self.seen.figures());
        self.kept_the_laws();
    }

    /// Every invariant held, and every token is charged.
    #[track_caller]
    pub(crate) fn kept_the_laws(&self) {
        assert_eq!(self.seen.faults, [""; 0]);
        assert_eq!(self.charged, self.seen.reported.total());
    }

    pub(crate) fn compactions(&self, how: CompactionKind) -> usize {
        let is = |entry: &&Entry| matches!(entry, Entry::Conversation(ConversationEntry::Compacted(made)) if made.how == how);
        self.entries().filter(is).count()
    }

    /// Why summaries weren't usable.
    pub(crate) fn useless(&self) -> Vec<&str> {
        let why = self.entries().filter_map(|entry| match entry {
            Entry::Model(ModelEntry::Retried(retry)) => match &retry.cause {
                RetryCause::UselessSummary { why } => Some(why.as_str()),
                _ => None,
            },
            _ => None,
        });
        why.collect()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.log.iter().map(|record| &record.entry)
    }
}

pub(crate) async fn read_log(backend: &dyn Backend) -> Vec<Arc<Record>> {
    let mut log = Vec::<Arc<Record>>::new();
    loop {
        let head = log.last().map_or(Seq::START, |last| last.seq);
        let more = backend.read(SESSION.into(), head, 1_000).await.unwrap();
        if more.is_empty() {
            return log;
        }
        log.extend(more);
    }
}

/// Tokens charged to the run.
pub(crate) async fn charged(backend: &dyn Backend) -> u64 {
    match backend.state(RUN.into()).await.unwrap() {
        Actor::Run(run) => run.ledger().tokens,
        Actor::Session(_) => panic!("it is a run"),
    }
}
