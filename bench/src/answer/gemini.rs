//! Answers in the streaming format of Google's Gemini API.

use super::{WORDS, data};

/// An answer that calls the tool for the `number`th time.
pub(super) fn tool_call(number: usize) -> String {
    let mut events = beginning();
    let call = format!(r#"{{"functionCall":{{"name":"noop","args":{{"n": {number}}}}}}}"#);
    part(&mut events, &call, r#","finishReason":"STOP""#);
    events
}

/// The last answer.
pub(super) fn last_text() -> String {
    let mut events = beginning();
    part(&mut events, r#"{"text":""}"#, r#","finishReason":"STOP""#);
    events
}

fn part(events: &mut String, part: &str, more: &str) {
    let chunk = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{part}],"role":"model"}},"index":0{more}}}],"usageMetadata":{{"promptTokenCount":1000,"candidatesTokenCount":40,"totalTokenCount":1040}},"modelVersion":"gemini-2.5-pro","responseId":"r1"}}"#
    );
    data(events, &chunk);
}

fn beginning() -> String {
    let mut events = String::with_capacity(4096);
    for words in WORDS {
        part(&mut events, &format!(r#"{{"text":"{words}"}}"#), "");
    }
    events
}
