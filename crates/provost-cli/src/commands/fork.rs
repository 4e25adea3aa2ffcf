//! `provost fork`: starts a run from another run's conversation.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use provost_config::TrustStore;
use provost_config::{Override, Request, Scope, Settings, load};
use provost_engine::{AgentState, RunState, told_of_goal};
use provost_event::{
    AgentPolicy, GivenFlag, ModelPolicy, PolicyDifference, RunId, RunPolicy, Seq, SessionId, Worktree,
};
use provost_harness::{Backend, ForkError, ForkPoint, ForkRequest, Models, RunQuery, RunStatusFilter};

use super::mark;
use super::resume::change::differences;
use super::resume::note::not_taken;
use super::run::{folder, others_at_work, tell};
use super::target::{Target, agent_of};
use crate::asking::{Asking, who_asks};
use crate::cli::ForkArgs;
use crate::drive::{PendingStop, Work};
use crate::exit::{Exit, Refusal};
use crate::input::tell_of_unread;
use crate::output;
use crate::render::{Progress, safe};
use crate::reports::{bell, reporting};
use crate::signals::Signals;
use crate::stands_for::StandsFor;
use crate::unattended::{begun, new_run};
use crate::watcher::Watcher;
use crate::wiring::{state_dir, variables};
use provost_runtime::known_catalog;
use provost_runtime::observers;
use provost_runtime::require;
use provost_runtime::{
    Before, Chosen, Judges, Programs, RunContext, StateDir, Today, Variables, available_tools, choose_again,
    default_limit, frozen_models, today, with_flag,
};
use provost_view::run_state;

/// The sender of the message to the agent of a fork.
const BY: &str = "provost fork";

pub(super) async fn fork(args: ForkArgs) -> anyhow::Result<Exit> {
    let text = Some(args.text.join(" ").trim().to_owned()).filter(|text| !text.is_empty());
    let came_from = CameFrom::find(&args).await?;
    tell_of_unread("");
    let id = new_run();
    let worktree = came_from.worktree(id, args.dir.as_deref()).await?;
    let here = match &worktree {
        Some(worktree) => folder(Some(&worktree.from))?,
        None => came_from.folder(args.dir.as_deref())?,
    };
    let variables = variables();
    let flags = flags(&args);
    let file = args.config.as_deref();
    let request =
        Request { file, flags: &flags, ..Request::new(Scope::Project, &here, &variables, available_tools()) };
    let (loading, folders) = load(&request)?;
    let settled = loading.settled()?;
    let settings = &settled.settings;
    let place = state_dir(settings, &folders);
    let works_in = match &worktree {
        Some(_) => place.worktrees().join(format!("{id}-0")),
        None => here.clone(),
    };
    let rules = came_from.rules(&args, (&here, &works_in), &place.trust(), &variables)?;
    let (policy, models) = came_from.bound_by(rules, &args, &place, (settings, &variables))?;
    let policy = RunPolicy { flags: own_flags(policy.flags, &args, &policy.agent.model), ..policy };
    let (policy, unlimited) = default_limit(policy, &settled)?;
    unlimited.iter().for_each(|note| output::tell(note));
    let observers = observers(&settled, &here, &variables)?;
    let programs = Programs::of(&policy, &settled, &variables)?;
    let backend = place.open().await?;
    let running = backend.list(RunQuery::with_status(RunStatusFilter::Running)).await?;
    tell(&others_at_work(&running, &here, None));
    let signals = Signals::listen().context("can't listen for Ctrl-C")?;
    let progress = Progress::choose(args.shown);
    let asks = who_asks(progress);
    let view = reporting(progress.view(None), settings, None);
    let watcher = Arc::new(Watcher::new(view, asks, HashMap::new()));
    let around = RunContext::new(settings, &variables, (watcher.clone(), observers), programs);
    let (catalog, notices) = known_catalog(&settled, &place, &works_in, &variables);
    tell(&notices);
    let around =
        around.with_mcp(catalog).with_skills(&place.skills(&folders, &works_in)?).with_bell(bell(None));
    let harness = place.harness(backend.clone(), models, around);
    mark(Some(id));
    if !args.shown.quiet && !args.shown.json {
        output::tell(&came_from.in_words());
    }
    let request = came_from.into_request(policy, worktree, text);
    let harness = harness.fork(id, request).await;
    let harness = harness.inspect_err(|_| watcher.close()).context("can't fork the run")?;
    begun();
    let asking =
        Asking { backend: backend.clone(), watcher: watcher.clone(), asks, user_file: folders.user_file };
    let pending_stop = PendingStop::None;
    let shown = args.shown;
    let stands_for = StandsFor::Run;
    Work { backend, harness, place, watcher, asking, signals, shown, progress, pending_stop, stands_for }
        .finish()
        .await
}

