//! A long job on a real backend: the tools, the policy, and access to the results.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use provost_event::{
    Access, AgentPolicy, Json, Limits, ModelPolicy, RunId, RunPolicy, SessionId, ToolSpec, ToolSubject,
};
use provost_harness::{
    AgentHarness, Backend, HarnessDeps, Model, Models, Tool, ToolContext, ToolOutput, ToolRegistry,
};

use super::long_job::{Look, REMEMBERED};
use super::long_texts::output;

pub(crate) const RUN: RunId = RunId::from_entropy(4_711);
pub(crate) const SESSION: SessionId = SessionId::root(RUN);
/// The name of the model.
pub(crate) const MODEL_NAME: &str = "test/harbour";
/// Maximum tokens of an answer.
pub(crate) const OUTPUT_TOKENS_MAX: u32 = 2_000;

/// Shows, writes, or stores a plan, by its name.
struct Worker(ToolSpec);

#[async_trait]
impl Tool for Worker {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: &Json, _: &ToolContext) -> ToolOutput {
        match self.0.name.as_str() {
            "look" => match input.read::<Look>() {
                Ok(look) => ToolOutput::ok(output(look.n)),
                Err(error) => ToolOutput::rejected(error.to_string()),
            },
            "update_plan" => ToolOutput { memory: Some(input.clone()), ..ToolOutput::ok(REMEMBERED) },
            _ => ToolOutput::ok(REMEMBERED),
        }
    }
}

/// The tools of a long job.
pub(crate) fn tool_registry() -> ToolRegistry {
    let writes = Access::Writes;
    let worker = |name, description, access| Worker(spec(name, description, access));
    ToolRegistry::new()
        .with(worker("look", "Looks at one thing; `n` says at which.", Access::Reads))
        .with(worker("write", "Writes `text` to the file at `path`.", writes))
        .with(worker("update_plan", "Replaces the plan by `items`.", Access::Reads))
}

fn spec(name: &str, description: &str, access: Access) -> ToolSpec {
    let subject = match access {
        Access::Writes => ToolSubject::written_path("path"),
        _ => ToolSubject::Opaque,
    };
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: Json::empty_object(),
        access,
        subject,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: true,
        timeout_ms: 60_000,
        output_bytes_max: 32 << 10,
    }
}

/// A run without limits except for its model's window, if that is known.
pub(crate) fn policy(window_tokens: Option<u64>, workspace: &Path) -> RunPolicy {
    RunPolicy {
        spawn: provost_event::SpawnBudget::default(),
        ..RunPolicy::new(AgentPolicy {
            system_prompt: "You guard a harbour with many gates. Work alone and keep to the plan.".to_owned(),
            preamble: "Where you work: a harbour. Its rules: no boat leaves at night.".to_owned(),
            tools: tool_registry().specs(),
            limits: Limits { turns_max: u32::MAX, ..Limits::default() },
            ..AgentPolicy::new(
                ModelPolicy { window_tokens, ..ModelPolicy::new(MODEL_NAME, OUTPUT_TOKENS_MAX) },
                workspace.to_owned(),
            )
        })
    }
}

/// The dependencies of a harness on `backend` with that model.
pub(crate) fn deps(backend: Arc<dyn Backend>, model: Arc<dyn Model>) -> HarnessDeps {
    HarnessDeps::new(backend, Models::new().with(MODEL_NAME, model), tool_registry())
}

/// A harness on `backend` with that model.
pub(crate) fn harness(backend: Arc<dyn Backend>, model: Arc<dyn Model>) -> AgentHarness {
    AgentHarness::new(deps(backend, model))
}
