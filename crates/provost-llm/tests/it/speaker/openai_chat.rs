//! OpenAI's Chat Completions, with the reasoning that OpenRouter adds to it.

use provost_event::Usage;
use provost_llm::{Deviations, EffortField, Provider, ReasoningBack, WireFormat};
use serde_json::{Value, json};

use super::openai_responses::{refusal, too_long};
use super::{End, Event, Line, SPEAKING, Speaker, Spoken, Stream, Trouble, string, text_of};

pub(crate) struct OpenaiChat;

fn chunk(delta: Value, reason: Option<&str>) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": SPEAKING,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]})
}

fn detail(field: &str, value: &str) -> Value {
    json!([{"type": "reasoning.text", field: value, "format": "anthropic-claude-v1", "index": 0}])
}

fn pieces(stream: &mut Stream, spoken: &Spoken) {
    if let Some(thought) = &spoken.thought {
        for piece in &thought.pieces {
            stream.written += piece.len();
            let delta = json!({"role": "assistant", "content": "", "reasoning": piece,
                "reasoning_details": detail("text", piece)});
            stream.push(None, &chunk(delta, None));
        }
        let delta = json!({"role": "assistant", "content": "", "reasoning": null,
            "reasoning_details": detail("signature", &thought.seal)});
        stream.push(None, &chunk(delta, None));
    }
    let field = if spoken.end == End::Refused { "refusal" } else { "content" };
    for piece in &spoken.text {
        stream.written += piece.len();
        stream.push(None, &chunk(json!({field: piece}), None));
    }
    for (index, call) in spoken.calls.iter().enumerate() {
        stream.written += call.name.len();
        let begun = json!({"tool_calls": [{"index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""}}]});
        stream.push(None, &chunk(begun, None));
        for piece in &call.pieces {
            stream.written += piece.len();
            let delta = json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
            stream.push(None, &chunk(delta, None));
        }
    }
}

impl Speaker for OpenaiChat {
    fn wire(&self) -> WireFormat {
        WireFormat::OpenaiChat
    }

    fn provider(&self, base_url: &str) -> Provider {
        let deviations = Deviations {
            effort: EffortField::Reasoning,
            reasoning_back: ReasoningBack::ReasoningDetails,
            ..Deviations::default()
        };
        Provider { deviations, ..Provider::new("openrouter", self.wire(), base_url) }
    }

    fn request_id_header(&self) -> Option<&'static str> {
        Some("x-request-id")
    }

    fn events(&self, spoken: &Spoken) -> Vec<Event> {
        let mut stream = Stream::default();
        stream.push(None, &chunk(json!({"role": "assistant", "content": "", "refusal": null}), None));
        pieces(&mut stream, spoken);
        let reason = match spoken.end {
            End::Done if !spoken.calls.is_empty() => "tool_calls",
            // Only the field marks a refusal.
            End::Done | End::Refused => "stop",
            End::Cap => "length",
        };
        stream.is_said = true;
        stream.push(None, &chunk(json!({}), Some(reason)));
        let usage = spoken.usage;
        stream.usage = self.tells(usage);
        let input = self.tells(usage).prompt_tokens();
        let last = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": SPEAKING,
        "choices": [], "usage": {
            "prompt_tokens": input, "completion_tokens": usage.output_tokens,
            "total_tokens": input + usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens, "audio_tokens": 0},
        }});
        stream.push(None, &last);
        stream.push_text(None, "[DONE]");
        stream.events
    }

    fn ping(&self) -> &'static str {
        ": OPENROUTER PROCESSING\n\n"
    }

    fn more_text(&self, text: &str) -> String {
        format!("data: {}\n\n", chunk(json!({"content": text}), None))
    }

    fn before_text(&self) -> usize {
        1
    }

    fn trouble(&self, trouble: Trouble, message: &str) -> String {
        let (code, kind) = match trouble {
            Trouble::Overloaded => (json!(503), "overloaded_error"),
            Trouble::RateLimited => (json!("rate_limit_exceeded"), "requests"),
            Trouble::InvalidRequest => (json!(null), "invalid_request_error"),
            Trouble::TooLong => (json!("context_length_exceeded"), "invalid_request_error"),
        };
        let error = json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
        format!("data: {error}\n\n")
    }

    fn refusal(&self, status: u16, message: &str) -> String {
        refusal(status, message)
    }

    fn too_long(&self) -> String {
        too_long()
    }

    fn read(&self, body: &Value) -> Vec<Line> {
        let mut lines = Vec::new();
        for message in body["messages"].as_array().unwrap() {
            let text = text_of(&message["content"]);
            match message["role"].as_str().unwrap() {
                "system" | "developer" => lines.push(Line::System(text)),
                "user" => lines.push(Line::Person(text)),
                "tool" => lines.push(Line::Result { id: string(&message["tool_call_id"]), output: text }),
                "assistant" => said(message, text, &mut lines),
                other => panic!("a message by {other}"),
            }
        }
        lines
    }

    /// Cache writes aren't reported separately.
    fn tells(&self, usage: Usage) -> Usage {
        let input_tokens = usage.input_tokens + usage.cache_write_tokens;
        Usage { input_tokens, cache_write_tokens: 0, ..usage }
    }
}

fn said(message: &Value, text: String, lines: &mut Vec<Line>) {
    let details = message["reasoning_details"].as_array().cloned().unwrap_or_default();
    let seal = details.iter().map(|detail| string(&detail["signature"])).collect::<String>();
    if !seal.is_empty() {
        lines.push(Line::Seal(seal));
    }
    if !text.is_empty() {
        lines.push(Line::Said(text));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        assert_eq!(call["type"], "function");
        let function = &call["function"];
        lines.push(Line::Call {
            id: string(&call["id"]),
            name: string(&function["name"]),
            arguments: serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap(),
        });
    }
}
