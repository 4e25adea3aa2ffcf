//! The bytes of a request: the same in each turn, except for what is new.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use provost_event::{Block, Effort, Freeform, Json, ToolCall, ToolSpec};
use provost_harness::{Dialect, ImageData, Message, ModelRequest, Part, Role};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{CUSTOM, PHASE, WIRE};
use crate::json::{failed, is_blank, list, put};
use crate::openai;
use crate::wire::{Body, Thoughts};
use crate::{Deviations, Reasoning};

const FULL: Dialect = Dialect { wire: WIRE.name(), variant: 0 };
/// Without reasoning.
const BARE: Dialect = Dialect { wire: WIRE.name(), variant: 1 };
/// Added to the variant for servers that have custom tools.
const WITH_CUSTOM: u32 = 2;
/// The provider's minimum for the output cap (`integer_below_min_value` below it).
const OUTPUT_TOKENS_MIN: u32 = 16;
/// Items that need an output and have none: calls of tools that aren't offered.
const UNANSWERED: [&str; 6] = [
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "mcp_approval_request",
];

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireItem<'a> {
    Message {
        role: &'static str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    CustomToolCall {
        call_id: &'a str,
        name: &'a str,
        input: Cow<'a, str>,
    },
    CustomToolCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
}

/// Text, or text and pictures.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String, detail: &'static str },
}

impl WirePart<'_> {
    fn image(image: &ImageData) -> Self {
        let (kind, data) = (image.kind().media_type(), BASE64_STANDARD.encode(image.bytes()));
        // Some servers require a detail.
        Self::InputImage { image_url: format!("data:{kind};base64,{data}"), detail: "auto" }
    }
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Json,
    strict: bool,
}

/// A tool whose one argument a model writes as it is.
#[derive(Serialize)]
struct WireCustomTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    format: WireGrammar<'a>,
}

#[derive(Serialize)]
struct WireGrammar<'a> {
    r#type: &'static str,
    syntax: &'static str,
    definition: &'a str,
}

#[derive(Serialize)]
struct WireReasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    summary: &'static str,
}

/// The settings of a request, besides its content.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    pub(super) reasoning: Option<Reasoning>,
    pub(super) deviations: Deviations,
    pub(super) thoughts: Thoughts,
}

/// The whole request. The parts that change each turn come last.
pub(super) fn body(request: &ModelRequest<'_>, model: &str, ways: Ways) -> Body {
    let Ways { reasoning, deviations, thoughts } = ways;
    let dialect = match thoughts {
        Thoughts::Sent => FULL,
        Thoughts::LeftOut => BARE,
    };
    let custom = match deviations.custom_tools {
        true => custom_calls(request.messages),
        false => HashSet::new(),
    };
    let dialect = match deviations.custom_tools {
        true => Dialect { variant: dialect.variant + WITH_CUSTOM, ..dialect },
        false => dialect,
    };
    let fragment = |message: &Message| fragment(message, thoughts, &custom);
    let messages = request.messages.iter().map(|message| message.wire(dialect, fragment)).collect::<Vec<_>>();
    let has_thoughts = thoughts == Thoughts::Sent
        && request.messages.iter().any(|message| message.parts.iter().any(is_thought));
    let size = messages.iter().map(|message| message.len() + 1).sum::<usize>();
    let mut out = Vec::with_capacity(size + request.system.len() * 2 + 4096);
    out.extend_from_slice(b"{\"model\":");
    put(&mut out, model);
    if !is_blank(request.system) {
        out.extend_from_slice(b",\"instructions\":");
        put(&mut out, request.system);
    }
    put_tools(&mut out, request.tools, deviations);
    if deviations.cache_key {
        out.extend_from_slice(b",\"prompt_cache_key\":");
        put(&mut out, &request.session.to_string());
    }
    out.extend_from_slice(b",\"store\":false,\"stream\":true,\"input\":[");
    list(&mut out, &messages);
    out.extend_from_slice(b"],\"max_output_tokens\":");
    put(&mut out, &request.output_tokens_max.max(OUTPUT_TOKENS_MIN));
    put_reasoning(&mut out, request.effort, model, reasoning);
    put_tool_choice(&mut out, request);
    out.push(b'}');
    Body { has_thoughts, ..Body::unbound(out) }
}

fn is_thought(part: &Part) -> bool {
    matches!(part, Part::Block(Block::Thinking { wire, .. }) if wire.as_deref() == Some(WIRE.name()))
}

/// A model that doesn't reason refuses the setting.
fn put_reasoning(out: &mut Vec<u8>, effort: Option<Effort>, model: &str, reasoning: Option<Reasoning>) {
    if reasoning == Some(Reasoning::None) {
        return;
    }
    if reasoning.is_some() || effort.is_some() {
        out.extend_from_slice(b",\"include\":[\"reasoning.encrypted_content\"],\"reasoning\":");
        let effort = effort.map(|effort| openai::effort_word(effort, model));
        put(out, &WireReasoning { effort, summary: "auto" });
    }
}

fn put_tool_choice(out: &mut Vec<u8>, request: &ModelRequest<'_>) {
    if let Some(choice) = openai::tool_choice(request) {
        out.extend_from_slice(b",\"tool_choice\":");
        put(out, choice);
    }
}

/// The calls of a conversation whose argument the model wrote as it is.
fn custom_calls(messages: &[Arc<Message>]) -> HashSet<String> {
    let parts = messages.iter().filter(|message| message.role == Role::Assistant);
    let marks = parts.flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::Block(Block::Opaque { wire, json, .. })
            if wire == WIRE.name() && json.text().contains(CUSTOM) =>
        {
            Some(kind_of(json)).filter(|kind| kind.r#type == CUSTOM)?.call_id
        }
        _ => None,
    });
    marks.collect()
}

