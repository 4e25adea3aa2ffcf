//! The conversation as the model sees it: as the next call would send it.

use std::collections::HashMap;
use std::sync::Arc;

use provost_engine::tokens_of;
use provost_event::{
    AgentPolicy, BlobId, Block, CallId, Compacted, ConversationEntry, Elapsed, Entry, ImageKind,
    LifecycleEntry, ModelCalled, Purpose, Record, RunId, Seq, SessionId, Timestamp, ToolEntry,
};
use provost_harness::{Backend, BackendError, ImageData, Message, Part, Role, Transcript, read_conversation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;
use crate::status::READ_MAX;

/// What an agent's model sees of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationView {
    /// The version of the view.
    pub v: ViewVersion,
    /// The run.
    pub run: RunId,
    /// The agent's number; 0 is the root.
    pub agent: u32,
    /// The last entry of its log.
    pub entry: Seq,
    /// The entry that stands for the older part; null if there is none.
    pub summed_up_at: Option<Seq>,
    /// The last entry of that part; null if there is none.
    pub summed_up_through: Option<Seq>,
    /// An estimate of a request's tokens: the messages, the system prompt and the tools, without pictures.
    pub estimated_tokens: u64,
    /// Maximum tokens of a request, so that its answer has room in the model's window; null if the window isn't known.
    pub tokens_max: Option<u64>,
    /// The number of tools.
    pub tools: usize,
    /// The messages after the system prompt.
    pub messages: Vec<SeenMessage>,
}

/// A message that the model sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenMessage {
    /// Whose it is.
    pub role: SeenRole,
    /// What it consists of, in order.
    pub parts: Vec<SeenPart>,
}

/// Whose a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeenRole {
    /// To the agent.
    User,
    /// The agent's.
    Assistant,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SeenPart {
    /// Text, reasoning or a tool call, as the log has it.
    Block(Block),
    /// A picture.
    Image {
        /// Its kind and size.
        image: SeenImage,
    },
    /// What a tool returned.
    ToolResult {
        /// The result.
        tool_result: SeenToolResult,
    },
}

/// A picture that the model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenImage {
    /// Its format.
    pub kind: ImageKind,
    /// Its size.
    pub bytes: usize,
}

/// What a tool returned, as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenToolResult {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The text.
    pub output: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// The pictures.
    pub images: Vec<SeenImage>,
}

impl ConversationView {
    /// What an agent's model sees; `None` before the agent's first entry.
    ///
    /// # Errors
    /// When its log or a picture can't be read.
    pub async fn read(backend: &dyn Backend, session: SessionId) -> Result<Option<Self>, BackendError> {
        let mut reader = ConversationReader::default();
        while let Some(last) = reader.read_on(backend, session).await? {
            reader.head = last;
        }
        Ok(reader.view(session))
    }
}

#[derive(Default)]
struct ConversationReader {
    transcript: Transcript,
    policy: Option<AgentPolicy>,
    head: Seq,
    /// The entry that stands for the older part, and the last entry of that.
    summary: Option<(Seq, Seq)>,
}

impl ConversationReader {
    /// Reads the next entries; `None` if there are none.
    async fn read_on(
        &mut self,
        backend: &dyn Backend,
        session: SessionId,
    ) -> Result<Option<Seq>, BackendError> {
        let records = read_conversation(backend, session, self.head, READ_MAX).await?;
        let shows = self.policy.as_ref().is_none_or(|policy| policy.model.images);
        let images = if shows { images(backend, &records).await? } else { HashMap::new() };
        for record in &records {
            self.transcript.fold(record, &images);
            self.note(record);
        }
        Ok(records.last().map(|record| record.seq))
    }

    fn note(&mut self, record: &Record) {
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                self.policy = Some(started.policy.clone());
            }
            Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => {
                self.policy = Some(changed.policy.clone());
            }
            Entry::Tool(ToolEntry::Changed(changed)) => {
                if let Some(policy) = &mut self.policy {
                    policy.tools = changed.applied_to(&policy.tools);
                }
            }
            Entry::Conversation(ConversationEntry::Compacted(Compacted { through, .. }))
                if !through.is_start() =>
            {
                self.summary = Some((record.seq, *through));
            }
            _ => {}
        }
    }

    fn view(mut self, session: SessionId) -> Option<ConversationView> {
        let policy = self.policy?;
        self.transcript.fold(&next_call(session, self.head), &HashMap::new());
        let messages = self.transcript.messages();
        let model = &policy.model;
        Some(ConversationView {
            v: ViewVersion,
            run: session.run,
            agent: session.agent,
            entry: self.head,
            summed_up_at: self.summary.map(|(at, _)| at),
            summed_up_through: self.summary.map(|(_, through)| through),
            estimated_tokens: estimate(&policy, messages),
            tokens_max: model
                .window_tokens
                .map(|window| window.saturating_sub(model.output_tokens_max.into())),
            tools: policy.tools.len(),
            messages: messages.iter().map(|message| seen(message)).collect(),
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

fn estimate(policy: &AgentPolicy, messages: &[Arc<Message>]) -> u64 {
    let tools = policy.tools.iter();
    let tools = tools.map(|tool| tokens_of(&tool.description) + tokens_of(tool.input_schema.text()));
    let parts = messages.iter().flat_map(|message| &message.parts);
    let parts = parts.map(|part| match part {
        Part::Block(block) => tokens_of_block(block),
        Part::ToolResult { output, .. } => tokens_of(output),
        Part::Image(_) => 0,
    });
    tools.chain(parts).fold(tokens_of(&policy.system_prompt), u64::saturating_add)
}

fn tokens_of_block(block: &Block) -> u64 {
    match block {
        Block::Text(text) | Block::Thinking { text, .. } => tokens_of(text),
        Block::ToolCall(call) => tokens_of(&call.name) + tokens_of(call.input.text()),
        Block::Opaque { json, .. } => tokens_of(json.text()),
        Block::Image(_) => 0,
    }
}

fn seen(message: &Message) -> SeenMessage {
    let role = match message.role {
        Role::User => SeenRole::User,
        Role::Assistant => SeenRole::Assistant,
    };
    SeenMessage { role, parts: message.parts.iter().map(seen_part).collect() }
}

fn seen_part(part: &Part) -> SeenPart {
    match part {
        Part::Block(block) => SeenPart::Block(block.clone()),
        Part::Image(image) => SeenPart::Image { image: seen_image(image) },
        Part::ToolResult { call, tool, output, images, is_error } => SeenPart::ToolResult {
            tool_result: SeenToolResult {
                call: call.clone(),
                tool: tool.clone(),
                output: output.clone(),
                is_error: *is_error,
                images: images.iter().map(seen_image).collect(),
            },
        },
    }
}

fn seen_image(image: &ImageData) -> SeenImage {
    SeenImage { kind: image.kind(), bytes: image.bytes().len() }
}

/// The pictures that `records` refer to, as far as they are kept.
async fn images(
    backend: &dyn Backend,
    records: &[Arc<Record>],
) -> Result<HashMap<BlobId, ImageData>, BackendError> {
    let mut images = HashMap::new();
    for image in records.iter().flat_map(|record| record.entry.images()) {
        let body = backend.get_blob(&image.blob).await?;
        if let Some(data) = body.and_then(|body| ImageData::new(body).ok()) {
            images.insert(image.blob.clone(), data);
        }
    }
    Ok(images)
}
