//! Policy: what a run was given at its start. Plain data, frozen, part of the first entries.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    ExternalPolicy, FlowPolicy, GoalPolicy, HookPolicy, Json, MicroDollars, OnHookError, PermissionPolicy,
    Price, SpawnBudget, SubAgentPolicy,
};

/// What binds a whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPolicy {
    /// Limits of everything the run spends, sub-agents included.
    pub budget: Budget,
    /// Whether models whose price nobody knows may be asked although money is limited; they count as free then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_unpriced: bool,
    /// The root agent.
    pub agent: AgentPolicy,
    /// How many agents may be at work, and how deep they may nest.
    #[serde(default, skip_serializing_if = "SpawnBudget::is_default")]
    pub spawn: SpawnBudget,
    /// The sub-agents that its agents may ask for by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<SubAgentPolicy>,
    /// How goals are judged that its agents give others; they can give none if absent. Its condition is of no matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<Box<GoalPolicy>>,
    /// The steps that it goes through instead of having the root agent work; then the root agent's policy is that of
    /// the steps that name no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowPolicy>,
    /// The folder that the git worktrees of its agents are made in, absolute and outside of its workspace; none can be
    /// made if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktrees: Option<PathBuf>,
    /// The names of those who watch it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observers: Vec<String>,
    /// The settings that were given as flags when it was started, which count before those of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<GivenFlag>,
}

/// A setting that was given as a flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenFlag {
    /// The flag, with its dashes.
    pub flag: String,
    /// Its value, with absolute paths.
    pub value: String,
}

impl RunPolicy {
    /// A run of this agent without limits of spending, sub-agents by name, a workflow, worktrees and observers. Where
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
            observers: Vec::new(),
            flags: Vec::new(),
        }
    }
}

/// Limits of spending; `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Tokens of all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<MicroDollars>,
    /// Time worked on the run, in milliseconds; time between interruption and resume doesn't count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_ms: Option<u64>,
    /// Turns of all agents together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

impl Budget {
    /// Whether it limits nothing.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// This budget, which came of a policy with the budget `old` and what was added to it, under one with the budget
    /// `new`: a limit that is the same in both keeps what was added to it.
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

    /// This budget with the limits that `newer` names put in place of its own.
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

/// What one agent is and may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPolicy {
    /// The model it thinks with.
    pub model: ModelPolicy,
    /// The system prompt, byte for byte.
    pub system_prompt: String,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// The folder it works in, absolute.
    pub workspace: PathBuf,
    /// Its counters' limits.
    pub limits: Limits,
    /// Who must agree before it may stop, in order.
    pub stop_hooks: Vec<StopHookPolicy>,
    /// Who decides at other moments, in the order in which they are asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookPolicy>,
    /// Which tool calls it may make.
    #[serde(default, skip_serializing_if = "PermissionPolicy::is_default")]
    pub permissions: PermissionPolicy,
    /// What binds its tool calls besides: the permissions of the agents above it. Of all that speak of a call the most
    /// restrictive counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<PermissionPolicy>,
    /// Whether it goes from turn to turn by itself.
    pub pace: Pace,
    /// What must be confirmed before it counts as done; what the agent says is enough if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Box<GoalPolicy>>,
    /// The program that it consists of, if it is somebody else's. Then the model only names it (`external/NAME`), and the
    /// tools are what the program can ask consent for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Box<ExternalPolicy>>,
}

impl AgentPolicy {
    /// An agent of this model that works in `workspace`, an absolute path, from turn to turn by itself: with an empty
    /// system prompt, without tools, hooks, rules and a goal, within the default limits.
    #[must_use]
    pub fn new(model: ModelPolicy, workspace: PathBuf) -> Self {
        Self {
            model,
            system_prompt: String::new(),
            tools: Vec::new(),
            workspace,
            limits: Limits::default(),
            stop_hooks: Vec::new(),
            hooks: Vec::new(),
            permissions: PermissionPolicy::default(),
            bounds: Vec::new(),
            pace: Pace::Free,
            goal: None,
            external: None,
        }
    }
}

/// A model and what it costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPolicy {
    /// `provider/model` or `script:FILE`.
    pub name: String,
    /// Tokens that fit a request and its answer; unknown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
    /// Tokens an answer may have.
    pub output_tokens_max: u32,
    /// What its tokens cost; unknown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether it can be shown pictures; one that can't is told that there is one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub images: bool,
    /// How much it shall think before it answers; as its provider has it if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether it is known to think before it answers, and takes part of an answer's cap for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reasons: bool,
    /// What is asked in its place, in order, when it gives no answer. Those of these are of no matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelPolicy>,
}

impl ModelPolicy {
    /// A model of which only its name and the cap on its answers are known.
    pub fn new(name: impl Into<String>, output_tokens_max: u32) -> Self {
        Self {
            name: name.into(),
            window_tokens: None,
            output_tokens_max,
            price: None,
            images: false,
            effort: None,
            reasons: false,
            fallbacks: Vec::new(),
        }
    }

