//! The conversation as the model sees it now: as the next call would send it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use console::Style;
use provost_engine::tokens_of;
use provost_event::{
    ActorKey, AgentPolicy, BlobId, Compacted, ConversationEntry, Elapsed, Entry, LifecycleEntry, ModelCalled,
    Purpose, Record, Seq, SessionId, Timestamp, ToolEntry,
};
use provost_harness::{Backend, ImageData, Message, Part, Role, Transcript, read_conversation};
use serde_json::{Value, json};

use super::READ_MAX;
use super::entry::block_in_words;
use crate::commands::print;
use crate::exit::Refusal;
use crate::render::{plural, safe, size, tokens};

/// Prints what the agent of the log `key` sees.
pub(super) async fn print_view(backend: &dyn Backend, key: ActorKey, json: bool) -> anyhow::Result<()> {
    let ActorKey::Session(session) = key else {
        let what = "the run itself has no conversation";
        return Err(Refusal::new(what, "leave --agent out, or give it an agent's number").into());
    };
    let Some(view) = View::read(backend, session).await? else {
        let what = format!("agent {} of run {} hasn't begun", session.agent, session.run);
        return Err(Refusal::new(what, "").into());
    };
    print(&if json { format!("{}\n", view.json()) } else { view.page() })
}

struct View {
    session: SessionId,
    policy: AgentPolicy,
    transcript: Transcript,
    /// The last entry.
    head: Seq,
    /// The entry that stands for the older part, and the last entry of that.
    summary: Option<(Seq, Seq)>,
}

impl View {
    /// `None` before the agent's first entry.
    async fn read(backend: &dyn Backend, session: SessionId) -> anyhow::Result<Option<Self>> {
        let mut transcript = Transcript::new();
        let (mut head, mut policy, mut summary) = (Seq::START, None, None);
        loop {
            let records = read_conversation(backend, session, head, READ_MAX).await?;
            let Some(last) = records.last() else { break };
            head = last.seq;
            let shows = policy.as_ref().is_none_or(|policy: &AgentPolicy| policy.model.images);
            let images = if shows { images(backend, &records).await? } else { HashMap::new() };
            for record in &records {
                transcript.fold(record, &images);
                match &record.entry {
                    Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                        policy = Some(started.policy.clone())
                    }
                    Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => {
                        policy = Some(changed.policy.clone())
                    }
                    Entry::Tool(ToolEntry::Changed(changed)) => {
                        if let Some(policy) = &mut policy {
                            policy.tools = changed.applied_to(&policy.tools);
                        }
                    }
                    Entry::Conversation(ConversationEntry::Compacted(Compacted { through, .. }))
                        if !through.is_start() =>
                    {
                        summary = Some((record.seq, *through));
                    }
                    _ => {}
                }
            }
        }
        let Some(policy) = policy else { return Ok(None) };
        transcript.fold(&next_call(session, head), &HashMap::new());
        Ok(Some(Self { session, policy, transcript, head, summary }))
    }

    fn messages(&self) -> &[Arc<Message>] {
        self.transcript.messages()
    }

    /// An estimate of a request's tokens: the conversation, and what stands before it.
    fn tokens(&self) -> u64 {
        let tools = self.policy.tools.iter();
        let tools = tools.map(|tool| tokens_of(&tool.description) + tokens_of(tool.input_schema.text()));
        let parts = self.messages().iter().flat_map(|message| &message.parts);
        let parts = parts.map(|part| match part {
            Part::Block(block) => tokens_of(&block_in_words(block)),
            Part::ToolResult { output, .. } => tokens_of(output),
            Part::Image(_) => 0,
        });
        tools.chain(parts).fold(tokens_of(&self.policy.system_prompt), u64::saturating_add)
    }

    fn page(&self) -> String {
        let (strong, quiet) = (Style::new().bold(), Style::new().dim());
        let model = &self.policy.model;
        let room = model.window_tokens.map(|window| window.saturating_sub(model.output_tokens_max.into()));
        let room = room.map(|room| format!(" of {}", tokens(room))).unwrap_or_default();
        let count = plural(self.messages().len() as u64, "message");
        let about = format!(
            "after entry {}: {count}, about {}{room} tokens with system prompt and {} (entry 1)",
            self.head,
            tokens(self.tokens()),
            plural(self.policy.tools.len() as u64, "tool"),
        );
        let mut out = format!("{}\n", quiet.apply_to(about));
        // Writing to a String can't fail, here and below.
        if let Some((at, through)) = self.summary {
            let words = format!("entry {at} stands for entries 1 to {through}");
            let _ = writeln!(out, "{}", quiet.apply_to(words));
        }
        for message in self.messages() {
            let role = match message.role {
                Role::User => "to the agent",
                Role::Assistant => "the agent",
            };
            let _ = writeln!(out, "\n{}", strong.apply_to(format!("── {role}")));
            let parts = message.parts.iter().map(part_in_words).collect::<Vec<_>>().join("\n\n");
            let _ = writeln!(out, "{}", safe(&parts));
        }
        out
    }

    fn json(&self) -> Value {
        let messages = self.messages().iter().map(|message| {
            let role = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            json!({ "role": role, "parts": message.parts.iter().map(part_as_json).collect::<Vec<_>>() })
        });
        json!({
            "run": self.session.run,
            "agent": self.session.agent,
            "entry": self.head,
            "summed_up_at": self.summary.map(|(at, _)| at),
            "summed_up_through": self.summary.map(|(_, through)| through),
            "estimated_tokens": self.tokens(),
            "messages": messages.collect::<Vec<_>>(),
        })
    }
}

