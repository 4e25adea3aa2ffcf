//! Answers in the streaming format of OpenAI's Chat Completions.

use super::{WORDS, data};

/// An answer that calls the tool for the `number`th time.
pub(super) fn tool_call(number: usize) -> String {
    let mut events = beginning();
    let call = format!(
        r#"{{"tool_calls":[{{"index":0,"id":"call_{number:08}","type":"function","function":{{"name":"noop","arguments":""}}}}]}}"#
    );
    chunk(&mut events, &call, "null");
    for piece in [r#"{\"n\":"#.to_owned(), format!(" {number}}}")] {
        let delta = format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{piece}"}}}}]}}"#);
        chunk(&mut events, &delta, "null");
    }
    end(&mut events, "tool_calls");
    events
}

/// The last answer.
pub(super) fn last_text() -> String {
    let mut events = beginning();
    end(&mut events, "stop");
    events
}

fn chunk(events: &mut String, delta: &str, finish: &str) {
    let choice = format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}"#);
    whole(events, &choice, "null");
}

fn whole(events: &mut String, choices: &str, usage: &str) {
    let chunk = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-5-mini-2025-08-07","choices":[{choices}],"usage":{usage}}}"#
    );
    data(events, &chunk);
}

fn beginning() -> String {
    let mut events = String::with_capacity(4096);
    chunk(&mut events, r#"{"role":"assistant","content":"","refusal":null}"#, "null");
    for words in WORDS {
        chunk(&mut events, &format!(r#"{{"content":"{words}"}}"#), "null");
    }
    events
}

fn end(events: &mut String, finish: &str) {
    chunk(events, "{}", &format!("\"{finish}\""));
    let usage = r#"{"prompt_tokens":1000,"completion_tokens":40,"total_tokens":1040,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}"#;
    whole(events, "", usage);
    data(events, "[DONE]");
}
