//! Content that may be exported: without secrets, and cut.

use provost_event::{Block, Json};
use provost_harness::Redactor;
use serde_json::{Value, json};

use crate::Content;

/// Maximum bytes of text in one attribute.
const CONTENT_BYTES_MAX: usize = 16 * 1024;
/// Maximum bytes of names from outside.
const LABEL_BYTES_MAX: usize = 128;
/// The mark of a cut.
const CUT: &str = "…";

/// Selects and cleans what is exported.
#[derive(Debug)]
pub(crate) struct Sieve {
    content: Content,
    redactor: Redactor,
}

impl Sieve {
    pub(crate) const fn new(content: Content, redactor: Redactor) -> Self {
        Self { content, redactor }
    }

    /// A short name from a model, a provider or a user.
    pub(crate) fn label(&self, name: &str) -> String {
        cut(&self.redactor.redact(name), LABEL_BYTES_MAX)
    }

    /// A text, if content is exported.
    pub(crate) fn text(&self, text: &str) -> Option<String> {
        self.is_open().then(|| cut(&self.redactor.redact(text), CONTENT_BYTES_MAX))
    }

    /// A JSON text, if content is exported; no longer JSON if it had to be cut.
    pub(crate) fn json(&self, json: &Json) -> Option<String> {
        self.is_open().then(|| cut(&self.redactor.redact_json(json.text()), CONTENT_BYTES_MAX))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.content == Content::On
    }
}

/// Messages for one attribute, in the format of the conventions.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    messages: Vec<Value>,
    bytes: usize,
}

impl Messages {
    /// Adds a message of `role`. What exceeds the limit is left out.
    pub(crate) fn add(&mut self, role: &str, parts: Vec<Value>) {
        if !parts.is_empty() {
            self.messages.push(json!({ "role": role, "parts": parts }));
        }
    }

    /// Adds the model's answer.
    pub(crate) fn answered(&mut self, parts: Vec<Value>, finish_reason: &str) {
        self.messages.push(json!({ "role": "assistant", "parts": parts, "finish_reason": finish_reason }));
    }

    /// The parts of a message, up to the limit.
    pub(crate) fn parts(&mut self, content: &[Block], sieve: &Sieve) -> Vec<Value> {
        content.iter().filter_map(|block| self.part(block, sieve)).collect()
    }

    /// A text as a part.
    pub(crate) fn text(&mut self, text: &str, sieve: &Sieve) -> Option<Value> {
        let content = self.fitting(sieve.text(text)?)?;
        Some(json!({ "type": "text", "content": content }))
    }

    /// A tool's output as a part.
    pub(crate) fn result(&mut self, call: &str, output: &str, sieve: &Sieve) -> Option<Value> {
        let response = self.fitting(sieve.text(output)?)?;
        Some(json!({ "type": "tool_call_response", "id": sieve.label(call), "response": response }))
    }

    fn part(&mut self, block: &Block, sieve: &Sieve) -> Option<Value> {
        match block {
            Block::Text(text) => self.text(text, sieve),
            Block::Thinking { text, .. } if !text.is_empty() => {
                let content = self.fitting(sieve.text(text)?)?;
                Some(json!({ "type": "reasoning", "content": content }))
            }
            Block::ToolCall(call) => {
                let arguments = self.fitting(sieve.json(&call.input)?)?;
                let arguments = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                let (id, name) = (sieve.label(&call.id.0), sieve.label(&call.name));
                Some(json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments }))
            }
            // Pictures and provider-specific blocks aren't exported.
            Block::Image(_) | Block::Thinking { .. } | Block::Opaque { .. } => None,
        }
    }

    /// As much of `text` as fits; `None` if the limit is reached.
    fn fitting(&mut self, text: String) -> Option<String> {
        let room = CONTENT_BYTES_MAX.checked_sub(self.bytes).filter(|room| *room > 0)?;
        let text = cut(&text, room);
        // The mark of a cut may exceed the limit a little.
        self.bytes = self.bytes.saturating_add(text.len());
        Some(text)
    }

    /// Takes all messages as JSON; `None` if there are none.
    pub(crate) fn take(&mut self) -> Option<String> {
        std::mem::take(self).shown()
    }

    /// All messages as JSON; `None` if there are none.
    pub(crate) fn shown(&self) -> Option<String> {
        (!self.messages.is_empty()).then(|| json!(self.messages).to_string())
    }
}

fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}{CUT}", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{CONTENT_BYTES_MAX, Messages, Sieve, cut};
    use crate::Content;
    use provost_harness::Redactor;

    #[test]
    fn texts_are_cut_at_a_character() {
        assert_eq!(cut("äöü", 6), "äöü");
        assert_eq!(cut("äöü", 5), "äö…");
        assert_eq!(cut("äöü", 0), "…");
    }

    #[test]
    fn messages_share_the_room_of_their_attribute() {
        let sieve = Sieve::new(Content::On, Redactor::default());
        let mut messages = Messages::default();
        for _ in 0..4 {
            let part = messages.text(&"x".repeat(CONTENT_BYTES_MAX / 2), &sieve);
            messages.add("user", part.into_iter().collect());
        }
        let json = messages.take().expect("messages");
        assert_eq!(json.matches("user").count(), 2);
        assert!(json.len() < CONTENT_BYTES_MAX + 200, "{}", json.len());
        assert_eq!(messages.take(), None);
    }
}
