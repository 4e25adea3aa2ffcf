//! Tokens where nobody counts them: in scripts, and of providers that report none.

use provost_event::Block;
use provost_harness::{ModelRequest, Part};

/// Bytes that a token stands for, in text and code.
const BYTES_PER_TOKEN: usize = 4;
/// Bytes that it stands for at least, where there is more punctuation than words.
const BYTES_PER_TOKEN_LEAST: usize = 3;

/// Estimated tokens of `bytes` bytes of text.
pub(crate) fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// As many tokens as `bytes` bytes of text come to at most, as far as can be told.
pub(crate) fn tokens_at_most(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN_LEAST)).unwrap_or(u64::MAX)
}

/// Bytes of what a request says; its pictures aside.
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

/// Bytes of what a block says.
pub(crate) fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text(text) | Block::Thinking { text, .. } => text.len(),
        Block::Image(_) => 0,
        Block::Opaque { json, .. } => json.text().len(),
        Block::ToolCall(call) => call.name.len() + call.input.text().len(),
    }
}
