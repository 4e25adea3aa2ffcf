//! The conversation from a model's view: a fold of the session's log that only grows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use provost_engine::{REMINDER_NAME, ResultText, image_line, reminder, reminder_announcement};
use provost_event::{
    BlobId, Block, CallId, Compacted, ConversationEntry, Entry, Image, LifecycleEntry, ModelEntry, Purpose,
    Record, Seq, SessionStarted, ToolEntry, ToolFinished, ToolStarted,
};

use crate::ImageData;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything but the model: the user, other agents, Provost, tools.
    User,
    /// The model.
    Assistant,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A block, unchanged; never [`Block::Image`].
    Block(Block),
    /// A picture.
    Image(ImageData),
    /// A tool's result.
    ToolResult {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// Its output.
        output: String,
        /// Its pictures.
        images: Vec<ImageData>,
        /// Whether it failed.
        is_error: bool,
    },
}

impl Part {
    /// Whether it is a message by Provost in a request that Provost made; a person can write a text that begins
    /// alike.
    #[must_use]
    pub fn is_reminder(&self) -> bool {
        matches!(self, Self::Block(Block::Text(text))
            if text.strip_prefix('<').is_some_and(|rest| rest.starts_with(REMINDER_NAME)))
    }
}

/// A wire format, and its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The format.
    pub wire: &'static str,
    /// Distinguishes dialects of the format; numbered by the format.
    pub variant: u32,
}

/// A message's serialized form, made once.
#[derive(Debug, Clone)]
struct WireForm {
    dialect: Dialect,
    bytes: Bytes,
    /// Made when it is first needed.
    hash: OnceLock<blake3::Hash>,
}

impl WireForm {
    const fn new(dialect: Dialect, bytes: Bytes) -> Self {
        Self { dialect, bytes, hash: OnceLock::new() }
    }
}

/// One message of a conversation; immutable, so that its serialized form is made once and sent each turn.
#[derive(Debug)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content; never empty.
    pub parts: Vec<Part>,
    wire: [OnceLock<WireForm>; DIALECTS_KEPT],
}

/// Bytes shown of the arguments that a hook has put in the place of a model's.
const REPLACED_BYTES_MAX: usize = 200;
/// Maximum serialized forms of a message: its format's, and the same without reasoning.
const DIALECTS_KEPT: usize = 2;

impl Message {
    /// A message.
    #[must_use]
    pub const fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, wire: [const { OnceLock::new() }; DIALECTS_KEPT] }
    }

    /// The message in `dialect`, made by `serialize` if it isn't cached. Only the first two requested dialects are
    /// cached.
    pub fn wire(&self, dialect: Dialect, serialize: impl Fn(&Self) -> Bytes) -> Cow<'_, [u8]> {
        match self.kept_form(dialect, &serialize) {
            Some(form) => Cow::Borrowed(&form.bytes),
            None => Cow::Owned(serialize(self).into()),
        }
    }

    /// The hash (BLAKE3) of what [`Message::wire`] returns; made once where that is.
    pub fn wire_hash(&self, dialect: Dialect, serialize: impl Fn(&Self) -> Bytes) -> [u8; blake3::OUT_LEN] {
        let hash = match self.kept_form(dialect, &serialize) {
            Some(form) => *form.hash.get_or_init(|| blake3::hash(&form.bytes)),
            None => blake3::hash(&serialize(self)),
        };
        *hash.as_bytes()
    }

    /// The form in `dialect`; `None` if others are cached in its place.
    fn kept_form(&self, dialect: Dialect, serialize: impl Fn(&Self) -> Bytes) -> Option<&WireForm> {
        let forms = self.wire.iter().map(|kept| kept.get_or_init(|| WireForm::new(dialect, serialize(self))));
        forms.into_iter().find(|form| form.dialect == dialect)
    }
}

