//! A worker: takes runs from the engine and works on each as the command line does on one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use provost_config::{Folders, Settled};
use provost_engine::{Actor, RunState, SessionState};
use provost_event::{GoalState, Outcome, RunId, RunPolicy, SessionId};
use provost_harness::{Backend, BackendError, Harness, HarnessError, Models, NoCallback, fetch_remote};
use provost_llm::resolve;
use provost_restate::RestateBackend;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::{
    Judges, Programs, Refusal, RunContext, RuntimeError, StateDir, Variables, frozen_models, known_catalog,
    observers, providers, words,
};

/// How often the engine is asked for runs.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a run that couldn't be taken is left to others, at first and at most.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Maximum runs that are remembered as not taken.
const REFUSED_MAX: usize = 10_000;

/// What a worker is made of.
pub struct EngineWorker {
    /// Where its files are: recordings, worktrees, services, what observers write.
    pub place: StateDir,
    /// The settings of its user: models and keys, programs, the sandbox, observers.
    pub settled: Settled,
    /// The folders of its user.
    pub folders: Folders,
    /// Its environment.
    pub variables: Variables,
    /// Maximum runs at a time.
    pub runs_max: usize,
}

/// What a worker tells of.
#[derive(Debug)]
pub enum WorkerNotice {
    /// It works on the run from now on.
    Taken {
        /// The run.
        run: RunId,
    },
    /// The run is suspended or has ended.
    Stopped {
        /// The run.
        run: RunId,
        /// How.
        outcome: Outcome,
    },
    /// It can't work on the run, for now.
    NotTaken {
        /// The run.
        run: RunId,
        /// Why.
        why: RuntimeError,
    },
    /// It no longer works on the run: another worker has it, or the engine can't be reached.
    Lost {
        /// The run.
        run: RunId,
        /// Why.
        why: HarnessError,
    },
    /// The engine can't be asked for runs.
    Unreachable(BackendError),
}

/// The end of the work on a run.
struct Ended {
    run: RunId,
    result: Result<Outcome, NotDone>,
}

enum NotDone {
    /// It wasn't begun.
    NotTaken(RuntimeError),
    Lost(HarnessError),
    /// The worker leaves.
    Left,
}

impl EngineWorker {
    /// Takes runs and works on them until `stop` fires; works on those that it has until `leave` fires, and then releases
    /// them as they are. `tell` is called for what happens.
    ///
    /// # Cancellation
    /// Dropping the future releases all runs.
    pub async fn work(
        self: Arc<Self>,
        backend: RestateBackend,
        (stop, leave): (CancellationToken, CancellationToken),
        tell: impl Fn(WorkerNotice) + Send + Sync + 'static,
    ) {
        let tell = Arc::new(tell);
        let mut runs = JoinSet::new();
        let mut held = HashSet::new();
        let mut refused = Refused::default();
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_reached = true;
        loop {
            tokio::select! {
                Some(ended) = runs.join_next(), if !runs.is_empty() => {
                    // A task that panicked has released its run; the engine gives it to a worker again.
                    let Ok(Ended { run, result }) = ended else { held.clear(); continue };
                    held.remove(&run);
                    refused.note(run, &result);
                    report(run, result, &*tell);
                }
                _ = looks.tick(), if !stop.is_cancelled() && held.len() < self.runs_max => {
                    if stop.is_cancelled() {
                        continue;
                    }
                    let free = self.runs_max.saturating_sub(held.len());
                    let waiting = match backend.waiting_runs(free.saturating_add(refused.len())).await {
                        Ok(waiting) => waiting,
                        Err(error) => {
                            if std::mem::take(&mut is_reached) {
                                tell(WorkerNotice::Unreachable(error));
                            }
                            continue;
                        }
                    };
                    is_reached = true;
                    let taken = waiting.into_iter().filter(|run| !refused.is_left(*run)).take(free);
                    for run in taken {
                        if held.insert(run) {
                            let work = Arc::clone(&self).work_on(backend.clone(), run, leave.clone(), tell.clone());
                            runs.spawn(work);
                        }
                    }
                }
                () = stop.cancelled(), if runs.is_empty() => return,
                () = leave.cancelled(), if runs.is_empty() => return,
            }
        }
    }

    /// Works on a run until it is suspended or ends, or until `leave` fires.
    async fn work_on(
        self: Arc<Self>,
        backend: RestateBackend,
        run: RunId,
        leave: CancellationToken,
        tell: Arc<impl Fn(WorkerNotice) + Send + Sync + 'static>,
    ) -> Ended {
        let opened = tokio::select! {
            opened = self.open(Arc::new(backend.clone()), run) => opened,
            () = leave.cancelled() => return Ended { run, result: Err(NotDone::Left) },
        };
        let mut harness = match opened {
            Ok(harness) => harness,
            Err(why) => {
                if !is_held(&why) {
                    backend.tell_failed(run, words(&why)).await;
                }
                return Ended { run, result: Err(NotDone::NotTaken(why)) };
            }
        };
        tell(WorkerNotice::Taken { run });
        let never = CancellationToken::new();
        let result = tokio::select! {
            result = harness.run(&never) => result.map_err(NotDone::Lost),
            () = leave.cancelled() => Err(NotDone::Left),
        };
        harness.release().await;
        Ended { run, result }
    }

