//! The streams of answers, by wire format; written from the providers' documentation.

use serde_json::{Value, json};

/// How a provider answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    Anthropic,
    Responses,
    Gemini,
    Chat,
}

/// What a model answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer<'a> {
    Text(&'a str),
    Call {
        tool: &'a str,
        arguments: &'a str,
    },
    /// A call, where most of the window is used.
    Full {
        tool: &'a str,
        arguments: &'a str,
    },
}

impl Answer<'_> {
    const fn input_tokens(&self) -> u64 {
        match self {
            Self::Text(_) | Self::Call { .. } => 3_000,
            Self::Full { .. } => 52_000,
        }
    }

    const fn call(&self) -> Option<(&str, &str)> {
        match self {
            Self::Text(_) => None,
            Self::Call { tool, arguments } | Self::Full { tool, arguments } => Some((tool, arguments)),
        }
    }

    const fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Call { .. } | Self::Full { .. } => "",
        }
    }
}

impl AnswerFormat {
    /// The whole response.
    pub(super) fn stream(self, answer: &Answer<'_>) -> String {
        let events = match self {
            Self::Anthropic => anthropic(answer),
            Self::Responses => responses(answer),
            Self::Gemini => gemini(answer),
            Self::Chat => chat(answer),
        };
        let named = |event: &Value| match event["type"].as_str() {
            Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        let end = if self == Self::Chat { "data: [DONE]\n\n" } else { "" };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        format!("{head}{}{end}", events.iter().map(named).collect::<String>())
    }
}

fn anthropic(answer: &Answer<'_>) -> Vec<Value> {
    let start = json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": answer.input_tokens(), "output_tokens": 1}}});
    let (block, delta, reason) = match answer.call() {
        Some((name, arguments)) => (
            json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": arguments}),
            "tool_use",
        ),
        None => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": answer.text()}),
            "end_turn",
        ),
    };
    vec![
        start,
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 50}}),
        json!({"type": "message_stop"}),
    ]
}

fn responses(answer: &Answer<'_>) -> Vec<Value> {
    let (begun, delta, item) = match answer.call() {
        Some((name, arguments)) => {
            let call = |status: &str, arguments: &str| {
                json!({"id": "fc_1", "type": "function_call", "status": status, "call_id": "call_1", "name": name,
                    "arguments": arguments})
            };
            let delta = json!({"type": "response.function_call_arguments.delta", "item_id": "fc_1",
                "output_index": 0, "delta": arguments});
            (call("in_progress", ""), delta, call("completed", arguments))
        }
        None => {
            let part =
                json!({"type": "output_text", "text": answer.text(), "annotations": [], "logprobs": []});
            let message = |status: &str, content: Value| json!({"id": "msg_1", "type": "message", "status": status, "role": "assistant", "content": content});
            let delta = json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
                "content_index": 0, "delta": answer.text()});
            (message("in_progress", json!([])), delta, message("completed", json!([part])))
        }
    };
    let usage = json!({"input_tokens": answer.input_tokens(), "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens() + 50});
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "m",
            "output": output, "error": null, "incomplete_details": null, "usage": usage})
    };
    vec![
        json!({"type": "response.created", "response": response("in_progress", json!([]), Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
        delta,
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response("completed", json!([item]), usage)}),
    ]
}

fn gemini(answer: &Answer<'_>) -> Vec<Value> {
    let part = match answer.call() {
        Some((name, arguments)) => {
            let args = serde_json::from_str::<Value>(arguments).unwrap();
            json!({"functionCall": {"name": name, "id": "call_1", "args": args}})
        }
        None => json!({"text": answer.text()}),
    };
    vec![
        json!({"candidates": [{"content": {"parts": [part], "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": answer.input_tokens(), "candidatesTokenCount": 50,
            "totalTokenCount": answer.input_tokens() + 50},
        "modelVersion": "m", "responseId": "abc"}),
    ]
}

fn chat(answer: &Answer<'_>) -> Vec<Value> {
    let (delta, reason) = match answer.call() {
        Some((name, arguments)) => {
            let call = json!({"index": 0, "id": "call_1", "type": "function",
                "function": {"name": name, "arguments": arguments}});
            (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"role": "assistant", "content": answer.text()}), "stop"),
    };
    vec![
        json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
        json!({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"model": "m", "choices": [],
            "usage": {"prompt_tokens": answer.input_tokens(), "completion_tokens": 50}}),
    ]
}
