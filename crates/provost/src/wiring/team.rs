//! The agents of a run: the one that it begins with, and those that may be asked for by name.

use std::collections::BTreeSet;
use std::path::Path;

use provost_engine::{SPAWN_TOOL, agent_tool, spawn_tool};
use provost_event::{
    Access, AgentPolicy, Isolation, Limits, ModelPolicy, Pace, RunPolicy, StopHookPolicy, SubAgentPolicy,
    ToolSpec,
};
use provost_harness::{Models, system_prompt};
use provost_llm::resolve;

use super::choose::{Choosing, Wanted, words};
use super::{Variables, model_name, providers, tools};
use crate::exit::Refusal;
use crate::settings::{Agent, Problem, Problems, Settings, Settled, StopHook};
use crate::window::Keys;

/// The agents of a new run, and the models that they think with.
pub(crate) struct Team {
    /// The model of the agent that the run begins with.
    pub(crate) model: ModelPolicy,
    /// Those that may be asked for by name.
    pub(crate) agents: Vec<SubAgentPolicy>,
    /// The models of all.
    pub(crate) models: Models,
}

impl Team {
    /// The agent that the settings describe, with `agents` of theirs, in `folder`.
    ///
    /// # Errors
    /// [`Problems`] that name the settings.
    pub(crate) fn choose(
        settled: &Settled,
        agents: &[Agent],
        folder: &Path,
        variables: &Variables,
    ) -> Result<Self, Problems> {
        let mut choosing = Choosing::new(settled, variables);
        let mut problems = misplaced(agents, folder);
        // Such an agent fails by itself if it is asked for.
        problems.retain(|problem| !settled.counts_everywhere(&problem.source));
        let mut chosen = Vec::new();
        for wanted in wanted(settled, agents, folder) {
            match choosing.choose(&wanted) {
                Ok(one) => chosen.push(one.policy),
                Err(Problems(more)) => problems.extend(more),
            }
        }
        let mut chosen = chosen.into_iter();
        let Some(model) = chosen.next().filter(|_| problems.is_empty()) else {
            return Err(Problems(problems));
        };
        let sub_agents = agents.iter().zip(chosen);
        let sub_agents = sub_agents.map(|(agent, model)| sub_agent(&settled.settings, agent, model, folder));
        Ok(Self { model, agents: sub_agents.collect(), models: choosing.models() })
    }
}

/// The models of a run that was started before, reached with today's addresses and keys.
///
/// # Errors
/// A [`Refusal`] that names the model that can't be.
pub(crate) fn frozen_models(
    policy: &RunPolicy,
    settings: &Settings,
    variables: &Variables,
) -> Result<Models, Refusal> {
    let all = providers(settings, variables);
    let sub_agents = policy.agents.iter().map(|sub_agent| &sub_agent.agent);
    let names = [&policy.agent].into_iter().chain(sub_agents).map(|agent| &agent.model.name);
    let mut models = Models::new();
    for name in names.collect::<BTreeSet<_>>() {
        let (model, _) = resolve(name, &all)
            .map_err(|error| Refusal::new(words(&error), "the run was started with this model"))?;
        models = models.with(name.clone(), model);
    }
    Ok(models)
}

/// What the agent of the run and each of `agents` ask of their models, in this order.
pub(crate) fn wanted(settled: &Settled, agents: &[Agent], folder: &Path) -> Vec<Wanted> {
    let root = wanted_of_root(settled, folder);
    std::iter::once(root).chain(agents.iter().map(|agent| wanted_of(agent, settled, folder))).collect()
}

pub(super) fn wanted_of_root(settled: &Settled, folder: &Path) -> Wanted {
    let settings = &settled.settings;
    let key = |field: &str| (settled.source(&format!("agent.{field}")), format!("agent.{field}"));
    Wanted {
        of: None,
        name: model_name(&settings.model, &settled.source("agent.model"), folder),
        keys: Keys { model: key("model"), cap: key("output_tokens_max") },
        cap: settings.output_tokens_max,
        cap_at_most: None,
        effort: settings.effort,
        money: None,
        prompt: system_prompt(folder, &settings.instructions),
        tools: tools_of_root(settings),
    }
}

fn wanted_of(agent: &Agent, settled: &Settled, folder: &Path) -> Wanted {
    let settings = &settled.settings;
    let key = |field: &str| (agent.source_of(field), format!("agents.{field}"));
    let name = match &agent.model {
        Some(model) => model_name(model, &agent.source_of("model"), folder),
        None => model_name(&settings.model, &settled.source("agent.model"), folder),
    };
    Wanted {
        of: Some(agent.name.clone()),
        name,
        keys: Keys { model: key("model"), cap: key("output_tokens_max") },
        cap: agent.output_tokens_max,
        cap_at_most: settings.output_tokens_max,
        effort: agent.effort.or(settings.effort),
        money: agent.budget.money.map(|_| agent.source_of("usd")),
        prompt: prompt_of(agent, settings, folder),
        tools: tools_of(agent, settings),
    }
}

