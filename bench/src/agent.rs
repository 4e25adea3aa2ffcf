//! The agent that is measured: one tool that does nothing, and no limits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{
    Access, AgentPolicy, Json, Limits, ModelPolicy, RunId, RunPolicy, ToolSpec, ToolSubject,
};
use provost_harness::{
    AgentHarness, Backend, HarnessCallback, HarnessDeps, Model, Models, SystemClock, Tool, ToolContext,
    ToolOutput, ToolRegistry, system_prompt,
};
use provost_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

use crate::timed_store::{Spent, Timed};

/// The model's name.
pub(crate) const MODEL: &str = "anthropic/claude-sonnet-4-5";
/// What an agent is asked to do.
pub(crate) const GOAL: &str = "Call the tool until you are told to stop, then say that you are done.";
/// The tool.
pub(crate) const TOOL: &str = "noop";
/// Its description.
pub(crate) const TOOL_DESCRIPTION: &str = "Does nothing and says so at some length.";
/// The schema of its arguments.
pub(crate) const TOOL_SCHEMA: &str =
    r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

/// What the tool answers: 200 bytes.
pub(crate) fn tool_output() -> String {
    "Nothing was done. ".repeat(12).chars().take(200).collect()
}

/// Where the log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Store {
    Sqlite,
    /// A database on a disk whose syncs take this many milliseconds longer.
    SlowSqlite(u64),
    Memory,
}

/// A backend, and the cost of its commits. A database is made in `dir`.
pub(crate) fn backend(store: Store, dir: &Path) -> anyhow::Result<(EmbeddedBackend, Arc<Spent>)> {
    let (spent, clock) = (Arc::<Spent>::default(), Arc::new(SystemClock));
    let wait = match store {
        Store::SlowSqlite(ms) => Duration::from_millis(ms),
        Store::Sqlite | Store::Memory => Duration::ZERO,
    };
    let counted = Arc::clone(&spent);
    let backend = match store {
        Store::Sqlite | Store::SlowSqlite(_) => {
            let store = SqliteStore::open(dir.join("provost.db"))?;
            EmbeddedBackend::new(Timed::store(store, counted, wait), clock)?
        }
        Store::Memory => EmbeddedBackend::new(Timed::store(MemoryStore::new(), counted, wait), clock)?,
    };
    Ok((backend, spent))
}

/// A harness with `model` and the tool.
pub(crate) fn harness(
    backend: Arc<dyn Backend>,
    model: Arc<dyn Model>,
    callback: Arc<dyn HarnessCallback>,
) -> anyhow::Result<AgentHarness> {
    Ok(AgentHarness::new(HarnessDeps {
        callback,
        ..HarnessDeps::new(backend, Models::new().with(MODEL, model), ToolRegistry::new().with(Noop::new()?))
    }))
}

/// A run without limits. The tool does nothing, which is no progress and the same call each time.
pub(crate) fn policy(workspace: &Path) -> anyhow::Result<RunPolicy> {
    let limits = Limits { turns_max: u32::MAX, stuck_turns: 0, ..Limits::default() };
    Ok(RunPolicy::new(AgentPolicy {
        system_prompt: system_prompt(workspace, ""),
        tools: vec![noop_spec()?],
        limits,
        ..AgentPolicy::new(ModelPolicy::new(MODEL, 8192), workspace.to_owned())
    }))
}

/// A run's name.
pub(crate) fn run_id() -> RunId {
    RunId::from_entropy(fastrand::u64(..))
}

/// The tool that does nothing.
pub(crate) struct Noop {
    spec: ToolSpec,
    output: String,
}

impl Noop {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self { spec: noop_spec()?, output: tool_output() })
    }
}

fn noop_spec() -> anyhow::Result<ToolSpec> {
    Ok(ToolSpec {
        name: TOOL.to_owned(),
        description: TOOL_DESCRIPTION.to_owned(),
        input_schema: Json::parse(TOOL_SCHEMA.to_owned())?,
        access: Access::Reads,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: true,
        timeout_ms: 60_000,
        output_bytes_max: 32 << 10,
    })
}

#[async_trait]
impl Tool for Noop {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _input: &Json, _context: &ToolContext) -> ToolOutput {
        ToolOutput::ok(self.output.clone())
    }
}
