//! Answers in Anthropic's streaming format (events of the Messages API, version 2023-06-01).

use std::fmt::Write as _;

use super::{LongText, WORDS};

/// An answer that calls the tool for the `number`th time.
pub(super) fn tool_call(number: usize) -> String {
    let mut events = beginning();
    call(&mut events, 1, &format!("toolu_{number:08}"), "noop", [r#"{\"n\":"#, &format!(" {number}}}")]);
    end(&mut events, "tool_use");
    events
}

/// An answer that starts `number` agents named `agent` at once.
pub(super) fn agents(agent: &str, number: usize) -> String {
    let mut events = beginning();
    for index in 1..=number {
        let id = format!("toolu_{agent}_{index:06}");
        let rest = format!(" \\\"Do part {index} of the work, and say what came of it.\\\"}}");
        call(&mut events, index, &id, agent, [r#"{\"goal\":"#, &rest]);
    }
    end(&mut events, "tool_use");
    events
}

fn call(events: &mut String, index: usize, id: &str, tool: &str, arguments: [&str; 2]) {
    let start = format!(
        r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"{id}","name":"{tool}","input":{{}}}}}}"#
    );
    event(events, "content_block_start", &start);
    for piece in arguments {
        let delta = format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":"{piece}"}}}}"#
        );
        event(events, "content_block_delta", &delta);
    }
    event(events, "content_block_stop", &format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
}

/// The last answer.
pub(super) fn last_text() -> String {
    let mut events = beginning();
    end(&mut events, "end_turn");
    events
}

/// A text whose pieces have this many bytes.
pub(super) fn long_text(piece_bytes: usize) -> LongText {
    let mut begin = beginning();
    let start = r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#;
    event(&mut begin, "content_block_start", start);
    let (mut piece, text) = (String::new(), "x".repeat(piece_bytes));
    let delta = format!(
        r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
    );
    event(&mut piece, "content_block_delta", &delta);
    let mut last = String::new();
    event(&mut last, "content_block_stop", r#"{"type":"content_block_stop","index":1}"#);
    end(&mut last, "end_turn");
    LongText { begin, piece, end: last }
}

fn beginning() -> String {
    let mut events = String::with_capacity(2048);
    event(
        &mut events,
        "message_start",
        r#"{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1000,"output_tokens":1}}}"#,
    );
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    event(&mut events, "content_block_start", start);
    for words in WORDS {
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{words}"}}}}"#
        );
        event(&mut events, "content_block_delta", &delta);
    }
    event(&mut events, "content_block_stop", r#"{"type":"content_block_stop","index":0}"#);
    events
}

fn end(events: &mut String, stop: &str) {
    let delta = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop}","stop_sequence":null}},"usage":{{"output_tokens":40}}}}"#
    );
    event(events, "message_delta", &delta);
    event(events, "message_stop", r#"{"type":"message_stop"}"#);
}

fn event(events: &mut String, name: &str, data: &str) {
    // Writing to a String can't fail.
    let _ = write!(events, "event: {name}\ndata: {data}\n\n");
}
