//! In what servers that say they speak Chat Completions differ from OpenAI's.

use serde::Deserialize;

/// A server's own ways in Chat Completions; of the other wire formats only Responses looks at `cache_key`. The default
/// is what most compatible servers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Deviations {
    /// How the cap on the answer is called.
    pub output_cap: OutputCapField,
    /// Where the server is told how much the model shall think.
    pub effort: EffortField,
    /// What the least effort is called, where there are words for it.
    pub least_effort: LeastEffort,
    /// In which field the model's reasoning goes back to it. What another wire format's models thought never does.
    pub reasoning_back: ReasoningBack,
    /// Refuses `stream_options`, and tells what an answer took without being asked.
    pub no_stream_options: bool,
    /// Takes `prompt_cache_key`, which keeps a conversation near its cache.
    pub cache_key: bool,
    /// Takes `cache_control`, at the system prompt and the request's end, for models that cache only where they are
    /// told: those whose name begins with `anthropic/`.
    pub cache_control: bool,
}

/// The name of the cap on the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputCapField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// Where the effort is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortField {
    /// `reasoning_effort`.
    #[default]
    ReasoningEffort,
    /// `reasoning.effort`.
    Reasoning,
    /// `thinking.type`: only whether it thinks; it doesn't at the least effort, and where it must call a tool.
    Thinking,
    /// `thinking.type`, and `reasoning_effort` if it thinks.
    ThinkingAndEffort,
    /// It isn't.
    None,
}

/// The word for the least effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeastEffort {
    /// `low`, which everybody knows.
    #[default]
    Low,
    /// `minimal`.
    Minimal,
    /// What OpenAI calls it for the model.
    Openai,
    /// `none`.
    None,
}

/// Where reasoning goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningBack {
    /// Nowhere: the server has no use for it, or refuses it.
    #[default]
    None,
    /// `reasoning_content`.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
    /// `reasoning_details`, as they came.
    ReasoningDetails,
}