/// The conversation of one session up to an entry.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    head: Seq,
    messages: Vec<Arc<Message>>,
    /// The origin of each message.
    places: Vec<MessageOrigin>,
    /// New parts for the model since its last answer, with their entries; they become a message with the next
    /// call.
    waiting: Vec<(Seq, Part)>,
    /// The entry of an applied summary, so that it isn't applied twice.
    summed_up_at: Seq,
    /// What the model is told of calls that are made with other arguments than its own.
    replaced: HashMap<CallId, String>,
    /// The id in Provost's messages, so that no other text is mistaken for one.
    reminder_id: Arc<str>,
    /// What the agent is told before its goal, also after a summary.
    preamble: Arc<str>,
}

/// The origin of a message.
#[derive(Debug, Clone)]
struct MessageOrigin {
    /// The last log position of its content.
    end: Seq,
    /// The entry of each of its parts.
    parts: Vec<Seq>,
}

impl Transcript {
    /// An empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The conversation from a summary on, without the entries after the range that `compacted`, the entry `at`,
    /// replaces. These are to be folded in next. `started` is the first entry of the conversation.
    #[must_use]
    pub fn from_summary(at: Seq, compacted: &Compacted, started: &SessionStarted) -> Self {
        let mut transcript = Self { head: compacted.through, summed_up_at: at, ..Self::default() };
        transcript.keep_opening(started);
        transcript.begin_with(compacted);
        transcript
    }

    fn keep_opening(&mut self, started: &SessionStarted) {
        self.reminder_id = started.reminder_id.as_str().into();
        self.preamble = started.policy.preamble.as_str().into();
    }

