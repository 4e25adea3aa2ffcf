//! What the model server answers, in each provider's streaming format.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use provost_llm::WireFormat;

/// The model's text before each call, in pieces as a provider streams them.
const WORDS: [&str; 8] =
    ["I'll call ", "the tool ", "once more ", "and look ", "at what it ", "says ", "before I ", "go on."];

/// An answer that calls the tool for the `number`th time.
pub(crate) fn tool_call(wire: WireFormat, number: usize) -> String {
    match wire {
        WireFormat::Anthropic => anthropic::tool_call(number),
        WireFormat::OpenaiResponses => responses::tool_call(number),
        WireFormat::OpenaiChat => chat::tool_call(number),
        WireFormat::Gemini => gemini::tool_call(number),
    }
}

/// An answer that starts `number` agents named `agent` at once.
///
/// # Errors
/// Only Anthropic's format has it.
pub(crate) fn agents(wire: WireFormat, agent: &str, number: usize) -> anyhow::Result<String> {
    anyhow::ensure!(wire == WireFormat::Anthropic, "agents are asked for in Anthropic's format alone");
    Ok(anthropic::agents(agent, number))
}

/// The last answer.
pub(crate) fn last_text(wire: WireFormat) -> String {
    match wire {
        WireFormat::Anthropic => anthropic::last_text(),
        WireFormat::OpenaiResponses => responses::last_text(),
        WireFormat::OpenaiChat => chat::last_text(),
        WireFormat::Gemini => gemini::last_text(),
    }
}

/// Text that a request contains once for each tool result.
pub(crate) const fn result_mark(wire: WireFormat) -> &'static str {
    match wire {
        WireFormat::Anthropic => "\"tool_result\"",
        WireFormat::OpenaiResponses => "\"function_call_output\"",
        WireFormat::OpenaiChat => "\"tool_call_id\"",
        WireFormat::Gemini => "\"functionResponse\"",
    }
}

/// A long text in Anthropic's format.
pub(crate) struct LongText {
    /// The events before it.
    pub(crate) begin: String,
    /// The event with a piece of it.
    pub(crate) piece: String,
    /// The events after it.
    pub(crate) end: String,
}

/// A text whose pieces have this many bytes.
pub(crate) fn long_text(piece_bytes: usize) -> LongText {
    anthropic::long_text(piece_bytes)
}

/// The whole response over HTTP/1.1, with `events` as its one chunk.
pub(crate) fn http(events: &str) -> String {
    format!("{}{}{}", http_head(), chunk(events), chunk(""))
}

/// The head of a response over HTTP/1.1 in chunks.
pub(crate) const fn http_head() -> &'static str {
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
}

/// A chunk; the empty one is the last.
pub(crate) fn chunk(events: &str) -> String {
    format!("{:x}\r\n{events}\r\n", events.len())
}

/// An event of which only the data matters.
fn data(events: &mut String, data: &str) {
    events.push_str("data: ");
    events.push_str(data);
    events.push_str("\n\n");
}
