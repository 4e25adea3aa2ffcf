//! The JSON lines that Claude Code calls `stream-json`, in both directions.
//!
//! With `--permission-prompt-tool stdio` it asks for consent by a `control_request` and waits for the answer,
//! which may have a reason; without that option it refuses by itself, and the model gets the refusal. What
//! `consent` to `AskUserQuestion` or `ExitPlanMode` means is up to the program: no answer to the question is sent
//! with it.

use std::collections::BTreeMap;

use provost_event::{AskKind, AskOption, Certainty, OptionMeaning, TerminalAsk, Usage};
use serde_json::{Value, json};

use super::format::{Format, NoReply, Reply};
use super::stream_item::{Cost, Done, Failing, ParsedLine, StreamItem, Used};
use super::subject::StreamAsk;
use super::value::{count, dollars, first_text, text, texts};

/// Maximum open questions; beyond that only the latest are kept.
const ASKS_MAX: usize = 64;

const ALLOW: &str = "allow";
const DENY: &str = "deny";

#[derive(Default)]
pub(super) struct StreamJson {
    /// The open questions: the program's request id, and the arguments to consent to.
    asks: BTreeMap<String, Value>,
    /// The last message whose usage was counted: each of its blocks has a line of its own, with the same figures.
    counted: Option<String>,
    has_said: bool,
    interrupts: u32,
}

impl StreamJson {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn assistant(&mut self, event: &Value) -> ParsedLine {
        let Some(message) = event.get("message") else { return ParsedLine::malformed() };
        let mut heard = ParsedLine::from(StreamItem::Begun);
        let id = text(message, "/id");
        if id.is_some() && id != self.counted.as_deref() {
            self.counted = id.map(str::to_owned);
            heard.said.extend(usage(message).map(|usage| StreamItem::Used(Used::Call(usage))));
        }
        // Messages of subagents aren't part of the answer.
        if event.get("parent_tool_use_id").is_none_or(Value::is_null) {
            for words in texts(message.get("content").unwrap_or(&Value::Null)) {
                heard.said.extend([StreamItem::Break, StreamItem::Text(words.to_owned())]);
                self.has_said = true;
            }
        }
        heard
    }

    fn result(&mut self, event: &Value) -> ParsedLine {
        let mut said: Vec<StreamItem> =
            usage(event).map(|usage| StreamItem::Used(Used::Prompt(usage))).into_iter().collect();
        said.extend(dollars(event, "/total_cost_usd").map(|money| StreamItem::Cost(Cost::Process(money))));
        let words = first_text(event, &["/result"]);
        let kind = text(event, "/subtype").unwrap_or_default();
        let failed = event.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let done = match kind {
            "success" if failed => Done::Failed(Failing::said(words.unwrap_or("it gave no reason"))),
            "success" => {
                if let (Some(words), false) = (words, self.has_said) {
                    said.extend([StreamItem::Break, StreamItem::Text(words.to_owned())]);
                }
                Done::Whole
            }
            "error_max_turns" => Done::Cut("it has reached its own limit of turns".to_owned()),
            "error_during_execution" if self.interrupts == 0 => {
                let errors =
                    event.get("errors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let errors: Vec<_> = errors.iter().filter_map(Value::as_str).collect();
                Done::Failed(Failing::said(if errors.is_empty() {
                    kind.to_owned()
                } else {
                    errors.join("; ")
                }))
            }
            "error_during_execution" => Done::Cancelled,
            _ => Done::Failed(Failing::said(format!("it has stopped: {}", kind.replace('_', " ")))),
        };
        (self.has_said, self.interrupts) = (false, 0);
        said.push(StreamItem::Done(done));
        said.into_iter().collect()
    }

    fn request(&mut self, event: &Value) -> ParsedLine {
        let Some(id) = text(event, "/request_id") else { return ParsedLine::malformed() };
        if text(event, "/request/subtype") != Some("can_use_tool") {
            let refusal = json!({"type": "control_response", "response": {
                "subtype": "error", "request_id": id, "error": "not offered",
            }});
            return ParsedLine::reply(refusal.to_string());
        }
        let request = event.get("request").unwrap_or(&Value::Null);
        if self.asks.len() >= ASKS_MAX {
            self.asks.pop_first();
        }
        self.asks.insert(id.to_owned(), request.get("input").cloned().unwrap_or_else(|| json!({})));
        [StreamItem::Begun, StreamItem::Ask(ask(id, request))].into_iter().collect()
    }

    fn respond(
        &mut self,
        fingerprint: &str,
        response: impl FnOnce(Value) -> Value,
    ) -> Result<String, NoReply> {
        let input = self.asks.remove(fingerprint).ok_or(NoReply::NotAsked)?;
        let line = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": fingerprint, "response": response(input),
        }});
        Ok(line.to_string())
    }
}