    /// The last entry folded in.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Folds in the next entry of the log. Entries at or before [`Transcript::head`] are ignored. An image that
    /// isn't in `images` is replaced by a line of text.
    pub fn fold(&mut self, record: &Record, images: &HashMap<BlobId, ImageData>) {
        if record.seq <= self.head {
            return;
        }
        self.head = record.seq;
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => self.begin(started, images),
            Entry::Conversation(ConversationEntry::UserMessage(message)) => {
                message.content.iter().for_each(|block| self.wait(part_of(block, images)));
            }
            Entry::Conversation(ConversationEntry::SystemItem(item)) => {
                self.say(&reminder(&item.body, &self.reminder_id))
            }
            Entry::Tool(ToolEntry::Started(started)) => {
                let replaced = started.replaced_by.as_ref().map(|hook| replaced_words(hook, started));
                self.replaced.extend(replaced.map(|words| (started.call.clone(), words)));
            }
            Entry::Tool(ToolEntry::Finished(finished)) => {
                let called = self.name_called(&finished.call).unwrap_or(&finished.tool).to_owned();
                let told = self.replaced.remove(&finished.call);
                let told = told.map(|words| format!("{}\n", reminder(&words, &self.reminder_id)));
                self.wait(result_of(finished, called, images, told.unwrap_or_default()));
            }
            Entry::Model(ModelEntry::Called(called)) if called.purpose == Purpose::Turn => {
                self.close_waiting(record.seq)
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                let parts = answer.content.iter().map(|block| (record.seq, part_of(block, images)));
                self.push(Role::Assistant, parts.collect(), record.seq);
            }
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => self.compact(compacted),
            Entry::Model(_)
            | Entry::Conversation(ConversationEntry::FinalSummary(_) | ConversationEntry::TurnEnded(_))
            | Entry::Lifecycle(
                LifecycleEntry::Snapshot(_)
                | LifecycleEntry::RunStarted(_)
                | LifecycleEntry::RunPolicyChanged(_)
                | LifecycleEntry::AgentPolicyChanged(_)
                | LifecycleEntry::Forked(_)
                | LifecycleEntry::ProcessesLeft(_)
                | LifecycleEntry::StopRequested(_)
                | LifecycleEntry::Paused(_)
                | LifecycleEntry::Resumed(_)
                | LifecycleEntry::Ended(_),
            )
            | Entry::Gate(_)
            | Entry::Tool(ToolEntry::Changed(_) | ToolEntry::ServiceNoted(_))
            | Entry::Terminal(_)
            | Entry::Goal(_)
            | Entry::Budget(_)
            | Entry::Agent(_)
            | Entry::Worktree(_) => {}
        }
    }

    fn begin(&mut self, started: &SessionStarted, images: &HashMap<BlobId, ImageData>) {
        // The conversation that a fork continues was folded in before.
        if started.fork.is_some() {
            return;
        }
        self.keep_opening(started);
        self.opening().iter().for_each(|text| self.say(text));
        self.say(&started.goal);
        started.images.iter().for_each(|image| self.wait(shown(image, images)));
    }

    /// The messages followed by `question`, which isn't part of the conversation. A call of the last answer
    /// without a result gets one saying that it wasn't made: providers require a result for each call.
    #[must_use]
    pub fn asked(&self, question: &str) -> Vec<Arc<Message>> {
        let mut parts = self.waiting.iter().map(|(_, part)| part.clone()).collect::<Vec<_>>();
        parts.extend(self.missing_results());
        parts.sort_by_key(|part| !matches!(part, Part::ToolResult { .. }));
        let question = match &*self.reminder_id {
            "" => question.to_owned(),
            id => reminder(question, id),
        };
        parts.push(Part::Block(Block::Text(question)));
        let mut messages = self.messages.clone();
        messages.push(Arc::new(Message::new(Role::User, parts)));
        messages
    }

    /// The name by which the last answer calls a tool: providers want it with the call's result.
    fn name_called(&self, id: &CallId) -> Option<&str> {
        let last = self.messages.last().filter(|message| message.role == Role::Assistant)?;
        last.parts.iter().find_map(|part| match part {
            Part::Block(Block::ToolCall(call)) if call.id == *id => Some(call.name.as_str()),
            _ => None,
        })
    }

    fn missing_results(&self) -> Vec<Part> {
        let Some(last) = self.messages.last().filter(|message| message.role == Role::Assistant) else {
            return Vec::new();
        };
        let has_result = |id: &CallId| {
            self.waiting.iter().any(|(_, part)| matches!(part, Part::ToolResult { call, .. } if call == id))
        };
        let missing = last.parts.iter().filter_map(|part| match part {
            Part::Block(Block::ToolCall(call)) if !has_result(&call.id) => Some(Part::ToolResult {
                call: call.id.clone(),
                tool: call.name.clone(),
                output: "Not made yet.".to_owned(),
                images: Vec::new(),
                is_error: true,
            }),
            _ => None,
        });
        missing.collect()
    }

    /// What stands before everything else: the announcement of the id, and what the agent is told before its goal.
    fn opening(&self) -> Vec<String> {
        let id = &*self.reminder_id;
        let announced = (!id.is_empty()).then(|| reminder(&reminder_announcement(id), id));
        let preamble = (!self.preamble.is_empty()).then(|| reminder(&self.preamble, id));
        announced.into_iter().chain(preamble).collect()
    }

    fn say(&mut self, text: &str) {
        self.wait(Part::Block(Block::Text(text.to_owned())));
    }

    fn wait(&mut self, part: Part) {
        self.waiting.push((self.head, part));
    }

    fn close_waiting(&mut self, at: Seq) {
        let mut parts = std::mem::take(&mut self.waiting);
        // A message may have arrived while a tool ran; providers require a call's result directly after the call.
        parts.sort_by_key(|(_, part)| !matches!(part, Part::ToolResult { .. }));
        self.push(Role::User, parts, at);
    }

    fn push(&mut self, role: Role, parts: Vec<(Seq, Part)>, end: Seq) {
        if !parts.is_empty() {
            let (seqs, parts) = parts.into_iter().unzip();
            self.messages.push(Arc::new(Message::new(role, parts)));
            self.places.push(MessageOrigin { end, parts: seqs });
        }
    }

    /// Replaces every message that ends at or before the range's end with the summary, and results and pictures
    /// with shorter forms. A changed message is created anew, and so is its serialized form.
    fn compact(&mut self, compacted: &Compacted) {
        if !compacted.through.is_start() && self.head > self.summed_up_at {
            let gone = self.places.partition_point(|place| place.end <= compacted.through);
            self.messages.drain(..gone);
            self.places.drain(..gone);
            self.waiting.retain(|(seq, _)| *seq > compacted.through);
            self.begin_with(compacted);
        }
        for (message, place) in self.messages.iter_mut().zip(&self.places) {
            let shorter = |(part, seq): (&Part, &Seq)| shortened(part, *seq, compacted);
            let parts = message.parts.iter().zip(&place.parts).map(shorter).collect::<Vec<_>>();
            if parts.iter().any(Option::is_some) {
                let kept = message.parts.iter().zip(parts);
                let parts = kept.map(|(part, shorter)| shorter.unwrap_or_else(|| part.clone())).collect();
                *message = Arc::new(Message::new(message.role, parts));
            }
        }
        for (seq, part) in &mut self.waiting {
            if let Some(shorter) = shortened(part, *seq, compacted) {
                *part = shorter;
            }
        }
    }

    fn begin_with(&mut self, compacted: &Compacted) {
        let texts = self.opening().into_iter().chain([compacted.summary.clone()]);
        let parts = texts.map(|text| Part::Block(Block::Text(text))).collect::<Vec<_>>();
        let place = MessageOrigin { end: compacted.through, parts: vec![Seq::START; parts.len()] };
        self.messages.insert(0, Arc::new(Message::new(Role::User, parts)));
        self.places.insert(0, place);
    }
}

