//! The bytes of a request: the same in each turn, except for what is new.

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use provost_event::{Block, Effort, Json, ToolCall, ToolSpec};
use provost_harness::{Dialect, ImageData, Message, ModelRequest, Part, Role, ToolChoice};
use serde::Serialize;

use super::WIRE;
use super::binding::{Bound, Ways, bind, is_bound};
use crate::Reasoning;
use crate::json::{is_blank, list, put};
use crate::wire::{Body, Thoughts};

const FULL: Dialect = Dialect { wire: WIRE.name(), variant: 0 };
/// Without thinking.
const BARE: Dialect = Dialect { wire: WIRE.name(), variant: 1 };
/// The provider's minimum for a thinking budget.
const THINKING_TOKENS_MIN: u32 = 1024;

/// Ends the prefix that the provider caches for the next request.
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
    Image {
        source: Source,
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
        #[serde(skip_serializing_if = "Content::is_empty")]
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// A tool's result: text, or text and pictures.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<WireBlock<'a>>),
}

impl Content<'_> {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

/// A picture's bytes.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source {
    Base64 { media_type: &'static str, data: String },
}

impl Source {
    fn of(image: &ImageData) -> Self {
        Self::Base64 { media_type: image.kind().media_type(), data: BASE64_STANDARD.encode(image.bytes()) }
    }
}

/// The thinking setting.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled { budget_tokens: u32 },
    Adaptive,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: Effort,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireToolChoice {
    Any,
    None,
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The whole request. The parts that change each turn come last.
pub(super) fn body(
    request: &ModelRequest<'_>,
    model: &str,
    reasoning: Option<Reasoning>,
    thoughts: Thoughts,
) -> Body {
    let mut head = Vec::with_capacity(request.system.len() * 2 + 4096);
    put_system(&mut head, request.system);
    put_tools(&mut head, request.tools);
    let ways = Ways { thoughts, checks: is_bound(model) };
    let Bound { messages, prefix, has_thoughts } = bind(&head, request.messages, ways);
    let size = messages.iter().map(|message| message.len() + 1).sum::<usize>();
    let mut out = Vec::with_capacity(size + head.len() + 1024);
    out.extend_from_slice(b"{\"model\":");
    put(&mut out, model);
    out.extend_from_slice(&head);
    out.extend_from_slice(b",\"stream\":true,\"messages\":[");
    list(&mut out, &messages);
    out.extend_from_slice(b"],\"max_tokens\":");
    put(&mut out, &request.output_tokens_max);
    out.extend_from_slice(b",\"cache_control\":");
    put(&mut out, &CacheControl::Ephemeral);
    put_thinking(&mut out, request, reasoning);
    put_tool_choice(&mut out, request);
    out.push(b'}');
    Body { bytes: out, prefix: Some(prefix), has_thoughts }
}

/// A message's bytes in a request.
pub(super) fn bytes(message: &Message, thoughts: Thoughts) -> Cow<'_, [u8]> {
    let (dialect, thoughts) = form(message, thoughts);
    message.wire(dialect, |message| fragment(message, thoughts))
}

/// The hash of a message's bytes in a request, made once.
pub(super) fn hash(message: &Message, thoughts: Thoughts) -> [u8; 32] {
    let (dialect, thoughts) = form(message, thoughts);
    message.wire_hash(dialect, |message| fragment(message, thoughts))
}

/// A message without thinking has one form only.
fn form(message: &Message, thoughts: Thoughts) -> (Dialect, Thoughts) {
    let thinks = message.role == Role::Assistant && message.parts.iter().any(is_thought);
    match thoughts {
        Thoughts::LeftOut if thinks => (BARE, Thoughts::LeftOut),
        Thoughts::LeftOut | Thoughts::Sent => (FULL, Thoughts::Sent),
    }
}

const fn is_thought(part: &Part) -> bool {
    matches!(part, Part::Block(Block::Thinking { .. } | Block::Opaque { .. }))
}

