//! `provost resume`: resumes a run from its log.

pub(super) mod change;
pub(crate) mod limits;
pub(super) mod note;
mod steps;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use provost_config::{Request, Scope, Settings, load};
use provost_engine::{Actor, AgentState, RunEvent, RunState, SessionStatus};
use provost_event::{ActorKey, GoalState, Outcome, RunId, Seq, SessionId};
use provost_harness::{
    Backend, BackendError, Harness, Models, RemadeWorktree, ResumeRequest, RunQuery, RunStatusFilter,
    RunSummary,
};
use provost_llm::resolve;

use self::change::Change;
use self::limits::{Given, More};
use super::find::find;
use super::run::{must_be_engine, others_at_work, tell};
use super::{SentMessage, current_dir, mark, print};
use crate::asking::{Asking, who_asks};
use crate::cli::{ResumeArgs, ShownArgs};
use crate::drive::{BY, PendingStop, Work};
use crate::exit::{Exit, Refusal};
use crate::input::tell_of_unread;
use crate::render::{Earlier, Progress};
use crate::reports::{bell, reporting};
use crate::stands_for::StandsFor;
use crate::unattended::begun;
use crate::watcher::Watcher;
use crate::wiring::{outage_max_ms, state_dir, variables};
use provost_runtime::known_catalog;
use provost_runtime::observers;
use provost_runtime::{
    Chosen, Judges, Programs, RunContext, StateDir, Variables, available_tools, choose_again, frozen_models,
    models_of, programs_of, providers, words,
};
use provost_view::open_in;
use provost_view::run_state;

pub(super) async fn resume(args: ResumeArgs) -> anyhow::Result<Exit> {
    let (folder, variables) = (current_dir()?, variables());
    let flags = args.budget.given();
    let file = args.config.as_deref();
    let request = Request { file, ..Request::new(Scope::User, &folder, &variables, available_tools()) };
    let (loading, folders) = load(&request)?;
    let settled = loading.settled()?;
    let settings = &settled.settings;
    let observers = observers(&settled, &folder, &variables)?;
    let given = Given::read(&Request { flags: &flags, ..request }, &args)?;
    let place = state_dir(settings, &folders);
    let backend = backend_for(&place, args.detach).await?;
    let run = find(&*backend, &args.run).await?;
    mark(Some(run));
    tell_of_unread("");
    let state = state_now(&*backend, &place, run).await?;
    let root = backend.state(ActorKey::from(SessionId::root(run))).await?;
    let change = Change::of(&args, (run, &state, &root), &given.budget, (&place.trust(), &variables))?;
    let folder = change.policy.agent.workspace.clone();
    if backend.performs_here() {
        refuse_lost_workspace(run, &folder, &root)?;
    }
    let more = given.added_to(run, (&state, &change.policy))?;
    let tuning = Tuning::of(&args, (&state, &change), (settings, &variables))?;
    let judges = if change.gives_goal() { Judges::Needed } else { judges(&root) };
    let models = match backend.performs_here() {
        true => models(&change, judges, &given, (settings, &variables), &tuning)?,
        // Workers reach them.
        false => Models::new(),
    };
    let programs = Programs::of(&change.policy, &settled, &variables)?;
    let pending_stop = if state.outcome().is_none() { PendingStop::Outlived } else { PendingStop::None };
    let stands_for = StandsFor::of(&change.policy, args.shown);
    let signals = stands_for.signals()?;
    let progress = stands_for.progress(args.shown);
    let watcher = watcher(&*backend, (run, &state, &root), progress, settings).await?;
    let (catalog, notices) = known_catalog(&settled, &place, &folder, &variables);
    tell(&notices);
    let around = RunContext::new(settings, &variables, (watcher.clone(), observers), programs)
        .with_mcp(catalog)
        .with_skills(&place.skills(&folders, &folder)?)
        .with_bell(bell(None))
        .with_streams(stands_for.streams());
    let opened = place.harness(backend.clone(), models, around).open(run).await;
    let mut harness = opened.inspect_err(|_| watcher.close())?;
    let was_completed = matches!(state.outcome(), Some(Outcome::Completed { .. }));
    let (was_suspended, mut more) = (state.outcome().is_some(), more);
    if was_suspended {
        // Another process may have resumed it before it was opened.
        let now = run_state(&*backend, run).await?.unwrap_or(state);
        more = given.added_to(run, (&now, &change.policy)).inspect_err(|_| watcher.close())?;
    }
    tell_changes(progress, args.shown, change.said.iter().chain(&more.said));
    tell(&others_at_work(&at_work(&*backend).await?, &folder, Some(run)));
    tell_of_remade(harness.remade_worktrees());
    if let Some(changed) = change.entry {
        harness.change_policy(changed).await?;
    }
    tuning.tell(&harness).await?;
    begin(&mut harness, &*backend, was_suspended, (more, given.text.clone())).await?;
    begun();
    // By now the suspension is over, and with it the time that was left before.
    open_in(&*backend, run).await?.into_iter().for_each(|question| watcher.opened(question));
    let (asks, user_file) = (who_asks(progress), folders.user_file);
    let asking = Asking { backend: backend.clone(), watcher: watcher.clone(), asks, user_file };
    let shown = args.shown;
    let work =
        Work { backend, harness, place, watcher, asking, signals, shown, progress, pending_stop, stands_for };
    finish(work, args.detach, (given.text.as_deref(), root.head()), was_completed).await
}