fn put_tools(out: &mut Vec<u8>, tools: &[ToolSpec], deviations: Deviations) {
    let wire_tool = |tool: &ToolSpec| {
        let mut bytes = Vec::new();
        if let Some(Freeform { grammar }) = tool.freeform.as_ref().filter(|_| deviations.custom_tools) {
            let format = WireGrammar { r#type: "grammar", syntax: "lark", definition: grammar };
            let (name, description) = (&tool.name, &tool.description);
            put(&mut bytes, &WireCustomTool { r#type: "custom", name, description, format });
            return bytes;
        }
        let ToolSpec { name, description, input_schema, .. } = tool;
        put(
            &mut bytes,
            &WireTool { r#type: "function", name, description, parameters: input_schema, strict: false },
        );
        bytes
    };
    if !tools.is_empty() {
        out.extend_from_slice(b",\"tools\":[");
        list(out, &tools.iter().map(wire_tool).collect::<Vec<_>>());
        out.push(b']');
    }
}

/// The items of one message; empty if it has nothing to send.
fn fragment(message: &Message, thoughts: Thoughts, custom: &HashSet<String>) -> Bytes {
    let items = match message.role {
        Role::User => said_to_model(&message.parts, custom),
        Role::Assistant => said_by_model(&message.parts, thoughts, custom),
    };
    let mut out = Vec::new();
    list(&mut out, &items);
    out.into()
}

fn item(item: &WireItem<'_>) -> Bytes {
    let mut out = Vec::new();
    put(&mut out, item);
    out.into()
}

/// Results of tools as separate items; texts and pictures together in one message.
fn said_to_model(parts: &[Part], custom: &HashSet<String>) -> Vec<Bytes> {
    let mut items = Vec::new();
    let mut content = Vec::new();
    for part in parts {
        match part {
            Part::Block(Block::Text(text)) if !is_blank(text) => content.push(WirePart::InputText { text }),
            Part::Image(image) => content.push(WirePart::image(image)),
            Part::Block(_) => {}
            Part::ToolResult { call, output, images, is_error, .. } => {
                items.extend(user_message(std::mem::take(&mut content)));
                let text =
                    if *is_error { Cow::Owned(failed(output)) } else { Cow::Borrowed(output.as_str()) };
                let output =
                    if images.is_empty() { Content::Text(&text) } else { with_images(&text, images) };
                let call_id = &*call.0;
                items.push(match custom.contains(call_id) {
                    true => item(&WireItem::CustomToolCallOutput { call_id, output }),
                    false => item(&WireItem::FunctionCallOutput { call_id, output }),
                });
            }
        }
    }
    items.extend(user_message(content));
    items
}

fn user_message(content: Vec<WirePart<'_>>) -> Option<Bytes> {
    let is_empty = content.is_empty();
    let message = WireItem::Message { role: "user", content: Content::Parts(content), phase: None };
    (!is_empty).then(|| item(&message))
}

fn with_images<'a>(text: &'a str, images: &[ImageData]) -> Content<'a> {
    let text = (!is_blank(text)).then_some(WirePart::InputText { text });
    Content::Parts(text.into_iter().chain(images.iter().map(WirePart::image)).collect())
}

/// The model's items, without ids made by Provost, which the provider would look up. What the provider would
/// refuse is left out: blank text, reasoning without its seal or at the end, and blocks of other providers.
fn said_by_model(parts: &[Part], thoughts: Thoughts, custom: &HashSet<String>) -> Vec<Bytes> {
    let mut items = Vec::new();
    let mut phase = None;
    // Items up to the last one that isn't reasoning.
    let mut complete = 0;
    for part in parts.iter().filter(|part| thoughts == Thoughts::Sent || !is_thought(part)) {
        match part {
            Part::Block(Block::Text(text)) if !is_blank(text) => {
                // The form without ids and annotations, which strict servers would require otherwise.
                let phase = phase.take();
                let content = Content::Text(text);
                items.push(item(&WireItem::Message { role: "assistant", content, phase: phase.as_deref() }));
            }
            Part::Block(Block::ToolCall(ToolCall { id, name, input, .. })) => {
                let call_id = &*id.0;
                items.push(match as_is(input).filter(|_| custom.contains(call_id)) {
                    Some(input) => item(&WireItem::CustomToolCall { call_id, name, input: input.into() }),
                    None => item(&WireItem::FunctionCall { call_id, name, arguments: input.text() }),
                });
            }
            Part::Block(Block::Thinking { signature: Some(seal), wire, .. })
                if wire.as_deref() == Some(WIRE.name()) =>
            {
                items.extend(serde_json::from_str::<&RawValue>(seal).ok().map(|_| Bytes::from(seal.clone())));
                continue;
            }
            Part::Block(Block::Opaque { wire, json, .. }) if wire == WIRE.name() => {
                let kind = kind_of(json);
                if kind.r#type == PHASE {
                    phase = kind.phase;
                    continue;
                }
                if kind.r#type == CUSTOM || UNANSWERED.contains(&kind.r#type.as_str()) {
                    continue;
                }
                items.push(Bytes::from(json.text().to_owned()));
            }
            Part::Block(_) | Part::Image(_) | Part::ToolResult { .. } => continue,
        }
        complete = items.len();
    }
    items.truncate(complete);
    items
}

#[derive(Deserialize, Default)]
struct Kind {
    #[serde(default)]
    r#type: String,
    phase: Option<String>,
    call_id: Option<String>,
}

/// The one argument of a call that the model wrote as it is.
fn as_is(input: &Json) -> Option<String> {
    let mut arguments: HashMap<String, String> = input.read().ok()?;
    arguments.remove(Freeform::FIELD)
}

fn kind_of(json: &Json) -> Kind {
    json.read().unwrap_or_default()
}