impl Format for StreamJson {
    fn open(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// It writes nothing before its first input.
    fn is_ready(&self) -> bool {
        true
    }

    fn read(&mut self, line: &str) -> ParsedLine {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return ParsedLine::malformed() };
        let Some(kind) = text(&event, "/type") else { return ParsedLine::malformed() };
        match kind {
            "system" if text(&event, "/subtype") == Some("init") => {
                let session = text(&event, "/session_id").map(|name| StreamItem::Session(name.to_owned()));
                let model = text(&event, "/model").map(|name| StreamItem::Model(name.to_owned()));
                session.into_iter().chain(model).chain([StreamItem::Begun]).collect()
            }
            "assistant" => self.assistant(&event),
            "result" => self.result(&event),
            "control_request" => self.request(&event),
            "control_cancel_request" => match text(&event, "/request_id") {
                Some(id) if self.asks.remove(id).is_some() => StreamItem::Withdrawn(id.to_owned()).into(),
                _ => ParsedLine::default(),
            },
            _ => ParsedLine::default(),
        }
    }

    fn prompt(&mut self, text: &str) -> Vec<String> {
        let content = json!([{"type": "text", "text": text}]);
        vec![json!({"type": "user", "message": {"role": "user", "content": content}}).to_string()]
    }

    fn approve(&mut self, fingerprint: &str) -> Result<Reply, NoReply> {
        let line = self.respond(fingerprint, |input| json!({"behavior": ALLOW, "updatedInput": input}))?;
        Ok(Reply::new(line, ALLOW))
    }

    fn refuse(&mut self, fingerprint: &str, reason: &str) -> Result<Reply, NoReply> {
        let line = self.respond(fingerprint, |_| json!({"behavior": DENY, "message": reason}))?;
        Ok(Reply { tells_reason: true, ..Reply::new(line, DENY) })
    }

    fn interrupt(&mut self) -> Vec<String> {
        self.interrupts = self.interrupts.saturating_add(1);
        let id = format!("interrupt-{}", self.interrupts);
        vec![
            json!({"type": "control_request", "request_id": id, "request": {"subtype": "interrupt"}})
                .to_string(),
        ]
    }
}

fn ask(id: &str, request: &Value) -> TerminalAsk {
    let tool = text(request, "/tool_name").unwrap_or("a tool");
    let input = request.get("input").unwrap_or(&Value::Null);
    let path = || first_text(input, &["/file_path", "/notebook_path", "/path"]);
    let (kind, subject) = match tool {
        "Bash" => (AskKind::Command, text(input, "/command")),
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => (AskKind::Edit, path()),
        "Read" | "NotebookRead" => (AskKind::Read, path()),
        "WebFetch" => (AskKind::Network, text(input, "/url")),
        "AskUserQuestion" | "ExitPlanMode" => (AskKind::Other, None),
        _ => (AskKind::Tool, Some(tool)),
    };
    let words = first_text(input, &["/questions/0/question", "/plan"]);
    let about = words.or_else(|| first_text(request, &["/description"])).unwrap_or_default();
    let ask = StreamAsk {
        fingerprint: id.to_owned(),
        kind,
        question: format!("{tool}: {about}"),
        subject: subject.map(str::to_owned),
        hint: None,
        options: vec![option(ALLOW, OptionMeaning::ApproveOnce), option(DENY, OptionMeaning::Deny)],
    };
    ask.settled()
}

fn option(name: &str, meaning: OptionMeaning) -> AskOption {
    AskOption { label: name.to_owned(), keys: name.to_owned(), meaning }
}

/// The four counts don't overlap here.
fn usage(holder: &Value) -> Option<Usage> {
    let usage = holder.get("usage").filter(|usage| usage.is_object())?;
    Some(Usage {
        input_tokens: count(usage, "/input_tokens"),
        output_tokens: count(usage, "/output_tokens"),
        cache_read_tokens: count(usage, "/cache_read_input_tokens"),
        cache_write_tokens: count(usage, "/cache_creation_input_tokens"),
        reasoning_tokens: 0,
        certainty: Certainty::Reported,
    })
}
