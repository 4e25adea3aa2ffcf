//! How large the conversation is, in bytes and estimated tokens, and what can be left out of it.

use provost_event::{Block, Compacted, CompactionKind, Entry, Image, Seq, ToolSpec};

use super::SessionState;

/// Bytes a token stands for at least, in text and code: an estimate that errs on the large side.
const BYTES_PER_TOKEN: u64 = 3;
/// What the wire format adds to a block.
const BLOCK_OVERHEAD_BYTES: u64 = 60;
/// What a picture counts as: providers take some 1,600 tokens for one of the largest size they don't scale down.
const IMAGE_BYTES: u64 = 1_600 * BYTES_PER_TOKEN;
/// After an emergency compaction the conversation is at most this part of what it was, and of the window.
const EMERGENCY_DIVISOR: u64 = 2;

/// What lies between two model calls: an answer and what was said to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    /// The model call that it was sent with first.
    through: Seq,
    bytes: u64,
    /// Pictures in it, or left out with what it stands for.
    images: usize,
    /// Messages, results and items in it.
    items: u32,
}

/// The size of the conversation as the model sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// System prompt and tools.
    fixed_bytes: u64,
    spans: Vec<Span>,
    /// What the next call will send for the first time.
    waiting_bytes: u64,
    /// Pictures among it.
    waiting_images: usize,
    /// Messages, results and items, and those of them that wait for the next call.
    items: u32,
    waiting_items: u32,
    /// What stands for what was left out last.
    summary: String,
    /// Tokens of the last request, as the provider counted them.
    last_input_tokens: Option<u64>,
    /// Tokens of everything up to the last answer, as the provider counted them.
    anchor_tokens: Option<u64>,
    /// What came after that answer.
    since_anchor_bytes: u64,
    /// What people said, in their own words.
    said: Vec<String>,
}

impl Size {
    pub(super) fn add(&mut self, seq: Seq, entry: &Entry) {
        self.waiting_images = self.waiting_images.saturating_add(entry.images().len());
        match entry {
            Entry::SessionStarted(started) => {
                let tools = started.policy.tools.iter().map(tool_bytes).sum::<u64>();
                self.fixed_bytes = length(&started.policy.system_prompt).saturating_add(tools);
                self.wait(length(&started.goal).saturating_add(images_bytes(&started.images)));
            }
            Entry::UserMessage(message) => {
                self.wait(content_bytes(&message.content));
                self.said.extend(message.content.iter().filter_map(text_of).map(str::to_owned));
            }
            Entry::SystemItem(item) => self.wait(length(&item.body)),
            Entry::ToolFinished(finished) => {
                self.wait(length(&finished.output).saturating_add(images_bytes(&finished.images)));
            }
            Entry::AssistantMessage(answer) => {
                self.wait(content_bytes(&answer.content));
                let counted = answer.usage.prompt_tokens();
                self.last_input_tokens = (counted > 0).then_some(counted);
                self.anchor_tokens = (counted > 0).then(|| answer.usage.total());
                self.since_anchor_bytes = 0;
            }
            Entry::ModelCalled(_) => {
                let (bytes, images) = (self.waiting_bytes, self.waiting_images);
                let items = std::mem::take(&mut self.waiting_items);
                self.spans.push(Span { through: seq, bytes, images, items });
                (self.waiting_bytes, self.waiting_images) = (0, 0);
            }
            _ => {}
        }
    }

    fn wait(&mut self, bytes: u64) {
        let bytes = bytes.saturating_add(BLOCK_OVERHEAD_BYTES);
        self.items = self.items.saturating_add(1);
        self.waiting_items = self.waiting_items.saturating_add(1);
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        self.since_anchor_bytes = self.since_anchor_bytes.saturating_add(bytes);
    }

    /// Messages, results and items that the next call sends; what was left out counts as one.
    pub(super) const fn items(&self) -> u32 {
        self.items
    }

    /// Tokens of the last request, if the provider has counted them.
    pub(super) const fn last_input_tokens(&self) -> Option<u64> {
        self.last_input_tokens
    }

    /// What stands for what was left out last.
    pub(super) fn summary(&self) -> String {
        self.summary.clone()
    }

    /// Estimated tokens of the next request.
    pub(super) fn tokens(&self) -> u64 {
        match self.anchor_tokens {
            Some(anchor) => anchor.saturating_add(self.since_anchor_bytes.div_ceil(BYTES_PER_TOKEN)),
            None => self.bytes().div_ceil(BYTES_PER_TOKEN),
        }
    }

