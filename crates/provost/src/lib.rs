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
//! | a tool of your own | [`#[tool]`](macro@tool), [`tool()`], [`Tool`] |
//! | files, search and shell | [`AgentBuilder::builtin_tools`], with [`allow`](AgentBuilder::allow), [`ask`](AgentBuilder::ask), [`deny`](AgentBuilder::deny) |
//! | a veto on each call, on each model request, at each turn | [`AgentBuilder::hook`], [`hooks`] |
//! | tests that must pass before the agent may stop | [`AgentBuilder::check`], [`AgentBuilder::stop_hook`] |
//! | one last check of an agent's claim to be done | [`AgentBuilder::final_check`] |
//! | a judge that verifies the goal | [`AgentBuilder::goal`], [`AgentBuilder::judge`] |
//! | limits of tokens, money, time and turns | [`Budget`], [`AgentBuilder::budget`] |
//! | sub-agents | [`SubAgent`] |
//! | events as they happen | [`Agent::stream`], [`AgentBuilder::observe`], [`CostTracker`] |
//! | budgets, slots and retries for other code | [`ExecutionTracker`], [`SpawnTracker`], [`RetryTracker`], [`restart_delay_ms`] |
//! | spans for `tracing` | [`harness::spans`] |
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
//! # Policies by hand
//!
//! The builder makes a [`RunPolicy`] for you. A program that makes its own begins with what each type offers, so that
//! it compiles when a field is added: `Limits { turns_max: 20, ..Limits::default() }`,
//! `AgentPolicy { tools, ..AgentPolicy::new(model, workspace) }`. Errors and events get new variants over time: match
//! them with a `_` arm.
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
pub use provost_engine::{
    Acquired, Answer, ExecutionTracker, RetryTracker, SlotMove, SpawnTracker, restart_delay_ms,
};
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
/// Makes an async function a tool.
///
/// The name of the function is the tool's name, its doc comment the description for the model, its parameters the
/// arguments, with their doc comments. Everything but an `Option` is required. What it returns is the result: a text, a
/// [`ToolOutput`], or a `Result`, whose error the model gets as a failure.
///
/// ```
/// use provost::prelude::*;
///
/// /// Adds two numbers.
/// #[provost::tool(access = reads, idempotent)]
/// async fn add(
///     /// The first one.
///     a: i64,
///     /// The second one; 1 if it is left out.
///     b: Option<i64>,
/// ) -> Result<String, String> {
///     a.checked_add(b.unwrap_or(1)).map(|sum| sum.to_string()).ok_or("the sum is too large".to_owned())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let builder = Agent::builder("anthropic/claude-sonnet-4-5").tool(add);
/// // The function itself, for tests and other code:
/// assert_eq!(add::invoke(2, None).await.as_deref(), Ok("3"));
/// # drop(builder);
/// # }
/// ```
///
/// A parameter of the type [`ToolContext`] is the context of the call: workspace, time limit, stored state, and the
/// token that fires when the call must end. A function without one is dropped where it waits when the call must end. A
/// tool with state of your own is a closure: see [`tool()`].
///
/// # Options
///
/// | option | what it sets |
/// |---|---|
/// | `name = "…"` | the tool's name, if not the function's |
/// | `access = reads` | calls run beside other reading calls |
/// | `access = writes` | calls run beside calls that change other files; needs `subject = path(…, writes)` |
/// | `access = anything` | calls run alone; the default |
/// | `subject = command(ARGUMENT)` | permissions such as `name(git push *)` apply to the command line in this argument |
/// | `subject = path(ARGUMENT)` | permissions apply to this file or folder; `path(ARGUMENT, walks)` includes what is below it, `path(ARGUMENT, writes)` says that calls change it |
/// | `subject = url(ARGUMENT)` | permissions such as `name(https://example.com/*)` apply to this address |
/// | `aliases = ["…"]` | other names, for permissions and hooks' scripts |
/// | `summary_field = ARGUMENT` | the argument that represents a call in one line; by default that of the subject |
/// | `idempotent` | a call that a crash interrupted may be repeated |
/// | `timeout_ms = 5_000` | the time limit of a call; by default 60,000 |
/// | `output_bytes_max = 10_000` | the maximum bytes of a result for the model; the middle of a longer one is left out |
///
/// # Errors
///
/// What can't be a tool isn't compiled, and the error says what to write instead. A tool without a description:
///
/// ```compile_fail
/// #[provost::tool]
/// async fn add(a: i64, b: i64) -> String {
///     (a + b).to_string()
/// }
/// ```
///
/// A result that is no text:
///
/// ```compile_fail
/// /// Adds two numbers.
/// #[provost::tool]
/// async fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
/// ```
pub use provost_macros::tool;
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
