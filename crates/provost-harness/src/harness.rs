//! The plain interface of the harness, for programs that embed it: start or open a run, take turns until it is
//! done.

mod control;
mod deltas;
mod fork;
mod jobs;
mod policy;
mod resume;
mod tools;
mod worktrees;

pub(crate) use deltas::Deltas;
pub use fork::ForkRequest;
use jobs::Jobs;
pub(crate) use policy::lacks_price;
use policy::unique_hooks;
pub(crate) use tools::LiveTools;
pub use tools::RunTools;
pub use worktrees::RemadeWorktree;

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use provost_engine::{Actor, AgentState, Event, RunEvent, SessionEvent, SessionStatus, check_flow};
use provost_event::{
    ActorKey, Budget, ConversationEntry, Ended, Entry, LifecycleEntry, Outcome, Paused, Record, RunId,
    RunPolicy, Seq, SessionId, StepMode, ToolEntry, WorkspaceBaseline,
};
use tokio_util::sync::CancellationToken;

use crate::executor::{HarnessExecutor, RemoteWorktrees};
use crate::read_back::catch_up;
use crate::session_cache::SessionCache;
use crate::spans::TurnSpans;
use crate::{
    BackendError, Blobs, Goal, HarnessDeps, HarnessError, ObserverReport, PlacedRecord, RunLease,
    RunObservers, RunPosition, workspace,
};

/// Starts and opens runs. Cheap to share; one serves any number of runs at a time.
pub struct AgentHarness {
    deps: Arc<HarnessDeps>,
    known: Arc<SessionCache>,
}

/// The result of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnState {
    /// There is more to do.
    Continue,
    /// The segment has ended with this: the run is suspended or has ended.
    Done(Outcome),
}

/// A request for another segment of a run.
#[derive(Debug, Clone)]
pub struct ResumeRequest {
    /// Who requests it.
    pub by: String,
    /// Limits that replace existing ones.
    pub budget: Budget,
    /// A new turn limit of the root agent.
    pub turns_max: Option<u32>,
    /// A user message to the root agent.
    pub text: Option<String>,
}

impl AgentHarness {
    /// A harness with `deps`.
    #[must_use]
    pub fn new(deps: HarnessDeps) -> Self {
        Self { deps: Arc::new(deps), known: Arc::default() }
    }

    /// Starts a run named `run` on `goal` and serves it in this process. With [`StepMode::Stepped`] it waits for
    /// [`Harness::run_turn`] before each turn; with [`StepMode::Free`] it continues by itself.
    ///
    /// The goal's images are stored beside the log, and every request includes them after the goal's text, until a
    /// compaction leaves them out. If the policy's model doesn't accept images ([`ModelPolicy::images`] is false),
    /// or an image is no longer stored when the conversation is read again, a line of text replaces it; nothing is
    /// rejected.
    ///
    /// [`ModelPolicy::images`]: provost_event::ModelPolicy::images
    ///
    /// The hooks of [`HarnessDeps::hooks`] are put before those of the policy, and the names of
    /// [`HarnessDeps::observers`] after its own.
    ///
    /// # Errors
    /// When the log can't be written or an image can't be stored, the policy contradicts itself, its workflow
    /// can't be run, or two hooks have the same name. Nothing has started then.
    pub async fn start(
        &self,
        run: RunId,
        goal: impl Into<Goal>,
        mut policy: RunPolicy,
    ) -> Result<Harness, HarnessError> {
        let must_be_priced = policy.budget.money.is_some() && !policy.allow_unpriced;
        let agents = policy.agents.iter_mut().map(|one| (Some(one.name.as_str()), &mut one.agent));
        for (name, agent) in [(None, &mut policy.agent)].into_iter().chain(agents) {
            if must_be_priced && lacks_price(agent) {
                return Err(HarnessError::UnknownPrice { model: agent.model.name.clone() });
            }
            agent.hooks.splice(..0, self.deps.hooks.policies_of(name));
            unique_hooks(agent)?;
        }
        if let Some(flow) = &policy.flow {
            let agents = policy.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>();
            check_flow(flow, &agents).into_iter().next().map_or(Ok(()), Err)?;
        }
        for name in self.deps.observers.names() {
            if !policy.observers.iter().any(|known| known == name) {
                policy.observers.push(name.to_owned());
            }
        }
        let remote = RemoteWorktrees::of(&policy, Arc::clone(&self.deps.clock));
        let mut harness = self.claim(run, remote, RunPosition::START, LogPositions::new()).await?;
        harness.step_mode = step_mode_of(&policy);
        let Goal { text, images } = goal.into();
        let mut kept = Vec::with_capacity(images.len());
        for image in &images {
            kept.push(image.keep(&*self.deps.backend).await?);
        }
        let baseline = self.baseline(&policy.agent.workspace).await;
        let start = RunEvent::Start { goal: text, images: kept, policy: Box::new(policy), baseline };
        self.deps.backend.post(run.into(), start.into(), Some("start")).await?;
        Ok(harness)
    }

