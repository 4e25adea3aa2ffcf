//! How servers with a Chat Completions API differ from OpenAI's.

use serde::Deserialize;

/// A server's deviations in Chat Completions; of the other wire formats only Responses uses `cache_key` and `custom_tools`. The
/// default fits most compatible servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Deviations {
    /// The name of the output cap.
    pub output_cap: OutputCapField,
    /// Where the effort is set.
    pub effort: EffortField,
    /// The name of the lowest effort, if efforts have names.
    pub least_effort: LeastEffort,
    /// The field in which the model's reasoning is sent back. Reasoning of another wire format is never sent.
    pub reasoning_back: ReasoningBack,
    /// It refuses `stream_options`, and reports usage without it.
    pub no_stream_options: bool,
    /// It accepts `prompt_cache_key`, which routes a conversation to its cache.
    pub cache_key: bool,
    /// Its Responses API has custom tools, whose one argument a model writes as it is.
    pub custom_tools: bool,
    /// It accepts `cache_control`, at the system prompt and the request's end, for models with explicit caching
    /// only: those whose name begins with `anthropic/`.
    pub cache_control: bool,
}

/// The name of the output cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputCapField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// Where the effort is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortField {
    /// `reasoning_effort`.
    #[default]
    ReasoningEffort,
    /// `reasoning.effort`.
    Reasoning,
    /// `thinking.type`: only on or off; off at the lowest effort, and if the model must call a tool.
    Thinking,
    /// `thinking.type`, and `reasoning_effort` if it thinks.
    ThinkingAndEffort,
    /// Nowhere.
    None,
}

/// The name of the lowest effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeastEffort {
    /// `low`, which all servers accept.
    #[default]
    Low,
    /// `minimal`.
    Minimal,
    /// OpenAI's name for the model.
    Openai,
    /// `none`.
    None,
}

/// The field in which reasoning is sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningBack {
    /// None: the server doesn't use it, or refuses it.
    #[default]
    None,
    /// `reasoning_content`.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
    /// `reasoning_details`, unchanged.
    ReasoningDetails,
}
