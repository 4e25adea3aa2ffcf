//! OpenAI's Responses.

use provost_event::Usage;
use provost_llm::WireFormat;
use serde_json::{Value, json};

use super::{End, Event, Line, SPEAKING, Speaker, Spoken, Stream, Trouble, string, text_of};

pub(crate) struct OpenaiResponses;

/// A stream whose events are numbered.
#[derive(Default)]
struct Numbered {
    stream: Stream,
    output: Vec<Value>,
}

impl Numbered {
    fn push(&mut self, kind: &str, mut event: Value) {
        event["type"] = kind.into();
        event["sequence_number"] = self.stream.events.len().into();
        self.stream.push(Some(kind), &event);
    }

    /// An item from its beginning to its end, with what comes between.
    fn item(&mut self, begun: Value, done: Value, between: impl FnOnce(&mut Self, Value)) {
        let index = self.output.len();
        self.push("response.output_item.added", json!({"output_index": index, "item": begun}));
        between(self, json!({"item_id": done["id"], "output_index": index}));
        self.push("response.output_item.done", json!({"output_index": index, "item": done}));
        self.output.push(done);
    }
}

/// `value` with the fields of `more`.
fn with(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

fn response(status: &str, output: &[Value], more: Value) -> Value {
    let response = json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": SPEAKING,
        "output": output, "error": null, "incomplete_details": null, "usage": null, "parallel_tool_calls": true,
        "store": false,
    });
    json!({"response": with(response, more)})
}