fn prompt_of(agent: &Agent, settings: &Settings, folder: &Path) -> String {
    system_prompt(folder, agent.instructions.as_ref().unwrap_or(&settings.instructions))
}

/// The names of all tools but those that ask for agents by name.
pub(crate) fn tool_names() -> Vec<String> {
    let built_in = tools().specs().into_iter().map(|tool| tool.name);
    built_in.chain([SPAWN_TOOL.to_owned()]).collect()
}

/// What the agent of the run may call: the tools, and what has another agent work.
fn tools_of_root(settings: &Settings) -> Vec<ToolSpec> {
    let mut specs = tools().specs();
    if settings.delegates() {
        specs.push(spawn_tool());
    }
    let offered = settings.offered_agents().iter();
    specs.extend(offered.map(|agent| agent_tool(&agent.name, &agent.description)));
    specs
}

fn tools_of(agent: &Agent, settings: &Settings) -> Vec<ToolSpec> {
    let is_its = |tool: &ToolSpec| match &agent.tools {
        Some(names) => names.contains(&tool.name),
        None => tool.access != Access::Delegates,
    };
    tools_of_root(settings).into_iter().filter(is_its).collect()
}

/// Agents that are to work in a worktree where there can be none.
pub(crate) fn misplaced(agents: &[Agent], folder: &Path) -> Vec<Problem> {
    let top = folder.ancestors().find(|folder| folder.join(".git").exists());
    let (why, remedy) = match top {
        Some(top) if top == folder => return Vec::new(),
        Some(top) => (format!("the top of its git repository is {}", top.display()), "start there"),
        None => (format!("{} is in no git repository", folder.display()), "`git init` makes one"),
    };
    let lost = agents.iter().filter(|agent| agent.isolation == Isolation::Worktree);
    let problem = |agent: &Agent| Problem {
        source: agent.source_of("isolation"),
        key: "agents.isolation".to_owned(),
        what: format!("`{}` can have no worktree: {why}", agent.name),
        remedy: format!("{remedy}; or leave it out; or have no sub-agents, with --max-agents 1"),
    };
    lost.map(problem).collect()
}

fn sub_agent(settings: &Settings, agent: &Agent, model: ModelPolicy, folder: &Path) -> SubAgentPolicy {
    let stop_hooks = settings.stop_hooks.iter().filter(|hook| agent.stop_hooks.contains(&hook.name));
    let limits =
        Limits { turns_max: agent.max_turns.unwrap_or(settings.limits.turns_max), ..settings.limits };
    SubAgentPolicy {
        name: agent.name.clone(),
        agent: AgentPolicy {
            model,
            system_prompt: prompt_of(agent, settings, folder),
            tools: tools_of(agent, settings),
            limits,
            stop_hooks: stop_hooks.map(StopHook::policy).collect(),
            permissions: agent.permissions(settings.permissions.policy()),
            ..bare_policy(settings, folder)
        },
        priority: agent.priority,
        budget: agent.budget,
        ask_timeout_ms: agent.ask_timeout_ms,
        isolation: agent.isolation,
    }
}

/// What all agents have alike; each names its own model, prompt and tools.
fn bare_policy(settings: &Settings, workspace: &Path) -> AgentPolicy {
    AgentPolicy {
        goal: None,
        model: ModelPolicy::new("", 0),
        system_prompt: String::new(),
        tools: Vec::new(),
        workspace: workspace.to_owned(),
        bounds: Vec::new(),
        limits: settings.limits,
        stop_hooks: Vec::<StopHookPolicy>::new(),
        hooks: settings.all_hooks().into_iter().map(|placed| placed.policy).collect(),
        permissions: settings.permissions.policy(),
        pace: Pace::Free,
    }
}

/// The policy of a new run of `team` in `workspace`; worktrees of its agents are made in `worktrees`.
pub(crate) fn policy(settings: &Settings, team: &Team, workspace: &Path, worktrees: &Path) -> RunPolicy {
    RunPolicy {
        judging: None,
        observers: Vec::new(),
        budget: settings.budget,
        spawn: settings.spawn,
        agents: team.agents.clone(),
        flow: None,
        worktrees: Some(worktrees.to_owned()),
        allow_unpriced: settings.allow_unpriced,
        agent: AgentPolicy {
            model: team.model.clone(),
            system_prompt: system_prompt(workspace, &settings.instructions),
            tools: tools_of_root(settings),
            stop_hooks: settings.stop_hooks.iter().map(StopHook::policy).collect(),
            ..bare_policy(settings, workspace)
        },
    }
}
