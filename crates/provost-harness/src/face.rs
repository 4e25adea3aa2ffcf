//! The plain face of the harness, for programs that embed it: start a run or open one, take turns until it is done.

mod fork;
mod wishes;
mod worktrees;

pub use fork::ForkRequest;
pub use worktrees::RemadeWorktree;

use std::collections::hash_map;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll};
use provost_engine::{Actor, AgentStanding, Event, RunEvent, SessionEvent, Standing, check_flow};
use provost_event::{
    ActorKey, AgentPolicy, Budget, Ended, Entry, Outcome, Pace, Paused, Record, RunId, RunPolicy, Seq,
    SessionId,
};
use tokio_util::sync::CancellationToken;

use crate::executor::HarnessExecutor;
use crate::known::Known;
use crate::read_back::{catch_up, read_actor};
use crate::{Goal, HarnessDeps, HarnessError, HomeError, ObserverReport, RunObservers, Serving};

/// Starts and opens runs. Cheap to share; one serves any number of runs at a time.
pub struct AgentHarness {
    deps: Arc<HarnessDeps>,
    known: Arc<Known>,
}

/// What one turn came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnState {
    /// There is more to do.
    Continue,
    /// The segment has ended with this: the run is suspended or has ended.
    Done(Outcome),
}

/// What another segment of a run begins with.
#[derive(Debug, Clone)]
pub struct ResumeRequest {
    /// Who asks for it.
    pub by: String,
    /// Limits that replace those of the same name.
    pub budget: Budget,
    /// A new limit of the root agent's turns.
    pub turns_max: Option<u32>,
    /// What is said to the root agent, as somebody's words.
    pub text: Option<String>,
}

impl AgentHarness {
    /// A harness over `deps`.
    #[must_use]
    pub fn new(deps: HarnessDeps) -> Self {
        Self { deps: Arc::new(deps), known: Arc::default() }
    }