fn flags(args: &ForkArgs) -> Vec<Override> {
    let mut flags = args.budget.given();
    flags.extend(args.max_agents.clone().map(|agents| Override::new("--max-agents", agents)));
    flags.extend(args.allow_unpriced.then(|| Override::new("--allow-unpriced", "true")));
    flags
}

/// The flags that a fork's settings come of: those of the other run, and its own in place of the other's limits.
fn own_flags(before: Vec<GivenFlag>, args: &ForkArgs, model: &ModelPolicy) -> Vec<GivenFlag> {
    let limits = ["--usd", "--tokens", "--wall-time", "--max-turns", "--allow-unpriced"];
    let own = flags(args);
    let is_kept = |given: &GivenFlag| {
        !limits.contains(&given.flag.as_str()) && own.iter().all(|own| own.flag != given.flag)
    };
    let mut kept = before.into_iter().filter(is_kept).collect::<Vec<_>>();
    kept.extend(own.into_iter().map(|own| GivenFlag { flag: own.flag.to_owned(), value: own.value }));
    if args.model.is_some() { with_flag(kept, "--model", &model.name) } else { kept }
}

/// The rules that a new run has of the other, or of the current settings.
struct Rules {
    of_run: RunPolicy,
    agent: AgentPolicy,
}

/// The conversation that the new run begins with, and the run that it is of.
struct CameFrom {
    point: ForkPoint,
    /// The status of the run.
    state: RunState,
}

impl CameFrom {
    async fn find(args: &ForkArgs) -> anyhow::Result<Self> {
        let backend = super::backend_to_read().await?;
        let Target { run, agent } = Target::find(&*backend, &args.run).await?;
        let state = read_state(&*backend, run).await?;
        if agent.is_none() && state.flow().is_some() {
            let what = format!("run {run} is a workflow, and no one agent stands for it");
            let begun = state.agents().filter(|agent| !matches!(agent.standing, AgentState::Queued));
            let hint = match begun.last() {
                Some(agent) => format!("name one of its agents, e.g. provost fork {}", agent.session),
                None => format!("`provost show {run}` shows its steps, and none has begun"),
            };
            return Err(Refusal::new(what, hint).into());
        }
        let session = SessionId { run, agent: agent.unwrap_or_default() };
        if session.agent != 0 {
            agent_of(&state, session)?;
        }
        let point = ForkPoint::find(&*backend, session, args.at.map(Seq)).await;
        let point = point.map_err(|error| refused(error, session))?;
        let state =
            if point.session.run == run { state } else { read_state(&*backend, point.session.run).await? };
        Ok(Self { point, state })
    }

    /// Where the new run works.
    fn folder(&self, dir: Option<&Path>) -> anyhow::Result<PathBuf> {
        if dir.is_some() {
            return folder(dir);
        }
        let before = &self.point.policy.workspace;
        folder(Some(before)).map_err(|_| {
            let what = format!("{}, where run {} worked, isn't there", before.display(), self.run());
            Refusal::new(what, "give --dir a folder to work in").into()
        })
    }

    /// The rules of the new run, in a folder whose settings are looked for in `here`.
    ///
    /// # Errors
    /// What is wrong with the current settings where they are requested, or isn't trusted.
    fn rules(
        &self,
        args: &ForkArgs,
        (here, works_in): (&Path, &Path),
        trust: &TrustStore,
        variables: &Variables,
    ) -> anyhow::Result<Rules> {
        let of_run = self.state.policy().context("the run's log doesn't begin with its policy")?;
        let mut agent = self.point.policy.clone();
        works_in.clone_into(&mut agent.workspace);
        let as_before = Rules { of_run: of_run.clone(), agent };
        if !args.with_settings && args.config.is_none() {
            return Ok(as_before);
        }
        let mut policy = of_run.clone();
        works_in.clone_into(&mut policy.agent.workspace);
        let model = &self.point.policy.model;
        let before = Before { policy: &policy, model, folder: here.to_owned(), steps: None };
        let SessionId { run, agent } = self.point.session;
        if args.with_settings && agent != 0 {
            let what = format!(
                "--with-settings takes the rules of a run's first agent, and {run}.{agent} is another"
            );
            return Err(
                Refusal::new(what, format!("provost fork {run} --with-settings, or leave it out")).into()
            );
        }
        let file = args.config.as_deref();
        if !args.with_settings {
            // Limits are a fork's own.
            let is_rule =
                |one: &PolicyDifference| !one.what.starts_with("budget.") && one.what != "allow_unpriced";
            let whose = format!("run {run}");
            let note = file.and_then(|file| not_taken(&before, (file, &whose), is_rule, variables));
            note.iter().for_each(|note| output::tell(note));
            return Ok(as_before);
        }
        let Today { policy: taken, settled, redactor } = today(&before, file, None, variables)?;
        require(trust, &settled.project)?;
        for one in differences(&policy, &taken, &redactor) {
            output::tell(&format!("settings: {}", safe(&one.to_string())));
        }
        let agent = told_of_goal(taken.agent.clone());
        Ok(Rules { of_run: taken, agent })
    }

