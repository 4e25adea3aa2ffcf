//! Estimates tokens where they aren't counted: in scripts, and for providers that report no usage.

use provost_event::Block;
use provost_harness::{ModelRequest, Part};

/// Average bytes per token, in text and code.
const BYTES_PER_TOKEN: usize = 4;
/// Minimum bytes per token, in text with much punctuation.
const BYTES_PER_TOKEN_LEAST: usize = 3;

/// Estimated tokens of `bytes` bytes of text.
pub(crate) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// The maximum tokens of `bytes` bytes of text, as a conservative estimate.
pub(crate) fn tokens_at_most(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN_LEAST)).unwrap_or(u64::MAX)
}

/// Bytes of a request's text; pictures don't count.
pub(crate) fn request_bytes(request: &ModelRequest<'_>) -> usize {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let tools = request.tools.iter();
    request.system.len()
        + parts.map(part_bytes).sum::<usize>()
        + tools.map(|tool| tool.description.len() + tool.input_schema.text().len()).sum::<usize>()
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Block(block) => block_bytes(block),
        Part::Image(_) => 0,
        Part::ToolResult { output, .. } => output.len(),
    }
}

/// Bytes of a block's text.
pub(crate) fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text(text) | Block::Thinking { text, .. } => text.len(),
        Block::Image(_) => 0,
        Block::Opaque { json, .. } => json.text().len(),
        Block::ToolCall(call) => call.name.len() + call.input.text().len(),
    }
}
