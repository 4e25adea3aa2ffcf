//! `reasoning_details`: a model's reasoning as OpenRouter streams it, which is sent back unchanged.
//!
//! Pieces of a text or a summary are matched by type and index and joined; sealed details arrive whole. Their
//! order is kept (openrouter.ai/docs, "Preserving reasoning blocks").

use serde_json::{Map, Value};

type Detail = Map<String, Value>;

/// The fields that arrive in pieces.
const GROWING: [&str; 2] = ["text", "summary"];

/// The details of one answer.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Detail>);

impl Details {
    /// Adds the next detail; returns its text.
    pub(super) fn add(&mut self, detail: Value) -> String {
        let Value::Object(detail) = detail else { return String::new() };
        let words = GROWING.iter().filter_map(|field| detail.get(*field)?.as_str()).collect::<String>();
        let last = self.0.len().saturating_sub(1);
        let begun = self.0.iter().rposition(|begun| goes_on(begun, &detail));
        // Without an index only the last one can continue.
        match begun.filter(|place| *place == last || detail.get("index").is_some_and(Value::is_number)) {
            Some(place) => {
                if let Some(begun) = self.0.get_mut(place) {
                    merge(begun, detail);
                }
            }
            None => self.0.push(detail),
        }
        words
    }

    /// All of them as a JSON array; empty if there are none.
    pub(super) fn seal(&self) -> String {
        if self.0.is_empty() { String::new() } else { serde_json::to_string(&self.0).unwrap_or_default() }
    }
}

fn goes_on(begun: &Detail, detail: &Detail) -> bool {
    let same = |field: &str| begun.get(field) == detail.get(field);
    let no_other = |field: &str| {
        let both = begun.get(field).zip(detail.get(field));
        both.is_none_or(|(one, other)| one == other || one.is_null() || other.is_null())
    };
    let grows =
        matches!(detail.get("type").and_then(Value::as_str), Some("reasoning.text" | "reasoning.summary"));
    grows && same("type") && same("index") && no_other("id") && no_other("signature")
}

fn merge(begun: &mut Detail, detail: Detail) {
    for (field, value) in detail {
        match (begun.get_mut(&field), value) {
            (_, Value::Null) => {
                begun.entry(field).or_insert(Value::Null);
            }
            (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&field.as_str()) => {
                text.push_str(&more);
            }
            (_, value) => {
                begun.insert(field, value);
            }
        }
    }
}
