//! The policy that the current settings give to a run that was started before.

use std::error::Error;
use std::path::{Path, PathBuf};

use provost_config::{ConfigError, FlowFile, Override, Request, Scope, Settled, Source, load};
use provost_engine::StepTracker;
use provost_event::{GivenFlag, Metering, ModelPolicy, RunPolicy};
use provost_harness::Redactor;

use crate::external::permissions_of_program;
use crate::hook_models::with_models_of;
use crate::mcp::{known_catalog, with_mcp};
use crate::preamble::{SKILL_TOOL, without_skills};
use crate::remote::move_to;
use crate::team::{Team, bare_policy, policy};
use crate::{Refusal, RuntimeError};
use crate::{StateDir, Variables, all_secrets, available_tools, default_limit, with_absolute_paths};

/// The flags of `run` and `exec` that are settings.
const FLAGS: [&str; 9] = [
    "--model",
    "--max-turns",
    "--tokens",
    "--usd",
    "--wall-time",
    "--max-agents",
    "--allow-unpriced",
    "--goal",
    "--judge",
];

/// `flags` as a policy keeps them: their paths are absolute, so that they mean the same from anywhere.
pub fn given_flags(flags: &[Override], model: &ModelPolicy, here: &Path) -> Vec<GivenFlag> {
    let value = |flag: &str, value: &String| match flag {
        "--model" => model.name.clone(),
        "--judge" => {
            let absolute = value.split(',').map(|judge| with_absolute_paths(judge.trim(), here));
            absolute.collect::<Vec<_>>().join(",")
        }
        _ => value.clone(),
    };
    let known = flags.iter().filter(|given| FLAGS.contains(&given.flag));
    known
        .map(|given| GivenFlag { flag: given.flag.to_owned(), value: value(given.flag, &given.value) })
        .collect()
}

/// Adds a flag, or puts its value in place of the one it has.
pub fn with_flag(mut flags: Vec<GivenFlag>, flag: &str, value: &str) -> Vec<GivenFlag> {
    flags.retain(|given| given.flag != flag);
    flags.push(GivenFlag { flag: flag.to_owned(), value: value.to_owned() });
    flags
}

/// The flag that names a settings file in place of the project's. It is kept so that a hint can name it again.
const FILE_FLAG: &str = "--config";

/// `flags`, with the settings file that was named, whose path is absolute then, and without one that was before.
pub fn with_file(mut flags: Vec<GivenFlag>, file: Option<&Path>) -> Vec<GivenFlag> {
    let Some(file) = file else {
        flags.retain(|given| given.flag != FILE_FLAG);
        return flags;
    };
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    with_flag(flags, FILE_FLAG, &absolute.to_string_lossy())
}

/// A run that was started before.
pub struct Before<'a> {
    /// What binds it.
    pub policy: &'a RunPolicy,
    /// The model that its agents are asked with.
    pub model: &'a ModelPolicy,
    /// The folder that its settings are looked for in: where it works, or what its worktree is of.
    pub folder: PathBuf,
    /// The state of its steps where its workflow's file is read anew; else the workflow stays as it is.
    pub steps: Option<&'a StepTracker>,
}

/// The result of the current settings for a run.
pub struct Today {
    /// What would bind it.
    pub policy: RunPolicy,
    /// Where that comes from.
    pub settled: Settled,
    /// Knows the secrets of today.
    pub redactor: Redactor,
}

/// Reads the current settings for a run: the files, the variables, and the flags that it was started with. `file`
/// replaces the project's file, and `goal` its goal.
///
/// # Errors
/// What is wrong with the settings.
pub fn today(
    before: &Before<'_>,
    file: Option<&Path>,
    goal: Option<&str>,
    variables: &Variables,
) -> Result<Today, RuntimeError> {
    let ByFlags { mut settled, given, place } = by_flags(before, file, goal, variables)?;
    let mut flow = before.policy.flow.clone();
    if let (Some(flow), Some(steps)) = (&mut flow, before.steps)
        && let Some(path) = flow.file.clone()
    {
        let read = FlowFile::read(&path).map_err(|error| no_flow(error, &path))?;
        settled = settled.with_flow(&read);
        *flow = read.policy_again(&settled.settings, flow, steps)?;
    }
    let policy = match &before.policy.agent.external {
        Some(external) => of_program(before, &settled, (&external.program, external.metering), variables)?,
        None => of_agent(before, &settled, &place, variables)?,
    };
    finished(RunPolicy { flow, ..policy }, before, (settled, given), variables)
}

/// The same of `file` without the models: models, agents and goals stay as they were, so that a model which can't
/// be asked today doesn't prevent comparing the rest.
///
/// # Errors
/// What is wrong with the settings.
pub fn today_in_part(before: &Before<'_>, file: &Path, variables: &Variables) -> Result<Today, RuntimeError> {
    let ByFlags { settled, given, .. } = by_flags(before, Some(file), None, variables)?;
    let settings = &settled.settings;
    let mut policy = before.policy.clone();
    let bare = bare_policy(settings, &policy.agent.workspace);
    let agent = &mut policy.agent;
    agent.limits = bare.limits;
    agent.hooks = with_models_of(bare.hooks, &agent.hooks);
    agent.permissions = match &agent.external {
        Some(_) => {
            permissions_of_program(bare.permissions, settled.source("permissions.default") != Source::Default)
        }
        None => bare.permissions,
    };
    if policy.flow.is_none() {
        agent.stop_hooks = settings.stop_hooks.iter().map(|hook| hook.policy(settings)).collect();
    }
    policy.budget = settings.budget;
    policy.spawn = settings.spawn;
    policy.allow_unpriced = settings.allow_unpriced;
    finished(policy, before, (settled, given), variables)
}

