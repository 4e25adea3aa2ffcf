//! The bytes of a request: the same in each turn, except for what is new.

use provost_event::{Json, ToolSpec};
use provost_harness::{Dialect, ModelRequest, ToolChoice};
use serde::Serialize;

use super::WIRE;
use super::message::{Generation, fragment};
use super::thinking::{ThinkingConfig, is_since_3};
use crate::Reasoning;
use crate::json::{is_blank, list, put};

/// A tool. The schema's field accepts full JSON Schema; `parameters` would accept only a part of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Json,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

/// The whole request. The parts that change each turn come last.
pub(super) fn body(request: &ModelRequest<'_>, model: &str, reasoning: Option<Reasoning>) -> Vec<u8> {
    let generation = if is_since_3(model, reasoning) { Generation::Since3 } else { Generation::Before3 };
    let dialect = Dialect { wire: WIRE.name(), variant: generation as u32 };
    let contents = request
        .messages
        .iter()
        .map(|message| message.wire(dialect, |message| fragment(message, generation)))
        .collect::<Vec<_>>();
    let size = contents.iter().map(|content| content.len() + 1).sum::<usize>();
    let mut out = Vec::with_capacity(size + request.system.len() * 2 + 4096);
    out.push(b'{');
    put_system(&mut out, request.system);
    put_tools(&mut out, request.tools);
    out.extend_from_slice(b"\"contents\":[");
    list(&mut out, &contents);
    out.extend_from_slice(b"],\"generationConfig\":");
    let config = GenerationConfig {
        max_output_tokens: request.output_tokens_max,
        thinking_config: ThinkingConfig::of(request, model, reasoning),
    };
    put(&mut out, &config);
    put_tool_choice(&mut out, request);
    out.push(b'}');
    out
}

fn put_system(out: &mut Vec<u8>, system: &str) {
    if !is_blank(system) {
        out.extend_from_slice(b"\"systemInstruction\":{\"parts\":[{\"text\":");
        put(out, system);
        out.extend_from_slice(b"}]},");
    }
}

fn put_tools(out: &mut Vec<u8>, tools: &[ToolSpec]) {
    if tools.is_empty() {
        return;
    }
    let wire_tool = |tool: &ToolSpec| {
        let mut bytes = Vec::new();
        let ToolSpec { name, description, input_schema, .. } = tool;
        put(&mut bytes, &WireTool { name, description, parameters_json_schema: input_schema });
        bytes
    };
    out.extend_from_slice(b"\"tools\":[{\"functionDeclarations\":[");
    out.extend(tools.iter().map(wire_tool).collect::<Vec<_>>().join(&b','));
    out.extend_from_slice(b"]}],");
}

fn put_tool_choice(out: &mut Vec<u8>, request: &ModelRequest<'_>) {
    let mode = match request.tool_choice {
        _ if request.tools.is_empty() => return,
        ToolChoice::Auto => return,
        ToolChoice::Required => "ANY",
        ToolChoice::None => "NONE",
    };
    out.extend_from_slice(b",\"toolConfig\":{\"functionCallingConfig\":{\"mode\":");
    put(out, mode);
    out.extend_from_slice(b"}}");
}
