//! What a model sees of a log, built the plain way: every text as it is sent. The engine itself keeps only the
//! size.

use provost_engine::{ResultText, image_line, reminder_announcement, tokens_of};
use provost_event::{
    Block, Compacted, ConversationEntry, Entry, LifecycleEntry, ModelEntry, Purpose, Record, Seq, ToolEntry,
};

use crate::world::World;

const BLOCK_TOKENS: u64 = 8;

#[derive(Debug)]
struct ViewItem {
    at: Seq,
    /// The end of the message that it is part of.
    end: Option<Seq>,
    texts: Vec<String>,
    /// Tokens around the texts.
    around: u64,
    images: usize,
    is_result: bool,
}

#[derive(Debug, Default)]
pub(crate) struct View {
    fixed: u64,
    image_tokens: u64,
    summary: Option<String>,
    shown: Vec<ViewItem>,
}

impl View {
    pub(crate) fn of(world: &World) -> Self {
        let mut view = Self::default();
        world.session_log().iter().for_each(|record| view.fold(record));
        view
    }

    pub(crate) fn fold(&mut self, record: &Record) {
        let at = record.seq;
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                let policy = &started.policy;
                let tools = policy.tools.iter().map(|tool| {
                    let texts = [tool.name.as_str(), &tool.description, tool.input_schema.text()];
                    texts.into_iter().map(tokens_of).sum::<u64>() + BLOCK_TOKENS
                });
                let announced = tokens_of(&reminder_announcement(&started.reminder_id)) + BLOCK_TOKENS;
                self.fixed = tokens_of(&policy.system_prompt) + announced + tools.sum::<u64>();
                self.image_tokens = if policy.model.images { 1_600 } else { 32 };
                self.say(at, vec![started.goal.clone()], started.images.len());
            }
            Entry::Conversation(ConversationEntry::UserMessage(message)) => {
                self.blocks(at, None, &message.content)
            }
            Entry::Conversation(ConversationEntry::SystemItem(item)) => {
                self.say(at, vec![item.body.clone()], 0)
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                self.blocks(at, Some(at), &answer.content)
            }
            Entry::Tool(ToolEntry::Finished(done)) => {
                self.say(at, vec![done.output.clone()], done.images.len());
                self.shown.last_mut().expect("it").is_result = true;
            }
            Entry::Model(ModelEntry::Called(called)) if called.purpose == Purpose::Turn => {
                self.shown.iter_mut().for_each(|shown| shown.end = shown.end.or(Some(at)));
            }
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => self.compact(compacted),
            _ => {}
        }
    }

    fn say(&mut self, at: Seq, texts: Vec<String>, images: usize) {
        let shown = ViewItem { at, end: None, texts, around: BLOCK_TOKENS, images, is_result: false };
        self.shown.push(shown);
    }

    fn blocks(&mut self, at: Seq, end: Option<Seq>, content: &[Block]) {
        let (mut texts, mut around) = (Vec::new(), BLOCK_TOKENS);
        for block in content {
            match block {
                Block::Text(text) => texts.push(text.clone()),
                Block::ToolCall(call) => {
                    texts.extend([call.name.clone(), call.input.text().to_owned()]);
                    around += BLOCK_TOKENS;
                }
                other => panic!("no such block in these worlds: {other:?}"),
            }
        }
        self.shown.push(ViewItem { at, end, texts, around, images: 0, is_result: false });
    }

    fn compact(&mut self, compacted: &Compacted) {
        if !compacted.through.is_start() {
            self.shown.retain(|shown| shown.end.unwrap_or(shown.at) > compacted.through);
            self.summary = Some(compacted.summary.clone());
        }
        for shown in &mut self.shown {
            let is_line = shown.at <= compacted.lines_through || compacted.superseded.contains(&shown.at);
            let is_cut = shown.at <= compacted.cut_through;
            if !shown.is_result {
                if is_line {
                    let lines = std::iter::repeat_n(image_line(shown.at), std::mem::take(&mut shown.images));
                    shown.texts.extend(lines);
                }
                continue;
            }
            let text = ResultText { entry: shown.at, output: &shown.texts[0], images: shown.images };
            if is_line {
                if let Some(line) = text.line() {
                    (shown.texts, shown.images) = (vec![line], 0);
                }
            } else if is_cut && let Some(cut) = text.cut() {
                shown.texts = vec![cut];
            }
        }
    }

    /// Estimated tokens of the last request.
    pub(crate) fn tokens(&self) -> u64 {
        let shown = self.shown.iter().filter(|shown| shown.end.is_some()).map(|shown| {
            let texts = shown.texts.iter().map(|text| tokens_of(text)).sum::<u64>();
            texts + shown.around + self.image_tokens * shown.images as u64
        });
        let summary = self.summary.as_ref().map_or(0, |text| tokens_of(text) + BLOCK_TOKENS);
        self.fixed + summary + shown.sum::<u64>()
    }

    /// The goal is in it, whole, or in its replacement.
    pub(crate) fn has(&self, text: &str) -> bool {
        let texts = self.shown.iter().flat_map(|shown| &shown.texts).chain(&self.summary);
        texts.into_iter().any(|found| found.contains(text))
    }
}
