//! The cache under concurrent agents, in many thread orders of a scheduler.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use provost_engine::{CallModel, Event, View};
use provost_event::{
    ActorKey, AgentPolicy, BlobId, Block, ConversationEntry, Elapsed, Entry, LifecycleEntry, ModelCalled,
    ModelEntry, ModelPolicy, Purpose, Record, RunId, Seq, SessionId, SessionStarted, Timestamp, UserMessage,
};

use super::SessionCache;
use crate::{BackendError, Blobs, Log, PlacedEntry, PlacedRecord, Posted, RunPosition};

/// Number of tried orders.
const ORDERS: usize = 150;
/// Thread switches in the orders with few of them.
const CHANGES: usize = 3;
const AGENTS: u32 = 3;
/// Entries of each agent's log: every second is a model call.
const ENTRIES: u64 = 8;

/// Existing logs; each read lets other threads run.
struct LogFixture(HashMap<ActorKey, Vec<Arc<Record>>>);

impl LogFixture {
    fn full() -> Self {
        let log = |agent| (session(agent).into(), (1..=ENTRIES).map(|seq| record(agent, Seq(seq))).collect());
        Self((0..AGENTS).map(log).collect())
    }
}

fn session(agent: u32) -> SessionId {
    SessionId { run: RunId::from_entropy(7), agent }
}

/// The text of one entry.
fn words(agent: u32, seq: Seq) -> String {
    format!("<{agent} at {seq}>")
}

fn record(agent: u32, seq: Seq) -> Arc<Record> {
    let text = words(agent, seq);
    let entry = if seq == Seq(1) {
        Entry::Lifecycle(LifecycleEntry::SessionStarted(SessionStarted {
            goal: text,
            images: Vec::new(),
            policy: policy(agent),
            parent: None,
            depth: agent,
            call: None,
            agent: None,
            worktree: None,
            fork: None,
            reminder_id: String::new(),
        }))
    } else if seq.0.is_multiple_of(2) {
        Entry::Model(ModelEntry::Called(ModelCalled {
            turn: 1,
            call: 1,
            attempt: 1,
            purpose: Purpose::Turn,
            output_tokens_max: 1_000,
            time_left: None,
        }))
    } else {
        Entry::Conversation(ConversationEntry::UserMessage(UserMessage {
            by: "ann".to_owned(),
            content: vec![Block::Text(text)],
        }))
    };
    Arc::new(Record {
        actor: session(agent).into(),
        seq,
        at: Timestamp(1),
        elapsed: Elapsed::default(),
        entry,
    })
}

/// All agents but the first have the same policy.
fn policy(agent: u32) -> AgentPolicy {
    AgentPolicy {
        system_prompt: format!("agent {}", agent.min(1)),
        ..AgentPolicy::new(ModelPolicy::new("a model", 1_000), std::env::temp_dir())
    }
}

#[async_trait]
impl Blobs for LogFixture {
    async fn put_blob(&self, _: Vec<u8>) -> Result<BlobId, BackendError> {
        Err(BackendError::Closed)
    }
    async fn get_blob(&self, _: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        Err(BackendError::Closed)
    }
}

#[async_trait]
impl Log for LogFixture {
    async fn post(&self, _: ActorKey, _: Event, _: Option<&str>) -> Result<Posted, BackendError> {
        Err(BackendError::Closed)
    }
    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        shuttle::future::yield_now().await;
        let log = self.0.get(&key).into_iter().flatten();
        // Never more than two at once, so that one conversation takes several reads.
        Ok(log.filter(|record| record.seq > after).take(max.min(2)).cloned().collect())
    }
    async fn actors(&self, _: RunId) -> Result<Vec<ActorKey>, BackendError> {
        Err(BackendError::Closed)
    }
    fn subscribe(&self, _: ActorKey, _: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>> {
        Box::pin(futures::stream::empty())
    }
    async fn order(&self, _: RunId, _: RunPosition, _: usize) -> Result<Vec<PlacedEntry>, BackendError> {
        Err(BackendError::Closed)
    }
    async fn run_head(&self, _: RunId) -> Result<RunPosition, BackendError> {
        Err(BackendError::Closed)
    }
    fn subscribe_run(
        &self,
        _: RunId,
        _: RunPosition,
    ) -> BoxStream<'static, Result<PlacedRecord, BackendError>> {
        Box::pin(futures::stream::empty())
    }
}

