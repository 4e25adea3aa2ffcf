//! A script's expectations on a request.

use provost_event::Block;
use provost_harness::{ModelRequest, Part, Role};

use crate::failure::{one_line, shorten};

/// Characters to show of the actual text.
const SHOWN_CHARS_MAX: usize = 200;

/// Expectations on a request; fields that aren't set aren't checked.
#[derive(Debug, Default)]
pub(super) struct Expect {
    pub(super) turn: Option<u32>,
    pub(super) messages: Option<usize>,
    pub(super) contains: Vec<String>,
    pub(super) not_contains: Vec<String>,
    pub(super) system: Vec<String>,
    pub(super) offers: Vec<String>,
    pub(super) results: Vec<ExpectResult>,
}

/// Expectations that a single tool result has to meet.
#[derive(Debug, Default)]
pub(super) struct ExpectResult {
    pub(super) tool: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) contains: Vec<String>,
    pub(super) not_contains: Vec<String>,
}

impl Expect {
    /// Describes the expected and the actual text.
    pub(super) fn check(&self, request: &ModelRequest<'_>) -> Result<(), String> {
        if let Some(turn) = self.turn.filter(|turn| *turn != request.turn) {
            return Err(format!("turn {turn}, but this is turn {}", request.turn));
        }
        let messages = request.messages.len();
        if let Some(expected) = self.messages.filter(|expected| *expected != messages) {
            return Err(format!("{expected} messages, but there are {messages}"));
        }
        for tool in &self.offers {
            if !request.tools.iter().any(|offered| offered.name == *tool) {
                let offered = request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>();
                return Err(format!(
                    "the tool `{tool}` to be offered, but there is only: {}",
                    offered.join(", ")
                ));
            }
        }
        has_all("the system prompt", request.system, &self.system)?;
        let parts = last_message(request);
        let text = text_of(parts);
        has_all("the last message", &text, &self.contains)?;
        has_none("the last message", &text, &self.not_contains)?;
        self.results.iter().try_for_each(|expected| expected.check(parts))
    }
}

impl ExpectResult {
    fn check(&self, parts: &[Part]) -> Result<(), String> {
        if parts.iter().any(|part| self.fits(part)) {
            return Ok(());
        }
        let shown = parts.iter().filter_map(shown_result).collect::<Vec<_>>().join("; ");
        let there = if shown.is_empty() { "there is none".to_owned() } else { format!("there is: {shown}") };
        Err(format!("{}, but {there}", self.described()))
    }

    fn fits(&self, part: &Part) -> bool {
        let Part::ToolResult { tool, output, is_error, .. } = part else { return false };
        self.tool.as_ref().is_none_or(|expected| expected == tool)
            && self.is_error.is_none_or(|expected| expected == *is_error)
            && self.contains.iter().all(|words| output.contains(words.as_str()))
            && !self.not_contains.iter().any(|words| output.contains(words.as_str()))
    }

    fn described(&self) -> String {
        let mut words = vec![match self.is_error {
            Some(true) => "an error result".to_owned(),
            Some(false) => "a result without error".to_owned(),
            None => "a result".to_owned(),
        }];
        words.extend(self.tool.iter().map(|tool| format!("of the tool `{tool}`")));
        words.extend(self.contains.iter().map(|text| format!("with `{text}`")));
        words.extend(self.not_contains.iter().map(|text| format!("without `{text}`")));
        words.join(" ")
    }
}

/// The last parts that aren't from the model itself.
fn last_message<'a>(request: &ModelRequest<'a>) -> &'a [Part] {
    let last = request.messages.iter().rfind(|message| message.role == Role::User);
    last.map_or(&[], |message| message.parts.as_slice())
}

fn text_of(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Block(Block::Text(text)) => Some(text.clone()),
        Part::Block(_) | Part::Image(_) | Part::ToolResult { .. } => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn shown_result(part: &Part) -> Option<String> {
    let Part::ToolResult { tool, output, is_error, .. } = part else { return None };
    let kind = if *is_error { "error" } else { "result" };
    Some(format!("{kind} of `{tool}`: `{}`", shown(output)))
}

fn has_all(place: &str, text: &str, expected: &[String]) -> Result<(), String> {
    match expected.iter().find(|words| !text.contains(words.as_str())) {
        Some(words) => Err(format!("{place} to contain `{words}`, but it is: `{}`", shown(text))),
        None => Ok(()),
    }
}

fn has_none(place: &str, text: &str, unwanted: &[String]) -> Result<(), String> {
    match unwanted.iter().find(|words| text.contains(words.as_str())) {
        Some(words) => Err(format!("{place} not to contain `{words}`, but it is: `{}`", shown(text))),
        None => Ok(()),
    }
}

fn shown(text: &str) -> String {
    shorten(&one_line(text), SHOWN_CHARS_MAX)
}
