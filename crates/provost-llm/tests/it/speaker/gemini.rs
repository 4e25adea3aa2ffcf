//! Google's Gemini API.

use provost_event::Usage;
use provost_llm::WireFormat;
use serde_json::{Value, json};

use super::{End, Event, Line, SPEAKING, Speaker, Spoken, Stream, Trouble, string, text_of};

pub(crate) struct Gemini;

/// The counts so far.
#[derive(Default)]
struct Counted {
    usage: Usage,
    /// Whether the answer itself is counted, which only the last chunk does.
    to_the_end: bool,
}

impl Counted {
    fn metadata(&self) -> Value {
        let usage = self.usage;
        let mut metadata = json!({"promptTokenCount": usage.prompt_tokens(),
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.prompt_tokens()}],
            "cachedContentTokenCount": usage.cache_read_tokens});
        metadata["thoughtsTokenCount"] = usage.reasoning_tokens.into();
        if self.to_the_end {
            metadata["candidatesTokenCount"] = (usage.output_tokens - usage.reasoning_tokens).into();
        }
        metadata["totalTokenCount"] = self.so_far().total().into();
        metadata
    }

    fn so_far(&self) -> Usage {
        let output_tokens =
            if self.to_the_end { self.usage.output_tokens } else { self.usage.reasoning_tokens };
        Usage { output_tokens, ..self.usage }
    }
}

/// A chunk with `parts`, which are JSON as written.
fn push(stream: &mut Stream, counted: &Counted, parts: &[String], reason: Option<&str>) {
    let reason = reason.map(|reason| format!(",\"finishReason\":\"{reason}\"")).unwrap_or_default();
    let parts = parts.join(",");
    stream.usage = counted.so_far();
    let data = format!(
        "{{\"candidates\": [{{\"content\": {{\"parts\": [{parts}],\"role\": \"model\"}}{reason},\"index\": 0}}],\
         \"usageMetadata\": {},\"modelVersion\": \"{SPEAKING}\",\"responseId\": \"abc\"}}",
        counted.metadata()
    );
    stream.push_text(None, &data);
}

impl Speaker for Gemini {
    fn wire(&self) -> WireFormat {
        WireFormat::Gemini
    }

    fn request_id_header(&self) -> Option<&'static str> {
        None
    }

    fn events(&self, spoken: &Spoken) -> Vec<Event> {
        let mut stream = Stream::default();
        let mut counted = Counted { usage: self.tells(spoken.usage), to_the_end: false };
        for piece in spoken.thought.iter().flat_map(|thought| &thought.pieces) {
            stream.written += piece.len();
            push(&mut stream, &counted, &[json!({"text": piece, "thought": true}).to_string()], None);
        }
        for piece in &spoken.text {
            stream.written += piece.len();
            push(&mut stream, &counted, &[json!({"text": piece}).to_string()], None);
        }
        // The seal is on the first call, and on an empty text at the end if there is none.
        let mut seal = spoken.thought.as_ref().map(|thought| &thought.seal);
        for call in &spoken.calls {
            stream.written += call.name.len() + call.arguments().len();
            let head = if call.id.is_empty() {
                json!({"name": call.name})
            } else {
                json!({"name": call.name, "id": call.id})
            };
            let head = head.to_string();
            let call = format!(
                "{{\"functionCall\": {},\"args\": {}}}",
                head.trim_end_matches('}'),
                call.arguments()
            );
            let sealed = seal.take().map(|seal| format!(",\"thoughtSignature\": {}", json!(seal)));
            push(&mut stream, &counted, &[format!("{call}{}}}", sealed.unwrap_or_default())], None);
        }
        let reason = match spoken.end {
            End::Done => "STOP",
            End::Cap => "MAX_TOKENS",
            End::Refused => "SAFETY",
        };
        counted.to_the_end = true;
        stream.is_said = true;
        let last = match seal {
            Some(seal) => json!({"text": "", "thoughtSignature": seal}),
            None => json!({"text": ""}),
        };
        push(&mut stream, &counted, &[last.to_string()], Some(reason));
        stream.events
    }

    fn ping(&self) -> &'static str {
        ": \n\n"
    }

    fn more_text(&self, text: &str) -> String {
        let text =
            json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}]});
        format!("data: {text}\n\n")
    }

    fn before_text(&self) -> usize {
        0
    }

    fn trouble(&self, trouble: Trouble, message: &str) -> String {
        let (code, status) = match trouble {
            Trouble::Overloaded => (503, "UNAVAILABLE"),
            Trouble::RateLimited => (429, "RESOURCE_EXHAUSTED"),
            Trouble::InvalidRequest | Trouble::TooLong => (400, "INVALID_ARGUMENT"),
        };
        let message = if trouble == Trouble::TooLong {
            format!(
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576). {message}"
            )
        } else {
            message.to_owned()
        };
        format!("data: {}\n\n", json!({"error": {"code": code, "message": message, "status": status}}))
    }

    fn refusal(&self, code: u16, message: &str) -> String {
        let status = match code {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            409 => "ABORTED",
            429 => "RESOURCE_EXHAUSTED",
            500 | 502 => "INTERNAL",
            501.. => "UNAVAILABLE",
            _ => "INVALID_ARGUMENT",
        };
        json!({"error": {"code": code, "message": message, "status": status}}).to_string()
    }

    fn too_long(&self) -> String {
        self.refusal(
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        )
    }

    fn read(&self, body: &Value) -> Vec<Line> {
        let system = if body["systemInstruction"].is_null() {
            &body["system_instruction"]
        } else {
            &body["systemInstruction"]
        };
        let mut lines = vec![Line::System(text_of(&system["parts"]))];
        for content in body["contents"].as_array().unwrap() {
            let is_user = content["role"] == "user";
            let parts = content["parts"].as_array().unwrap();
            let first_call = parts.iter().position(|part| !part["functionCall"].is_null());
            for (place, part) in parts.iter().enumerate() {
                if let Some(seal) = part["thoughtSignature"].as_str() {
                    // The provider refuses it anywhere else.
                    assert!(first_call.is_none() || first_call == Some(place), "{content}");
                    lines.push(Line::Seal(seal.to_owned()));
                }
                lines.extend(line(part, is_user));
            }
        }
        lines
    }

    fn names_no_calls(&self) -> bool {
        true
    }

    /// It only reports reads from the cache.
    fn tells(&self, usage: Usage) -> Usage {
        let input_tokens = usage.input_tokens + usage.cache_write_tokens;
        Usage { input_tokens, cache_write_tokens: 0, ..usage }
    }
}

fn line(part: &Value, is_user: bool) -> Option<Line> {
    if let Some(call) = part.get("functionCall") {
        let (id, name) = (string(&call["id"]), string(&call["name"]));
        return Some(Line::Call { id, name, arguments: call["args"].clone() });
    }
    if let Some(response) = part.get("functionResponse") {
        assert!(!string(&response["name"]).is_empty());
        let fields = response["response"].as_object().unwrap();
        let output = fields.values().filter_map(Value::as_str).collect();
        return Some(Line::Result { id: string(&response["id"]), output });
    }
    let text = string(&part["text"]);
    match (part["thought"] == true || text.is_empty(), is_user) {
        (true, _) => None,
        (false, true) => Some(Line::Person(text)),
        (false, false) => Some(Line::Said(text)),
    }
}
