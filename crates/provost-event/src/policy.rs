//! Policy: the configuration of a run at its start. Plain data, frozen, part of the first entries.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{
    ExternalPolicy, FlowPolicy, GoalPolicy, HookPolicy, MicroDollars, OnHookError, PermissionPolicy, Price,
    RemoteRepository, SandboxPolicy, SpawnBudget, SubAgentPolicy, ToolSpec,
};

/// The policy of a whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunPolicy {
    /// Limits of everything the run spends, sub-agents included.
    pub budget: Budget,
    /// Whether models without a known price may be called although money is limited; they count as free then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_unpriced: bool,
    /// The root agent.
    pub agent: AgentPolicy,
    /// Limits on active agents and nesting depth.
    #[serde(default, skip_serializing_if = "SpawnBudget::is_default")]
    pub spawn: SpawnBudget,
    /// The sub-agents that its agents can spawn by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<SubAgentPolicy>,
    /// How goals are judged that its agents give to others; absent: they can't give any. Its condition is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<Box<GoalPolicy>>,
    /// The workflow that it runs instead of the root agent; then the root agent's policy applies to the steps that
    /// name no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowPolicy>,
    /// The folder for the git worktrees of its agents, absolute and outside of its workspace; absent: none can be
    /// created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktrees: Option<PathBuf>,
    /// The repository that its agents' worktrees are fetched from and pushed to, so that any machine can work on it;
    /// absent: its files are in the workspace of the root agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteRepository>,
    /// The names of its observers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observers: Vec<String>,
    /// The settings given as flags at its start; they take precedence over files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<GivenFlag>,
}

/// A setting that was given as a flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenFlag {
    /// The flag, with its dashes.
    pub flag: String,
    /// Its value, with absolute paths.
    pub value: String,
}

impl RunPolicy {
    /// A run of this agent without spending limits, named sub-agents, a workflow, worktrees and observers. If
    /// money is limited later, models without a known price are refused.
    #[must_use]
    pub fn new(agent: AgentPolicy) -> Self {
        Self {
            budget: Budget::default(),
            allow_unpriced: false,
            agent,
            spawn: SpawnBudget::default(),
            agents: Vec::new(),
            judging: None,
            flow: None,
            worktrees: None,
            remote: None,
            observers: Vec::new(),
            flags: Vec::new(),
        }
    }

    /// The folder that it was started in, whose settings apply to it.
    #[must_use]
    pub fn project(&self) -> &Path {
        self.remote.as_ref().map_or(&self.agent.workspace, |remote| &remote.project)
    }
}

/// Spending limits; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Budget {
    /// Tokens of all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<MicroDollars>,
    /// Worked time, in milliseconds; time between interruption and resume doesn't count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_ms: Option<u64>,
    /// Turns of all agents together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

impl Budget {
    /// The limit of money of a run that is given no limit at all and whose models cost something: 20 dollars.
    pub const DEFAULT_MONEY: MicroDollars = MicroDollars(20_000_000);

    /// Whether it has no limits.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The same with a limit of tokens, of all kinds.
    #[must_use]
    pub const fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// The same with a limit of money in dollars, rounded to a millionth; 0 for less than zero and NaN.
    #[must_use]
    pub fn dollars(mut self, dollars: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "such casts saturate, and NaN is 0"
        )]
        let micro = (dollars * 1_000_000.0).round() as u64;
        self.money = Some(MicroDollars(micro));
        self
    }

    /// The same with a limit of worked time, to the millisecond.
    #[must_use]
    pub fn time(mut self, time: std::time::Duration) -> Self {
        self.wall_time_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// The same with a limit of turns of all agents together.
    #[must_use]
    pub const fn turns(mut self, turns: u32) -> Self {
        self.turns = Some(turns);
        self
    }

    /// This budget (from a policy with the budget `old`, plus additions) under a policy with the budget `new`: a
    /// limit that is the same in both keeps its additions.
    #[must_use]
    pub fn under(self, old: Self, new: Self) -> Self {
        fn pick<T: PartialEq>(now: Option<T>, old: Option<T>, new: Option<T>) -> Option<T> {
            if old == new { now } else { new }
        }
        Self {
            tokens: pick(self.tokens, old.tokens, new.tokens),
            money: pick(self.money, old.money, new.money),
            wall_time_ms: pick(self.wall_time_ms, old.wall_time_ms, new.wall_time_ms),
            turns: pick(self.turns, old.turns, new.turns),
        }
    }

    /// This budget, with the limits that `newer` sets replacing its own.
    #[must_use]
    pub const fn changed_by(self, newer: Self) -> Self {
        Self {
            tokens: if newer.tokens.is_some() { newer.tokens } else { self.tokens },
            money: if newer.money.is_some() { newer.money } else { self.money },
            wall_time_ms: if newer.wall_time_ms.is_some() { newer.wall_time_ms } else { self.wall_time_ms },
            turns: if newer.turns.is_some() { newer.turns } else { self.turns },
        }
    }
}

