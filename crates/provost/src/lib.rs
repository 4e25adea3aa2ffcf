//! Autonomous agents under supervision, in your own program.
//!
//! An agent thinks and acts in a loop: a model answers, its tool calls run, their results go back. Provost writes each
//! step to a log before it acts on it, so that a run survives a crash of your program; it keeps a whole tree of agents
//! within one budget; hooks of yours decide about each call; and an agent counts as done only when the checks that you
//! configured agree.
//!
//! ```
//! use provost::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), provost::Error> {
//! let model = ScriptedModel::parse("answers: [{ text: '42. VERDICT: PASS' }]", "example").expect("a script");
//! let agent = Agent::builder(model).build()?;
//! let finished = agent.run("What is six times seven?").await?;
//! assert!(finished.is_completed());
//! assert!(finished.text.starts_with("42"));
//! # Ok(())
//! # }
//! ```
//!
//! With a real model the first line is `Agent::builder("anthropic/claude-sonnet-4-5")`, and the key is in
//! `ANTHROPIC_API_KEY`.
//!
//! # What there is
//!
//! | you want | see |
//! |---|---|
//! | a tool of your own | [`tool`], [`Tool`] |
//! | files, search and shell | [`AgentBuilder::builtin_tools`], with [`allow`](AgentBuilder::allow), [`ask`](AgentBuilder::ask), [`deny`](AgentBuilder::deny) |
//! | a veto on each call, on each model request, at each turn | [`AgentBuilder::hook`], [`hooks`] |
//! | tests that must pass before the agent may stop | [`AgentBuilder::check`], [`AgentBuilder::stop_hook`] |
//! | a judge that verifies the goal | [`AgentBuilder::goal`], [`AgentBuilder::judge`] |
//! | limits of tokens, money, time and turns | [`Budget`], [`AgentBuilder::budget`] |
//! | sub-agents | [`SubAgent`] |
//! | events as they happen | [`Agent::stream`], [`AgentBuilder::observe`], [`CostTracker`] |
//! | a log that outlives the process | [`AgentBuilder::sqlite`], [`Agent::open`] |
//! | messages, pause, approvals while it works | [`Control`] |
//! | a model, store, clock or power lock of your own | [`ModelChoice::own`], [`AgentBuilder::store`], [`AgentBuilder::clock`], [`AgentBuilder::power`] |
//! | tests without a model | [`testing`] |
//!
//! # Names you may look for
//!
//! | elsewhere | here |
//! |---|---|
//! | `ExecutionBudget` | [`Budget`] |
//! | `SubAgentConfig` | [`SubAgent`] |
//! | `HookManager` | [`HookRegistry`](hooks::HookRegistry) |
//! | `NoopCallback` | [`NoCallback`] |
//! | guardrail | a hook ([`AgentBuilder::hook`]) or a stop hook |
//! | handoff, delegation | a sub-agent ([`SubAgent`]) |
//! | checkpoint, thread | the log of a run ([`Agent::open`]) |
//! | tracing processor | an observer ([`AgentBuilder::observe`]) |
//!
//! The layers beneath, for programs that need more: [`event`] (entries of the log), [`engine`] (decisions), [`harness`]
//! (ports and the loop), [`llm`] (models), [`tools`], [`backend`], [`sqlite`].

mod agent;
mod builder;
mod error;
mod model;
mod stream;
mod sub_agent;
pub mod testing;

pub use provost_backend as backend;
pub use provost_engine as engine;
pub use provost_event as event;
pub use provost_harness as harness;
pub use provost_llm as llm;
pub use provost_sqlite as sqlite;
pub use provost_tools as tools;

pub use agent::{Agent, Finished, Run};
pub use builder::AgentBuilder;
pub use error::Error;
pub use model::ModelChoice;
pub use provost_backend::{EmbeddedBackend, MemoryStore, SessionStore};
pub use provost_engine::{Answer, ExecutionTracker, RetryTracker, SpawnTracker};
pub use provost_event::{
    Access, Budget, Budget as ExecutionBudget, Json, Limits, MicroDollars, Outcome, PermissionPolicy, Price,
    Priority, RetryPolicy, RunId, RunPolicy, SessionId, StopHookVerdict, ToolSpec, ToolSubject, Usage,
    Verification,
};
pub use provost_harness::hooks;
pub use provost_harness::hooks::HookRegistry as HookManager;
pub use provost_harness::{
    AgentHarness, Backend, Control, CostTracker, Goal, Harness, HarnessCallback, HarnessDeps, JsonlTrace,
    Model, NoCallback, NoCallback as NoopCallback, ObservedBody, Observer, ObserverEvent, ObserverEventKind,
    OpenApproval, Power, PowerGuard, RunLogger, ShellStopHook, StopHookContext, StopHookHandler, Tool,
    ToolContext, ToolOutput, TurnState,
};
pub use provost_llm::{ProviderSettings, ScriptedModel};
pub use provost_power::{KeepAwake, KeepAwakeOptions};
pub use provost_sqlite::SqliteStore;
pub use provost_tools::{FunctionTool, IntoToolOutput, tool, tool_in};
pub use stream::StreamItem;
pub use sub_agent::{SubAgent, SubAgent as SubAgentConfig};
pub use {async_trait::async_trait, schemars, serde};

/// What most programs that embed agents use.
pub mod prelude {
    pub use futures::StreamExt;
    pub use schemars::JsonSchema;
    pub use serde::Deserialize;
    pub use tokio_util::sync::CancellationToken;

    pub use crate::hooks::{
        OnTurnEnd, OnTurnEndAction, PostToolCall, PostToolCallAction, PreLlmRequest, PreLlmRequestAction,
        PreToolCall, PreToolCallAction,
    };
    pub use crate::{
        Access, Agent, Budget, CostTracker, Finished, ModelChoice, Outcome, RunId, ScriptedModel,
        StopHookContext, StopHookHandler, StopHookVerdict, StreamItem, SubAgent, Tool, ToolContext,
        ToolOutput, TurnState, async_trait, tool, tool_in,
    };
}
