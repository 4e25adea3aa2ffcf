//! Answers in the streaming format of OpenAI's Responses API.

use super::{WORDS, data};

const ITEM: &str = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"TEXT"}]}"#;

/// An answer that calls the tool for the `number`th time.
pub(super) fn tool_call(number: usize) -> String {
    let mut events = beginning();
    let item = |status: &str, arguments: &str| {
        format!(
            r#"{{"id":"fc_{number}","type":"function_call","status":"{status}","call_id":"call_{number:08}","name":"noop","arguments":"{arguments}"}}"#
        )
    };
    let added = item("in_progress", "");
    data(&mut events, &format!(r#"{{"type":"response.output_item.added","output_index":1,"item":{added}}}"#));
    for piece in [r#"{\"n\":"#.to_owned(), format!(" {number}}}")] {
        let delta = format!(
            r#"{{"type":"response.function_call_arguments.delta","item_id":"fc_{number}","output_index":1,"delta":"{piece}"}}"#
        );
        data(&mut events, &delta);
    }
    let arguments = format!(r#"{{\"n\": {number}}}"#);
    let done = item("completed", &arguments);
    let arguments_done = format!(
        r#"{{"type":"response.function_call_arguments.done","item_id":"fc_{number}","output_index":1,"arguments":"{arguments}"}}"#
    );
    data(&mut events, &arguments_done);
    data(&mut events, &format!(r#"{{"type":"response.output_item.done","output_index":1,"item":{done}}}"#));
    end(&mut events, &format!("{},{done}", text_item()));
    events
}

/// The last answer.
pub(super) fn last_text() -> String {
    let mut events = beginning();
    end(&mut events, &text_item());
    events
}

fn text_item() -> String {
    ITEM.replace("TEXT", &WORDS.concat())
}

fn response(status: &str, output: &str, usage: &str) -> String {
    format!(
        r#"{{"id":"resp_1","object":"response","status":"{status}","model":"gpt-5-mini-2025-08-07","output":[{output}],"usage":{usage}}}"#
    )
}

fn beginning() -> String {
    let mut events = String::with_capacity(4096);
    let created = response("in_progress", "", "null");
    data(&mut events, &format!(r#"{{"type":"response.created","response":{created}}}"#));
    data(
        &mut events,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
    );
    data(
        &mut events,
        r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"text":""}}"#,
    );
    for words in WORDS {
        let delta = format!(
            r#"{{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"{words}"}}"#
        );
        data(&mut events, &delta);
    }
    let text = WORDS.concat();
    let done = format!(
        r#"{{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"{text}"}}"#
    );
    data(&mut events, &done);
    let item = text_item();
    data(&mut events, &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#));
    events
}

fn end(events: &mut String, output: &str) {
    let usage = r#"{"input_tokens":1000,"input_tokens_details":{"cached_tokens":0},"output_tokens":40,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1040}"#;
    let completed = response("completed", output, usage);
    data(events, &format!(r#"{{"type":"response.completed","response":{completed}}}"#));
}
