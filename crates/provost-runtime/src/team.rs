//! The agents of a run: the first one, and those that other agents may request by name.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use provost_config::{Agent, AvailableTools, Problem, Problems, Settings, Settled};
use provost_engine::{agent_tool, judged_spawn_tool, spawn_tool};
use provost_event::{
    Access, AgentPolicy, GoalPolicy, HookPolicy, Isolation, Limits, Metering, ModelPolicy, PermissionPolicy,
    RunPolicy, SubAgentPolicy, ToolSpec,
};
use provost_harness::{Models, consent_tools, system_prompt};
use provost_llm::resolve;
use provost_tools::keep_edits_of;

use crate::Refusal;
use crate::afford;
use crate::choose::{Choosing, Named, Wanted, words};
use crate::external;
use crate::goals::wanted_goals;
use crate::hook_models::{hooks_with_models, models_of_hooks, wanted_of_hooks, with_hooks};
use crate::paths::{SCRIPT, model_name};
use crate::preamble::SKILL_TOOL;
use crate::window::{Keys, Room};
use crate::{Variables, providers, tools};

/// The agents of a new run, and their models.
pub struct Team {
    /// The model of the agent that the run begins with.
    pub model: ModelPolicy,
    /// What must be confirmed before that one is done.
    pub goal: Option<Box<GoalPolicy>>,
    /// How goals are judged that agents give each other.
    pub judging: Option<Box<GoalPolicy>>,
    /// Those that other agents may request by name.
    pub agents: Vec<SubAgentPolicy>,
    /// The hooks of all, with the models that some of them are.
    pub hooks: Vec<HookPolicy>,
    /// The models of all.
    pub models: Models,
}

impl Team {
    /// Only the judges of a run whose first agent is an external program.
    ///
    /// # Errors
    /// [`Problems`] that name the settings.
    pub fn of_program(
        settled: &Settled,
        (program, metering): (&str, Metering),
        folder: &Path,
        variables: &Variables,
    ) -> Result<Self, Problems> {
        let mut choosing = Choosing::new(settled, variables);
        let mut problems =
            external::unpriced(settled, None, (program, metering)).into_iter().collect::<Vec<_>>();
        let mut choose = |wanted: &Wanted| match choosing.choose(wanted) {
            Ok(chosen) => Some(chosen.policy),
            Err(Problems(more)) => {
                more.into_iter().for_each(|problem| note_once(&mut problems, problem));
                None
            }
        };
        let mut goals = wanted_goals(settled, &[], folder);
        goals.of_spawned = None;
        let hooks = hooks_with_models(settled, folder, &mut choose);
        let goals = goals.policies(&settled.settings, choose);
        problems.extend(afford::problems(settled, &[], &goals));
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        Ok(Self {
            model: external::external_model(program),
            goal: goals.of_run,
            judging: None,
            agents: Vec::new(),
            hooks,
            models: choosing.models(),
        })
    }