/// Works on the run, which gets a message behind entry `before` of its first agent's log if there is one; or leaves it.
async fn finish(
    work: Work,
    is_left: bool,
    (text, before): (Option<&str>, Seq),
    was_completed: bool,
) -> anyhow::Result<Exit> {
    let run = work.harness.run_id();
    if is_left {
        return print(&format!("{}\n", work.leave())).map(|()| Exit::Done);
    }
    let said = text.map(|text| SentMessage { to: SessionId::root(run), text, by: BY, before });
    work.finish_after(said.as_ref(), was_completed).await
}

/// Says what is changed, where something is shown at all.
fn tell_changes<'a>(progress: Progress, shown: ShownArgs, said: impl Iterator<Item = &'a String>) {
    let is_shown = matches!(progress, Progress::Plain(_) | Progress::Attended | Progress::Live(_));
    if is_shown && !shown.quiet {
        said.for_each(|line| crate::output::tell(line));
    }
}

async fn backend_for(place: &StateDir, detached: bool) -> anyhow::Result<Arc<dyn Backend>> {
    if detached {
        must_be_engine(place)?;
    }
    Ok(place.open().await?)
}

/// What shows the run from where its logs are now.
async fn watcher(
    backend: &dyn Backend,
    (run, state, root): (RunId, &RunState, &Actor),
    progress: Progress,
    settings: &Settings,
) -> anyhow::Result<Arc<Watcher>> {
    let heads = HashMap::from([(run.into(), state.head()), (SessionId::root(run).into(), root.head())]);
    let sessions = live_sessions(backend, state).await?;
    let view = reporting(progress.view(Some(&Earlier { state, sessions })), settings, None);
    Ok(Arc::new(Watcher::new(view, who_asks(progress), heads)))
}

async fn at_work(backend: &dyn Backend) -> Result<Vec<RunSummary>, BackendError> {
    backend.list(RunQuery::with_status(RunStatusFilter::Running)).await
}

/// A run whose agents' logs say what became of their services.
async fn state_now(backend: &dyn Backend, place: &StateDir, run: RunId) -> anyhow::Result<Box<RunState>> {
    place.services().report(backend, run).await?;
    run_state(backend, run).await?.with_context(|| format!("the log of run {run} is empty"))
}

/// The sessions of the agents that may still work.
async fn live_sessions(backend: &dyn Backend, state: &RunState) -> anyhow::Result<Vec<(ActorKey, Actor)>> {
    let mut sessions = Vec::new();
    for agent in state.agents().filter(|agent| !matches!(agent.standing, AgentState::Finished(_))) {
        let key = ActorKey::from(agent.session);
        sessions.push((key, backend.state(key).await?));
    }
    Ok(sessions)
}

/// Resumes a suspended run. An interrupted one resumes by itself as soon as it is opened.
async fn begin(
    harness: &mut Harness,
    backend: &dyn Backend,
    was_suspended: bool,
    (more, text): (More, Option<String>),
) -> anyhow::Result<()> {
    let by = BY.to_owned();
    if was_suspended {
        let More { budget, turns_max, .. } = more;
        harness.resume_with(ResumeRequest { by, budget, turns_max, text }).await?;
    } else if let Some(text) = text {
        let say = RunEvent::Say { agent: 0, text, by };
        backend.post(harness.run_id().into(), say.into(), None).await?;
    }
    Ok(())
}

fn tell_of_remade(worktrees: &[RemadeWorktree]) {
    for RemadeWorktree { agent, path, branch, commit } in worktrees {
        let path = path.display();
        crate::output::tell(&format!(
            "the worktree {path} of agent {agent} was gone: made again, on branch {branch} at commit {commit}"
        ));
    }
}

