//! From a builder to an agent: its policy, its models, its backend.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::{Pattern, Permissions, agent_tool, judged_spawn_tool, spawn_tool};
use provost_event::{
    Access, AgentPolicy, Budget, GoalPolicy, ModelPolicy, RunPolicy, SubAgentPolicy, ToolSpec,
};
use provost_harness::{Backend, Clock, HarnessDeps, Redactor, system_prompt};
use provost_hooks::{ProgramHooks, ProgramHooksOptions};
use provost_sqlite::SqliteStore;

use super::{AgentBuilder, StoreChoice};
use provost_tools::keep_edits_of;

use crate::model::{ModelCollection, providers_of_environment};
use crate::{Agent, Error, SubAgent};

impl AgentBuilder {
    /// The agent.
    ///
    /// # Errors
    /// When a model can't be resolved or has no key, names are doubled, a permission could never apply, the workspace
    /// is no folder, or the store can't be opened.
    pub fn build(mut self) -> Result<Agent, Error> {
        self.check_names()?;
        let workspace = workspace(self.workspace.take())?;
        let providers = self.providers.take().unwrap_or_else(|| providers_of_environment(&workspace));
        let mut models = ModelCollection::new(providers);
        let policy = self.policy(&workspace, &mut models)?;
        check_permissions(&policy.agent)?;
        let (mut hooks, mut observers) = (self.hooks, self.observers);
        for agent in &mut self.sub_agents {
            hooks = agent.register_hooks(hooks);
            observers = agent.register_observers(observers);
        }
        let redactor = Arc::new(Redactor::new(models.keys()));
        let programs = ProgramHooks::new(ProgramHooksOptions {
            clock: Arc::clone(&self.clock),
            spill: None,
            header_env: std::collections::HashMap::new(),
            redactor: Arc::clone(&redactor),
            extra_env: Vec::new(),
        });
        let deps = HarnessDeps {
            stop_hooks: self.stop_hooks,
            hooks: hooks.freeze()?,
            hook_programs: Arc::new(programs),
            callback: self.callback,
            observers,
            clock: Arc::clone(&self.clock),
            power: self.power,
            redactor,
            ..HarnessDeps::new(self.store.open(self.clock)?, models.models, self.tools)
        };
        Ok(Agent::new(deps, policy))
    }

    fn check_names(&self) -> Result<(), Error> {
        let agents = self.sub_agents.iter().map(|agent| &agent.name);
        let mut tools = BTreeSet::new();
        if let Some(name) = self.tool_names.iter().chain(agents).find(|name| !tools.insert(*name)) {
            return Err(Error::DoubledTool { name: name.clone() });
        }
        let mut hooks = BTreeSet::new();
        let doubled = self.stop_hook_policies.iter().find(|hook| !hooks.insert(&hook.name));
        doubled.map_or(Ok(()), |hook| Err(Error::DoubledStopHook { name: hook.name.clone() }))
    }

    fn policy(&mut self, workspace: &Path, models: &mut ModelCollection) -> Result<RunPolicy, Error> {
        let mut model = models.add(self.model.clone())?;
        for fallback in std::mem::take(&mut self.fallbacks) {
            model.fallbacks.push(models.add(fallback)?);
        }
        let mut judges = Vec::new();
        for judge in std::mem::take(&mut self.judges) {
            judges.push(models.add(judge)?);
        }
        if judges.is_empty() {
            judges.push(ModelPolicy { fallbacks: Vec::new(), ..model.clone() });
        }
        let is_judged = self.goal.is_some() || self.sub_agents.iter().any(|agent| agent.goal.is_some());
        let judged = |condition: String| {
            let goal = GoalPolicy::new(condition, model.clone());
            Box::new(GoalPolicy { judges: judges.clone(), agree: self.quorum, ..goal })
        };
        let prompt = self.system_prompt.clone();
        let mut root = AgentPolicy {
            system_prompt: prompt.unwrap_or_else(|| system_prompt(workspace, &self.instructions)),
            tools: self.tool_specs(is_judged),
            limits: self.limits,
            stop_hooks: self.stop_hook_policies.clone(),
            permissions: self.permissions.clone(),
            step_mode: self.step_mode,
            goal: self.goal.clone().map(judged),
            final_check: self.final_check,
            ..AgentPolicy::new(model.clone(), workspace.to_owned())
        };
        let mut agents = Vec::with_capacity(self.sub_agents.len());
        for agent in &self.sub_agents {
            let own = agent.model.clone().map(|choice| models.add(choice)).transpose()?;
            let goal = agent.goal.clone().map(judged);
            agents.push(sub_agent(agent, own, goal, &root)?);
        }
        keep_edits_of(&root.model, &mut root.tools);
        let mut policy = RunPolicy {
            allow_unpriced: self.allow_unpriced,
            spawn: self.spawn,
            agents,
            judging: is_judged.then(|| judged(String::new())),
            worktrees: self.worktrees.take(),
            ..RunPolicy::new(root)
        };
        policy.budget = self.budget.unwrap_or_else(|| default_budget(&policy));
        Ok(policy)
    }

