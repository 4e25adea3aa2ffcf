//! The results of effects, as events report them.

use provost_event::{
    BlobId, Block, CallFacts, CallQuestion, ExternalCall, ExternalCallEnd, HookReport, Image, Json,
    JudgeAnswer, MicroDollars, Outcome, Plan, RequestedTool, SessionId, StopReason, ToolSpec, ToolStatus,
    Usage, WorktreeMade,
};
use serde::{Deserialize, Serialize};

/// A model's complete answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The content; blocks that were cut off in the middle of a tool call are left out.
    pub content: Vec<Block>,
    /// The usage.
    pub usage: Usage,
    /// The cost as the provider reported it; replaces the cost computed from the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The model by its own name.
    pub model: String,
    /// Why it stopped.
    pub stop: StopReason,
}

impl Answer {
    /// An answer that is a text and nothing else, by the model that calls itself `model`.
    pub fn text(model: impl Into<String>, text: impl Into<String>, usage: Usage) -> Self {
        Self {
            content: vec![Block::Text(text.into())],
            usage,
            cost: None,
            model: model.into(),
            stop: StopReason::EndTurn,
        }
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The status.
    pub status: ToolStatus,
    /// The output for the model, already truncated.
    pub output: String,
    /// Images for the model besides the output.
    #[serde(default)]
    pub images: Vec<Image>,
    /// The blob with the whole output, if `output` is truncated.
    pub whole: Option<BlobId>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The state that the tool gets at its next call.
    pub memory: Option<Json>,
    /// The agent's new plan, if the call changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// Further facts about the call.
    #[serde(default, skip_serializing_if = "CallFacts::is_empty")]
    pub facts: CallFacts,
    /// Tools that the agent has from its next turn on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// What the tool asks the user first: then this is no result, and the call is made again with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Box<CallQuestion>>,
}

/// A judge's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeReport {
    /// The answer; an `aborted` failure if the judge was stopped.
    pub answer: JudgeAnswer,
    /// The usage.
    pub usage: Usage,
    /// The model by its own name; empty if it failed.
    pub model: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// A fingerprint of the workspace; empty where there is none.
    pub evidence: String,
}

/// The result of making a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeResult {
    /// The worktree is ready.
    Made(WorktreeMade),
    /// There is no worktree; what the attempt made is removed as far as possible.
    Failed {
        /// The reason and the remedy.
        message: String,
    },
}

/// The result of a call for another agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgentReport {
    /// The status of the call.
    pub status: ToolStatus,
    /// The text for the requesting agent.
    pub text: String,
    /// How the agent ended, in Provost's words; absent if there was none.
    #[serde(default)]
    pub status_line: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The agent with its outcome; absent if there was none.
    #[serde(default)]
    pub ended: Option<(SessionId, Outcome)>,
}

/// The stop hooks' answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCheckResult {
    /// The report of each hook, in configured order.
    pub reports: Vec<HookReport>,
    /// A fingerprint of the workspace.
    pub evidence: String,
}

/// The rules for agents of a folder that a call works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderRules {
    /// The file, relative to the workspace.
    pub file: String,
    /// Bytes of it that are quoted.
    pub bytes: u64,
    /// What the agent is told.
    pub body: String,
}

/// A request to a model beside the conversation: by an external agent's program, or for a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalCallRequest {
    /// The request.
    pub call: ExternalCall,
    /// Tokens of the request, by a conservative estimate.
    pub input_tokens: u64,
    /// The cap on the answer that was asked for, or the model's own.
    pub output_tokens_max: u32,
}

/// The result of a model call beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalCallResult {
    /// The id of the request.
    pub request: String,
    /// How it ended.
    pub end: ExternalCallEnd,
    /// The usage.
    pub usage: Usage,
    /// The cost as the provider reported it; replaces the cost computed from the price.
    pub cost: Option<MicroDollars>,
    /// The provider's HTTP status.
    pub status: Option<u16>,
    /// The provider's request id.
    pub request_id: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The tools that the model asked for.
    pub tools: Vec<RequestedTool>,
    /// The answer's body, where bodies are recorded.
    pub body: Option<BlobId>,
}

impl ExternalCallResult {
    /// A call that took no tokens.
    #[must_use]
    pub fn new(request: String, end: ExternalCallEnd) -> Self {
        Self {
            request,
            end,
            usage: Usage::default(),
            cost: None,
            status: None,
            request_id: None,
            duration_ms: 0,
            tools: Vec::new(),
            body: None,
        }
    }
}
