//! A request's bytes: the same from turn to turn, but for what is new.

use bytes::Bytes;
use provost_event::{Block, Json, ToolCall, ToolSpec};
use provost_harness::{Message, ModelRequest, Part, Role};
use serde::Serialize;

use super::WIRE;

/// Ends the prefix that the provider keeps for the next request.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireBlock<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Json,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The whole request. What changes from turn to turn comes last.
pub(super) fn body(request: &ModelRequest<'_>) -> Vec<u8> {
    let messages = request.messages.iter().map(|message| message.wire(WIRE, fragment)).collect::<Vec<_>>();
    let size = messages.iter().map(|message| message.len() + 1).sum::<usize>();
    let mut out = Vec::with_capacity(size + request.system.len() * 2 + 4096);
    out.extend_from_slice(b"{\"model\":");
    put(&mut out, request.model);
    put_system(&mut out, request.system);
    put_tools(&mut out, request.tools);
    out.extend_from_slice(b",\"stream\":true,\"messages\":[");
    for (place, message) in messages.iter().filter(|message| !message.is_empty()).enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(message);
    }
    out.extend_from_slice(b"],\"max_tokens\":");
    put(&mut out, &request.output_tokens_max);
    out.extend_from_slice(b",\"cache_control\":");
    put(&mut out, &CacheControl::Ephemeral);
    out.push(b'}');
    out
}

fn put_system(out: &mut Vec<u8>, system: &str) {
    if !is_blank(system) {
        out.extend_from_slice(b",\"system\":");
        put(out, &[WireBlock::Text { text: system, cache_control: Some(CacheControl::Ephemeral) }]);
    }
}

fn put_tools(out: &mut Vec<u8>, tools: &[ToolSpec]) {
    let last = tools.len().saturating_sub(1);
    let wire_tool = |(place, tool): (usize, &ToolSpec)| {
        let mut bytes = Vec::new();
        put(
            &mut bytes,
            &WireTool {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.input_schema,
                cache_control: (place == last).then_some(CacheControl::Ephemeral),
            },
        );
        bytes
    };
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":[");
        out.extend(tools.iter().enumerate().map(wire_tool).collect::<Vec<_>>().join(&b','));
        out.push(b']');
    }
}

/// One message; empty if nothing in it can be sent.
fn fragment(message: &Message) -> Bytes {
    let blocks = message.parts.iter().filter_map(part).collect::<Vec<_>>();
    if blocks.is_empty() {
        return Bytes::new();
    }
    let mut out = match message.role {
        Role::User => b"{\"role\":\"user\",\"content\":[".to_vec(),
        Role::Assistant => b"{\"role\":\"assistant\",\"content\":[".to_vec(),
    };
    out.extend(blocks.join(&b','));
    out.extend_from_slice(b"]}");
    out.into()
}

/// One block; `None` for what the provider would refuse: blank text, reasoning without its seal, and blocks of
/// other providers.
fn part(part: &Part) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match part {
        Part::Block(Block::Text(text)) if is_blank(text) => return None,
        Part::Block(Block::Text(text)) => put(&mut out, &WireBlock::Text { text, cache_control: None }),
        Part::Block(Block::Thinking { text, signature }) => {
            put(&mut out, &WireBlock::Thinking { thinking: text, signature: signature.as_ref()? });
        }
        Part::Block(Block::Opaque { wire, json }) if wire == WIRE => {
            out.extend_from_slice(json.text().as_bytes())
        }
        Part::Block(Block::Opaque { .. }) => return None,
        Part::Block(Block::ToolCall(ToolCall { id, name, input, .. })) => {
            put(&mut out, &WireBlock::ToolUse { id: &id.0, name, input });
        }
        Part::ToolResult { call, output, is_error, .. } => {
            // An error without words is refused.
            let content =
                if *is_error && is_blank(output) { "failed without output" } else { output.as_str() };
            put(&mut out, &WireBlock::ToolResult { tool_use_id: &call.0, content, is_error: *is_error });
        }
    }
    Some(out)
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Texts, numbers and JSON that already is JSON always have a JSON form, and a Vec takes every byte.
    let _ = serde_json::to_writer(out, value);
}
