//! Parses the verdict in a model's answer. In doubt there is none: the caller can ask once more, but a misread
//! verdict would complete a run that isn't done.

use std::fmt;

use provost_event::{Confidence, SupervisorError, SupervisorVerdict};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Maximum bytes of an answer; a longer one is no verdict.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Maximum characters kept of an answer that is no verdict.
const RAW_CHARS_MAX: usize = 500;
/// Maximum characters kept of the reasoning.
const REASONING_CHARS_MAX: usize = 4_000;
/// Maximum suggestions, and maximum characters of each.
const SUGGESTIONS_MAX: usize = 20;
const SUGGESTION_CHARS_MAX: usize = 500;
/// The field that decides.
const DECIDING_FIELD: &str = "achieved";
/// All fields of a verdict.
const FIELDS: [&str; 4] = [DECIDING_FIELD, "reasoning", "confidence", "suggestions"];

/// A verdict as a judge writes it. A duplicate field is an error.
#[derive(Deserialize)]
struct Written {
    achieved: bool,
    reasoning: String,
    #[serde(default, deserialize_with = "exact")]
    confidence: Confidence,
    #[serde(default)]
    suggestions: Option<Vec<String>>,
}

/// Names of fields, or beginnings of the words in them, that give a verdict or its confidence a second time.
const SECONDS: [&str; 24] = [
    "achiev",
    "met",
    "unmet",
    "verdict",
    "pass",
    "passed",
    "passes",
    "passing",
    "fail",
    "done",
    "complet",
    "incomplet",
    "success",
    "satisf",
    "status",
    "result",
    "outcome",
    "decision",
    "conclusion",
    "answer",
    "confiden",
    "certain",
    "score",
    "probabilit",
];

fn exact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Confidence, D::Error> {
    let number: &RawValue = Deserialize::deserialize(deserializer)?;
    Confidence::of_decimal(number.get()).ok_or_else(|| D::Error::custom("no number from 0 to 1"))
}

/// The verdict in a judge's whole answer.
///
/// Everything from the first brace to the last must be one JSON object (RFC 8259, nested at most 127 deep):
/// - `achieved`: a boolean, required. Text and numbers that mean the same are none.
/// - `reasoning`: a string with at least one letter or digit, required; the first 4,000 characters are kept.
/// - `confidence`: a number from 0 to 1, exactly as written and rounded down to millionths; 0 if missing. Anything else,
///   `95`, `null` and `"high"` included, is no verdict: its meaning would be a guess.
/// - `suggestions`: a list of strings; none if missing or `null`. The first 20 that aren't blank are kept, of each the first
///   500 characters.
///
/// Other fields are ignored, if they contain no object and no boolean at any depth, and their name isn't another word for
/// one of these (`met`, `verdict`, `Confidence`): an object inside of another, whether it is the verdict or quoted, is
/// no verdict, and a verdict that is given twice is none, also if both are the same.
///
/// A verdict that says achieved must be the whole answer, apart from a fence around it and `<think>…</think>`
/// before it: other text before or after it may say that it is quoted from the evidence, where an agent can plant
/// one. A verdict that says no may have text around it, such as reasoning before it, but no other brace and
/// nothing that looks like the field (`achieved:`): a judge that quotes one and then gives its own, even
/// malformed, has given two, and none counts.
///
/// Time and memory are proportional to the answer, of which at most 64 KiB are read.
///
/// # Errors
/// [`SupervisorError::Parse`] with the beginning of the answer, at most 500 characters and a mark; empty if the
/// answer is.
pub fn parse_verdict(answer: &str) -> Result<SupervisorVerdict, SupervisorError> {
    read(answer).ok_or_else(|| no_verdict(answer))
}

/// The error for an answer that is no verdict.
pub(super) fn no_verdict(answer: &str) -> SupervisorError {
    SupervisorError::Parse(beginning(answer.trim(), RAW_CHARS_MAX))
}