    /// The agent that the settings describe, with `agents` of theirs, in `folder`.
    ///
    /// # Errors
    /// [`Problems`] that name the settings.
    pub fn choose(
        settled: &Settled,
        agents: &[Agent],
        folder: &Path,
        variables: &Variables,
    ) -> Result<Self, Problems> {
        let mut choosing = Choosing::new(settled, variables);
        let mut problems = misplaced(agents, folder);
        // Such an agent fails by itself when it is requested.
        problems.retain(|problem| !settled.counts_everywhere(&problem.source));
        let mut choose = |wanted: &Wanted| match choosing.choose(wanted) {
            Ok(chosen) => Some(chosen.policy),
            Err(Problems(more)) => {
                for problem in more {
                    note_once(&mut problems, problem);
                }
                None
            }
        };
        let settings = &settled.settings;
        let model = choose(&wanted_of_root(settled, folder));
        let of_agent = |agent: &Agent| match agent.external() {
            Some(external) => Some(external::external_model(&external.program)),
            None => choose(&wanted_of(agent, settled, folder)),
        };
        let models = agents.iter().map(of_agent).collect::<Vec<_>>();
        let hooks = hooks_with_models(settled, folder, &mut choose);
        let goals = wanted_goals(settled, agents, folder).policies(settings, choose);
        problems.extend(afford::problems(settled, agents, &goals));
        let profiles = match external::profiles_of(settled, agents, variables) {
            Ok(profiles) => profiles,
            Err(Problems(more)) => {
                problems.extend(more);
                Vec::new()
            }
        };
        let Some(model) = model.filter(|_| problems.is_empty()) else {
            return Err(Problems(problems));
        };
        let made = agents.iter().zip(models.into_iter().flatten()).zip(profiles);
        let sub_agents = made.zip(goals.of_agents).map(|(((agent, model), profile), goal)| {
            let mut one = match (agent.external(), &profile) {
                (Some(external), Some(profile)) => {
                    external::sub_agent(settled, agent, external, (folder, profile))
                }
                _ => sub_agent(settings, agent, model, folder),
            };
            one.agent.goal = goal;
            one
        });
        Ok(Self {
            model,
            goal: goals.of_run,
            judging: goals.of_spawned,
            agents: sub_agents.collect(),
            hooks,
            models: choosing.models(),
        })
    }
}

/// Notes what is wrong, unless it is known: a model that several need is wrong for all of them.
pub fn note_once(problems: &mut Vec<Problem>, problem: Problem) {
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}

/// Whether a run that goes on needs its judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judges {
    /// Its goal is to be verified.
    Needed,
    /// Its goal was cleared: an agent that gets another one and has no judge is suspended.
    Spared,
}

/// The models of a run that was started before, reached with today's addresses and keys.
///
/// # Errors
/// A [`Refusal`] that names the model that can't be.
pub fn frozen_models(
    policy: &RunPolicy,
    judges: Judges,
    replaced: Option<&str>,
    (settings, variables): (&Settings, &Variables),
) -> Result<Models, Refusal> {
    let all = providers(settings, variables);
    let working = working_models(policy).map(|model| &model.name).collect::<BTreeSet<_>>();
    let of_hooks = agents_of(policy).flat_map(models_of_hooks).map(|model| &model.name);
    let of_hooks = of_hooks.collect::<BTreeSet<_>>();
    let mut models = Models::new();
    for name in models_of(policy).map(|model| &model.name).collect::<BTreeSet<_>>() {
        let is_hook = of_hooks.contains(name);
        let is_judge = !working.contains(name) && !is_hook;
        match resolve(name, &all) {
            Ok((model, _)) => models = models.with(name.clone(), model),
            Err(_) if replaced == Some(name) => {}
            Err(_) if is_judge && judges == Judges::Spared => {}
            Err(error) if is_judge => {
                let hint = "it judges the run's goal; `provost goal clear` has the run go on without";
                return Err(Refusal::new(words(&error), hint));
            }
            Err(error) if is_hook && !working.contains(name) => {
                return Err(Refusal::new(words(&error), "a hook of the run asks this model"));
            }
            Err(error) => return Err(Refusal::new(words(&error), "the run was started with this model")),
        }
    }
    Ok(models)
}

/// All models that a run may ask: those of its agents, of their judges and of their hooks.
pub fn models_of(policy: &RunPolicy) -> impl Iterator<Item = &ModelPolicy> {
    let goals = agents_of(policy).filter_map(|agent| agent.goal.as_deref()).chain(policy.judging.as_deref());
    let hooks = agents_of(policy).flat_map(models_of_hooks);
    working_models(policy).chain(goals.flat_map(|goal| &goal.judges)).chain(hooks)
}