fn model_call(agent: u32, through: Seq) -> CallModel {
    CallModel {
        policy_since: Seq::START,
        session: session(agent),
        turn: 1,
        through,
        view: View::default(),
        purpose: Purpose::Turn,
        question: None,
        answers_before: 0,
        summaries_before: 0,
        model: String::new(),
        effort: None,
        patience: 1,
        output_tokens_max: 1_000,
    }
}

/// An agent's model calls in sequence: each sees its own log up to the call, completely.
async fn takes_transcript(known: Arc<SessionCache>, backend: Arc<LogFixture>, agent: u32) {
    for through in [2, 6, ENTRIES].map(Seq) {
        let opening = known.opening(&*backend, session(agent)).await.unwrap();
        assert_eq!(*opening.policy, policy(agent));
        let transcript = known.take_transcript(&*backend, &model_call(agent, through), false).await.unwrap();
        assert_eq!(transcript.head(), through);
        let shown = format!("{:?}", transcript.messages());
        let mut expected = (1..through.0).step_by(2).map(|seq| words(agent, Seq(seq)));
        assert!(expected.all(|words| shown.contains(&words)), "{agent} through {through}: {shown}");
        assert_eq!(
            shown.matches(" at ").count() as u64,
            through.0 / 2,
            "nothing twice, nothing of others: {shown}"
        );
        shuttle::future::yield_now().await;
        known.give_back(session(agent), transcript);
    }
}

/// Its hooks and tools, which use the cache concurrently.
async fn acts(known: Arc<SessionCache>, backend: Arc<LogFixture>, agent: u32) {
    let opening = known.opening(&*backend, session(agent)).await.unwrap();
    assert_eq!((opening.agent.depth, &*opening.policy), (agent, &policy(agent)));
    let file = known.log_file(session(agent), provost_event::HookContract::Provost);
    shuttle::future::yield_now().await;
    drop(file);
}

/// Each cached session has exactly one position in the order, and vice versa.
fn is_whole(known: &SessionCache) {
    let sessions = known.sessions();
    assert_eq!(sessions.known.len(), sessions.order.len());
    for (number, session) in &sessions.order {
        assert_eq!(sessions.known.get(session).map(|known| known.number), Some(*number));
    }
}

fn agents_side_by_side() {
    shuttle::future::block_on(async {
        let (known, backend) = (Arc::new(SessionCache::default()), Arc::new(LogFixture::full()));
        let mut tasks = Vec::new();
        for agent in 0..AGENTS {
            tasks.push(shuttle::future::spawn(takes_transcript(known.clone(), backend.clone(), agent)));
            tasks.push(shuttle::future::spawn(acts(known.clone(), backend.clone(), agent)));
        }
        // One of them is dropped concurrently, as happens when there are too many.
        let others = known.clone();
        tasks.push(shuttle::future::spawn(async move { others.forget(session(1)) }));
        for task in tasks {
            task.await.unwrap();
        }
        is_whole(&known);
        assert!(known.sessions().shared.len() <= 2, "a policy is kept once");
        (0..AGENTS).for_each(|agent| known.forget(session(agent)));
        is_whole(&known);
        assert!(known.sessions().known.is_empty(), "nothing is left of those that are forgotten");
    });
}

#[test]
fn every_agent_sees_its_own_conversation_whole_whichever_comes_first() {
    shuttle::check_random(agents_side_by_side, ORDERS);
    shuttle::check_pct(agents_side_by_side, ORDERS, CHANGES);
}