    /// Tokens that the cap on a short answer must have for what the model thinks first, when it is told to think so
    /// much; none for a model that isn't known to think. What providers let their models think for at that effort.
    #[must_use]
    pub const fn thinking_tokens(&self, effort: Option<Effort>) -> u32 {
        match effort {
            _ if !self.reasons => 0,
            Some(Effort::Minimal | Effort::Low) => 4 * 1024,
            Some(Effort::Medium) | None => 16 * 1024,
            Some(Effort::High) => 32 * 1024,
        }
    }
}

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// As little as it can; not at all where it can leave it.
    Minimal,
    /// A little.
    Low,
    /// As much as most tasks are worth.
    Medium,
    /// A lot.
    High,
}

/// The limits of an agent's counters. What happens at each is told by its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Turns of one agent; it rests as budget exhausted when they are used up. [`Limits::TURNS_UNLIMITED`] is no limit.
    /// Default 300.
    pub turns_max: u32,
    /// Milliseconds that a model may fail in a row, tried again and again; then the next fallback model is asked, and
    /// after the last the session is suspended. Default 900,000 (15 minutes).
    #[serde(default = "model_patience_ms")]
    pub model_patience_ms: u64,
    /// Milliseconds that a session waits, suspended, for a provider that can't be reached, and tries it from time to
    /// time; then it is left. Default 0: it is left at once.
    #[serde(default)]
    pub outage_max_ms: u64,
    /// Times an empty answer is asked again in a row; then the session is suspended. Default 2.
    pub empty_answers_max: u32,
    /// Times an answer cut off by the output cap is continued in a row; then what there is counts. Default 3.
    pub continuations_max: u32,
    /// The same call with the same result, turn after turn: at this count the model is told. Default 3.
    pub repeated_call_notice_at: u32,
    /// The same call with the same result, turn after turn: at this count the session is suspended. Default 10.
    pub repeated_call_max: u32,
    /// Turns in a row whose every call was rejected, denied or failed as a tool: at this count the model is told.
    /// Default 5.
    pub failed_turns_notice_at: u32,
    /// Turns in a row whose every call was rejected, denied or failed as a tool: at this count the session is
    /// suspended. Default 12.
    pub failed_turns_max: u32,
    /// Turns in a row without measurable progress at which an agent without a goal is suspended; 0 turns it off. One
    /// with a goal has the goal's. Default 20.
    pub stuck_turns: u32,
    /// Interruptions of one turn at which the session pauses. Default 3.
    pub interruptions_max: u32,
    /// Blocks by stop hooks in all, at which the session rests as blocked. Default 8.
    pub stop_blocks_max: u32,
    /// How often it is restarted when it has failed, and how long after. The root agent isn't.
    #[serde(default, skip_serializing_if = "RetryPolicy::is_default")]
    pub retry: RetryPolicy,
}

/// How often an agent that has failed is restarted, and how long after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// Restarts in a row; the first attempt isn't counted. Default 3; with 0 the first failure counts.
    pub attempts_max: u32,
    /// Milliseconds that the wait before the first restart takes at most; doubles with each restart in a row.
    /// Default 1,000.
    pub backoff_base_ms: u64,
    /// Milliseconds that no wait exceeds. Default 60,000.
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
    /// As [`turns_max`](Self::turns_max): no limit.
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

/// A stop hook as the policy names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopHookPolicy {
    /// Its name, unique within the policy.
    pub name: String,
    /// The shell command it runs; absent for a hook that the embedding program brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
    /// What it means that it gives no answer. Under a goal that always blocks.
    #[serde(default, skip_serializing_if = "OnHookError::blocks")]
    pub on_error: OnHookError,
}

/// Whether an agent goes on after a turn by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The next turn begins when the last has ended.
    Free,
    /// The next turn waits until somebody asks for it.
    Stepped,
}

/// A tool as the model and the engine know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name, unique within the policy.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Json,
    /// What it touches; decides which calls run side by side.
    pub access: Access,
    /// Whether a call that was interrupted may simply be made again.
    pub idempotent: bool,
    /// How long a call may take, in milliseconds.
    pub timeout_ms: u64,
    /// Bytes of output the model gets to see; the middle of a longer one is left out.
    pub output_bytes_max: usize,
}

/// What a tool touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It changes nothing: runs beside everything that also only reads.
    Reads,
    /// It changes the path named by this argument: runs beside calls on other paths.
    Writes {
        /// The argument's name.
        path_field: String,
    },
    /// It may touch anything: runs alone.
    Anything,
    /// It only stands for an answer to a question that an external agent's program asks: runs alone.
    Consents,
    /// It has another agent work, and is none of the executor's: runs beside its like and what only reads.
    Delegates,
}