/// A program has a model of its own, which Provost doesn't call.
fn working_models(policy: &RunPolicy) -> impl Iterator<Item = &ModelPolicy> {
    let native = agents_of(policy).filter(|agent| agent.external.is_none());
    native.flat_map(|agent| std::iter::once(&agent.model).chain(&agent.model.fallbacks))
}

/// The programs among a run's agents, by the names of their models.
pub fn programs_of(policy: &RunPolicy) -> impl Iterator<Item = &ModelPolicy> {
    agents_of(policy).filter(|agent| agent.external.is_some()).map(|agent| &agent.model)
}

/// Whether a program among a run's agents calls models through the gateway.
pub(crate) fn has_metered(policy: &RunPolicy) -> bool {
    let mut programs = agents_of(policy).filter_map(|agent| agent.external.as_ref());
    programs.any(|external| external.metering == Metering::Gateway)
}

fn agents_of(policy: &RunPolicy) -> impl Iterator<Item = &AgentPolicy> {
    [&policy.agent].into_iter().chain(policy.agents.iter().map(|sub_agent| &sub_agent.agent))
}

/// The model requirements of the run's agent and of each of `agents`, in this order, then of their judges, and then of
/// hooks.
pub fn wanted(settled: &Settled, agents: &[Agent], folder: &Path) -> Vec<Wanted> {
    let mut all = wanted_of_agents(settled, agents, folder);
    all.extend(wanted_goals(settled, agents, folder).judges());
    all.extend(wanted_of_hooks(settled, folder));
    all
}

/// Limits that can't pay for a single verdict of the judges that `choosing` finds.
pub fn unaffordable(
    choosing: &mut Choosing<'_>,
    settled: &Settled,
    agents: &[Agent],
    folder: &Path,
) -> Vec<Problem> {
    let choose = |wanted: &Wanted| Some(choosing.choose(wanted).ok()?.policy);
    let goals = wanted_goals(settled, agents, folder).policies(&settled.settings, choose);
    afford::problems(settled, agents, &goals)
}

/// Notes on agents whose work only their own model judges.
pub fn doubts(settled: &Settled, agents: &[Agent], folder: &Path) -> Vec<String> {
    wanted_goals(settled, agents, folder).doubts().collect()
}

fn wanted_of_agents(settled: &Settled, agents: &[Agent], folder: &Path) -> Vec<Wanted> {
    let root = wanted_of_root(settled, folder);
    let native = agents.iter().filter(|agent| agent.external().is_none());
    std::iter::once(root).chain(native.map(|agent| wanted_of(agent, settled, folder))).collect()
}

pub(crate) fn wanted_of_root(settled: &Settled, folder: &Path) -> Wanted {
    let settings = &settled.settings;
    let key = |field: &str| (settled.source(&format!("agent.{field}")), format!("agent.{field}"));
    Wanted {
        fallbacks: fallbacks_of_root(settled, folder),
        of: None,
        name: model_name(&settings.model, &settled.source("agent.model"), folder),
        keys: Keys { model: key("model"), cap: key("output_tokens_max") },
        cap: settings.output_tokens_max,
        cap_at_most: None,
        effort: settings.effort,
        money: None,
        room: Room::Conversation {
            prompt: with_goal(
                system_prompt(folder, &settings.instructions),
                settings.goal.condition.as_deref(),
            ),
            tools: without_skills(tools_of_root(settings, &of_unknown_model())),
        },
    }
}

fn fallbacks_of_root(settled: &Settled, folder: &Path) -> Vec<Named> {
    const KEY: &str = "agent.fallback_models";
    let named = |name: &String| {
        let source = settled.source_of_item(KEY, name);
        Named { name: model_name(name, &source, folder), at: (source, KEY.to_owned()) }
    };
    settled.settings.fallback_models.iter().map(named).collect()
}