    /// Opens a run with what its policy names, as this machine has it.
    ///
    /// # Errors
    /// When it lacks something, or another worker has the run.
    async fn open(&self, backend: Arc<dyn Backend>, run: RunId) -> Result<Harness, RuntimeError> {
        let (Actor::Run(state), Actor::Session(root)) =
            (backend.state(run.into()).await?, backend.state(SessionId::root(run).into()).await?)
        else {
            return Err(Refusal::new(format!("the log of run {run} is empty"), "").into());
        };
        let policy = state.policy().ok_or_else(|| Refusal::new(format!("run {run} has no policy"), ""))?;
        let folder = &policy.agent.workspace;
        if root.worktree().is_none() && policy.remote.is_none() && !folder.is_dir() {
            let what = format!("its workspace {} isn't on this machine", folder.display());
            return Err(Refusal::new(what, "").into());
        }
        if let Some(remote) = &policy.remote {
            let fetched = fetch_remote(remote, run).await;
            fetched.map_err(|error| {
                Refusal::new(error.to_string(), "try `git fetch` there as the worker's user")
            })?;
        }
        let settings = &self.settled.settings;
        self.place.services().report(&*backend, run).await?;
        let models = self.models(policy, &state, &root)?;
        let programs = Programs::of(policy, &self.settled, &self.variables)?;
        let observers = observers(&self.settled, folder, &self.variables)?;
        let (catalog, _) = known_catalog(&self.settled, &self.place, folder, &self.variables);
        let around = RunContext::new(settings, &self.variables, (Arc::new(NoCallback), observers), programs)
            .with_mcp(catalog)
            .with_skills(&self.place.skills(&self.folders, folder)?);
        Ok(self.place.harness(backend, models, around).open(run).await?)
    }

    fn models(
        &self,
        policy: &RunPolicy,
        state: &RunState,
        root: &SessionState,
    ) -> Result<Models, RuntimeError> {
        let (settings, variables) = (&self.settled.settings, &self.variables);
        let is_cleared = root.goal().is_some_and(|goal| goal.state == GoalState::Aborted);
        let judges = if is_cleared { Judges::Spared } else { Judges::Needed };
        let mut models = frozen_models(policy, judges, None, (settings, variables))?;
        // One that was named at a resume is no part of the policy.
        if let Some(now) = state.model().filter(|now| models.get(&now.name).is_err())
            && policy.agent.external.is_none()
        {
            let resolved = resolve(&now.name, &providers(settings, variables));
            let (model, _) = resolved.map_err(|error| Refusal::new(words(&error), ""))?;
            models = models.with(now.name.clone(), model);
        }
        Ok(models)
    }
}

fn report(run: RunId, result: Result<Outcome, NotDone>, tell: &impl Fn(WorkerNotice)) {
    match result {
        Ok(outcome) => tell(WorkerNotice::Stopped { run, outcome }),
        Err(NotDone::NotTaken(why)) if is_held(&why) => {}
        Err(NotDone::NotTaken(why)) => tell(WorkerNotice::NotTaken { run, why }),
        Err(NotDone::Lost(why)) => tell(WorkerNotice::Lost { run, why }),
        Err(NotDone::Left) => {}
    }
}

/// Whether another worker was first.
const fn is_held(why: &RuntimeError) -> bool {
    matches!(why, RuntimeError::Harness(HarnessError::Backend(BackendError::Held { .. })))
}

/// Runs that couldn't be taken, and until when they are left to others.
#[derive(Default)]
struct Refused(HashMap<RunId, (Instant, Duration)>);

impl Refused {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_left(&self, run: RunId) -> bool {
        self.0.get(&run).is_some_and(|(until, _)| Instant::now() < *until)
    }

    fn note(&mut self, run: RunId, result: &Result<Outcome, NotDone>) {
        let wait = match result {
            Ok(_) | Err(NotDone::Left) => {
                self.0.remove(&run);
                return;
            }
            Err(_) => self.0.get(&run).map_or(RETRY_FIRST, |(_, wait)| (*wait * 2).min(RETRY_MAX)),
        };
        if self.0.len() >= REFUSED_MAX {
            self.0.clear();
        }
        self.0.insert(run, (Instant::now() + wait, wait));
    }
}
