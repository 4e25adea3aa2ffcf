//! Messages in the provider's format: contents, and their parts.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use provost_event::{Block, CallId, ImageKind, Json, ToolCall};
use provost_harness::{ImageData, Message, Part, Role};
use serde::Serialize;

use super::{UNNAMED, WIRE};
use crate::json::{is_blank, list, put};

/// The placeholder for the seal of a call from another provider's model; models since generation 3 refuse a first
/// call without one (ai.google.dev, "Thought signatures").
const NO_SEAL: &str = "skip_thought_signature_validator";

/// Model generations with different message formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Pictures only beside a tool's result; calls without a seal are accepted.
    Before3 = 0,
    /// Pictures within a tool's result; a first call needs a seal.
    Since3 = 1,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(flatten)]
    data: Data<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Data<'a> {
    Text(&'a str),
    #[serde(rename = "inlineData")]
    Inline(Blob),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob {
    mime_type: &'static str,
    data: String,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: &'a Json,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Response<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<WirePart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Response<'a> {
    Output(&'a str),
    Error(&'a str),
}

/// One message; empty if it has nothing to send.
pub(super) fn fragment(message: &Message, generation: Generation) -> Bytes {
    let (head, parts) = match message.role {
        Role::User => (b"{\"role\":\"user\",\"parts\":[".as_slice(), told(&message.parts, generation)),
        Role::Assistant => (b"{\"role\":\"model\",\"parts\":[".as_slice(), said(&message.parts, generation)),
    };
    if parts.is_empty() {
        return Bytes::new();
    }
    let mut out = head.to_vec();
    list(&mut out, &parts);
    out.extend_from_slice(b"]}");
    out.into()
}

/// The parts of a user message.
fn told(parts: &[Part], generation: Generation) -> Vec<Bytes> {
    let mut out = Vec::new();
    // Pictures beside results come after all results: these have to follow the calls without a gap.
    let (mut beside, mut end) = (Vec::new(), 0);
    for part in parts {
        match part {
            Part::Block(Block::Text(text)) if !is_blank(text) => out.push(plain(Data::Text(text))),
            Part::Image(image) => out.push(picture(image)),
            Part::ToolResult { call, tool, output, images, is_error } => {
                let (shown, hidden) = images.iter().partition::<Vec<_>, _>(|image| is_taken(image));
                let words = words_of(output, &hidden, *is_error);
                let words = words.as_deref().unwrap_or(output);
                let response = if *is_error { Response::Error(words) } else { Response::Output(words) };
                let within = match generation {
                    Generation::Since3 => shown.iter().map(|image| inline(image)).collect(),
                    Generation::Before3 => {
                        if !shown.is_empty() {
                            beside.push(plain(Data::Text(&format!("[what {tool} shows:]"))));
                            beside.extend(shown.iter().map(|image| picture(image)));
                        }
                        Vec::new()
                    }
                };
                let response = FunctionResponse { id: named(call), name: tool, response, parts: within };
                out.push(plain(Data::FunctionResponse(response)));
                end = out.len();
            }
            Part::Block(_) => {}
        }
    }
    out.splice(end..end, beside);
    out
}

/// A result's text, if it isn't just the output.
fn words_of(output: &str, hidden: &[&ImageData], is_error: bool) -> Option<String> {
    let output = if is_error && is_blank(output) { "failed without output" } else { output };
    if hidden.is_empty() && !is_error {
        return None;
    }
    let lines = std::iter::once(output.to_owned()).filter(|text| !text.is_empty());
    Some(lines.chain(hidden.iter().map(|image| stand_in(image))).collect::<Vec<_>>().join("\n"))
}

/// The parts of a model's message. What the provider wouldn't accept is left out: blank text, thoughts (only their
/// seals are sent back), and blocks that other providers have sealed.
fn said(parts: &[Part], generation: Generation) -> Vec<Bytes> {
    let mut out = Vec::new();
    let mut seal = None;
    let is_foreign = !parts.iter().any(is_own);
    for part in parts {
        match part {
            Part::Block(Block::Thinking { signature, .. }) if is_own(part) => {
                out.extend(seal.take().map(bare));
                seal = signature.as_deref();
            }
            Part::Block(Block::Text(text)) if !is_blank(text) || seal.is_some() => {
                out.push(bytes(&WirePart { data: Data::Text(text), thought_signature: seal.take() }));
            }
            Part::Block(Block::ToolCall(call)) => {
                let wants = is_foreign && generation == Generation::Since3 && !has_call_before(parts, call);
                let own = seal.take();
                out.push(function_call(call, own.or(wants.then_some(NO_SEAL))));
            }
            Part::Block(Block::Opaque { wire, json, .. }) if wire == WIRE.name() => {
                out.extend(seal.take().map(bare));
                out.push(Bytes::copy_from_slice(json.text().as_bytes()));
            }
            Part::Block(_) | Part::Image(_) | Part::ToolResult { .. } => {}
        }
    }
    out.extend(seal.map(bare));
    out
}

/// Whether the part has a seal of this provider.
fn is_own(part: &Part) -> bool {
    match part {
        Part::Block(
            Block::Thinking { signature: Some(_), wire: Some(wire), .. } | Block::Opaque { wire, .. },
        ) => wire == WIRE.name(),
        _ => false,
    }
}

fn has_call_before(parts: &[Part], call: &ToolCall) -> bool {
    let first = parts.iter().find_map(|part| match part {
        Part::Block(Block::ToolCall(first)) => Some(first),
        _ => None,
    });
    first.is_some_and(|first| first.id != call.id)
}

fn function_call(call: &ToolCall, seal: Option<&str>) -> Bytes {
    let ToolCall { id, name, input, .. } = call;
    let data = Data::FunctionCall(FunctionCall { id: named(id), name, args: input });
    bytes(&WirePart { data, thought_signature: seal })
}

/// The provider's own id of a call.
fn named(id: &CallId) -> Option<&str> {
    (!id.0.starts_with(UNNAMED)).then_some(&id.0)
}

/// A seal without a part to attach it to.
fn bare(seal: &str) -> Bytes {
    bytes(&WirePart { data: Data::Text(""), thought_signature: Some(seal) })
}

fn picture(image: &ImageData) -> Bytes {
    if is_taken(image) { bytes(&inline(image)) } else { plain(Data::Text(&stand_in(image))) }
}

fn inline<'a>(image: &ImageData) -> WirePart<'a> {
    let blob = Blob { mime_type: image.kind().media_type(), data: BASE64_STANDARD.encode(image.bytes()) };
    WirePart { data: Data::Inline(blob), thought_signature: None }
}

/// Whether models accept the picture (ai.google.dev, "Image understanding").
fn is_taken(image: &ImageData) -> bool {
    image.kind() != ImageKind::Gif
}

fn stand_in(image: &ImageData) -> String {
    format!("[{} of {} bytes, which can't be shown to you]", image.kind().media_type(), image.bytes().len())
}

fn plain(data: Data<'_>) -> Bytes {
    bytes(&WirePart { data, thought_signature: None })
}

fn bytes(part: &WirePart<'_>) -> Bytes {
    let mut out = Vec::new();
    put(&mut out, part);
    out.into()
}