/// Which model is asked from here on, and how long outages are waited out, where that changes.
struct Tuning {
    model: Option<Chosen>,
    /// The model that is asked no longer.
    replaced: Option<String>,
    outage_max_ms: Option<u64>,
}

impl Tuning {
    fn of(
        args: &ResumeArgs,
        (state, change): (&RunState, &Change),
        (settings, variables): (&Settings, &Variables),
    ) -> anyhow::Result<Self> {
        let now = &change.model;
        let wait_ms = match outage_max_ms(settings) {
            0 => 0,
            // A run that was started at a terminal has none of its own.
            today => Some(change.policy.agent.limits.outage_max_ms).filter(|own| *own > 0).unwrap_or(today),
        };
        let outage_max_ms = (wait_ms != state.outage_max_ms()).then_some(wait_ms);
        let wanted = (args.model.as_deref(), args.effort.as_deref());
        let Some(chosen) = choose_again(wanted, now, (settings, variables))? else {
            return Ok(Self { model: None, replaced: None, outage_max_ms });
        };
        let name = &chosen.policy.name;
        let is_limited = state.budget_under(&change.policy).money.is_some();
        if chosen.policy.price.is_none() && is_limited && !change.policy.allow_unpriced {
            let what = format!("--model: the run limits money, but the price of {name} isn't known");
            return Err(Refusal::new(what, "state it in [models.\"NAME\"] of your own settings file").into());
        }
        let replaced = (*name != now.name).then(|| now.name.clone());
        Ok(Self { model: Some(chosen), replaced, outage_max_ms })
    }

    /// Records the change in the run's log.
    async fn tell(&self, harness: &Harness) -> anyhow::Result<()> {
        let model = self.model.as_ref().map(|chosen| chosen.policy.clone());
        if model.is_some() || self.outage_max_ms.is_some() {
            harness.retune(model, self.outage_max_ms, BY).await?;
        }
        Ok(())
    }
}

/// The models of the policy that binds the run, reached with today's addresses and keys.
fn models(
    change: &Change,
    judges: Judges,
    more: &Given,
    (settings, variables): (&Settings, &Variables),
    tuning: &Tuning,
) -> anyhow::Result<Models> {
    let policy = &change.policy;
    let unpriced = models_of(policy).chain(programs_of(policy)).find(|model| model.price.is_none());
    if let Some(model) = unpriced.filter(|_| more.budget.money.is_some() && !policy.allow_unpriced) {
        let what = format!("--usd can't bind: the price of {} isn't known", model.name);
        return Err(Refusal::new(what, "limit tokens instead, with --tokens").into());
    }
    let replaced = tuning.replaced.as_deref();
    let mut models = frozen_models(policy, judges, replaced, (settings, variables))?;
    // One that was named at an earlier resume is no part of the policy.
    let now = &change.model;
    let is_native = policy.agent.external.is_none();
    if is_native && tuning.model.is_none() && models.get(&now.name).is_err() {
        let hint = "resume with --model and another model";
        let made = resolve(&now.name, &providers(settings, variables));
        let (model, _) = made.map_err(|error| Refusal::new(words(&error), hint))?;
        models = models.with(now.name.clone(), model);
    }
    if let Some(Chosen { model, policy }) = &tuning.model {
        models = models.with(policy.name.clone(), model.clone());
    }
    Ok(models)
}

/// A worktree that is gone is made again; another folder isn't, and nothing can be done without it.
fn refuse_lost_workspace(run: RunId, folder: &Path, root: &Actor) -> Result<(), Refusal> {
    let is_remade = matches!(root, Actor::Session(session) if session.worktree().is_some());
    if is_remade || folder.is_dir() {
        return Ok(());
    }
    let what = format!(
        "the workspace {} of run {run} is gone: it was deleted, moved or unmounted",
        folder.display()
    );
    Err(Refusal::new(what, format!("put the folder back, then `provost resume {run}`")))
}

/// No judge is needed for a goal that was cleared; the goal of a run that was cancelled or aborted is verified
/// anew.
fn judges(root: &Actor) -> Judges {
    let goal = match root {
        Actor::Session(session) => session.goal(),
        Actor::Run(_) => None,
    };
    let was_stopped = match root {
        Actor::Session(session) => {
            matches!(
                session.standing(),
                SessionStatus::Stopped(Outcome::Cancelled { .. } | Outcome::Aborted { .. })
            )
        }
        Actor::Run(_) => false,
    };
    let is_cleared = goal.is_some_and(|goal| goal.state == GoalState::Aborted) && !was_stopped;
    if is_cleared { Judges::Spared } else { Judges::Needed }
}
