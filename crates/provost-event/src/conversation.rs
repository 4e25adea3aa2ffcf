//! What a conversation consists of: messages, answers, turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Block, Dimension, MicroDollars, Usage};

/// A message from outside: the user, a program or the parent agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The message.
    pub content: Vec<Block>,
    /// The sender.
    pub by: String,
}

/// Why Provost sent a message to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The answer was cut off; the model is to continue.
    Continue,
    /// The answer was empty; the model is to answer.
    AnswerAgain,
    /// The same call with the same result, turn after turn.
    RepeatedCallNotice,
    /// No tool call succeeds.
    FailedCallsNotice,
    /// No measurable progress.
    NoProgressNotice,
    /// The stop hooks' reasons to continue.
    StopBlocked,
    /// The stop hooks' reasons if the agent is suspended instead of sent back.
    StopSuspended,
    /// The judges' reasons why the goal isn't reached.
    GoalNotReached,
    /// A hook's reminder to the model.
    Reminder,
    /// A hook that the turn doesn't wait for has said something that the agent must get before it ends.
    HookWoke,
    /// An answer without a tool call and without a verdict: the model is to go on or to close.
    EndQuestion,
    /// The first claim that the goal is reached, where nothing checks it: the model is to prove it.
    FinalCheck,
    /// This turn is the last one.
    LastTurn,
    /// Another segment begins, with what has changed.
    Resumed,
    /// The rules for agents of a folder that the agent works in for the first time.
    FolderRules,
    /// A service that the agent had started has ended.
    ServiceEnded,
    /// The agent's goal was set or replaced.
    GoalGiven,
    /// The agent's goal was removed.
    GoalRemoved,
    /// A threshold of a limit was passed.
    LimitNotice {
        /// Which limit.
        dimension: Dimension,
        /// The threshold that was passed: 50, 80 or 95.
        percent: u8,
    },
}

/// The part of Provost that sent a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The engine.
    Engine,
    /// The stop hooks with these names.
    StopHooks(Vec<String>),
    /// The judges of the goal.
    Judges,
    /// The hook with this name.
    Hook(String),
}

/// A message from Provost to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SystemItem {
    /// Its kind.
    pub item: ItemKind,
    /// The text, without the tags that the model sees around it.
    pub body: String,
    /// The sender.
    pub origin: Origin,
    /// The files with rules for agents that it quotes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<QuotedRules>,
}

/// A file with rules for agents that was quoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotedRules {
    /// The file, relative to the workspace.
    pub file: String,
    /// Bytes of it that were quoted.
    pub bytes: u64,
}

/// Why the model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is complete.
    EndTurn,
    /// It called tools.
    ToolUse,
    /// It reached the output cap.
    OutputCap,
    /// It declined.
    Refusal,
    /// Its text is a comment on its work, by its own mark, and no end.
    Commentary,
}

/// The model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// The turn it belongs to.
    pub turn: u32,
    /// The call it answers.
    pub call: u32,
    /// Its content.
    pub content: Vec<Block>,
    /// Its usage.
    pub usage: Usage,
    /// Its cost; absent if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The model that answered, by its own name.
    pub model: String,
    /// Why it stopped.
    pub stop: StopReason,
}

/// A complete turn: a model call and its tool calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    /// The turn, from 1.
    pub turn: u32,
    /// The number of tool calls.
    pub tool_calls: u32,
}