pub(crate) fn wanted_of(agent: &Agent, settled: &Settled, folder: &Path) -> Wanted {
    let settings = &settled.settings;
    let key = |field: &str| (agent.source_of(field), format!("agents.{field}"));
    let name = match &agent.model {
        Some(model) => model_name(model, &agent.source_of("model"), folder),
        None => model_name(&settings.model, &settled.source("agent.model"), folder),
    };
    let fallbacks = match (&agent.fallback_models, &agent.model) {
        (Some(own), _) => {
            let (source, key) = key("fallback_models");
            let name = |name: &String| model_name(name, &source, folder);
            own.iter().map(|one| Named { name: name(one), at: (source.clone(), key.clone()) }).collect()
        }
        (None, None) => fallbacks_of_root(settled, folder),
        (None, Some(_)) => Vec::new(),
    };
    Wanted {
        fallbacks,
        of: Some(format!("the model of `{}`", agent.name)),
        name,
        keys: Keys { model: key("model"), cap: key("output_tokens_max") },
        cap: agent.output_tokens_max,
        cap_at_most: settings.output_tokens_max,
        effort: agent.effort.or(settings.effort),
        money: agent.budget.money.map(|_| agent.source_of("usd")),
        room: Room::Conversation {
            prompt: with_goal(prompt_of(agent, settings, folder), agent.condition.as_deref()),
            tools: without_skills(tools_of(agent, settings, &of_unknown_model())),
        },
    }
}

/// A model with little room isn't told of skills, and has no tool for them.
fn without_skills(mut tools: Vec<ToolSpec>) -> Vec<ToolSpec> {
    tools.retain(|tool| tool.name != SKILL_TOOL);
    tools
}

/// About the prompt of an agent that begins: the engine adds its goal.
fn with_goal(prompt: String, condition: Option<&str>) -> String {
    match condition {
        Some(condition) => format!("{prompt}\n\n{condition}"),
        None => prompt,
    }
}

fn prompt_of(agent: &Agent, settings: &Settings, folder: &Path) -> String {
    system_prompt(folder, agent.instructions.as_ref().unwrap_or(&settings.instructions))
}

/// All tools but those that request agents by name: the built-in ones, then those that stand for external agents'
/// questions only.
pub fn known_tools() -> &'static [ToolSpec] {
    static ALL: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
        let mut all = native_tools().collect::<Vec<_>>();
        let of_programs = consent_tools().into_iter();
        let others =
            of_programs.filter(|tool| all.iter().all(|known| known.name != tool.name)).collect::<Vec<_>>();
        all.extend(others);
        all.push(search_tool());
        all
    });
    &ALL
}

/// What finds tools of MCP servers, which an agent has if there are any.
fn search_tool() -> ToolSpec {
    provost_mcp_client::search_tool()
}

/// The known tool of this name.
pub fn known_tool(name: &str) -> Option<&'static ToolSpec> {
    known_tools().iter().find(|tool| tool.name == name)
}

/// What settings may name of the tools.
pub fn available_tools() -> AvailableTools<'static> {
    static NATIVE: LazyLock<Vec<String>> = LazyLock::new(|| native_tools().map(|tool| tool.name).collect());
    AvailableTools { all: known_tools(), native: &NATIVE }
}

fn native_tools() -> impl Iterator<Item = ToolSpec> {
    tools().specs().into_iter().chain([spawn_tool()])
}

/// What the agent of the run may call: the tools, and those that start other agents.
/// A model that isn't chosen yet. Its tools are the longest to describe.
fn of_unknown_model() -> ModelPolicy {
    ModelPolicy::new("", 0)
}

/// The tools of an agent with this model.
fn tools_of_root(settings: &Settings, model: &ModelPolicy) -> Vec<ToolSpec> {
    let mut specs = all_tools(settings);
    keep_edits_of(model, &mut specs);
    specs
}

