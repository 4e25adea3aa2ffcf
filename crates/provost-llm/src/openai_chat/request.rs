//! The bytes of a request: the same in each turn, except for what is new.

use std::borrow::Cow;

use provost_event::{Effort, Json, SessionId, ToolSpec};
use provost_harness::{Dialect, ModelRequest, ToolChoice};
use serde::Serialize;

use super::WIRE;
use super::message::{CacheControl, fragment, system, variant};
use crate::json::{list, put};
use crate::openai;
use crate::{Deviations, EffortField, LeastEffort, OutputCapField, Reasoning};

/// OpenRouter accepts cache marks for models with explicit caching (openrouter.ai/docs, "Prompt caching").
const CACHED_WHERE_TOLD: &str = "anthropic/";

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireTool<'a> {
    Function { function: WireToolSpec<'a> },
}

#[derive(Serialize)]
struct WireToolSpec<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Json,
}

/// The whole request. The parts that change each turn come last.
pub(super) fn body(
    request: &ModelRequest<'_>,
    model: &str,
    reasoning: Option<Reasoning>,
    deviations: Deviations,
) -> Vec<u8> {
    let back = deviations.reasoning_back;
    let dialect = Dialect { wire: WIRE.name(), variant: variant(back) };
    let is_cached = deviations.cache_control && model.starts_with(CACHED_WHERE_TOLD);
    let system = system(request.system, is_cached);
    let messages = std::iter::once(Cow::Owned(system.into()));
    let messages = messages.chain(
        request.messages.iter().map(|message| message.wire(dialect, |message| fragment(message, back))),
    );
    let messages = messages.collect::<Vec<Cow<'_, [u8]>>>();
    let size = messages.iter().map(|message| message.len() + 1).sum::<usize>();
    let mut out = Vec::with_capacity(size + 16 * 1024);
    out.extend_from_slice(b"{\"model\":");
    put(&mut out, model);
    put_tools(&mut out, request.tools);
    put_stream(&mut out, request.session, deviations);
    out.extend_from_slice(b",\"messages\":[");
    list(&mut out, &messages);
    out.extend_from_slice(match deviations.output_cap {
        OutputCapField::MaxTokens => b"],\"max_tokens\":".as_slice(),
        OutputCapField::MaxCompletionTokens => b"],\"max_completion_tokens\":",
    });
    put(&mut out, &request.output_tokens_max);
    if reasoning != Some(Reasoning::None) {
        put_effort(&mut out, request, model, deviations);
    }
    put_tool_choice(&mut out, request);
    if is_cached {
        out.extend_from_slice(b",\"cache_control\":");
        put(&mut out, &CacheControl::Ephemeral);
    }
    out.push(b'}');
    out
}

fn put_stream(out: &mut Vec<u8>, session: SessionId, deviations: Deviations) {
    out.extend_from_slice(b",\"stream\":true");
    if !deviations.no_stream_options {
        out.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
    }
    if deviations.cache_key {
        out.extend_from_slice(b",\"prompt_cache_key\":");
        put(out, &session.to_string());
    }
}

fn put_effort(out: &mut Vec<u8>, request: &ModelRequest<'_>, model: &str, deviations: Deviations) {
    if deviations.least_effort == LeastEffort::Openai && !request.tools.is_empty() {
        // With this API OpenAI's newer models accept either tools or an effort: from 5.4 on not both, from 5.6 on
        // tools only with `none` (openai/openai-openapi#541, GoogleChromeLabs/webmcp-tools#417).
        match openai::gpt_version(model) {
            Some(version) if version >= (5, 6) => {
                return out.extend_from_slice(b",\"reasoning_effort\":\"none\"");
            }
            Some(version) if version >= openai::TOOLS_WITHOUT_EFFORT_FROM => return,
            _ => {}
        }
    }
    let is_forced = request.tool_choice == ToolChoice::Required && !request.tools.is_empty();
    let thinks = match request.effort {
        // DeepSeek and Moonshot refuse a forced tool call with thinking.
        _ if is_forced => Some(false),
        effort => effort.map(|effort| effort != Effort::Minimal),
    };
    match (deviations.effort, thinks) {
        (EffortField::Thinking | EffortField::ThinkingAndEffort, Some(false)) => {
            out.extend_from_slice(b",\"thinking\":{\"type\":\"disabled\"}");
        }
        (EffortField::Thinking | EffortField::ThinkingAndEffort, Some(true)) => {
            out.extend_from_slice(b",\"thinking\":{\"type\":\"enabled\"}");
        }
        _ => {}
    }
    let Some(effort) = request.effort.map(|effort| word(effort, deviations.least_effort, model)) else {
        return;
    };
    match deviations.effort {
        EffortField::ThinkingAndEffort if thinks != Some(true) => {}
        EffortField::ReasoningEffort | EffortField::ThinkingAndEffort => {
            out.extend_from_slice(b",\"reasoning_effort\":");
            put(out, effort);
        }
        EffortField::Reasoning => {
            out.extend_from_slice(b",\"reasoning\":{\"effort\":");
            put(out, effort);
            out.push(b'}');
        }
        EffortField::Thinking | EffortField::None => {}
    }
}

fn word(effort: Effort, least: LeastEffort, model: &str) -> &'static str {
    match (effort, least) {
        (effort, LeastEffort::Openai) => openai::effort_word(effort, model),
        (Effort::Minimal, LeastEffort::Minimal) => "minimal",
        (Effort::Minimal, LeastEffort::None) => "none",
        (Effort::Minimal, LeastEffort::Low) | (Effort::Low, _) => "low",
        (Effort::Medium, _) => "medium",
        (Effort::High | Effort::Xhigh | Effort::Max, _) => effort.name(),
    }
}

fn put_tool_choice(out: &mut Vec<u8>, request: &ModelRequest<'_>) {
    if let Some(choice) = openai::tool_choice(request) {
        out.extend_from_slice(b",\"tool_choice\":");
        put(out, choice);
    }
}

fn put_tools(out: &mut Vec<u8>, tools: &[ToolSpec]) {
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":");
        put(out, &tools.iter().map(wire_tool).collect::<Vec<_>>());
    }
}

fn wire_tool(tool: &ToolSpec) -> WireTool<'_> {
    let ToolSpec { name, description, input_schema: parameters, .. } = tool;
    WireTool::Function { function: WireToolSpec { name, description, parameters } }
}
