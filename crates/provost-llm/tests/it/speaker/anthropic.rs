//! Anthropic's Messages.

use provost_event::Usage;
use provost_llm::WireFormat;
use serde_json::{Value, json};

use super::{End, Event, Line, SPEAKING, Speaker, Spoken, Stream, Trouble, string, text_of};

pub(crate) struct Anthropic;

fn block(stream: &mut Stream, index: usize, start: Value, deltas: impl IntoIterator<Item = (Value, usize)>) {
    let event = json!({"type": "content_block_start", "index": index, "content_block": start});
    stream.push(Some("content_block_start"), &event);
    for (delta, written) in deltas {
        stream.written += written;
        let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
        stream.push(Some("content_block_delta"), &event);
    }
    stream.push(Some("content_block_stop"), &json!({"type": "content_block_stop", "index": index}));
}

impl Speaker for Anthropic {
    fn wire(&self) -> WireFormat {
        WireFormat::Anthropic
    }

    fn request_id_header(&self) -> Option<&'static str> {
        Some("request-id")
    }

    fn events(&self, spoken: &Spoken) -> Vec<Event> {
        let mut stream = Stream::default();
        let usage = spoken.usage;
        stream.usage = Usage { output_tokens: 1, ..self.tells(usage) };
        let start = json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": SPEAKING, "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": usage.input_tokens, "cache_creation_input_tokens": usage.cache_write_tokens,
                      "cache_read_input_tokens": usage.cache_read_tokens, "output_tokens": 1},
        }});
        stream.push(Some("message_start"), &start);
        stream.push(Some("ping"), &json!({"type": "ping"}));
        let mut index = 0;
        if let Some(thought) = &spoken.thought {
            let thinking =
                |piece: &String| (json!({"type": "thinking_delta", "thinking": piece}), piece.len());
            let seal = (json!({"type": "signature_delta", "signature": thought.seal}), 0);
            let deltas = thought.pieces.iter().map(thinking).chain([seal]);
            let start = json!({"type": "thinking", "thinking": "", "signature": ""});
            block(&mut stream, index, start, deltas);
            index += 1;
        }
        if !spoken.text.is_empty() {
            let delta = |piece: &String| (json!({"type": "text_delta", "text": piece}), piece.len());
            let start = json!({"type": "text", "text": ""});
            block(&mut stream, index, start, spoken.text.iter().map(delta));
            index += 1;
        }
        for call in &spoken.calls {
            let delta =
                |piece: &String| (json!({"type": "input_json_delta", "partial_json": piece}), piece.len());
            let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
            stream.written += call.name.len();
            block(&mut stream, index, start, call.pieces.iter().map(delta));
            index += 1;
        }
        stream.usage = self.tells(usage);
        let reason = match spoken.end {
            End::Done if spoken.calls.is_empty() => "end_turn",
            End::Done => "tool_use",
            End::Cap => "max_tokens",
            End::Refused => "refusal",
        };
        let end = json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": usage.output_tokens}});
        stream.push(Some("message_delta"), &end);
        stream.is_said = true;
        stream.push(Some("message_stop"), &json!({"type": "message_stop"}));
        stream.events
    }

    fn ping(&self) -> &'static str {
        "event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }

    fn more_text(&self, text: &str) -> String {
        let delta =
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
        format!("event: content_block_delta\ndata: {delta}\n\n")
    }

    fn before_text(&self) -> usize {
        3
    }

    fn trouble(&self, trouble: Trouble, message: &str) -> String {
        let kind = match trouble {
            Trouble::Overloaded => "overloaded_error",
            Trouble::RateLimited => "rate_limit_error",
            Trouble::InvalidRequest | Trouble::TooLong => "invalid_request_error",
        };
        let message = if trouble == Trouble::TooLong {
            format!("prompt is too long: 215000 tokens > 200000 maximum {message}")
        } else {
            message.to_owned()
        };
        let error = json!({"type": "error", "error": {"type": kind, "message": message}});
        format!("event: error\ndata: {error}\n\n")
    }

    fn refusal(&self, status: u16, message: &str) -> String {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            408 | 504 => "timeout_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
    }

    fn too_long(&self) -> String {
        self.refusal(400, "prompt is too long: 215000 tokens > 200000 maximum")
    }

    fn read(&self, body: &Value) -> Vec<Line> {
        let mut lines = vec![Line::System(text_of(&body["system"]))];
        for message in body["messages"].as_array().unwrap() {
            let is_user = message["role"] == "user";
            for block in message["content"].as_array().unwrap() {
                lines.push(match block["type"].as_str().unwrap() {
                    "text" if is_user => Line::Person(string(&block["text"])),
                    "text" => Line::Said(string(&block["text"])),
                    "thinking" => Line::Seal(string(&block["signature"])),
                    "tool_use" => Line::Call {
                        id: string(&block["id"]),
                        name: string(&block["name"]),
                        arguments: block["input"].clone(),
                    },
                    "tool_result" => {
                        Line::Result { id: string(&block["tool_use_id"]), output: text_of(&block["content"]) }
                    }
                    other => panic!("a block of type {other}"),
                });
            }
        }
        lines
    }

    /// It doesn't report how much was reasoning.
    fn tells(&self, usage: Usage) -> Usage {
        Usage { reasoning_tokens: 0, ..usage }
    }
}