/// The policy of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentPolicy {
    /// Its model.
    pub model: ModelPolicy,
    /// The system prompt, sent verbatim.
    pub system_prompt: String,
    /// What it is told before its goal, as a message of Provost's: its surroundings, and what project files and
    /// skills say, quoted. Empty: nothing. It stays as it was when the run began, and is kept when a conversation
    /// is summed up. An agent gets that of the run's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preamble: String,
    /// Maximum bytes of rules for agents from files of sub-folders that it is told when it first works there. 0: none
    /// are told. An agent gets that of the run's own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub folder_rules_bytes: u64,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// The folder it works in, absolute.
    pub workspace: PathBuf,
    /// Limits of its counters.
    pub limits: Limits,
    /// Hooks that must allow its stop, in order.
    pub stop_hooks: Vec<StopHookPolicy>,
    /// Its other hooks, in call order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookPolicy>,
    /// The permissions of its tool calls.
    #[serde(default, skip_serializing_if = "PermissionPolicy::is_default")]
    pub permissions: PermissionPolicy,
    /// The permissions of the agents above it, which also apply to its tool calls. The most restrictive applicable
    /// decision counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<PermissionPolicy>,
    /// Whether turns follow each other automatically.
    pub step_mode: StepMode,
    /// What must be confirmed before it counts as done; the agent's claim is enough if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Box<GoalPolicy>>,
    /// The program, for an external agent. Then the model is only a name (`external/NAME`), and the tools are
    /// those that the program can ask consent for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Box<ExternalPolicy>>,
    /// Whether its end is questioned: once if its answer has neither a tool call nor a verdict, and once if it says
    /// that the goal is reached after it acted, and neither stop hooks nor judges check it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub final_check: bool,
    /// What its programs and file tools may read, write and reach.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sandbox: SandboxPolicy,
}

impl AgentPolicy {
    /// An agent of this model that works in `workspace`, an absolute path, without waiting between turns: with an
    /// empty system prompt, without tools, hooks, rules and a goal, within the default limits.
    #[must_use]
    pub fn new(model: ModelPolicy, workspace: PathBuf) -> Self {
        Self {
            model,
            system_prompt: String::new(),
            preamble: String::new(),
            folder_rules_bytes: 0,
            tools: Vec::new(),
            workspace,
            limits: Limits::default(),
            stop_hooks: Vec::new(),
            hooks: Vec::new(),
            permissions: PermissionPolicy::default(),
            bounds: Vec::new(),
            step_mode: StepMode::Free,
            goal: None,
            external: None,
            final_check: false,
            sandbox: SandboxPolicy::default(),
        }
    }
}

/// A model and its price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelPolicy {
    /// `provider/model` or `script:FILE`.
    pub name: String,
    /// The context window: tokens of a request and its answer; unknown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
    /// Maximum tokens of an answer.
    pub output_tokens_max: u32,
    /// What the model can answer at most, in tokens; unknown if absent. An answer whose cap was used up by reasoning is
    /// asked for again with twice the cap, up to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_limit: Option<u32>,
    /// The price of its tokens; unknown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether it accepts pictures; otherwise it gets a text that there is one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub images: bool,
    /// The effort of its reasoning; the provider's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether it is known to reason before it answers, which uses part of the answer's cap.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reasons: bool,
    /// Whether it was taught to change files by patches: it is offered `apply_patch` in place of `edit_file`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub patches: bool,
    /// The fallback models, in order, when it gives no answer. Their own fallbacks are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelPolicy>,
}

impl ModelPolicy {
    /// A model with only a name and an output cap.
    pub fn new(name: impl Into<String>, output_tokens_max: u32) -> Self {
        Self {
            name: name.into(),
            window_tokens: None,
            output_tokens_max,
            output_tokens_limit: None,
            price: None,
            images: false,
            effort: None,
            reasons: false,
            patches: false,
            fallbacks: Vec::new(),
        }
    }

    /// Tokens to add to the cap of a short answer for reasoning at this effort, based on what providers reserve; 0
    /// for a model that isn't known to reason.
    #[must_use]
    pub const fn thinking_tokens(&self, effort: Option<Effort>) -> u32 {
        match effort {
            _ if !self.reasons => 0,
            Some(Effort::Minimal | Effort::Low) => 4 * 1024,
            Some(Effort::Medium) | None => 16 * 1024,
            Some(Effort::High) => 32 * 1024,
            Some(Effort::Xhigh | Effort::Max) => 64 * 1024,
        }
    }
}

/// The effort of a model's reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// The minimum; none if the model can turn it off.
    Minimal,
    /// Little.
    Low,
    /// Enough for most tasks.
    Medium,
    /// Much. The default of agents whose model is known to reason.
    High,
    /// More. Models that don't have it get `High`.
    Xhigh,
    /// All that the model can. Models that don't have it get the highest level they have.
    Max,
}

