//! Building an agent.

mod assembly;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, SessionStore};
use provost_event::{
    Budget, Limits, PermissionPolicy, RunId, SpawnBudget, StepMode, StopHookPolicy, StopHookVerdict,
};
use provost_harness::hooks::{Hook, HookEvent, HookOptions, HookRegistryBuilder, from_fn};
use provost_harness::{
    Backend, BackendError, Clock, HarnessCallback, HookRegistry, NoCallback, NoPower, Observer,
    ObserverEvent, ObserverOptions, Observers, Power, StopHookContext, StopHookHandler, SystemClock, Tool,
    ToolRegistry, observe_with,
};
use provost_llm::ProviderSettings;
use tokio_util::sync::CancellationToken;

use crate::{ModelChoice, SubAgent};

/// Collects what an agent has. Every method but the model may be left out; see the defaults at each.
#[must_use]
pub struct AgentBuilder {
    model: ModelChoice,
    fallbacks: Vec<ModelChoice>,
    providers: Option<ProviderSettings>,
    workspace: Option<PathBuf>,
    instructions: String,
    system_prompt: Option<String>,
    tools: ToolRegistry,
    tool_names: Vec<String>,
    may_spawn: bool,
    permissions: PermissionPolicy,
    hooks: HookRegistryBuilder,
    stop_hooks: Vec<Arc<dyn StopHookHandler>>,
    stop_hook_policies: Vec<StopHookPolicy>,
    observers: Observers,
    callback: Arc<dyn HarnessCallback>,
    budget: Option<Budget>,
    allow_unpriced: bool,
    limits: Limits,
    goal: Option<String>,
    judges: Vec<ModelChoice>,
    quorum: u32,
    sub_agents: Vec<SubAgent>,
    spawn: SpawnBudget,
    worktrees: Option<PathBuf>,
    step_mode: StepMode,
    final_check: bool,
    store: StoreChoice,
    clock: Arc<dyn Clock>,
    power: Arc<dyn Power>,
}

/// Where the log is kept.
enum StoreChoice {
    Memory,
    Sqlite(PathBuf),
    Backend(Arc<dyn Backend>),
    Own(Box<OpenBackend>),
}

/// Opens a backend over a store of the embedding program.
type OpenBackend = dyn FnOnce(Arc<dyn Clock>) -> Result<EmbeddedBackend, BackendError> + Send;

impl AgentBuilder {
    pub(crate) fn new(model: ModelChoice) -> Self {
        Self {
            model,
            fallbacks: Vec::new(),
            providers: None,
            workspace: None,
            instructions: String::new(),
            system_prompt: None,
            tools: ToolRegistry::new(),
            tool_names: Vec::new(),
            may_spawn: false,
            permissions: PermissionPolicy::default(),
            hooks: HookRegistry::builder(),
            stop_hooks: Vec::new(),
            stop_hook_policies: Vec::new(),
            observers: Observers::new(),
            callback: Arc::new(NoCallback),
            budget: None,
            allow_unpriced: false,
            limits: Limits::default(),
            goal: None,
            judges: Vec::new(),
            quorum: 1,
            sub_agents: Vec::new(),
            spawn: SpawnBudget::default(),
            worktrees: None,
            step_mode: StepMode::Free,
            final_check: false,
            store: StoreChoice::Memory,
            clock: Arc::new(SystemClock),
            power: Arc::new(NoPower),
        }
    }

    /// Adds a model that is called when those before it give no answer.
    pub fn fallback(mut self, model: impl Into<ModelChoice>) -> Self {
        self.fallbacks.push(model.into());
        self
    }

    /// Sets providers, keys and facts about models. By default the built-in ones, with the keys and the
    /// addresses (`ANTHROPIC_BASE_URL`) in the providers' environment variables.
    pub fn providers(mut self, providers: ProviderSettings) -> Self {
        self.providers = Some(providers);
        self
    }