/// The shortened form of a part of the entry `seq` after a compaction, if it changes.
fn shortened(part: &Part, seq: Seq, compacted: &Compacted) -> Option<Part> {
    let is_line = !seq.is_start() && (seq <= compacted.lines_through || compacted.superseded.contains(&seq));
    match part {
        Part::Image(_) if is_line => Some(Part::Block(Block::Text(image_line(seq)))),
        Part::ToolResult { call, tool, output, images, is_error } => {
            let text = ResultText { entry: seq, output, images: images.len() };
            let (output, images) = if is_line {
                (text.line()?, Vec::new())
            } else if seq <= compacted.cut_through {
                (text.cut()?, images.clone())
            } else {
                return None;
            };
            let (call, tool, is_error) = (call.clone(), tool.clone(), *is_error);
            Some(Part::ToolResult { call, tool, output, images, is_error })
        }
        Part::Block(_) | Part::Image(_) => None,
    }
}

fn part_of(block: &Block, images: &HashMap<BlobId, ImageData>) -> Part {
    match block {
        Block::Image(image) => shown(image, images),
        block => Part::Block(block.clone()),
    }
}

fn shown(image: &Image, images: &HashMap<BlobId, ImageData>) -> Part {
    match images.get(&image.blob) {
        Some(data) => Part::Image(data.clone()),
        None => Part::Block(Block::Text(stand_in(image))),
    }
}

fn stand_in(image: &Image) -> String {
    format!("[{} of {} bytes, which can't be shown to you]", image.kind.media_type(), image.bytes)
}

/// What a model is told before the result of a call that was made with other arguments than its own.
fn replaced_words(hook: &str, started: &ToolStarted) -> String {
    let input = started.input.text();
    let cut = input.get(..input.floor_char_boundary(REPLACED_BYTES_MAX)).unwrap_or_default();
    let more = if cut.len() < input.len() { " […]" } else { "" };
    format!("The hook {hook} had this call made with other arguments: {cut}{more}")
}

/// The result as a part of a message, after `told`.
fn result_of(
    finished: &ToolFinished,
    tool: String,
    images: &HashMap<BlobId, ImageData>,
    told: String,
) -> Part {
    let mut output = told;
    output.push_str(&finished.output);
    let mut shown = Vec::new();
    for image in &finished.images {
        match images.get(&image.blob) {
            Some(data) => shown.push(data.clone()),
            None => {
                output.push('\n');
                output.push_str(&stand_in(image));
            }
        }
    }
    Part::ToolResult {
        call: finished.call.clone(),
        tool,
        output,
        images: shown,
        is_error: finished.status.is_error(),
    }
}