fn think(stream: &mut Numbered, spoken: &Spoken) {
    let Some(thought) = &spoken.thought else { return };
    let whole = thought.pieces.concat();
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let begun = json!({"id": "rs_1", "type": "reasoning", "summary": []});
    let summary = if whole.is_empty() { json!([]) } else { json!([part(&whole)]) };
    let done =
        json!({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": thought.seal});
    stream.item(begun, done, |stream, place| {
        if whole.is_empty() {
            return;
        }
        let place = with(place, json!({"summary_index": 0}));
        stream.push("response.reasoning_summary_part.added", with(place.clone(), json!({"part": part("")})));
        for piece in &thought.pieces {
            stream.stream.written += piece.len();
            let delta = with(place.clone(), json!({"delta": piece}));
            stream.push("response.reasoning_summary_text.delta", delta);
        }
        let done = with(place.clone(), json!({"text": whole}));
        stream.push("response.reasoning_summary_text.done", done);
        stream.push("response.reasoning_summary_part.done", with(place, json!({"part": part(&whole)})));
    });
}

fn say(stream: &mut Numbered, spoken: &Spoken) {
    if spoken.text.is_empty() {
        return;
    }
    let refused = spoken.end == End::Refused;
    let part = |text: &str| {
        if refused {
            json!({"type": "refusal", "refusal": text})
        } else {
            json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
        }
    };
    let kind = if refused { "refusal" } else { "output_text" };
    let message = |status: &str, content: Value| json!({"id": "msg_1", "type": "message", "status": status, "role": "assistant", "content": content});
    let whole = spoken.whole_text();
    let done = message("completed", json!([part(&whole)]));
    stream.item(message("in_progress", json!([])), done, |stream, place| {
        let place = with(place, json!({"content_index": 0}));
        stream.push("response.content_part.added", with(place.clone(), json!({"part": part("")})));
        for piece in &spoken.text {
            stream.stream.written += piece.len();
            let delta = with(place.clone(), json!({"delta": piece}));
            stream.push(&format!("response.{kind}.delta"), delta);
        }
        let text = if refused { "refusal" } else { "text" };
        stream.push(&format!("response.{kind}.done"), with(place.clone(), json!({text: whole})));
        stream.push("response.content_part.done", with(place, json!({"part": part(&whole)})));
    });
}

fn call(stream: &mut Numbered, spoken: &Spoken) {
    for (place, call) in spoken.calls.iter().enumerate() {
        let item = |status: &str, arguments: &str| {
            json!({"id": format!("fc_{place}"), "type": "function_call", "status": status, "call_id": call.id,
                "name": call.name, "arguments": arguments})
        };
        let whole = call.arguments();
        stream.stream.written += call.name.len();
        let status = if spoken.end == End::Cap { "incomplete" } else { "completed" };
        stream.item(item("in_progress", ""), item(status, &whole), |stream, place| {
            for piece in &call.pieces {
                stream.stream.written += piece.len();
                let delta = with(place.clone(), json!({"delta": piece}));
                stream.push("response.function_call_arguments.delta", delta);
            }
            let done = with(place, json!({"arguments": whole}));
            stream.push("response.function_call_arguments.done", done);
        });
    }
}

impl Speaker for OpenaiResponses {
    fn wire(&self) -> WireFormat {
        WireFormat::OpenaiResponses
    }

    fn request_id_header(&self) -> Option<&'static str> {
        Some("x-request-id")
    }

    fn events(&self, spoken: &Spoken) -> Vec<Event> {
        let mut stream = Numbered::default();
        stream.push("response.created", response("in_progress", &[], json!({})));
        stream.push("response.in_progress", response("in_progress", &[], json!({})));
        think(&mut stream, spoken);
        say(&mut stream, spoken);
        call(&mut stream, spoken);
        let usage = spoken.usage;
        stream.stream.usage = self.tells(usage);
        let input = self.tells(usage).prompt_tokens();
        let usage = json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": input + usage.output_tokens,
        });
        stream.stream.is_said = true;
        let output = stream.output.clone();
        if spoken.end == End::Cap {
            let more = json!({"usage": usage, "incomplete_details": {"reason": "max_output_tokens"}});
            stream.push("response.incomplete", response("incomplete", &output, more));
        } else {
            stream.push("response.completed", response("completed", &output, json!({"usage": usage})));
        }
        stream.stream.events
    }

    fn ping(&self) -> &'static str {
        "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":3}\n\n"
    }

    fn more_text(&self, text: &str) -> String {
        let delta = json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
            "content_index": 0, "delta": text, "sequence_number": 9});
        format!("event: response.output_text.delta\ndata: {delta}\n\n")
    }

    fn before_text(&self) -> usize {
        4
    }

    fn trouble(&self, trouble: Trouble, message: &str) -> String {
        let code = match trouble {
            Trouble::Overloaded => "server_is_overloaded",
            Trouble::RateLimited => "rate_limit_exceeded",
            Trouble::InvalidRequest => "invalid_prompt",
            Trouble::TooLong => "context_length_exceeded",
        };
        let error = json!({"error": {"code": code, "message": message}});
        let failed =
            with(json!({"type": "response.failed", "sequence_number": 9}), response("failed", &[], error));
        format!("event: response.failed\ndata: {failed}\n\n")
    }

    fn refusal(&self, status: u16, message: &str) -> String {
        refusal(status, message)
    }

    fn too_long(&self) -> String {
        too_long()
    }

    fn read(&self, body: &Value) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(text) = body["instructions"].as_str() {
            lines.push(Line::System(text.to_owned()));
        }
        for item in body["input"].as_array().unwrap() {
            match item["type"].as_str().unwrap_or("message") {
                "message" => {
                    let text = text_of(&item["content"]);
                    lines.push(match item["role"].as_str().unwrap() {
                        "system" | "developer" => Line::System(text),
                        "user" => Line::Person(text),
                        _ => Line::Said(text),
                    });
                }
                "reasoning" => lines.push(Line::Seal(string(&item["encrypted_content"]))),
                "function_call" => lines.push(Line::Call {
                    id: string(&item["call_id"]),
                    name: string(&item["name"]),
                    arguments: serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap(),
                }),
                "function_call_output" => lines
                    .push(Line::Result { id: string(&item["call_id"]), output: text_of(&item["output"]) }),
                other => panic!("an item of type {other}"),
            }
        }
        lines
    }

    /// Cache writes are free and aren't reported.
    fn tells(&self, usage: Usage) -> Usage {
        let input_tokens = usage.input_tokens + usage.cache_write_tokens;
        Usage { input_tokens, cache_write_tokens: 0, ..usage }
    }
}

/// OpenAI's error format, which its two APIs share.
pub(super) fn refusal(status: u16, message: &str) -> String {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("tokens", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
}

pub(super) fn too_long() -> String {
    json!({"error": {
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded",
    }})
    .to_string()
}