/// A model call after the end of the log: it turns what was said since the last one into a message.
fn next_call(session: SessionId, head: Seq) -> Record {
    let called = ModelCalled {
        turn: 0,
        call: 0,
        attempt: 1,
        purpose: Purpose::Turn,
        output_tokens_max: 0,
        time_left: None,
    };
    Record {
        actor: session.into(),
        seq: head.next(),
        at: Timestamp::default(),
        elapsed: Elapsed::default(),
        entry: called.into(),
    }
}

fn part_in_words(part: &Part) -> String {
    match part {
        Part::Block(block) => block_in_words(block),
        Part::Image(image) => picture(image),
        Part::ToolResult { tool, output, images, is_error, .. } => {
            let failed = if *is_error { ", failed" } else { "" };
            let images = images.iter().map(|image| format!("\n{}", picture(image))).collect::<String>();
            format!("← {tool}{failed}\n{}{images}", output.trim_end())
        }
    }
}

fn picture(image: &ImageData) -> String {
    format!("[{} {}]", image.kind().media_type(), size(image.bytes().len() as u64))
}

fn part_as_json(part: &Part) -> Value {
    let shown = |image: &ImageData| json!({ "kind": image.kind(), "bytes": image.bytes().len() });
    match part {
        Part::Block(block) => json!(block),
        Part::Image(image) => json!({ "image": shown(image) }),
        Part::ToolResult { call, tool, output, images, is_error } => json!({ "tool_result": {
            "call": call,
            "tool": tool,
            "output": output,
            "is_error": is_error,
            "images": images.iter().map(shown).collect::<Vec<_>>(),
        } }),
    }
}

/// The pictures that `records` refer to, as far as they are kept.
async fn images(
    backend: &dyn Backend,
    records: &[Arc<Record>],
) -> anyhow::Result<HashMap<BlobId, ImageData>> {
    let mut images = HashMap::new();
    for image in records.iter().flat_map(|record| record.entry.images()) {
        let body = backend.get_blob(&image.blob).await?;
        if let Some(data) = body.and_then(|body| ImageData::new(body).ok()) {
            images.insert(image.blob.clone(), data);
        }
    }
    Ok(images)
}