    /// What binds the new run: its rules, with limits and a folder of its own.
    fn bound_by(
        &self,
        Rules { of_run, mut agent }: Rules,
        args: &ForkArgs,
        place: &StateDir,
        (settings, variables): (&Settings, &Variables),
    ) -> anyhow::Result<(RunPolicy, Models)> {
        agent.limits.turns_max = settings.limits.turns_max;
        let mut agents = of_run.agents.clone();
        let same_folder = agents.iter_mut().filter(|other| other.agent.workspace == of_run.agent.workspace);
        same_folder.for_each(|other| other.agent.workspace.clone_from(&agent.workspace));
        let mut policy = RunPolicy {
            budget: settings.budget,
            allow_unpriced: settings.allow_unpriced,
            agent,
            agents,
            flow: None,
            worktrees: Some(place.worktrees()),
            remote: None,
            ..of_run.clone()
        };
        if args.max_agents.is_some() {
            policy.spawn = settings.spawn;
        }
        let wanted = (args.model.as_deref(), args.effort.as_deref());
        let chosen = choose_again(wanted, &policy.agent.model, (settings, variables))?;
        if let Some(Chosen { policy: model, .. }) = &chosen {
            policy.agent.model.clone_from(model);
        }
        let model = &policy.agent.model;
        if model.price.is_none() && policy.budget.money.is_some() && !policy.allow_unpriced {
            let what = format!("money is limited, but the price of {} isn't known", model.name);
            return Err(
                Refusal::new(what, "limit tokens instead, with --tokens, or give --allow-unpriced").into()
            );
        }
        let mut models = frozen_models(&policy, Judges::Needed, None, (settings, variables))?;
        if let Some(Chosen { model, policy }) = chosen {
            models = models.with(policy.name, model);
        }
        Ok((policy, models))
    }

    const fn run(&self) -> RunId {
        self.point.session.run
    }

    fn in_words(&self) -> String {
        let ForkPoint { session, at, .. } = &self.point;
        let whose = if session.agent == 0 { session.run.to_string() } else { session.to_string() };
        format!("forked from {whose} at entry {at}")
    }

    /// If its agent had a worktree of its own, the fork gets one too, unless a folder is given.
    async fn worktree(&self, id: RunId, dir: Option<&Path>) -> anyhow::Result<Option<Worktree>> {
        let Some((worktree, _)) = self.point.worktree.as_ref().filter(|_| dir.is_none()) else {
            return Ok(None);
        };
        if let Some(remote) = self.state.policy().and_then(|policy| policy.remote.as_ref()) {
            let what = format!("the files of run {} are in {}", self.run(), remote.url);
            return Err(Refusal::new(what, "get them by git, and give --dir their folder").into());
        }
        let commit = self.point.commit_then().await.map_err(|why| {
            let what = format!(
                "the repository of the worktree {} can't be asked: {why}",
                self.point.policy.workspace.display()
            );
            Refusal::new(what, "give --dir a folder to work in")
        })?;
        Ok(Some(Worktree { from: worktree.from.clone(), branch: format!("provost/{id}-0"), commit }))
    }

    fn into_request(
        self,
        policy: RunPolicy,
        worktree: Option<Worktree>,
        text: Option<String>,
    ) -> ForkRequest {
        let goal = text.clone().unwrap_or_else(|| self.state.goal().to_owned());
        ForkRequest { point: self.point, goal, policy, worktree, text, by: BY.to_owned() }
    }
}

async fn read_state(backend: &dyn Backend, run: RunId) -> anyhow::Result<RunState> {
    Ok(*run_state(backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?)
}

fn refused(error: ForkError, session: SessionId) -> anyhow::Error {
    let SessionId { run, agent } = session;
    let logs = format!("`provost logs {run} --agent {agent}` lists the entries with their numbers");
    let hint = match &error {
        ForkError::NotBegun(_) => format!("`provost show {run}` shows its agents"),
        ForkError::External(_) if agent != 0 => format!("`provost show {run}` shows the run's agents"),
        ForkError::External(_) => format!("`provost resume {run} \"…\"` goes on with it"),
        ForkError::OutOfRange { .. } => logs,
        ForkError::NoPartOfIt { before: Some(before), .. } => {
            format!("--at {before} is the last before it that is")
        }
        ForkError::NoPartOfIt { before: None, .. } => logs,
        _ => return error.into(),
    };
    Refusal::new(
        format!("{}{error}", if matches!(error, ForkError::NoPartOfIt { .. }) { "--at: " } else { "" }),
        hint,
    )
    .into()
}
