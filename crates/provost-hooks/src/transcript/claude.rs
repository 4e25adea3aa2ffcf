//! The transcript of Claude Code: one JSON object a line, each with the line before it as its parent.

use provost_event::{
    AssistantMessage, Block, Compacted, ConversationEntry, Entry, HookContract, ImageKind, LifecycleEntry,
    Record, SessionId, StopReason, ToolEntry, ToolFinished, Usage,
};
use provost_harness::HookTranscript;
use serde_json::{Value, json};

use super::time;
use super::tools::{KnownTools, OpenCall};
use crate::ids::{session_name, uuid_of};
use crate::tool;

/// Writes it.
pub(super) struct ClaudeTranscript {
    session: SessionId,
    known: KnownTools,
    /// The id of the last line.
    parent: Option<String>,
    /// The session is another agent's sub-agent.
    is_sidechain: bool,
    /// The last list of steps, as scripts know it.
    todos: Value,
}

/// One line, without the fields that all have.
struct Line {
    kind: &'static str,
    fields: Value,
}

impl Line {
    fn user(content: impl Into<Value>) -> Self {
        Self { kind: "user", fields: json!({ "message": { "role": "user", "content": content.into() } }) }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Value::Object(fields) = &mut self.fields {
            fields.insert(name.to_owned(), value.into());
        }
        self
    }
}

impl ClaudeTranscript {
    pub(super) fn new(session: SessionId) -> Self {
        let is_sidechain = session != SessionId::root(session.run);
        Self {
            session,
            known: KnownTools::default(),
            parent: None,
            is_sidechain,
            todos: Value::Array(Vec::new()),
        }
    }

    fn put(&mut self, record: &Record, line: Line, number: usize, lines: &mut String) {
        let id = line_id(record, number);
        let mut fields = json!({
            "type": line.kind,
            "uuid": id,
            "parentUuid": self.parent,
            "sessionId": name_of(SessionId::root(self.session.run)),
            "timestamp": time(record.at),
            "cwd": self.known.workspace.to_string_lossy(),
            "version": env!("CARGO_PKG_VERSION"),
            "isSidechain": self.is_sidechain,
            "userType": "external",
            "gitBranch": self.known.branch,
        });
        if let (Value::Object(all), Value::Object(own)) = (&mut fields, line.fields) {
            all.extend(own);
            if self.is_sidechain {
                all.insert("agentId".to_owned(), name_of(self.session).into());
            }
        }
        lines.push_str(&fields.to_string());
        lines.push('\n');
        self.parent = Some(id);
    }