    /// Sets the folder that the agent works in. By default the current one.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// Adds instructions to Provost's system prompt.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = text.into();
        self
    }

    /// Replaces Provost's system prompt, which asks for a verdict (`VERDICT: PASS`) in the last answer.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// Adds a tool. Without any, the agent can only answer.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tool_names.push(tool.spec().name.clone());
        self.tools = self.tools.with(tool);
        self
    }

    /// Adds Provost's own tools: files, search, shell, terminal, plan.
    pub fn builtin_tools(mut self) -> Self {
        let builtin = provost_tools::builtin();
        self.tool_names.extend(builtin.specs().into_iter().map(|spec| spec.name));
        self.tools = self.tools.and(builtin);
        self
    }

    /// Allows calls that match `pattern` without approval, such as `shell(cargo *)`.
    pub fn allow(mut self, pattern: impl Into<String>) -> Self {
        self.permissions.allow.push(pattern.into());
        self
    }

    /// Has calls that match `pattern` wait for an approval
    /// ([`Control::approve`](crate::Control::approve)).
    pub fn ask(mut self, pattern: impl Into<String>) -> Self {
        self.permissions.ask.push(pattern.into());
        self
    }

    /// Denies calls that match `pattern`.
    pub fn deny(mut self, pattern: impl Into<String>) -> Self {
        self.permissions.deny.push(pattern.into());
        self
    }

    /// Sets all permissions, with the decision on calls that match no pattern. By default everything is allowed.
    pub fn permissions(mut self, permissions: PermissionPolicy) -> Self {
        self.permissions = permissions;
        self
    }

    /// Adds a hook: `decide` is called at the event `E` and answers with one of its actions. It returns at once; one
    /// that waits is added with [`hook_with`](Self::hook_with).
    ///
    /// ```
    /// # use provost::prelude::*;
    /// # let builder = Agent::builder("anthropic/claude-sonnet-4-5");
    /// builder.hook::<PreToolCall>("no-pushing", |call| match call.arguments.text().contains("git push") {
    ///     true => PreToolCallAction::Deny("pushing is left to people".into()),
    ///     false => PreToolCallAction::Continue,
    /// })
    /// # ;
    /// ```
    pub fn hook<E: HookEvent>(
        self,
        name: impl Into<String>,
        decide: impl for<'a> Fn(E::Input<'a>) -> E::Action + Send + Sync + 'static,
    ) -> Self {
        self.hook_with(HookOptions::new(name), from_fn::<E>(decide))
    }

    /// Adds a hook with options: its time limit, and what happens when it gives no answer.
    pub fn hook_with<E: HookEvent>(mut self, options: HookOptions, hook: impl Hook<E>) -> Self {
        self.hooks = self.hooks.on(options, hook);
        self
    }

    /// Adds a stop hook, which decides whether the agent may stop. It may take ten minutes.
    pub fn stop_hook(mut self, hook: impl StopHookHandler + 'static) -> Self {
        self.stop_hook_policies.push(StopHookPolicy::own(hook.name()));
        self.stop_hooks.push(Arc::new(hook));
        self
    }

    /// Adds a stop hook that is a function, which returns at once.
    pub fn stop_hook_fn(
        self,
        name: impl Into<String>,
        decide: impl Fn(&StopHookContext) -> StopHookVerdict + Send + Sync + 'static,
    ) -> Self {
        self.stop_hook(StopHookFunction { name: name.into(), decide })
    }

    /// Adds a command that must succeed before the agent may stop, such as `cargo test`. It runs in the workspace and
    /// may take ten minutes; the agent gets its output when it fails.
    pub fn check(mut self, command: impl Into<String>) -> Self {
        let command = command.into();
        self.stop_hook_policies.push(StopHookPolicy::command(command.clone(), command));
        self
    }

    /// Has `observe` called for each event of the run, in their order, on a thread of its own. It decides nothing, and
    /// can't hold up or break the run.
    ///
    /// ```
    /// # use provost::prelude::*;
    /// # let builder = Agent::builder("anthropic/claude-sonnet-4-5");
    /// builder.observe("progress", |event| println!("{:?}", event.kind))
    /// # ;
    /// ```
    pub fn observe(
        self,
        name: impl Into<String>,
        observe: impl Fn(&ObserverEvent) + Send + Sync + 'static,
    ) -> Self {
        let observe = Arc::new(observe);
        self.observer(name, move |_| {
            let observe = Arc::clone(&observe);
            observe_with(move |event| {
                observe(event);
                Ok(())
            })
        })
    }

    /// Adds the observers that `make` creates, one for each segment of work on a run, such as
    /// [`CostTracker::observer`](crate::CostTracker::observer).
    pub fn observer<F>(mut self, name: impl Into<String>, make: F) -> Self
    where
        F: Fn(RunId) -> Box<dyn Observer> + Send + Sync + 'static,
    {
        self.observers = self.observers.with(name, ObserverOptions::default(), make);
        self
    }

    /// Sets the callback, which is called at each event by the harness's own tasks and must return quickly.
    pub fn callback(mut self, callback: impl HarnessCallback + 'static) -> Self {
        self.callback = Arc::new(callback);
        self
    }

    /// Sets the limits of the run, sub-agents and judges included. `Budget::default()` is no limit.
    ///
    /// By default 20 dollars, if the prices of all its models are known and one of them costs something; otherwise
    /// nothing is limited but turns.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Allows models without a known price although money is limited; they count as free.
    pub fn allow_unpriced(mut self) -> Self {
        self.allow_unpriced = true;
        self
    }

    /// Sets the limits of the agent's counters: turns, failures, repeated calls, restarts.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the most turns of this agent and of each of its sub-agents that has no limit of its own.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.limits.turns_max = turns;
        self
    }

    /// Sets what judges must confirm before the agent counts as done.
    pub fn goal(mut self, condition: impl Into<String>) -> Self {
        self.goal = Some(condition.into());
        self
    }

    /// Adds a judge for goals. By default the agent's own model judges. A judge is a model like any other, of a provider
    /// or [of your own](ModelChoice::own), that answers with a verdict in JSON:
    ///
    /// ```
    /// # use provost::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), provost::Error> {
    /// # let model = ScriptedModel::parse("answers: [{ text: '42. VERDICT: PASS' }]", "example").expect("a script");
    /// use provost::event::ModelFailure;
    /// use provost::harness::{DeltaSink, ModelRequest};
    /// use provost::{Answer, Model, Usage};
    ///
    /// struct Lenient;
    ///
    /// #[async_trait]
    /// impl Model for Lenient {
    ///     async fn answer(
    ///         &self,
    ///         _: ModelRequest<'_>,
    ///         _: &dyn DeltaSink,
    ///         _: &CancellationToken,
    ///     ) -> Result<Answer, ModelFailure> {
    ///         let verdict = r#"{ "achieved": true, "confidence": 0.95, "reasoning": "42 it is.", "suggestions": [] }"#;
    ///         Ok(Answer::text("lenient-1", verdict, Usage::default()))
    ///     }
    /// }
    ///
    /// let judge = ModelChoice::own("lenient", Lenient);
    /// let agent = Agent::builder(model).goal("the answer is a number").judge(judge).build()?;
    /// let finished = agent.run("What is six times seven?").await?;
    /// assert!(finished.is_completed(), "{}", finished.outcome);
    /// # Ok(())
    /// # }
    /// ```
    pub fn judge(mut self, model: impl Into<ModelChoice>) -> Self {
        self.judges.push(model.into());
        self
    }

    /// Sets how many judges must find a goal reached. Default 1; at most all of them.
    pub fn quorum(mut self, judges: u32) -> Self {
        self.quorum = judges;
        self
    }

    /// Adds a sub-agent, which the agent can have work by a tool of its name.
    pub fn sub_agent(mut self, agent: SubAgent) -> Self {
        self.sub_agents.push(agent);
        self
    }

    /// Lets the agent start agents like itself, by the tool `spawn_agent`.
    pub fn may_spawn(mut self) -> Self {
        self.may_spawn = true;
        self
    }

    /// Limits the active agents of a run and their nesting depth.
    pub fn spawn_budget(mut self, budget: SpawnBudget) -> Self {
        self.spawn = budget;
        self
    }

    /// Sets the folder for the git worktrees of sub-agents, outside of the workspace. Without it none can be made.
    pub fn worktrees(mut self, folder: impl Into<PathBuf>) -> Self {
        self.worktrees = Some(folder.into());
        self
    }

    /// Has the run wait for [`Run::turn`](crate::Run::turn) before each turn.
    pub fn stepped(mut self) -> Self {
        self.step_mode = StepMode::Stepped;
        self
    }

    /// Questions the end of the agent and of each sub-agent: an answer that has neither a tool call nor a verdict is
    /// asked once to go on or to close; and where neither a stop hook nor a judge checks it, the first `VERDICT: PASS`
    /// after the agent acted is asked once for proof. By default the first such answer ends it.
    pub fn final_check(mut self) -> Self {
        self.final_check = true;
        self
    }

    /// Keeps the log in a SQLite database at `path`, which is made if there is none. By default in memory.
    pub fn sqlite(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = StoreChoice::Sqlite(path.into());
        self
    }

    /// Keeps the log in a store of the embedding program: whatever implements [`SessionStore`], which
    /// [`provost_backend::conformance`](crate::backend::conformance) tests. Its example is the
    /// [`MemoryStore`](crate::MemoryStore):
    ///
    /// ```
    /// # use provost::prelude::*;
    /// # fn main() -> Result<(), provost::Error> {
    /// # let model = ScriptedModel::parse("answers: [{ text: ok }]", "example").expect("a script");
    /// let agent = Agent::builder(model).store(provost::MemoryStore::new()).build()?;
    /// # let _ = agent;
    /// # Ok(())
    /// # }
    /// ```
    pub fn store(mut self, store: impl SessionStore) -> Self {
        self.store = StoreChoice::Own(Box::new(move |clock| EmbeddedBackend::new(store, clock)));
        self
    }

    /// Keeps the log in a backend, which several agents may share.
    pub fn backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.store = StoreChoice::Backend(backend);
        self
    }

    /// Sets the clock, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets what keeps the machine awake while the agent works. By default nothing does; see
    /// [`KeepAwake`](crate::KeepAwake). One of your own makes a guard for each call; the machine may sleep when none is
    /// left:
    ///
    /// ```
    /// # use provost::prelude::*;
    /// use std::time::Duration;
    ///
    /// use provost::{Power, PowerGuard};
    ///
    /// struct Told;
    ///
    /// impl Power for Told {
    ///     fn hold(&self, reason: &str) -> Box<dyn PowerGuard> {
    ///         println!("stay awake: {reason}");
    ///         Box::new(TellsEnd)
    ///     }
    /// }
    ///
    /// struct TellsEnd;
    ///
    /// impl PowerGuard for TellsEnd {
    ///     fn release_after(self: Box<Self>, wait: Duration) {
    ///         std::thread::spawn(move || {
    ///             std::thread::sleep(wait);
    ///             drop(self);
    ///         });
    ///     }
    /// }
    ///
    /// impl Drop for TellsEnd {
    ///     fn drop(&mut self) {
    ///         println!("may sleep");
    ///     }
    /// }
    ///
    /// # let builder = Agent::builder("anthropic/claude-sonnet-4-5");
    /// builder.power(Told)
    /// # ;
    /// ```
    pub fn power(mut self, power: impl Power + 'static) -> Self {
        self.power = Arc::new(power);
        self
    }
}

/// A stop hook that is a function.
struct StopHookFunction<F> {
    name: String,
    decide: F,
}

#[async_trait]
impl<F: Fn(&StopHookContext) -> StopHookVerdict + Send + Sync> StopHookHandler for StopHookFunction<F> {
    fn name(&self) -> &str {
        &self.name
    }

    async fn evaluate(&self, context: &StopHookContext, _: &CancellationToken) -> StopHookVerdict {
        (self.decide)(context)
    }
}
