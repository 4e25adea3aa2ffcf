//! A root with reviewers, each of which has workers: a real backend and scripted answers.

use std::sync::Arc;

use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::{agent_tool, spawn_tool};
use provost_event::{
    AgentPolicy, Budget, Isolation, ModelPolicy, Priority, RunId, RunPolicy, SpawnBudget, SubAgentPolicy,
};
use provost_harness::hooks::HookRegistry;
use provost_harness::{AgentHarness, HarnessDeps, Models, Observers, SystemClock, ToolRegistry};
use provost_llm::ScriptedModel;

pub(crate) const RUN: RunId = RunId::from_entropy(21);

/// One reviewer, which spawns one worker, which is done at once.
pub(crate) const TWO_LEVELS: &str = "
answers: [{tools: [{reviewer: {goal: review it}}]}, {text: all is reviewed}]
agents:
  - {goal: review it, answers: [{tools: [{worker: {goal: work on it}}]}, {text: reviewed}]}
  - {goal: work on it, answers: [{text: worked}]}
";

pub(crate) fn backend() -> Arc<EmbeddedBackend> {
    Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).expect("a backend"))
}

/// A harness on `backend`, as in a separate process.
pub(crate) fn harness(
    backend: &Arc<EmbeddedBackend>,
    script: &str,
    observers: Observers,
    hooks: HookRegistry,
) -> AgentHarness {
    let model = ScriptedModel::parse(script, "script").expect("a script");
    let models = Models::new().with("script:test", Arc::new(model));
    let deps =
        HarnessDeps { observers, hooks, ..HarnessDeps::new(backend.clone(), models, ToolRegistry::new()) };
    AgentHarness::new(deps)
}

pub(crate) fn no_hooks() -> HookRegistry {
    HookRegistry::builder().freeze().expect("no hooks")
}

/// Agents that can spawn reviewers (urgent), workers, and copies of themselves.
pub(crate) fn policy() -> RunPolicy {
    let tools = vec![spawn_tool(), agent_tool("reviewer", "It reviews."), agent_tool("worker", "It works.")];
    let agent = AgentPolicy {
        system_prompt: "be good".into(),
        tools,
        ..AgentPolicy::new(ModelPolicy::new("script:test", 1_000), std::env::temp_dir())
    };
    let sub_agent = |name: &str, priority| SubAgentPolicy {
        name: name.to_owned(),
        agent: agent.clone(),
        priority,
        budget: Budget::default(),
        ask_timeout_ms: None,
        isolation: Isolation::Shared,
    };
    RunPolicy {
        spawn: SpawnBudget { max_agents: 64, max_depth: 4, ..SpawnBudget::default() },
        agents: vec![sub_agent("reviewer", Priority::High), sub_agent("worker", Priority::Normal)],
        ..RunPolicy::new(agent)
    }
}
