//! Whether a model's window has room for an agent. What stands before every conversation can't be left out; a window in
//! which little more than that fits would be shortened again and again for nothing.

use provost_engine::tokens_of;
use provost_event::{ModelPolicy, ToolSpec};

use crate::settings::{Problem, Settled, Source};

/// A request must have room for this many times what stands before every conversation, and so many tokens besides: the
/// engine shortens to half of the room where it can.
const TIMES: u64 = 2;
const BESIDES: u64 = 400;
/// What stands around a tool in a request.
const TOOL_TOKENS: u64 = 8;
/// The smallest cap on answers that can be set.
const OUTPUT_TOKENS_MIN: u64 = 256;

/// Where an agent's settings name its model and the cap on its answers, with their keys.
pub(crate) struct Keys {
    /// The model.
    pub(crate) model: (Source, String),
    /// The cap.
    pub(crate) cap: (Source, String),
}

/// What stands before every conversation.
pub(crate) struct Before<'a> {
    /// The system prompt.
    pub(crate) system_prompt: &'a str,
    /// The tools.
    pub(crate) tools: &'a [ToolSpec],
}

/// What is wrong with the window of `model`, which `name` names, if something is. Where it isn't known, nothing is.
pub(crate) fn problem(
    settled: &Settled,
    name: &str,
    model: &ModelPolicy,
    before: &Before<'_>,
    keys: &Keys,
) -> Option<Problem> {
    let window = model.window_tokens?;
    let fixed = tokens_of(before.system_prompt).saturating_add(before.tools.iter().map(tokens_of_tool).sum());
    let need = fixed.saturating_mul(TIMES).saturating_add(BESIDES);
    let cap = u64::from(model.output_tokens_max);
    // An answer never gets more than half of a window.
    let room = window.saturating_sub(cap.min(window / 2));
    if room >= need {
        return None;
    }
    let taken = format!("system prompt and tools take about {fixed} tokens of each request");
    let what = format!("{name} has a window of {window} tokens, {room} of them beside an answer; {taken}");
    let cap_that_fits = window.saturating_sub(need);
    if cap_that_fits >= OUTPUT_TOKENS_MIN {
        let ((source, key), remedy) = (keys.cap.clone(), format!("e.g. output_tokens_max = {cap_that_fits}"));
        return Some(Problem { source, key, what, remedy });
    }
    let set = format!("models.\"{name}\".window_tokens");
    let (source, key) = if settled.is_set(&set) { (settled.source(&set), set) } else { keys.model.clone() };
    let least = need.saturating_add(cap.min(need));
    let remedy = format!("it takes a window of at least {least}");
    Some(Problem { source, key, what, remedy })
}

fn tokens_of_tool(tool: &ToolSpec) -> u64 {
    let texts = [tool.name.as_str(), &tool.description, tool.input_schema.text()];
    texts.into_iter().map(tokens_of).fold(TOOL_TOKENS, u64::saturating_add)
}