impl Effort {
    /// All levels, the lowest first.
    pub const ALL: [Self; 6] = [Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// Its name in settings and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// Limits of an agent's counters. Each field says what happens at the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// Turns of one agent; it is suspended as budget exhausted when they are used up. [`Limits::TURNS_UNLIMITED`]
    /// is no limit. Default 300.
    pub turns_max: u32,
    /// Milliseconds of consecutive failures of a model during which it is retried; then the next fallback model is
    /// called, and after the last the session is suspended. Default 900,000 (15 minutes).
    #[serde(default = "model_patience_ms")]
    pub model_patience_ms: u64,
    /// Milliseconds that a session waits, suspended, for an unavailable provider and retries periodically; then
    /// its process stops waiting. Default 0: it stops at once.
    #[serde(default)]
    pub outage_max_ms: u64,
    /// Consecutive retries of an empty answer; then the session is suspended. Default 2.
    pub empty_answers_max: u32,
    /// Consecutive continuations of an answer cut off by the output cap; then the partial answer counts. Default
    /// 3.
    pub continuations_max: u32,
    /// Consecutive turns with the same call and the same result at which the model gets a notice. Default 3.
    pub repeated_call_notice_at: u32,
    /// Consecutive turns with the same call and the same result at which the session is suspended. Default 10.
    pub repeated_call_max: u32,
    /// Consecutive turns in which every call was rejected, denied or failed as a tool, at which the model gets a
    /// notice. Default 5.
    pub failed_turns_notice_at: u32,
    /// Consecutive turns in which every call was rejected, denied or failed as a tool, at which the session is
    /// suspended. Default 12.
    pub failed_turns_max: u32,
    /// Consecutive turns without measurable progress at which an agent without a goal is suspended; 0 turns it
    /// off. With a goal, the goal's value applies. Default 20.
    pub stuck_turns: u32,
    /// Interruptions of one turn at which the session pauses. Default 3.
    pub interruptions_max: u32,
    /// Total blocks by stop hooks at which the session is suspended as blocked. Default 8.
    pub stop_blocks_max: u32,
    /// Restarts after failures. Doesn't apply to the root agent.
    #[serde(default, skip_serializing_if = "RetryPolicy::is_default")]
    pub retry: RetryPolicy,
}

/// Restarts of an agent after failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RetryPolicy {
    /// Maximum consecutive restarts, not counting the first attempt. Default 3; with 0 the first failure is final.
    pub attempts_max: u32,
    /// Maximum wait before the first restart, in milliseconds; doubles with each consecutive restart. Default
    /// 1,000.
    pub backoff_base_ms: u64,
    /// Upper bound of all waits, in milliseconds. Default 60,000.
    pub backoff_max_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts_max: 3, backoff_base_ms: 1_000, backoff_max_ms: 60_000 }
    }
}

impl RetryPolicy {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Limits {
    /// The value of [`turns_max`](Self::turns_max) for no limit.
    pub const TURNS_UNLIMITED: u32 = u32::MAX;

    /// Turns of one agent; `None` is unlimited.
    #[must_use]
    pub const fn turns_limit(&self) -> Option<u32> {
        if self.turns_max == Self::TURNS_UNLIMITED { None } else { Some(self.turns_max) }
    }
}

const fn model_patience_ms() -> u64 {
    900_000
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns_max: 300,
            model_patience_ms: model_patience_ms(),
            outage_max_ms: 0,
            empty_answers_max: 2,
            continuations_max: 3,
            repeated_call_notice_at: 3,
            repeated_call_max: 10,
            failed_turns_notice_at: 5,
            failed_turns_max: 12,
            stuck_turns: 20,
            interruptions_max: 3,
            stop_blocks_max: 8,
            retry: RetryPolicy::default(),
        }
    }
}

/// A stop hook, as part of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopHookPolicy {
    /// Its name, unique within the policy.
    pub name: String,
    /// Its shell command; absent for a hook of the embedding program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its time limit, in milliseconds.
    pub timeout_ms: u64,
    /// What happens when it gives no answer. Under a goal it always blocks.
    #[serde(default, skip_serializing_if = "OnHookError::blocks")]
    pub on_error: OnHookError,
}

impl StopHookPolicy {
    /// A stop hook that is a shell command and has ten minutes; it blocks also when it gives no answer.
    pub fn command(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..Self::own(name) }
    }

    /// A stop hook of the embedding program that has ten minutes; it blocks also when it gives no answer.
    pub fn own(name: impl Into<String>) -> Self {
        Self { name: name.into(), command: None, timeout_ms: 600_000, on_error: OnHookError::Block }
    }
}

/// Whether turns follow each other automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepMode {
    /// The next turn begins when the last has ended.
    Free,
    /// Each turn waits for a request.
    Stepped,
}