    fn of(&mut self, record: &Record) -> Vec<Line> {
        match &record.entry {
            // A fork's conversation has the goal already.
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) if started.fork.is_none() => {
                vec![Line::user(started.goal.as_str())]
            }
            Entry::Conversation(ConversationEntry::UserMessage(message)) => {
                vec![Line::user(content(&message.content))]
            }
            Entry::Conversation(ConversationEntry::SystemItem(item)) => {
                vec![Line::user(item.body.as_str()).with("isMeta", true)]
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                vec![self.answer(record, answer)]
            }
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => compaction(compacted),
            Entry::Tool(ToolEntry::Finished(finished)) => self.result(finished).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// One line an answer: scripts that add up `usage` count each answer once, whether or not they look at its id.
    fn answer(&mut self, record: &Record, answer: &AssistantMessage) -> Line {
        self.known.answered();
        let blocks = answer.content.iter().filter_map(|block| self.block(block)).collect::<Vec<_>>();
        let fields = json!({
            "message": {
                "id": format!("msg_{}", line_id(record, 0)),
                "type": "message",
                "role": "assistant",
                "model": answer.model,
                "content": blocks,
                "stop_reason": stop_reason(answer.stop),
                "stop_sequence": null,
                "usage": usage(&answer.usage),
            },
            "requestId": format!("req_{}", line_id(record, 1)),
        });
        let line = Line { kind: "assistant", fields };
        match answer.cost {
            Some(cost) => line.with("costUSD", dollars(cost.0)),
            None => line,
        }
    }

    fn block(&mut self, block: &Block) -> Option<Value> {
        Some(match block {
            Block::Text(text) => json!({ "type": "text", "text": text }),
            Block::Thinking { text, signature, .. } => {
                json!({ "type": "thinking", "thinking": text, "signature": signature.as_deref().unwrap_or_default() })
            }
            Block::Image(image) => stand_in(image.kind),
            Block::ToolCall(call) => {
                let workspace = self.known.workspace.clone();
                let OpenCall { details, input } = self.known.called(call);
                json!({
                    "type": "tool_use",
                    "id": details.call,
                    "name": tool::call_name(details),
                    "input": tool::call_input(details, input, &workspace),
                })
            }
            Block::Opaque { .. } => return None,
        })
    }

    fn result(&mut self, finished: &ToolFinished) -> Option<Line> {
        let OpenCall { details, input } = self.known.finished(&finished.call)?;
        let is_error = finished.status.is_error();
        let block = json!({
            "type": "tool_result",
            "tool_use_id": finished.call,
            "content": finished.output,
            "is_error": is_error,
        });
        let told = if is_error {
            Value::String(format!("Error: {}", tool::error_text(finished)))
        } else {
            self.response(tool::response(&details, finished, &input, &self.known.workspace))
        };
        Some(Line::user(vec![block]).with("toolUseResult", told))
    }

    /// The result, with the steps before it if it changes them.
    fn response(&mut self, mut response: Value) -> Value {
        if let Some(todos) = response.get("newTodos").cloned() {
            let before = std::mem::replace(&mut self.todos, todos);
            if let Value::Object(fields) = &mut response {
                fields.insert("oldTodos".to_owned(), before);
            }
        }
        response
    }
}

impl HookTranscript for ClaudeTranscript {
    fn add(&mut self, record: &Record, lines: &mut String) {
        self.known.note(&record.entry);
        for (number, line) in self.of(record).into_iter().enumerate() {
            self.put(record, line, number, lines);
        }
    }
}

/// The texts of a message: one text stands alone, as scripts expect of a prompt.
fn content(blocks: &[Block]) -> Value {
    match blocks {
        [Block::Text(text)] => text.as_str().into(),
        blocks => blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text(text) => Some(json!({ "type": "text", "text": text })),
                Block::Image(image) => Some(stand_in(image.kind)),
                _ => None,
            })
            .collect(),
    }
}

/// A picture without its bytes, which would make every hook read them.
fn stand_in(kind: ImageKind) -> Value {
    json!({ "type": "image", "source": { "type": "base64", "media_type": kind.media_type(), "data": "" } })
}

fn compaction(compacted: &Compacted) -> Vec<Line> {
    let boundary = Line {
        kind: "system",
        fields: json!({
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "level": "info",
            "compactMetadata": { "trigger": "auto", "preTokens": compacted.tokens_before },
        }),
    };
    let summary = (!compacted.summary.is_empty())
        .then(|| Line::user(compacted.summary.as_str()).with("isCompactSummary", true));
    std::iter::once(boundary).chain(summary).collect()
}

const fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::Commentary => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::OutputCap => "max_tokens",
        StopReason::Refusal => "refusal",
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "service_tier": "standard",
    })
}

#[expect(clippy::cast_precision_loss, reason = "scripts show it with a few digits")]
fn dollars(micro: u64) -> f64 {
    micro as f64 / 1_000_000.0
}

fn name_of(session: SessionId) -> String {
    session_name(HookContract::Claude, session)
}

/// The id of a line, in the form of a UUID: the same whenever the file is written anew.
fn line_id(record: &Record, number: usize) -> String {
    uuid_of(&format!("{} {} {number}", record.actor, record.seq))
}
