//! The provider's token counts.

use provost_event::{Certainty, Usage};
use serde::Deserialize;

/// Counts so far. Some servers repeat them in every chunk, some leave out those they don't know yet.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUsage {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

impl WireUsage {
    /// Applies the counts of a later chunk. They may be lower than before; gateways send 0 for unknown ones.
    pub(super) fn add(&mut self, later: Self) {
        let newer =
            |count: &mut Option<u64>, later: Option<u64>| *count = later.filter(|n| *n > 0).or(*count);
        newer(&mut self.prompt_token_count, later.prompt_token_count);
        newer(&mut self.cached_content_token_count, later.cached_content_token_count);
        newer(&mut self.tool_use_prompt_token_count, later.tool_use_prompt_token_count);
        newer(&mut self.candidates_token_count, later.candidates_token_count);
        newer(&mut self.thoughts_token_count, later.thoughts_token_count);
        newer(&mut self.total_token_count, later.total_token_count);
    }

    /// The counts without overlaps: the prompt's count includes tokens from the cache.
    pub(super) fn usage(self) -> Usage {
        let cached = self.cached_content_token_count.unwrap_or(0);
        let prompt = self
            .prompt_token_count
            .unwrap_or(0)
            .saturating_add(self.tool_use_prompt_token_count.unwrap_or(0));
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        let written = self.candidates_token_count.unwrap_or(0);
        // Some models of Vertex AI include the thoughts in the answer's count; only the total shows that.
        let is_inclusive = written >= thoughts && self.total_token_count == prompt.checked_add(written);
        Usage {
            input_tokens: prompt.saturating_sub(cached),
            output_tokens: if is_inclusive { written } else { written.saturating_add(thoughts) },
            cache_read_tokens: cached,
            cache_write_tokens: 0,
            reasoning_tokens: thoughts,
            certainty: Certainty::Reported,
        }
    }
}
