//! A fingerprint of a model's input.

use provost_event::Block;
use provost_harness::{Message, ModelRequest, Part, Role};

/// Hexadecimal digits of a fingerprint: enough to detect a difference, not to resist an attack.
const DIGITS: usize = 16;

/// The fingerprint of a request's conversation: the messages, the tools called and their results. System prompt,
/// reasoning, ids and the content of pictures don't count.
pub(super) fn digest(request: &ModelRequest<'_>) -> String {
    let mut digest = Digest::default();
    request.messages.iter().for_each(|message| digest.message(message));
    digest.0.finalize().to_hex().chars().take(DIGITS).collect()
}

#[derive(Default)]
struct Digest(blake3::Hasher);

impl Digest {
    fn message(&mut self, message: &Message) {
        self.field(match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        });
        message.parts.iter().for_each(|part| self.part(part));
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Block(block) => self.block(block),
            Part::Image(image) => self.fields(&["image", image.kind().media_type()]),
            Part::ToolResult { call: _, tool, output, images, is_error } => {
                self.fields(&["result", tool, output, if *is_error { "error" } else { "ok" }]);
                images.iter().for_each(|image| self.fields(&["image", image.kind().media_type()]));
            }
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(text) => self.fields(&["text", text]),
            Block::ToolCall(call) => self.fields(&["call", &call.name, call.input.text()]),
            Block::Image(image) => self.fields(&["image", image.kind.media_type()]),
            Block::Thinking { .. } | Block::Opaque { .. } => {}
        }
    }

    fn fields(&mut self, fields: &[&str]) {
        fields.iter().for_each(|field| self.field(field));
    }

    /// Each field is preceded by its length, so that different conversations have different bytes.
    fn field(&mut self, field: &str) {
        self.0.update(&u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
        self.0.update(field.as_bytes());
    }
}