    fn tool_specs(&self, is_judged: bool) -> Vec<ToolSpec> {
        let mut specs = self.tools.specs();
        if self.may_spawn {
            specs.push(if is_judged { judged_spawn_tool() } else { spawn_tool() });
        }
        specs.extend(self.sub_agents.iter().map(|agent| agent_tool(&agent.name, &agent.description)));
        specs
    }
}

impl StoreChoice {
    fn open(self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Backend>, Error> {
        Ok(match self {
            Self::Memory => Arc::new(EmbeddedBackend::new(MemoryStore::new(), clock)?),
            Self::Sqlite(path) => Arc::new(EmbeddedBackend::new(SqliteStore::open(path)?, clock)?),
            Self::Backend(backend) => backend,
            Self::Own(open) => Arc::new(open(clock)?),
        })
    }
}

fn workspace(given: Option<PathBuf>) -> Result<PathBuf, Error> {
    let given = given.unwrap_or_else(|| PathBuf::from("."));
    let folder = given.canonicalize().and_then(|path| std::fs::read_dir(&path).map(|_| path));
    folder.map_err(|source| Error::Workspace { path: given, source })
}

fn sub_agent(
    agent: &SubAgent,
    model: Option<ModelPolicy>,
    goal: Option<Box<GoalPolicy>>,
    root: &AgentPolicy,
) -> Result<SubAgentPolicy, Error> {
    for tool in agent.tools.iter().flatten() {
        if !root.tools.iter().any(|spec| spec.name == *tool) {
            return Err(Error::UnknownTool { agent: agent.name.clone(), tool: tool.clone() });
        }
    }
    let is_its = |spec: &&ToolSpec| match &agent.tools {
        Some(names) => names.contains(&spec.name),
        None => spec.access != Access::Delegates,
    };
    let model = model.unwrap_or_else(|| root.model.clone());
    let mut tools = root.tools.iter().filter(is_its).cloned().collect::<Vec<_>>();
    // What its own list names it has, whatever its model was taught.
    if agent.tools.is_none() {
        keep_edits_of(&model, &mut tools);
    }
    let mut limits = root.limits;
    limits.turns_max = agent.max_turns.unwrap_or(limits.turns_max);
    let policy = AgentPolicy {
        system_prompt: system_prompt(&root.workspace, &agent.instructions),
        tools,
        limits,
        permissions: root.permissions.clone(),
        goal,
        final_check: root.final_check,
        ..AgentPolicy::new(model, root.workspace.clone())
    };
    Ok(SubAgentPolicy {
        priority: agent.priority,
        budget: agent.budget,
        ask_timeout_ms: agent.ask_timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        isolation: agent.isolation,
        ..SubAgentPolicy::new(agent.name.clone(), policy)
    })
}

/// 20 dollars where that can limit all models, and one of them costs something.
fn default_budget(policy: &RunPolicy) -> Budget {
    let agents = || [&policy.agent].into_iter().chain(policy.agents.iter().map(|agent| &agent.agent));
    let judges = policy.judging.iter().flat_map(|goal| &goal.judges);
    let models =
        agents().flat_map(|agent| std::iter::once(&agent.model).chain(&agent.model.fallbacks)).chain(judges);
    let prices = models.map(|model| model.price).collect::<Option<Vec<_>>>();
    let costs = prices.is_some_and(|prices| prices.iter().any(|price| !price.is_free()));
    Budget { money: costs.then_some(Budget::DEFAULT_MONEY), ..Budget::default() }
}

/// Every pattern must be readable, and about a tool that the agent has.
fn check_permissions(agent: &AgentPolicy) -> Result<(), Error> {
    let permissions = &agent.permissions;
    Permissions::new(permissions, &agent.workspace, &agent.tools)?;
    let tools = agent.tools.iter().map(ToolSpec::identity).collect::<Vec<_>>();
    for text in permissions.allow.iter().chain(&permissions.ask).chain(&permissions.deny) {
        let pattern = Pattern::parse(text)?;
        let mut named = tools.iter().filter(|tool| pattern.names(tool)).peekable();
        let Some(first) = named.peek() else {
            let known = agent.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            return Err(Error::PermissionOfNoTool { pattern: text.clone(), known });
        };
        let name = first.name.clone();
        let mismatches = named.map(|tool| pattern.mismatch(tool)).collect::<Option<Vec<_>>>();
        if let Some(mismatch) = mismatches.and_then(|all| all.first().copied()) {
            let (why, remedy) = (mismatch.why(&name), mismatch.remedy(&name));
            return Err(Error::PermissionWithoutCalls { pattern: text.clone(), why, remedy });
        }
    }
    Ok(())
}