    /// The files of the workspace of a run that begins.
    async fn baseline(&self, workspace: &Path) -> Option<WorkspaceBaseline> {
        let blobs: &dyn Blobs = &*self.deps.backend;
        let cancel = CancellationToken::new();
        let read = workspace::baseline(workspace, blobs, &self.deps.redactor, &cancel).await;
        read.inspect_err(|error| tracing::debug!(%error, "the files before the run aren't known")).ok()
    }

    /// Opens an existing run and serves it in this process. An interrupted run continues at once; a suspended or
    /// ended one waits for [`Harness::resume`].
    ///
    /// # Errors
    /// [`BackendError::Held`] while another process serves it; [`HarnessError::UnknownRun`];
    /// [`HarnessError::WorktreeGone`] if the worktree of an agent that is to continue is gone and can't be created
    /// again.
    pub async fn open(&self, run: RunId) -> Result<Harness, HarnessError> {
        let (backend, root) = (&*self.deps.backend, SessionId::root(run));
        // Before the logs: what is committed meanwhile is reported, unless these logs had it already.
        let reported = backend.run_head(run).await?;
        let mut run_actor = backend.state(run.into()).await?;
        let mut root_actor = backend.state(root.into()).await?;
        if run_actor.head() == Seq::START {
            return Err(HarnessError::UnknownRun(run));
        }
        let mut seen = LogPositions::from([(run.into(), run_actor.head()), (root.into(), root_actor.head())]);
        let mut live = Vec::new();
        for session in live_below_root(&run_actor) {
            let actor = backend.state(session.into()).await?;
            seen.insert(session.into(), actor.head());
            live.push((session, actor));
        }
        // An interrupted run continues as soon as its lease is acquired.
        let agents = live.iter().map(|(_, actor)| actor).chain([&root_actor]).collect::<Vec<_>>();
        let live = live.iter().map(|(session, actor)| (*session, actor));
        let jobs = live.chain([(root, &root_actor)]).filter_map(|(session, actor)| Jobs::of(session, actor));
        let jobs = jobs.collect::<Vec<_>>();
        let remote = match &run_actor {
            Actor::Run(state) => {
                state.policy().and_then(|policy| RemoteWorktrees::of(policy, Arc::clone(&self.deps.clock)))
            }
            Actor::Session(_) => None,
        };
        // Those with a remote repository come from there.
        let remakes = backend.performs_here() && remote.is_none();
        let remade = if remakes { Self::remake_worktrees(&agents).await? } else { Vec::new() };
        let mut harness = self.claim(run, remote, reported, seen).await?;
        harness.remade = remade;
        harness.tell_of_remade().await?;
        harness.tell_of_ended_jobs(jobs).await?;
        if run_actor.status().is_some_and(|status| status.outcome.is_some()) {
            // Until the lease is acquired, another process may have continued it. An interrupted run is recovered
            // with the lease, and the resulting entries arrive as usual.
            catch_up(backend, run.into(), &mut run_actor).await?;
            catch_up(backend, root.into(), &mut root_actor).await?;
        }
        harness.stands_as(&run_actor, &root_actor);
        Ok(harness)
    }

    /// Acquires the lease on `run` for this process, continuing after `reported`, and after the `seen` entries of its
    /// logs.
    async fn claim(
        &self,
        run: RunId,
        remote: Option<RemoteWorktrees>,
        reported: RunPosition,
        seen: LogPositions,
    ) -> Result<Harness, HarnessError> {
        let backend = &self.deps.backend;
        let observers = Arc::new(self.deps.observers.of_run(run));
        let records = backend.subscribe_run(run, reported);
        let stop = CancellationToken::new();
        let deltas = Arc::new(Deltas::new(self.deps.clone(), observers.clone()));
        let tools = Arc::new(LiveTools::new(self.deps.tools.clone()));
        let turns = Arc::new(TurnSpans::default());
        let executor = HarnessExecutor {
            deps: self.deps.clone(),
            tools: tools.clone(),
            known: self.known.clone(),
            deltas: deltas.clone(),
            turns: turns.clone(),
            remote,
        };
        let serving = backend.serve(run, Arc::new(executor), stop.clone()).await?;
        let mut harness = Harness {
            deps: self.deps.clone(),
            tools,
            sessions: self.known.clone(),
            observers: Watched(observers),
            deltas,
            turns,
            run,
            step_mode: StepMode::Free,
            next_turn: 1,
            outcome: None,
            resumed: Seq::START,
            seen,
            known_to_observers: HashSet::new(),
            remade: Vec::new(),
            records,
            serving,
            _stop: stop.drop_guard(),
        };
        for (actor, seq) in harness.seen.clone() {
            harness.introduce(actor).await?;
            harness.pass_deltas(actor, seq);
        }
        Ok(harness)
    }
}