    /// Starts a run named `run` on `goal` and works on it in this process. With [`Pace::Stepped`] it waits for
    /// [`Harness::run_turn`] before each turn; with [`Pace::Free`] it goes on by itself.
    ///
    /// The goal's images are kept beside the log, and the model is shown them behind the goal's text with every
    /// request, until a compaction leaves them out. If the policy's model can't see ([`ModelPolicy::images`]
    /// is false), or an image is no longer kept when the conversation is read again, a line of text that says
    /// so stands for it; nothing is refused.
    ///
    /// [`ModelPolicy::images`]: provost_event::ModelPolicy::images
    ///
    /// The hooks of [`HarnessDeps::hooks`] are put before those of the policy, and the names of
    /// [`HarnessDeps::observers`] behind its own.
    ///
    /// # Errors
    /// When the log can't be written or an image not be kept, the policy contradicts itself, its flow can't be gone
    /// through, or two hooks have the same name. Nothing has started then.
    pub async fn start(
        &self,
        run: RunId,
        goal: impl Into<Goal>,
        mut policy: RunPolicy,
    ) -> Result<Harness, HarnessError> {
        let must_be_priced = policy.budget.money.is_some() && !policy.allow_unpriced;
        let agents = policy.agents.iter_mut().map(|sub_agent| &mut sub_agent.agent);
        for agent in [&mut policy.agent].into_iter().chain(agents) {
            if must_be_priced && agent.model.price.is_none() {
                return Err(HarnessError::UnknownPrice { model: agent.model.name.clone() });
            }
            agent.hooks.splice(..0, self.deps.hooks.policies());
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
        let mut harness = self.claim(run, Seen::from([(run.into(), Seq::START)])).await?;
        harness.pace = pace_of(&policy);
        let Goal { text, images } = goal.into();
        let mut kept = Vec::with_capacity(images.len());
        for image in &images {
            kept.push(image.keep(&*self.deps.home).await?);
        }
        let start = RunEvent::Start { goal: text, images: kept, policy: Box::new(policy) };
        self.deps.home.post(run.into(), start.into(), Some("start")).await?;
        Ok(harness)
    }

    /// Opens a run that is there and works on it in this process. One that was interrupted goes on at once; one
    /// that is suspended or has ended waits for [`Harness::resume`].
    ///
    /// # Errors
    /// [`HomeError::Held`] while another process works on it; [`HarnessError::UnknownRun`];
    /// [`HarnessError::WorktreeGone`] where the worktree of an agent that is to go on isn't there any more and can't be
    /// made again.
    pub async fn open(&self, run: RunId) -> Result<Harness, HarnessError> {
        let (home, root) = (&*self.deps.home, SessionId::root(run));
        let mut run_actor = read_actor(home, run.into()).await?;
        let mut root_actor = read_actor(home, root.into()).await?;
        if run_actor.head() == Seq::START {
            return Err(HarnessError::UnknownRun(run));
        }
        let mut seen = Seen::from([(run.into(), run_actor.head()), (root.into(), root_actor.head())]);
        let mut live = Vec::new();
        for session in live_below_root(&run_actor) {
            let actor = read_actor(home, session.into()).await?;
            seen.insert(session.into(), actor.head());
            live.push(actor);
        }
        // One that was interrupted goes on as soon as it is claimed.
        let agents = live.iter().chain([&root_actor]).collect::<Vec<_>>();
        let remade = Self::remake_worktrees(&agents).await?;
        let mut harness = self.claim(run, seen).await?;
        harness.remade = remade;
        harness.tell_of_remade().await?;
        if run_actor.status().is_some_and(|status| status.outcome.is_some()) {
            // Until the claim somebody else may have gone on with it. One that wasn't at rest is recovered by the
            // claim, and what comes of that is told as it comes.
            catch_up(home, run.into(), &mut run_actor).await?;
            catch_up(home, root.into(), &mut root_actor).await?;
        }
        harness.stands_as(&run_actor, &root_actor);
        Ok(harness)
    }

    /// Claims `run` for this process, to go on from what is `seen` of its logs.
    async fn claim(&self, run: RunId, mut seen: Seen) -> Result<Harness, HarnessError> {
        let home = &self.deps.home;
        let observers = Arc::new(self.deps.observers.of_run(run));
        seen.entry(SessionId::root(run).into()).or_insert(Seq::START);
        let mut records = SelectAll::new();
        for (actor, head) in &seen {
            records.push(until_over(home.subscribe(*actor, *head)));
            // Where an agent stands is told by its first entry, which may have been told long ago.
            if !head.is_start() && !observers.is_empty() {
                home.read(*actor, Seq::START, 1).await?.iter().for_each(|first| observers.learn(first));
            }
        }
        let stop = CancellationToken::new();
        let executor = HarnessExecutor {
            deps: self.deps.clone(),
            known: self.known.clone(),
            observers: observers.clone(),
        };
        let serving = home.serve(run, Arc::new(executor), stop.clone()).await?;
        Ok(Harness {
            deps: self.deps.clone(),
            sessions: self.known.clone(),
            observers: Watched(observers),
            run,
            pace: Pace::Free,
            next_turn: 1,
            outcome: None,
            seen,
            over: HashSet::new(),
            remade: Vec::new(),
            records,
            serving,
            _stop: stop.drop_guard(),
        })
    }
}

/// How far each log of a run was told here; rests up to there are over.
type Seen = HashMap<ActorKey, Seq>;

/// A log as it is followed.
type Records = BoxStream<'static, Result<Arc<Record>, HomeError>>;

/// Entries read at a time.
const READ_MAX: usize = 1_000;

/// A run that this process works on. Dropping it gives the run up as it is, to be opened again later.
pub struct Harness {
    deps: Arc<HarnessDeps>,
    sessions: Arc<Known>,
    observers: Watched,
    run: RunId,
    pace: Pace,
    next_turn: u32,
    outcome: Option<Outcome>,
    seen: Seen,
    /// The agents whose whole logs were told.
    over: HashSet<SessionId>,
    /// The worktrees that were made again when it was opened.
    remade: Vec<RemadeWorktree>,
    records: SelectAll<Records>,
    serving: Box<dyn Serving>,
    _stop: tokio_util::sync::DropGuard,
}

/// A run's observers, which have seen all when their run is given up.
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
            self.pace = state.policy().map_or(Pace::Free, pace_of);
        }
        if let Actor::Session(state) = session
            && let Standing::BetweenTurns { next } = state.standing()
        {
            self.next_turn = next;
        }
    }

    /// The run's name.
    #[must_use]
    pub const fn run_id(&self) -> RunId {
        self.run
    }

    /// Takes turns until the run is done, or until `cancel` fires: then it is paused, and the outcome says so.
    ///
    /// # Errors
    /// When the log can't be written or read, or another process has taken the run over.
    pub async fn run(&mut self, cancel: &CancellationToken) -> Result<Outcome, HarnessError> {
        loop {
            if let TurnState::Done(outcome) = self.run_turn(cancel).await? {
                return Ok(outcome);
            }
        }
    }

    /// Waits for the end of the next turn; in a stepped run, lets it be taken. When `cancel` fires meanwhile the
    /// run is paused.
    ///
    /// # Errors
    /// As [`Harness::run`].
    ///
    /// # Cancellation
    /// Dropping the future loses nothing: the turn goes on, and the next call waits for its end.
    pub async fn run_turn(&mut self, cancel: &CancellationToken) -> Result<TurnState, HarnessError> {
        if let Some(outcome) = &self.outcome {
            return Ok(TurnState::Done(outcome.clone()));
        }
        if self.pace == Pace::Stepped {
            self.to_root(SessionEvent::Proceed { turn: self.next_turn }).await?;
        }
        let mut asked_to_pause = false;
        loop {
            let record = tokio::select! {
                record = self.records.next() => record,
                error = self.serving.failed() => return Err(error.into()),
                () = cancel.cancelled(), if !asked_to_pause => {
                    asked_to_pause = true;
                    self.pause("the embedding program").await?;
                    continue;
                }
            };
            let record = record.unwrap_or(Err(HomeError::Closed))?;
            if let Some(turn) = self.take_in(&record).await? {
                return Ok(turn);
            }
        }
    }

    /// Tells those who watch of `record`, unless they know, and says what it means for whoever waits for the end of a
    /// turn.
    async fn take_in(&mut self, record: &Arc<Record>) -> Result<Option<TurnState>, HarnessError> {
        let seen = self.seen.entry(record.actor).or_default();
        if record.seq <= *seen {
            return Ok(None);
        }
        *seen = record.seq;
        self.tell_callback(record);
        self.observers.0.record(record);
        match (record.actor, &record.entry) {
            (ActorKey::Run(_), Entry::ChildStarted(started)) => {
                self.follow(started.child);
                Ok(None)
            }
            (ActorKey::Run(_), Entry::Paused(Paused { outcome }) | Entry::Ended(Ended { outcome })) => {
                self.done(outcome.clone()).await.map(Some)
            }
            (ActorKey::Session(session), Entry::Ended(_)) => {
                self.forget(session);
                self.over.insert(session);
                Ok(None)
            }
            (ActorKey::Session(session), Entry::TurnEnded(ended)) if session.agent == 0 => {
                self.next_turn = ended.turn.saturating_add(1);
                let next = self.deps.home.read(session.into(), record.seq, 1).await?;
                let is_last = matches!(
                    next.first().map(|record| &record.entry),
                    Some(Entry::Paused(_) | Entry::Ended(_) | Entry::StopRequested(_))
                );
                Ok((!is_last).then_some(TurnState::Continue))
            }
            _ => Ok(None),
        }
    }

    /// Follows the log of an agent that begins.
    fn follow(&mut self, session: SessionId) {
        if let hash_map::Entry::Vacant(seen) = self.seen.entry(session.into()) {
            seen.insert(Seq::START);
            self.records.push(until_over(self.deps.home.subscribe(session.into(), Seq::START)));
        }
    }

    /// The run rests or has ended, and with it all its agents: whoever watches sees all of their logs.
    async fn done(&mut self, outcome: Outcome) -> Result<TurnState, HarnessError> {
        for actor in self.seen.keys().copied().collect::<Vec<_>>() {
            while let ActorKey::Session(session) = actor {
                if self.over.contains(&session) {
                    break;
                }
                let seen = self.seen.get(&actor).copied().unwrap_or_default();
                let records = self.deps.home.read(actor, seen, READ_MAX).await?;
                if records.is_empty() {
                    self.forget(session);
                    break;
                }
                for record in records {
                    self.seen.insert(actor, record.seq);
                    if matches!(record.entry, Entry::Ended(_)) {
                        // Its log is followed no further, unless another segment begins.
                        self.over.insert(session);
                        self.forget(session);
                    }
                    self.tell_callback(&record);
                    self.observers.0.record(&record);
                }
            }
        }
        self.outcome = Some(outcome.clone());
        self.observers.0.finish().await;
        Ok(TurnState::Done(outcome))
    }

    /// Nothing is kept of a session that has ended or rests.
    fn forget(&self, session: SessionId) {
        self.sessions.forget(session);
        self.deps.tools.session_over(session);
    }

    fn tell_callback(&self, record: &Arc<Record>) {
        let callback = &*self.deps.callback;
        let told = catch_unwind(AssertUnwindSafe(|| {
            callback.on_record(record);
            if let ActorKey::Session(session) = record.actor {
                match &record.entry {
                    Entry::ToolStarted(started) => callback.on_tool_start(session, started),
                    Entry::ToolFinished(finished) => callback.on_tool_end(session, finished),
                    Entry::TurnEnded(ended) => callback.on_turn_end(session, ended),
                    _ => {}
                }
            }
        }));
        if told.is_err() {
            tracing::warn!(actor = %record.actor, seq = %record.seq, "the callback panicked at an entry");
        }
    }

    /// What each observer has been told since the run was started, opened or resumed here.
    #[must_use]
    pub fn observer_reports(&self) -> Vec<ObserverReport> {
        self.observers.0.reports()
    }

    /// Begins another segment of a run that is suspended or has ended, with new limits in place of those that `budget`
    /// and `turns_max` name. A run that is worked on stays as it is.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn resume(
        &mut self,
        by: &str,
        budget: Budget,
        turns_max: Option<u32>,
    ) -> Result<(), HarnessError> {
        self.resume_with(ResumeRequest { by: by.to_owned(), budget, turns_max, text: None }).await
    }

    /// As [`Harness::resume`], with what is said to the root agent besides.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub async fn resume_with(&mut self, request: ResumeRequest) -> Result<(), HarnessError> {
        if self.outcome.take().is_none() {
            return Ok(());
        }
        let root = SessionId::root(self.run);
        if self.over.remove(&root) {
            let seen = self.seen.get(&root.into()).copied().unwrap_or_default();
            self.records.push(until_over(self.deps.home.subscribe(root.into(), seen)));
        }
        self.observers.0.begin();
        let ResumeRequest { by, budget, turns_max, text } = request;
        self.to_run(RunEvent::Resume { agent: None, by, budget, turns_max, text }).await
    }

    fn to_run(&self, event: RunEvent) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.post(self.run.into(), Event::Run(event))
    }

    fn to_root(&self, event: SessionEvent) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        self.post(SessionId::root(self.run).into(), Event::Session(event))
    }

    /// Holds nothing of this harness while it waits: so a run's own future may move between threads.
    fn post(
        &self,
        key: ActorKey,
        event: Event,
    ) -> impl Future<Output = Result<(), HarnessError>> + Send + use<> {
        let home = Arc::clone(&self.deps.home);
        async move {
            home.post(key, event, None).await?;
            Ok(())
        }
    }
}

