//! A conservative estimate of a request's tokens.

use provost_engine::IMAGE_TOKENS;
use serde_json::Value;

/// Minimum bytes per token, in text with much punctuation.
const BYTES_PER_TOKEN_LEAST: usize = 3;
/// A shorter text under these names is no picture.
const PICTURE_BYTES_MIN: usize = 256;

/// Tokens of a request at most: of its text, and of its pictures.
pub(crate) fn request_tokens(bytes: usize, body: &Value) -> u64 {
    let mut pictures = Pictures::default();
    pictures.count(body);
    let text = bytes.saturating_sub(pictures.bytes).div_ceil(BYTES_PER_TOKEN_LEAST);
    let text = u64::try_from(text).unwrap_or(u64::MAX);
    text.saturating_add(pictures.count.saturating_mul(IMAGE_TOKENS))
}

#[derive(Default)]
struct Pictures {
    count: u64,
    bytes: usize,
}

impl Pictures {
    fn count(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let kinds = ["media_type", "mimeType", "mime_type"];
                let kind = kinds.iter().find_map(|name| members.get(*name)?.as_str());
                let is_picture = kind.is_some_and(|kind| kind.starts_with("image/"));
                for (name, member) in members {
                    match member {
                        Value::String(text) if is_picture && name == "data" => self.add(text),
                        Value::String(text) if text.starts_with("data:image/") => self.add(text),
                        // A picture by its address.
                        Value::String(_) if matches!(name.as_str(), "image_url") => self.count += 1,
                        member => self.count(member),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.count(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn add(&mut self, text: &str) {
        if text.len() >= PICTURE_BYTES_MIN {
            self.count += 1;
            self.bytes += text.len();
        }
    }
}