/// No thinking if the model must call a tool: the provider refuses both together.
fn put_thinking(out: &mut Vec<u8>, request: &ModelRequest<'_>, reasoning: Option<Reasoning>) {
    let Some(effort) = request.effort.filter(|_| request.tool_choice != ToolChoice::Required) else { return };
    let thinking = match reasoning.unwrap_or(Reasoning::Effort) {
        Reasoning::None => return,
        Reasoning::Budget => match thinking_tokens(effort, request.output_tokens_max) {
            Some(budget_tokens) => Thinking::Enabled { budget_tokens },
            None => return,
        },
        Reasoning::Effort => {
            // Models of this generation can't turn thinking off.
            let effort = if effort == Effort::Minimal { Effort::Low } else { effort };
            out.extend_from_slice(b",\"output_config\":");
            put(out, &OutputConfig { effort });
            Thinking::Adaptive
        }
    };
    out.extend_from_slice(b",\"thinking\":");
    put(out, &thinking);
}

/// The thinking budget, at most half of the answer's cap; `None` if that is below the provider's minimum.
fn thinking_tokens(effort: Effort, output_tokens_max: u32) -> Option<u32> {
    let wanted = match effort {
        Effort::Minimal => return None,
        Effort::Low => 4 * 1024,
        Effort::Medium => 16 * 1024,
        Effort::High => 32 * 1024,
        Effort::Xhigh | Effort::Max => 64 * 1024,
    };
    Some(wanted.min(output_tokens_max / 2)).filter(|tokens| *tokens >= THINKING_TOKENS_MIN)
}

fn put_tool_choice(out: &mut Vec<u8>, request: &ModelRequest<'_>) {
    let choice = match request.tool_choice {
        _ if request.tools.is_empty() => return,
        ToolChoice::Auto => return,
        ToolChoice::Required => WireToolChoice::Any,
        ToolChoice::None => WireToolChoice::None,
    };
    out.extend_from_slice(b",\"tool_choice\":");
    put(out, &choice);
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

/// One message; empty if it has nothing to send.
fn fragment(message: &Message, thoughts: Thoughts) -> Bytes {
    let parts = message.parts.iter().filter(|part| thoughts == Thoughts::Sent || !is_thought(part));
    let blocks = parts.filter_map(part).collect::<Vec<_>>();
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
        Part::Image(image) => put(&mut out, &WireBlock::Image { source: Source::of(image) }),
        Part::Block(Block::Thinking { text, signature, wire, .. }) if is_own(wire.as_deref()) => {
            put(&mut out, &WireBlock::Thinking { thinking: text, signature: signature.as_ref()? });
        }
        Part::Block(Block::Opaque { wire, json, .. }) if wire == WIRE.name() => {
            out.extend_from_slice(json.text().as_bytes())
        }
        Part::Block(Block::Thinking { .. } | Block::Opaque { .. } | Block::Image(_)) => return None,
        Part::Block(Block::ToolCall(ToolCall { id, name, input, .. })) => {
            put(&mut out, &WireBlock::ToolUse { id: &id.0, name, input });
        }
        Part::ToolResult { call, output, images, is_error, .. } => {
            // An error without text is refused.
            let text = if *is_error && is_blank(output) { "failed without output" } else { output.as_str() };
            let content = if images.is_empty() { Content::Text(text) } else { with_images(text, images) };
            put(&mut out, &WireBlock::ToolResult { tool_use_id: &call.0, content, is_error: *is_error });
        }
    }
    Some(out)
}

fn is_own(wire: Option<&str>) -> bool {
    wire == Some(WIRE.name())
}

fn with_images<'a>(text: &'a str, images: &[ImageData]) -> Content<'a> {
    let text = (!is_blank(text)).then_some(WireBlock::Text { text, cache_control: None });
    let images = images.iter().map(|image| WireBlock::Image { source: Source::of(image) });
    Content::Blocks(text.into_iter().chain(images).collect())
}