/// A session's log up to its end: of thousands of agents most are done before their run is, and nobody waits for more of
/// them.
fn until_over(records: Records) -> Records {
    let next = |records: Option<Records>| async {
        let mut records = records?;
        let next = records.next().await?;
        let is_over = next.as_ref().is_ok_and(|record| {
            matches!(record.entry, Entry::Ended(_)) && matches!(record.actor, ActorKey::Session(_))
        });
        Some((next, (!is_over).then_some(records)))
    };
    futures::stream::unfold(Some(records), next).boxed()
}

/// The agents whose work isn't over and that have a log, but for the root.
fn live_below_root(run: &Actor) -> Vec<SessionId> {
    let Actor::Run(state) = run else { return Vec::new() };
    let has_log =
        |standing: &AgentStanding| !matches!(standing, AgentStanding::Finished(_) | AgentStanding::InLine);
    let live = state.agents().filter(|agent| agent.session.agent != 0 && has_log(&agent.standing));
    live.map(|agent| agent.session).collect()
}

/// Only a root agent can be waited for turn by turn.
fn pace_of(policy: &RunPolicy) -> Pace {
    if policy.flow.is_some() { Pace::Free } else { policy.agent.pace }
}

fn unique_hooks(policy: &AgentPolicy) -> Result<(), HarnessError> {
    let mut names = HashSet::new();
    let doubled = policy.hooks.iter().find(|hook| !names.insert(&hook.name));
    doubled.map_or(Ok(()), |hook| Err(HarnessError::DoubledHook { hook: hook.name.clone() }))
}