/// The first `chars_max` characters of `text`, and a mark if that isn't all.
pub(super) fn beginning(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn read(answer: &str) -> Option<SupervisorVerdict> {
    let (before, object, after) = taken_apart(answer)?;
    let written = written(object)?;
    if written.achieved && !(begins_a_fence(before) && ends_a_fence(after)) {
        return None;
    }
    let are_plain = is_plain(before) && is_plain(after);
    let is_reasoned = written.reasoning.contains(char::is_alphanumeric);
    (are_plain && is_reasoned).then(|| verdict(written))
}

/// The answer before its first brace, from there to its last, and after that.
fn taken_apart(answer: &str) -> Option<(&str, &str, &str)> {
    if answer.len() > ANSWER_BYTES_MAX {
        return None;
    }
    let (start, end) = (answer.find('{')?, answer.rfind('}')?);
    Some((answer.get(..start)?, answer.get(start..=end)?, answer.get(end.checked_add(1)?..)?))
}

fn written(object: &str) -> Option<Written> {
    let Shape { deciding: 1, objects: 1, seconds: 0, .. } = serde_json::from_str(object).ok()? else {
        return None;
    };
    serde_json::from_str::<Written>(object).ok()
}

/// Whether a field of this name, which isn't a verdict's own, may say the same as one of them or the opposite.
fn is_second(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    if FIELDS.contains(&plain.as_str()) {
        return true;
    }
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() || !c.is_alphanumeric() {
            words.push(' ');
        }
        words.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
    }
    let is_word = |word: &str| {
        SECONDS.iter().any(|known| if known.len() < 6 { word == *known } else { word.starts_with(known) })
    };
    words.split_whitespace().chain([plain.as_str()]).any(is_word)
}

fn verdict(written: Written) -> SupervisorVerdict {
    let Written { achieved, reasoning, confidence, suggestions } = written;
    let suggestions = suggestions.unwrap_or_default();
    let suggestions = suggestions.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    SupervisorVerdict {
        achieved,
        reasoning: beginning(reasoning.trim(), REASONING_CHARS_MAX),
        confidence,
        suggestions: suggestions
            .take(SUGGESTIONS_MAX)
            .map(|line| beginning(line, SUGGESTION_CHARS_MAX))
            .collect(),
    }
}

/// Whether the text is empty or the start of a fenced block, with its language.
fn begins_a_fence(before: &str) -> bool {
    let before = without_thoughts(before.trim_start_matches('\u{feff}')).trim();
    let name = before.trim_start_matches(['`', '~']);
    let is_fenced = before.len() >= name.len().saturating_add(3);
    before.is_empty() || (is_fenced && (name.is_empty() || name.eq_ignore_ascii_case("json")))
}

/// The text after the reasoning that some models write before their answer.
fn without_thoughts(text: &str) -> &str {
    let thoughts = text.trim_start().strip_prefix("<think>").and_then(|rest| rest.split_once("</think>"));
    thoughts.map_or(text, |(_, behind)| behind)
}

/// Whether the text is empty or the end of a fenced block.
fn ends_a_fence(after: &str) -> bool {
    let after = after.trim();
    let is_fence = |mark| after.len() >= 3 && after.chars().all(|c| c == mark);
    after.is_empty() || is_fence('`') || is_fence('~')
}

/// Whether the text around a verdict contains no part of another one.
fn is_plain(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    let mut pieces = words.split(DECIDING_FIELD);
    pieces.next();
    let is_assigned = |piece: &str| {
        let piece = piece.trim_start_matches(|c: char| c.is_whitespace() || "\"'`*_".contains(c));
        piece.starts_with([':', '：', '='])
    };
    !words.contains(['{', '}']) && !pieces.any(is_assigned)
}

/// The content of a JSON value, at any depth.
#[derive(Default)]
struct Shape {
    /// The number of deciding fields, regardless of case.
    deciding: u32,
    objects: u32,
    booleans: u32,
    /// The number of fields that may give the verdict again, and of booleans in fields that aren't a verdict's own.
    seconds: u32,
}

impl Shape {
    fn and(self, other: Self) -> Self {
        Self {
            deciding: self.deciding.saturating_add(other.deciding),
            objects: self.objects.saturating_add(other.objects),
            booleans: self.booleans.saturating_add(other.booleans),
            seconds: self.seconds.saturating_add(other.seconds),
        }
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Count)
    }
}

struct Count;

impl<'de> Visitor<'de> for Count {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut shape = Shape { objects: 1, ..Shape::default() };
        while let Some(name) = map.next_key::<String>()? {
            let decides = name.trim().eq_ignore_ascii_case(DECIDING_FIELD);
            let field = Shape { deciding: u32::from(decides), ..Shape::default() };
            let value: Shape = map.next_value()?;
            let mut seconds = 0;
            if !FIELDS.contains(&name.as_str()) {
                seconds = value.booleans.saturating_add(u32::from(is_second(&name)));
            }
            shape = shape.and(field).and(value).and(Shape { seconds, ..Shape::default() });
        }
        Ok(shape)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        let mut shape = Shape::default();
        while let Some(within) = list.next_element()? {
            shape = shape.and(within);
        }
        Ok(shape)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape { booleans: 1, ..Shape::default() })
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::default())
    }
}
