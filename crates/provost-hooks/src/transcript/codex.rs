//! The transcript of Codex (its rollout file): each line a kind and its payload.

use provost_event::{
    AssistantMessage, Block, ConversationEntry, Entry, HookContract, LifecycleEntry, Record, SessionId,
    ToolEntry, Usage,
};
use provost_harness::HookTranscript;
use serde_json::{Value, json};

use super::time;
use super::tools::{KnownTools, OpenCall};
use crate::ids::session_name;
use crate::tool;

/// Writes it.
pub(super) struct CodexTranscript {
    session: SessionId,
    known: KnownTools,
    total: Usage,
}

impl CodexTranscript {
    pub(super) fn new(session: SessionId) -> Self {
        Self { session, known: KnownTools::default(), total: Usage::default() }
    }

    fn of(&mut self, record: &Record) -> Vec<(&'static str, Value)> {
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                let meta = json!({
                    "id": session_name(HookContract::Codex, self.session),
                    "timestamp": time(record.at),
                    "cwd": self.known.workspace.to_string_lossy(),
                    "originator": "provost",
                    "cli_version": env!("CARGO_PKG_VERSION"),
                });
                let goal = started.fork.is_none().then(|| said("user", "input_text", &started.goal));
                std::iter::once(("session_meta", meta)).chain(goal).collect()
            }
            Entry::Conversation(ConversationEntry::UserMessage(message)) => {
                texts(&message.content).map(|text| said("user", "input_text", text)).collect()
            }
            Entry::Conversation(ConversationEntry::SystemItem(item)) => {
                vec![said("developer", "input_text", &item.body)]
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => self.answer(answer),
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => {
                vec![("compacted", json!({ "message": compacted.summary }))]
            }
            Entry::Tool(ToolEntry::Finished(finished)) => {
                self.known.finished(&finished.call);
                let payload = json!({
                    "type": "function_call_output",
                    "call_id": finished.call,
                    "output": finished.output,
                });
                vec![("response_item", payload)]
            }
            _ => Vec::new(),
        }
    }

    fn answer(&mut self, answer: &AssistantMessage) -> Vec<(&'static str, Value)> {
        self.known.answered();
        let mut lines = Vec::new();
        for block in &answer.content {
            match block {
                Block::Text(text) => {
                    lines.push(said("assistant", "output_text", text));
                    lines.push(("event_msg", json!({ "type": "agent_message", "message": text })));
                }
                Block::Thinking { text, .. } => {
                    let summary = json!([{ "type": "summary_text", "text": text }]);
                    lines.push(("response_item", json!({ "type": "reasoning", "summary": summary })));
                }
                Block::ToolCall(call) => {
                    let workspace = self.known.workspace.clone();
                    let OpenCall { details, input } = self.known.called(call);
                    let payload = json!({
                        "type": "function_call",
                        "name": tool::call_name(details),
                        "arguments": tool::call_input(details, input, &workspace).to_string(),
                        "call_id": details.call,
                    });
                    lines.push(("response_item", payload));
                }
                Block::Image(_) | Block::Opaque { .. } => {}
            }
        }
        self.total.input_tokens = self.total.input_tokens.saturating_add(answer.usage.input_tokens);
        self.total.output_tokens = self.total.output_tokens.saturating_add(answer.usage.output_tokens);
        self.total.cache_read_tokens =
            self.total.cache_read_tokens.saturating_add(answer.usage.cache_read_tokens);
        self.total.reasoning_tokens =
            self.total.reasoning_tokens.saturating_add(answer.usage.reasoning_tokens);
        let info =
            json!({ "total_token_usage": usage(&self.total), "last_token_usage": usage(&answer.usage) });
        lines.push(("event_msg", json!({ "type": "token_count", "info": info })));
        lines
    }
}

impl HookTranscript for CodexTranscript {
    fn add(&mut self, record: &Record, lines: &mut String) {
        self.known.note(&record.entry);
        for (kind, payload) in self.of(record) {
            let line = json!({ "timestamp": time(record.at), "type": kind, "payload": payload });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
    }
}

fn said(role: &str, kind: &str, text: &str) -> (&'static str, Value) {
    let content = json!([{ "type": kind, "text": text }]);
    ("response_item", json!({ "type": "message", "role": role, "content": content }))
}

fn texts(blocks: &[Block]) -> impl Iterator<Item = &str> {
    blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

/// Codex counts cached tokens among the input.
fn usage(usage: &Usage) -> Value {
    let input = usage.input_tokens.saturating_add(usage.cache_read_tokens);
    json!({
        "input_tokens": input,
        "cached_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_tokens,
        "total_tokens": input.saturating_add(usage.output_tokens),
    })
}
