//! Counts all of a request as a provider would, with a real tokenizer.

use std::collections::HashMap;
use std::sync::Arc;

use provost_event::Block;
use provost_harness::{Message, ModelRequest, Part};
use tiktoken_rs::CoreBPE;

/// The overhead of a message, a part and a tool.
const MESSAGE_TOKENS: u64 = 4;
const PART_TOKENS: u64 = 3;
const TOOL_TOKENS: u64 = 10;
const IMAGE_TOKENS: u64 = 1_600;

/// Counts, and caches the count of each message of the last request.
pub(crate) struct Counter {
    tokenizer: &'static CoreBPE,
    fixed: Option<u64>,
    /// By address; the messages are kept so that their addresses aren't reused.
    known: HashMap<usize, (Arc<Message>, u64)>,
}

impl Counter {
    pub(crate) fn new(tokenizer: &'static CoreBPE) -> Self {
        Self { tokenizer, fixed: None, known: HashMap::new() }
    }

    /// Tokens of a request.
    pub(crate) fn request(&mut self, request: &ModelRequest<'_>) -> u64 {
        let fixed = *self.fixed.get_or_insert_with(|| {
            let count = |text: &str| count(self.tokenizer, text);
            let tools = request.tools.iter().map(|tool| {
                TOOL_TOKENS + count(&tool.name) + count(&tool.description) + count(tool.input_schema.text())
            });
            count(request.system) + tools.sum::<u64>()
        });
        let mut known = HashMap::with_capacity(request.messages.len());
        let mut sum = fixed;
        for message in request.messages {
            let place = Arc::as_ptr(message).addr();
            let tokens = self.known.get(&place).map_or_else(|| self.message(message), |(_, tokens)| *tokens);
            known.insert(place, (message.clone(), tokens));
            sum += tokens;
        }
        self.known = known;
        sum
    }

    /// Tokens of a message of the last request.
    pub(crate) fn known(&self, message: &Arc<Message>) -> u64 {
        self.known.get(&Arc::as_ptr(message).addr()).map_or(0, |(_, tokens)| *tokens)
    }

    fn message(&self, message: &Message) -> u64 {
        MESSAGE_TOKENS + message.parts.iter().map(|part| self.part(part)).sum::<u64>()
    }

    fn part(&self, part: &Part) -> u64 {
        let tokens = match part {
            Part::Block(block) => self.block(block),
            Part::Image(_) => IMAGE_TOKENS,
            Part::ToolResult { tool, output, images, .. } => {
                let images = images.iter().map(|_| IMAGE_TOKENS).sum::<u64>();
                count(self.tokenizer, tool) + count(self.tokenizer, output) + images
            }
        };
        PART_TOKENS + tokens
    }

    /// Tokens of an answer.
    pub(crate) fn answer(&self, content: &[Block]) -> u64 {
        content.iter().map(|block| self.block(block)).sum()
    }

    fn block(&self, block: &Block) -> u64 {
        match block {
            Block::Text(text) | Block::Thinking { text, .. } => count(self.tokenizer, text),
            Block::Image(_) => IMAGE_TOKENS,
            Block::Opaque { json, .. } => count(self.tokenizer, json.text()),
            Block::ToolCall(call) => {
                count(self.tokenizer, &call.name) + count(self.tokenizer, call.input.text())
            }
        }
    }
}

fn count(tokenizer: &CoreBPE, text: &str) -> u64 {
    u64::try_from(tokenizer.encode_ordinary(text).len()).unwrap_or(u64::MAX)
}
