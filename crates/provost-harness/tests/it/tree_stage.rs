//! A stage for trees of agents: a store that dies at a commit, a model and a tool that record the active agents,
//! and interventions.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use provost_backend::{DecoratedStore, EmbeddedBackend, NewEntry, SessionStore, Transactions};
use provost_engine::{Answer, agent_tool};
use provost_event::{
    Access, ActorKey, AgentPolicy, Budget, Json, Limits, ModelFailure, ModelPolicy, Priority, RunId,
    RunPolicy, Seq, SessionId, SpawnBudget, SubAgentPolicy, ToolSpec, ToolSubject,
};
use provost_harness::{
    AgentHarness, BackendError, Clock, DeltaSink, HarnessDeps, Model, ModelRequest, Models, RunPosition,
    SystemClock, Tool, ToolContext, ToolOutput, ToolRegistry,
};
use provost_llm::ScriptedModel;
use provost_sqlite::SqliteStore;
use tokio_util::sync::CancellationToken;

pub(crate) const RUN: RunId = RunId::from_entropy(66);
pub(crate) const MODEL: &str = "script:tree";

// ---- a store that dies --------------------------------------------------------------------------------------------

/// The heads of the run's log after each decision, as they were committed.
pub(crate) type Decisions = Arc<Mutex<Vec<Seq>>>;

/// Transactions of a process that dies at a commit: that one may still be stored, and nothing after it.
pub(crate) struct Mortal {
    decisions: Decisions,
    now: Vec<Seq>,
    /// Commits until then.
    left: Option<u32>,
    keeps_last: bool,
}

impl Mortal {
    pub(crate) fn open(
        path: &Path,
        decisions: Decisions,
        dies_after: Option<u32>,
    ) -> DecoratedStore<SqliteStore, Self> {
        let keeps_last = dies_after.is_some_and(|commits| commits.is_multiple_of(2));
        let mortal = Self { decisions, now: Vec::new(), left: dies_after, keeps_last };
        DecoratedStore::new(SqliteStore::open(path).unwrap(), mortal)
    }

    fn died() -> BackendError {
        BackendError::Storage { attempt: "go on", message: "the process died".into(), hint: None }
    }
}

impl Transactions<SqliteStore> for Mortal {
    fn begin(&mut self, store: &mut SqliteStore) -> Result<(), BackendError> {
        if self.left == Some(0) {
            return Err(Self::died());
        }
        store.begin()
    }

    fn append(
        &mut self,
        store: &mut SqliteStore,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError> {
        if matches!(actor, ActorKey::Run(_)) {
            self.now.extend(entries.last().map(|entry| entry.record.seq));
        }
        store.append(actor, expected, entries)
    }

    fn commit(&mut self, store: &mut SqliteStore) -> Result<(), BackendError> {
        self.left = self.left.map(|left| left.saturating_sub(1));
        let dies = self.left == Some(0);
        if dies && !self.keeps_last {
            return Err(Self::died());
        }
        store.commit()?;
        self.decisions.lock().unwrap().append(&mut self.now);
        if dies { Err(Self::died()) } else { Ok(()) }
    }

    fn rollback(&mut self, store: &mut SqliteStore) {
        self.now.clear();
        store.rollback();
    }
}

// ---- the active agents
// --------------------------------------------------------------------------------------------

/// The agents in a model or tool call at this moment, and the maximum so far.
#[derive(Clone, Default)]
pub(crate) struct AtWork(Arc<Mutex<(HashMap<SessionId, u32>, usize)>>);

impl AtWork {
    fn enter(&self, session: SessionId) -> Leave {
        let mut at_work = self.0.lock().unwrap();
        *at_work.0.entry(session).or_default() += 1;
        at_work.1 = at_work.1.max(at_work.0.len());
        Leave(self.clone(), session)
    }

    pub(crate) fn most(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

struct Leave(AtWork, SessionId);

impl Drop for Leave {
    fn drop(&mut self) {
        let mut at_work = self.0.0.lock().unwrap();
        let left = at_work.0.get_mut(&self.1).unwrap();
        *left -= 1;
        if *left == 0 {
            at_work.0.remove(&self.1);
        }
    }
}

struct Seen(Arc<ScriptedModel>, AtWork);

#[async_trait]
impl Model for Seen {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let _at_work = self.1.enter(request.session);
        self.0.answer(request, deltas, cancel).await
    }
}

pub(crate) struct Act(pub(crate) ToolSpec, pub(crate) AtWork);

#[async_trait]
impl Tool for Act {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: &Json, context: &ToolContext) -> ToolOutput {
        let ActorKey::Session(session) = context.effect.actor else { panic!("a run calls a tool") };
        let _at_work = self.1.enter(session);
        tokio::task::yield_now().await;
        ToolOutput::ok("acted")
    }
}

// ---- the harness --------------------------------------------------------------------------------------------------

pub(crate) fn act() -> ToolSpec {
    ToolSpec {
        name: "act".into(),
        description: String::new(),
        input_schema: Json::empty_object(),
        access: Access::Reads,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: false,
        timeout_ms: 60_000,
        output_bytes_max: 10_000,
    }
}

/// A harness in a separate process, as far as the store can tell.
pub(crate) fn harness(
    store: impl SessionStore,
    model: &Arc<ScriptedModel>,
    at_work: &AtWork,
) -> (AgentHarness, Arc<EmbeddedBackend>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let backend = Arc::new(EmbeddedBackend::new(store, clock).unwrap());
    let models = Models::new().with(MODEL, Arc::new(Seen(Arc::clone(model), at_work.clone())));
    let tools = ToolRegistry::new().with(Act(act(), at_work.clone()));
    (AgentHarness::new(HarnessDeps::new(backend.clone(), models, tools)), backend)
}

/// Agents that have `act` and a tool for a sub-agent of each priority, with this `budget`.
pub(crate) fn policy(spawn: SpawnBudget, budget: fn(Priority) -> Budget) -> RunPolicy {
    let mut tools = vec![act()];
    tools.extend(Priority::ALL.map(|priority| agent_tool(priority.name(), "It does its task.")));
    let limits = Limits { interruptions_max: 1_000, failed_turns_max: 1_000, ..Limits::default() };
    let agent = AgentPolicy {
        system_prompt: "Do your task.".into(),
        tools,
        limits,
        ..AgentPolicy::new(ModelPolicy::new(MODEL, 300), std::env::temp_dir())
    };
    let sub_agent = |priority: Priority| SubAgentPolicy {
        name: priority.name().to_owned(),
        agent: agent.clone(),
        priority,
        budget: budget(priority),
        ask_timeout_ms: None,
        isolation: provost_event::Isolation::Shared,
    };
    RunPolicy { spawn, agents: Priority::ALL.map(sub_agent).into(), ..RunPolicy::new(agent) }
}