/// The current settings with the flags of the start.
struct ByFlags {
    settled: Settled,
    given: Vec<GivenFlag>,
    place: StateDir,
}

fn by_flags(
    before: &Before<'_>,
    file: Option<&Path>,
    goal: Option<&str>,
    variables: &Variables,
) -> Result<ByFlags, RuntimeError> {
    let mut given = before.policy.flags.clone();
    if before.model.name != before.policy.agent.model.name {
        given = with_flag(given, "--model", &before.model.name);
    }
    if let Some(goal) = goal {
        given = with_flag(given, "--goal", goal);
    }
    let value = |flag: &'static str| {
        given.iter().find(|given| given.flag == flag).map(|given| Override::new(flag, given.value.clone()))
    };
    let flags = FLAGS.into_iter().filter_map(value).collect::<Vec<_>>();
    let folder = &before.folder;
    let request =
        Request { file, flags: &flags, ..Request::new(Scope::Project, folder, variables, available_tools()) };
    let (loading, folders) = load(&request)?;
    let settled = loading.settled()?;
    let place = StateDir::new(&settled.settings, &folders, |_| {});
    Ok(ByFlags { settled, given: with_file(given, file), place })
}

fn finished(
    policy: RunPolicy,
    before: &Before<'_>,
    (settled, given): (Settled, Vec<GivenFlag>),
    variables: &Variables,
) -> Result<Today, RuntimeError> {
    let (mut policy, _) = default_limit(policy, &settled)?;
    policy.flags = given;
    kept(&mut policy, before.policy);
    let redactor = Redactor::new(all_secrets(&settled.settings, variables));
    Ok(Today { policy, settled, redactor })
}

fn of_agent(
    before: &Before<'_>,
    settled: &Settled,
    place: &StateDir,
    variables: &Variables,
) -> Result<RunPolicy, RuntimeError> {
    let settings = &settled.settings;
    let folder = &before.folder;
    let is_flow = before.policy.flow.is_some();
    let agents = if is_flow { settings.agents.as_slice() } else { settings.offered_agents() };
    let team = Team::choose(settled, agents, folder, variables)?;
    let mut policy = policy(settings, &team, folder, &place.worktrees());
    if is_flow {
        policy.agent.stop_hooks.clear();
        policy.agent.goal = None;
    }
    if before.model.name != before.policy.agent.model.name {
        policy.agent.model.effort = before.model.effort;
    }
    let workspace = &before.policy.agent.workspace;
    if workspace != folder {
        move_to(&mut policy, folder, workspace);
    }
    let (catalog, _) = known_catalog(settled, place, workspace, variables);
    Ok(with_mcp(policy, settings, &catalog))
}

/// A program stays as it was started; its permissions, hooks and limits are today's.
fn of_program(
    before: &Before<'_>,
    settled: &Settled,
    program: (&str, Metering),
    variables: &Variables,
) -> Result<RunPolicy, RuntimeError> {
    let settings = &settled.settings;
    let team = Team::of_program(settled, program, &before.folder, variables)?;
    let mut policy = before.policy.clone();
    let bare = bare_policy(settings, &policy.agent.workspace);
    let agent = &mut policy.agent;
    let is_set = |key: &str| settled.source(key) != Source::Default;
    let turns_max = if is_set("agent.max_turns") { bare.limits.turns_max } else { agent.limits.turns_max };
    agent.limits = bare.limits;
    agent.limits.turns_max = turns_max;
    agent.hooks.clone_from(&team.hooks);
    agent.permissions = permissions_of_program(bare.permissions, is_set("permissions.default"));
    agent.stop_hooks = settings.stop_hooks.iter().map(|hook| hook.policy(settings)).collect();
    agent.goal.clone_from(&team.goal);
    policy.budget = settings.budget;
    policy.allow_unpriced = settings.allow_unpriced;
    Ok(policy)
}

/// The file of the workflow can't be read, or is wrong.
fn no_flow(error: ConfigError, path: &Path) -> RuntimeError {
    if matches!(error, ConfigError::Problems(_)) {
        return error.into();
    }
    let hint = format!("put {} back, or leave out --with-settings", path.display());
    let causes = std::iter::successors(Some(&error as &(dyn Error + 'static)), |error| (*error).source());
    let what = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    Refusal::new(what, hint).into()
}

/// What isn't a setting stays: the observers, the folder of worktrees, what its agents were told before their goals,
/// and how long outages are waited out and who decides on services, on reads elsewhere and on leaving the sandbox,
/// which depends on the terminal.
fn kept(policy: &mut RunPolicy, before: &RunPolicy) {
    policy.agent.preamble.clone_from(&before.agent.preamble);
    policy.agent.folder_rules_bytes = before.agent.folder_rules_bytes;
    if before.agent.tools.iter().all(|tool| tool.name != SKILL_TOOL) {
        without_skills(policy);
    }
    policy.observers.clone_from(&before.observers);
    policy.worktrees.clone_from(&before.worktrees);
    policy.remote.clone_from(&before.remote);
    let agents = policy.agents.iter_mut().map(|agent| &mut agent.agent);
    for agent in agents.chain([&mut policy.agent]) {
        agent.limits.outage_max_ms = before.agent.limits.outage_max_ms;
        agent.permissions.elsewhere = before.agent.permissions.elsewhere;
        agent.permissions.keeping = before.agent.permissions.keeping;
        agent.permissions.leaving = before.agent.permissions.leaving;
    }
}