/// How far each log of a run was reported here; suspensions up to there are over.
type LogPositions = HashMap<ActorKey, Seq>;

/// A run served by this process. Dropping it releases the run as it is, to be opened again later.
pub struct Harness {
    deps: Arc<HarnessDeps>,
    tools: Arc<LiveTools>,
    sessions: Arc<SessionCache>,
    observers: Watched,
    deltas: Arc<Deltas>,
    turns: Arc<TurnSpans>,
    run: RunId,
    step_mode: StepMode,
    next_turn: u32,
    outcome: Option<Outcome>,
    /// Where its own log was last continued by [`Harness::resume`]: an earlier end isn't the end of what follows.
    resumed: Seq,
    seen: LogPositions,
    /// The logs whose first entries the observers have.
    known_to_observers: HashSet<ActorKey>,
    /// The worktrees that were created again when it was opened.
    remade: Vec<RemadeWorktree>,
    /// The entries of all logs, in their order.
    records: BoxStream<'static, Result<PlacedRecord, BackendError>>,
    serving: Box<dyn RunLease>,
    _stop: tokio_util::sync::DropGuard,
}

/// A run's observers, which have got all events when the run is released.
struct Watched(Arc<RunObservers>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Harness {
    fn stands_as(&mut self, run: &Actor, session: &Actor) {
        for (key, actor) in [(self.run.into(), run), (SessionId::root(self.run).into(), session)] {
            self.seen.insert(key, actor.head());
        }
        if let Actor::Run(state) = run {
            self.outcome = state.outcome().cloned();
            self.step_mode = state.policy().map_or(StepMode::Free, step_mode_of);
        }
        if let Actor::Session(state) = session
            && let SessionStatus::BetweenTurns { next } = state.standing()
        {
            self.next_turn = next;
        }
    }

    /// The run's id.
    #[must_use]
    pub const fn run_id(&self) -> RunId {
        self.run
    }

    /// Takes turns until the run is done, or until `cancel` fires: then it is paused, and the outcome says so.
    ///
    /// # Errors
    /// When the log can't be written or read, or another process has taken over the run.
    pub async fn run(&mut self, cancel: &CancellationToken) -> Result<Outcome, HarnessError> {
        loop {
            if let TurnState::Done(outcome) = self.run_turn(cancel).await? {
                return Ok(outcome);
            }
        }
    }

    /// Waits for the end of the next turn; starts it in a stepped run. When `cancel` fires in the meantime the run
    /// is paused.
    ///
    /// # Errors
    /// As [`Harness::run`].
    ///
    /// # Cancellation
    /// Dropping the future loses nothing: the turn continues, and the next call waits for its end.
    pub async fn run_turn(&mut self, cancel: &CancellationToken) -> Result<TurnState, HarnessError> {
        if let Some(outcome) = &self.outcome {
            return Ok(TurnState::Done(outcome.clone()));
        }
        if self.step_mode == StepMode::Stepped {
            self.to_root(SessionEvent::Proceed { turn: self.next_turn }).await?;
        }
        let mut asked_to_pause = false;
        loop {
            let record = tokio::select! {
                record = self.records.next() => record,
                error = self.serving.failed() => return Err(error.into()),
                () = cancel.cancelled(), if !asked_to_pause => {
                    asked_to_pause = true;
                    self.control("the embedding program").pause(None).await?;
                    continue;
                }
            };
            let PlacedRecord { record, .. } = record.unwrap_or(Err(BackendError::Closed))?;
            if let Some(turn) = self.take_in(&record).await? {
                return Ok(turn);
            }
        }
    }

    /// Reports `record` to callback and observers, unless that was done before, and returns the turn state that it
    /// means for the caller.
    async fn take_in(&mut self, record: &Arc<Record>) -> Result<Option<TurnState>, HarnessError> {
        let seen = self.seen.entry(record.actor).or_default();
        if record.seq <= *seen {
            return Ok(None);
        }
        *seen = record.seq;
        self.tell_callback(record);
        self.introduce(record.actor).await?;
        self.observers.0.record(record);
        self.pass_deltas(record.actor, record.seq);
        self.turns.take_in(record);
        match (record.actor, &record.entry) {
            (
                ActorKey::Run(_),
                Entry::Lifecycle(LifecycleEntry::Paused(Paused { outcome }))
                | Entry::Lifecycle(LifecycleEntry::Ended(Ended { outcome })),
            ) if record.seq > self.resumed => Ok(Some(self.done(outcome.clone()).await)),
            (ActorKey::Session(session), Entry::Lifecycle(LifecycleEntry::Ended(_))) => {
                self.forget(session);
                Ok(None)
            }
            (ActorKey::Session(session), Entry::Conversation(ConversationEntry::TurnEnded(ended)))
                if session.agent == 0 =>
            {
                self.next_turn = ended.turn.saturating_add(1);
                let next = self.deps.backend.read(session.into(), record.seq, 1).await?;
                let is_last = matches!(
                    next.first().map(|record| &record.entry),
                    Some(Entry::Lifecycle(
                        LifecycleEntry::Paused(_)
                            | LifecycleEntry::Ended(_)
                            | LifecycleEntry::StopRequested(_)
                    ))
                );
                Ok((!is_last).then_some(TurnState::Continue))
            }
            _ => Ok(None),
        }
    }

    /// Observers are told an agent's place in the tree by its first entry, which may have been reported long ago, to
    /// other observers.
    async fn introduce(&mut self, actor: ActorKey) -> Result<(), HarnessError> {
        if !self.observers.0.is_empty()
            && self.known_to_observers.insert(actor)
            && let Some(first) = self.deps.backend.read(actor, Seq::START, 1).await?.first()
        {
            self.observers.0.learn(first);
        }
        Ok(())
    }

    /// The entries of `actor` up to `seq` were reported, and what waited for them is.
    fn pass_deltas(&self, actor: ActorKey, seq: Seq) {
        if let ActorKey::Session(session) = actor {
            self.deltas.reported(session, seq);
        }
    }

    /// The run is suspended or has ended, and with it all its agents.
    async fn done(&mut self, outcome: Outcome) -> TurnState {
        for actor in self.seen.keys() {
            if let ActorKey::Session(session) = actor {
                self.forget(*session);
            }
        }
        self.outcome = Some(outcome.clone());
        self.observers.0.finish().await;
        TurnState::Done(outcome)
    }

    /// Drops all cached data of a suspended or ended session.
    fn forget(&self, session: SessionId) {
        self.turns.forget(session);
        self.sessions.forget(session);
        self.deltas.forget(session);
        self.tools.session_over(session);
        self.deps.hook_programs.session_over(session);
        self.deps.sandbox.session_over(session);
    }

    fn tell_callback(&self, record: &Arc<Record>) {
        let callback = &*self.deps.callback;
        let told = catch_unwind(AssertUnwindSafe(|| {
            callback.on_record(record);
            if let ActorKey::Session(session) = record.actor {
                match &record.entry {
                    Entry::Tool(ToolEntry::Started(started)) => callback.on_tool_start(session, started),
                    Entry::Tool(ToolEntry::Finished(finished)) => callback.on_tool_end(session, finished),
                    Entry::Conversation(ConversationEntry::TurnEnded(ended)) => {
                        callback.on_turn_end(session, ended)
                    }
                    _ => {}
                }
            }
        }));
        if told.is_err() {
            tracing::warn!(actor = %record.actor, seq = %record.seq, "the callback panicked at an entry");
        }
    }

    /// Releases the run as it is, to be opened again. When this returns, none of its effects run here any more, and another
    /// process may serve it.
    ///
    /// # Cancellation
    /// Dropping the future releases the run soon.
    pub async fn release(self) {
        self.serving.release().await;
    }

    /// What each observer has got since the run was started, opened or resumed here.
    #[must_use]
    pub fn observer_reports(&self) -> Vec<ObserverReport> {
        self.observers.0.reports()
    }

    fn to_run(&self, event: RunEvent) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.post(self.run.into(), Event::Run(event))
    }

    fn to_root(&self, event: SessionEvent) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.post(SessionId::root(self.run).into(), Event::Session(event))
    }

    /// Holds no reference to this harness while it waits: so a run's own future may move between threads.
    fn post(
        &self,
        key: ActorKey,
        event: Event,
    ) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        let backend = Arc::clone(&self.deps.backend);
        async move {
            backend.post(key, event, None).await?;
            Ok(())
        }
    }
}

/// The unfinished agents with a log, except for the root.
fn live_below_root(run: &Actor) -> Vec<SessionId> {
    let Actor::Run(state) = run else { return Vec::new() };
    let has_log = |standing: &AgentState| !matches!(standing, AgentState::Finished(_) | AgentState::Queued);
    let live = state.agents().filter(|agent| agent.session.agent != 0 && has_log(&agent.standing));
    live.map(|agent| agent.session).collect()
}

/// Only a root agent supports waiting turn by turn.
fn step_mode_of(policy: &RunPolicy) -> StepMode {
    if policy.flow.is_some() { StepMode::Free } else { policy.agent.step_mode }
}
