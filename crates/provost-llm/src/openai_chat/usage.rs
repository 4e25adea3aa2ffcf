//! An answer's usage, in all the servers' formats.

use provost_event::{Certainty, Usage};
use serde_json::Value;

/// OpenAI and most; DeepSeek; Moonshot; LiteLLM.
const CACHE_READ: [&str; 4] = [
    "/prompt_tokens_details/cached_tokens",
    "/prompt_cache_hit_tokens",
    "/cached_tokens",
    "/cache_read_input_tokens",
];
/// OpenRouter; LiteLLM.
const CACHE_WRITE: [&str; 3] = [
    "/prompt_tokens_details/cache_write_tokens",
    "/prompt_tokens_details/cache_creation_tokens",
    "/cache_creation_input_tokens",
];

/// The counts as reported: those of the prompt overlap.
#[derive(Debug, Default)]
pub(super) struct Counts {
    prompt: u64,
    completion: u64,
    total: u64,
    reasoning: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Counts {
    /// Applies a report, which is cumulative: some servers send one with every event.
    pub(super) fn add(&mut self, report: &Value) {
        let newer = |count: &mut u64, places: &[&str]| {
            let reported = places.iter().filter_map(|place| report.pointer(place)?.as_u64());
            *count = reported.fold(*count, u64::max);
        };
        newer(&mut self.prompt, &["/prompt_tokens"]);
        newer(&mut self.completion, &["/completion_tokens"]);
        newer(&mut self.total, &["/total_tokens"]);
        newer(&mut self.reasoning, &["/completion_tokens_details/reasoning_tokens"]);
        newer(&mut self.cache_read, &CACHE_READ);
        newer(&mut self.cache_write, &CACHE_WRITE);
    }

    /// The counts without overlaps.
    pub(super) const fn usage(&self) -> Usage {
        let cached = self.cache_read.saturating_add(self.cache_write);
        // A gateway may forward another provider's counts without adding them up.
        let input_tokens = if cached > self.prompt { self.prompt } else { self.prompt - cached };
        let with_reasoning = self.completion.saturating_add(self.reasoning);
        // xAI doesn't count reasoning in the completion; the total shows that.
        let is_beside = self.total > 0 && self.total == self.prompt.saturating_add(with_reasoning);
        Usage {
            input_tokens,
            output_tokens: if is_beside { with_reasoning } else { self.completion },
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: self.reasoning,
            certainty: Certainty::Reported,
        }
    }
}