/// The tools that agents may have.
fn all_tools(settings: &Settings) -> Vec<ToolSpec> {
    let mut specs = tools().specs();
    if settings.delegates() {
        specs.push(if settings.goals_are_given() { judged_spawn_tool() } else { spawn_tool() });
    }
    let offered = settings.offered_agents().iter();
    specs.extend(offered.map(|agent| agent_tool(&agent.name, &agent.description)));
    specs
}

/// What an agent's own list names it has, whatever its model was taught.
fn tools_of(agent: &Agent, settings: &Settings, model: &ModelPolicy) -> Vec<ToolSpec> {
    match &agent.tools {
        Some(names) => all_tools(settings).into_iter().filter(|tool| names.contains(&tool.name)).collect(),
        None => {
            let tools = tools_of_root(settings, model).into_iter();
            tools.filter(|tool| tool.access != Access::Delegates).collect()
        }
    }
}

/// Agents that are to work in a worktree where there can be none.
pub fn misplaced(agents: &[Agent], folder: &Path) -> Vec<Problem> {
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
    let limits = Limits {
        turns_max: agent.max_turns.unwrap_or(settings.limits.turns_max),
        retry: agent.retry(settings.limits.retry),
        outage_max_ms: settings.outage_max_ms,
        ..settings.limits
    };
    SubAgentPolicy {
        name: agent.name.clone(),
        agent: AgentPolicy {
            final_check: questions_end(settings, &model),
            system_prompt: prompt_of(agent, settings, folder),
            tools: tools_of(agent, settings, &model),
            model,
            limits,
            stop_hooks: stop_hooks.map(|hook| hook.policy(settings)).collect(),
            permissions: agent.permissions(permissions_of(settings, folder)),
            ..bare_policy(settings, folder)
        },
        priority: agent.priority,
        budget: agent.budget,
        ask_timeout_ms: agent.ask_timeout_ms,
        isolation: agent.isolation,
    }
}

/// Whether an agent's end is questioned. A script has all its answers before it is asked: its last one is its end.
fn questions_end(settings: &Settings, model: &ModelPolicy) -> bool {
    settings.final_check.unwrap_or_else(|| !model.name.starts_with(SCRIPT))
}

/// The permissions of the run for an agent in `workspace`.
pub(crate) fn permissions_of(settings: &Settings, workspace: &Path) -> PermissionPolicy {
    PermissionPolicy { roots: settings.tools.roots_of(workspace), ..settings.permissions.policy() }
}

/// What all agents have in common; each names its own model, prompt and tools.
pub(crate) fn bare_policy(settings: &Settings, workspace: &Path) -> AgentPolicy {
    AgentPolicy {
        limits: Limits { outage_max_ms: settings.outage_max_ms, ..settings.limits },
        hooks: settings.all_hooks().into_iter().map(|placed| placed.policy).collect(),
        permissions: permissions_of(settings, workspace),
        sandbox: settings.sandbox_policy(workspace, provost_config::home_folder().as_deref()),
        ..AgentPolicy::new(ModelPolicy::new("", 0), workspace.to_owned())
    }
}

/// The policy of a new run of `team` in `workspace`; worktrees of its agents are made in `worktrees`.
pub fn policy(settings: &Settings, team: &Team, workspace: &Path, worktrees: &Path) -> RunPolicy {
    let policy = RunPolicy {
        judging: team.judging.clone(),
        budget: settings.budget,
        spawn: settings.spawn,
        agents: team.agents.clone(),
        worktrees: Some(worktrees.to_owned()),
        allow_unpriced: settings.allow_unpriced,
        ..RunPolicy::new(AgentPolicy {
            final_check: questions_end(settings, &team.model),
            model: team.model.clone(),
            system_prompt: system_prompt(workspace, &settings.instructions),
            tools: tools_of_root(settings, &team.model),
            stop_hooks: settings.stop_hooks.iter().map(|hook| hook.policy(settings)).collect(),
            goal: team.goal.clone(),
            ..bare_policy(settings, workspace)
        })
    };
    with_hooks(policy, &team.hooks)
}