    fn bytes(&self) -> u64 {
        let spans = self.spans.iter().map(|span| span.bytes).fold(0, u64::saturating_add);
        self.fixed_bytes.saturating_add(spans).saturating_add(self.waiting_bytes)
    }

    pub(super) fn compact(&mut self, compacted: &Compacted) {
        let gone = self.spans.partition_point(|span| span.through <= compacted.through);
        let images = self.images_through(compacted.through);
        let items = self.spans.iter().take(gone).map(|span| span.items).fold(0, u32::saturating_add);
        self.items = self.items.saturating_sub(items).saturating_add(1);
        self.summary.clone_from(&compacted.summary);
        let summary =
            Span { through: compacted.through, bytes: length(&compacted.summary), images, items: 1 };
        self.spans.splice(..gone, [summary]);
        self.anchor_tokens = None;
    }

    /// Pictures up to `through`, those that were left out before included.
    fn images_through(&self, through: Seq) -> usize {
        let spans = self.spans.iter().take_while(|span| span.through <= through);
        spans.map(|span| span.images).fold(0, usize::saturating_add)
    }

    /// The end of the smallest range whose leaving out leaves at most `room` bytes of conversation; all of it
    /// if need be. `None` when everything fits.
    fn cut_for(&self, room: u64) -> Option<Seq> {
        let mut kept = self.waiting_bytes;
        for span in self.spans.iter().rev() {
            kept = kept.saturating_add(span.bytes);
            if kept > room {
                return Some(span.through);
            }
        }
        None
    }
}

impl SessionState {
    /// Shortens the conversation by rule: the goal, what people said, the plan and the newest turns that fit
    /// stay; one line stands for the rest. `None` when there is nothing left to leave out.
    pub(super) fn emergency_compaction(&self) -> Option<Compacted> {
        let window_tokens = self.policy.as_ref()?.model.window_tokens.unwrap_or(u64::MAX);
        let bytes_before = self.size.bytes();
        // The provider has just said that what it was sent is too long, whatever the estimate says.
        let target = bytes_before.min(window_tokens.saturating_mul(BYTES_PER_TOKEN)) / EMERGENCY_DIVISOR;
        let mut summary = self.summary();
        let note = images_note(self.size.images_through(self.head));
        let taken = self.size.fixed_bytes.saturating_add(length(&summary)).saturating_add(length(&note));
        let through = self.size.cut_for(target.saturating_sub(taken))?;
        summary.push_str(&images_note(self.size.images_through(through)));
        let mut compacted = Compacted {
            how: CompactionKind::Emergency,
            through,
            summary,
            tokens_before: bytes_before.div_ceil(BYTES_PER_TOKEN),
            tokens_after: 0,
        };
        let mut after = self.size.clone();
        after.compact(&compacted);
        compacted.tokens_after = after.tokens();
        (after.bytes() < bytes_before).then_some(compacted)
    }

    fn summary(&self) -> String {
        let (turns, calls) = (self.counters.turns_ended, self.counters.tool_calls);
        let mut text = format!(
            "The conversation had grown too long for the model, so its older part is left out here \
             ({turns} turns and {calls} tool calls so far; files and results of that work are as they were left).\n\n\
             The goal, as it was given:\n{}\n",
            self.goal
        );
        for said in &self.size.said {
            text.push_str("\nSaid since then:\n");
            text.push_str(said);
            text.push('\n');
        }
        for (tool, memory) in &self.memories {
            text.push_str(&format!("\nState of `{tool}`: {}\n", memory.text()));
        }
        text
    }
}

/// What is said of `count` pictures that are left out.
fn images_note(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("\nPictures left out with it: {count}. Those in files can be read again.\n"),
    }
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

fn tool_bytes(tool: &ToolSpec) -> u64 {
    length(&tool.name)
        .saturating_add(length(&tool.description))
        .saturating_add(length(tool.input_schema.text()))
}

fn images_bytes(images: &[Image]) -> u64 {
    u64::try_from(images.len()).unwrap_or(u64::MAX).saturating_mul(IMAGE_BYTES)
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(text),
        Block::Thinking { .. } | Block::Opaque { .. } | Block::ToolCall(_) | Block::Image(_) => None,
    }
}

fn content_bytes(content: &[Block]) -> u64 {
    let bytes = |block: &Block| match block {
        Block::Text(text) => length(text),
        Block::Image(_) => IMAGE_BYTES,
        Block::Thinking { text, signature, .. } => {
            length(text).saturating_add(signature.as_deref().map_or(0, length))
        }
        Block::Opaque { json, .. } => length(json.text()),
        Block::ToolCall(call) => length(&call.name).saturating_add(length(call.input.text())),
    };
    content.iter().map(bytes).fold(0, u64::saturating_add)
}
