//! The conversation as the model sees it, by size: what each part takes, and what it would take in a shorter form.

use provost_event::{
    AgentPolicy, AssistantMessage, Block, Compacted, ConversationEntry, Entry, LifecycleEntry, ModelEntry,
    Purpose, RetryCause, Seq, SessionStarted, ToolEntry, ToolFinished, ToolSpec,
};
use serde::{Deserialize, Serialize};

use crate::View;
use crate::reminder_announcement;
use crate::tokens::{BLOCK_TOKENS, IMAGE_TOKENS, tokens_of};
use crate::view::{ResultText, image_line};

/// The weight of an estimate against the provider's reports, as a number of tokens estimated correctly before.
const PRIOR_TOKENS: u64 = 2_000;
/// A report counts for at least a third and at most three times the estimate, not counting a provider's fixed
/// overhead.
const REPORT_BOUNDS: (u64, u64) = (333, 3_000);
/// A report makes estimates larger, never smaller: the next text may be denser than the earlier ones.
const DENSITY_BOUNDS: (u64, u64) = (1_000, 3_000);

/// The note on an image for a model that can't see it.
const UNSEEN_TOKENS: u64 = 32;

/// A message, result or item of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ItemRow", into = "ItemRow")]
pub(super) struct ContextItem {
    pub(super) at: Seq,
    pub(super) form: ItemForm,
    pub(super) is_result: bool,
    /// Estimated tokens of each form.
    whole: u64,
    cut: u64,
    line: u64,
    pub(super) images: usize,
    /// The fingerprint of the call that it is the result of, if that only reads: the same call made later
    /// supersedes it.
    pub(super) reads: Option<u64>,
}

/// An item in snapshots, which have many.
type ItemRow = (Seq, ItemForm, bool, u64, u64, u64, usize, Option<u64>);

impl From<ItemRow> for ContextItem {
    fn from((at, form, is_result, whole, cut, line, images, reads): ItemRow) -> Self {
        Self { at, form, is_result, whole, cut, line, images, reads }
    }
}

impl From<ContextItem> for ItemRow {
    fn from(item: ContextItem) -> Self {
        let ContextItem { at, form, is_result, whole, cut, line, images, reads } = item;
        (at, form, is_result, whole, cut, line, images, reads)
    }
}

/// The form in which an item is shown, the longest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum ItemForm {
    Whole,
    Cut,
    Line,
}

impl ContextItem {
    /// A message; `image_tokens` is the size of an image.
    fn said(at: Seq, text: u64, images: usize, image_tokens: u64) -> Self {
        let whole = text.saturating_add(times(image_tokens, images));
        let line = text.saturating_add(times(tokens_of(&image_line(at)), images));
        Self { at, form: ItemForm::Whole, is_result: false, whole, cut: whole, line, images, reads: None }
    }

    fn result(at: Seq, finished: &ToolFinished, reads: Option<u64>, image_tokens: u64) -> Self {
        let images = finished.images.len();
        let text = ResultText { entry: at, output: &finished.output, images };
        let tokens = |text: &str| tokens_of(text).saturating_add(BLOCK_TOKENS);
        let pictures = times(image_tokens, images);
        let whole = tokens(&finished.output).saturating_add(pictures);
        let cut = text.cut().map_or(whole, |cut| tokens(&cut).saturating_add(pictures));
        let line = text.line().map_or(whole, |line| tokens(&line));
        Self { at, form: ItemForm::Whole, is_result: true, whole, cut, line, images, reads }
    }

    /// Estimated tokens in its current form.
    pub(super) const fn shown(&self) -> u64 {
        self.in_form(self.form)
    }

    /// Estimated tokens in `form`, or in its current form if that is shorter.
    pub(super) fn at_most(&self, form: ItemForm) -> u64 {
        self.in_form(self.form.max(form))
    }

    const fn in_form(&self, form: ItemForm) -> u64 {
        match form {
            ItemForm::Whole => self.whole,
            ItemForm::Cut => self.cut,
            ItemForm::Line => self.line,
        }
    }

    /// Whether a line would be shorter than the current form.
    pub(super) const fn is_long(&self) -> bool {
        self.shown() > self.line
    }
}

/// The items between two model calls: an answer and the replies to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContextSpan {
    /// The model call that first included it.
    pub(super) through: Seq,
    pub(super) items: Vec<ContextItem>,
}

impl ContextSpan {
    pub(super) fn shown(&self) -> u64 {
        shown(&self.items)
    }
}

/// Estimated tokens of `items` in their current forms.
pub(super) fn shown(items: &[ContextItem]) -> u64 {
    items.iter().map(ContextItem::shown).fold(0, u64::saturating_add)
}

/// A request that a provider has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct CountAnchor {
    /// Its tokens and those of its answer.
    counted: u64,
    /// What they were estimated at.
    estimated: u64,
    /// The answer.
    at: Seq,
}

/// The provider's last report, unchanged: budgets use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ProviderReport {
    /// Tokens of a request, and of its answer as far as that is sent back.
    counted: u64,
    /// What they were estimated at.
    estimated: u64,
    /// The entry with the report: later entries are not included.
    at: Seq,
}

impl ProviderReport {
    /// An estimate scaled by the ratio of the report, and at least the estimate.
    fn scaled(&self, estimated: u64) -> u64 {
        let scaled = u128::from(estimated) * u128::from(self.counted);
        let scaled = scaled.div_ceil(u128::from(self.estimated.max(1)));
        u64::try_from(scaled).unwrap_or(u64::MAX).max(estimated)
    }
}

/// The conversation as the model sees it, by size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Context {
    /// System prompt and tools.
    pub(super) fixed: u64,
    /// The size of an image.
    image_tokens: u64,
    /// The replacement for what was left out, if anything was: its tokens, and the number of images left out.
    pub(super) summary: u64,
    pub(super) images_left_out: usize,
    /// The last entry that the summary replaces, and the entry with the summary.
    pub(super) from: Seq,
    pub(super) summed_up_at: Seq,
    pub(super) spans: Vec<ContextSpan>,
    /// What the next call sends for the first time, or again because it got no answer.
    pub(super) waiting: Vec<ContextItem>,
    /// The last span was sent and has no answer yet.
    is_unanswered: bool,
    /// Estimated tokens of all that in its current form.
    estimated: u64,
    /// The estimate of the last request.
    asked: u64,
    anchor: Option<CountAnchor>,
    report: Option<ProviderReport>,
    /// The last model call was a judge's, which has another conversation.
    is_judge: bool,
    /// A request was refused as too long although by the provider's own report it wasn't.
    underreports: bool,
    /// Tokens of the last request, as the provider counted them.
    last_input_tokens: Option<u64>,
}

impl Context {
    /// Adds an entry; `reads` identifies the call of a result, if that only reads.
    pub(super) fn add(&mut self, at: Seq, entry: &Entry, reads: Option<u64>) {
        match entry {
            // A fork takes over its source's conversation.
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) if started.fork.is_some() => {}
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                self.measures(started);
                self.estimated = self.estimated.saturating_add(self.fixed);
                self.say(at, tokens_of(&started.goal), started.images.len());
            }
            Entry::Conversation(ConversationEntry::UserMessage(message)) => {
                self.say_blocks(at, &message.content)
            }
            Entry::Conversation(ConversationEntry::SystemItem(item)) => {
                self.say(at, tokens_of(&item.body), 0)
            }
            Entry::Tool(ToolEntry::Finished(finished)) => {
                self.wait(ContextItem::result(at, finished, reads, self.image_tokens));
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                self.is_unanswered = false;
                self.say_blocks(at, &answer.content);
                self.counted(at, answer);
            }
            Entry::Model(ModelEntry::Called(called)) => {
                self.asked = self.estimated;
                self.is_judge = called.purpose == Purpose::Judge;
                if called.purpose == Purpose::Turn {
                    self.take_back();
                    self.is_unanswered = true;
                    self.spans.push(ContextSpan { through: at, items: std::mem::take(&mut self.waiting) });
                }
            }
            Entry::Model(ModelEntry::Retried(retry)) => {
                self.underreports |= retry.cause == RetryCause::Compacted;
                self.take_back();
                let counted = retry.usage.prompt_tokens();
                if counted > 0 && !self.is_judge && retry.usage.certainty.is_reported() {
                    self.report = Some(ProviderReport { counted, estimated: self.asked, at });
                }
            }
            Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) => self.take_back(),
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => self.compact(at, compacted),
            _ => {}
        }
    }

    /// Begins a fork, whose model may get other content besides the conversation.
    pub(super) fn forked(&mut self, started: &SessionStarted) {
        self.take_back();
        let before = self.fixed;
        self.measures(started);
        self.estimated = self.estimated.saturating_sub(before).saturating_add(self.fixed);
    }

    /// The model gets other content besides the conversation from here on.
    pub(super) fn policy_changed(&mut self, old: &AgentPolicy, new: &AgentPolicy) {
        let before = self.fixed;
        self.fixed = before.saturating_sub(tokens_beside(old)).saturating_add(tokens_beside(new));
        self.estimated = self.estimated.saturating_sub(before).saturating_add(self.fixed);
        self.sees(new);
    }

    fn measures(&mut self, started: &SessionStarted) {
        let announced = match started.reminder_id.as_str() {
            "" => 0,
            id => tokens_of(&reminder_announcement(id)).saturating_add(BLOCK_TOKENS),
        };
        self.fixed = tokens_beside(&started.policy).saturating_add(announced);
        self.sees(&started.policy);
    }

    const fn sees(&mut self, policy: &AgentPolicy) {
        self.image_tokens = if policy.model.images { IMAGE_TOKENS } else { UNSEEN_TOKENS };
    }

    /// Whether the next call includes anything that the model hasn't answered yet. Its own last answer doesn't
    /// count.
    pub(super) fn has_news(&self) -> bool {
        // Messages since the last answer wait after that answer; the goal waits alone.
        let is_new = self.spans.is_empty() && self.summary == 0;
        is_new || self.is_unanswered || self.waiting.len() > 1
    }

    /// Content that was sent without an answer is still new to the model.
    fn take_back(&mut self) {
        if std::mem::take(&mut self.is_unanswered)
            && let Some(mut sent) = self.spans.pop()
        {
            sent.items.append(&mut self.waiting);
            self.waiting = sent.items;
        }
    }

    fn say_blocks(&mut self, at: Seq, content: &[Block]) {
        let images = content.iter().filter(|block| matches!(block, Block::Image(_))).count();
        self.say(at, content.iter().map(tokens_of_block).fold(0, u64::saturating_add), images);
    }

    fn say(&mut self, at: Seq, text: u64, images: usize) {
        self.wait(ContextItem::said(at, text.saturating_add(BLOCK_TOKENS), images, self.image_tokens));
    }

    fn wait(&mut self, item: ContextItem) {
        self.estimated = self.estimated.saturating_add(item.shown());
        self.waiting.push(item);
    }

    /// Records the provider's count of the request and its `answer`, which has just been added.
    fn counted(&mut self, at: Seq, answer: &AssistantMessage) {
        let usage = answer.usage;
        let input = usage.prompt_tokens();
        self.last_input_tokens = (input > 0).then_some(input);
        // Hidden reasoning isn't sent back.
        let goes_back = |block: &Block| matches!(block, Block::Thinking { .. } | Block::Opaque { .. });
        let hidden = if answer.content.iter().any(goes_back) { 0 } else { usage.reasoning_tokens };
        let estimated = self.asked.saturating_add(self.waiting.last().map_or(0, ContextItem::shown));
        let (least, most) = REPORT_BOUNDS;
        let bounds = (
            estimated.saturating_mul(least) / 1_000,
            (estimated.saturating_mul(most) / 1_000).saturating_add(PRIOR_TOKENS),
        );
        let reported = usage.total().saturating_sub(hidden);
        if input > 0 {
            self.report = Some(ProviderReport { counted: reported, estimated, at });
        }
        let counted = reported.clamp(bounds.0, bounds.1);
        let counted = if self.underreports { counted.max(estimated) } else { counted };
        self.anchor = (input > 0).then_some(CountAnchor { counted, estimated, at });
    }

    /// The part of the log that the model sees.
    pub(super) const fn view(&self) -> View {
        View { from: self.from, summed_up_at: self.summed_up_at }
    }

    /// Messages, results and items that the next call sends; all that was left out counts as one.
    pub(super) fn items(&self) -> u32 {
        let spans = self.spans.iter().map(|span| span.items.len()).sum::<usize>();
        let summary = usize::from(self.summary > 0);
        u32::try_from(spans + self.waiting.len() + summary).unwrap_or(u32::MAX)
    }

    /// Tokens of the last request, if the provider has counted them.
    pub(super) const fn last_input_tokens(&self) -> Option<u64> {
        self.last_input_tokens
    }

    /// Tokens of the next request: the provider's last count, plus the estimate of later changes.
    pub(super) fn tokens(&self) -> u64 {
        let Some(anchor) = self.anchor else { return self.estimated };
        let new = self.waiting.iter().filter(|item| item.at != anchor.at).map(ContextItem::shown);
        let new = new.fold(0, u64::saturating_add);
        let old = self.estimated.saturating_sub(new);
        let counted = if old >= anchor.estimated {
            anchor.counted.saturating_add(self.scaled(old.saturating_sub(anchor.estimated)))
        } else {
            // The rest may be denser than what was left out, but isn't more than all of it was.
            let part = anchor.counted.saturating_mul(old).div_ceil(anchor.estimated.max(1));
            part.max(old).min(anchor.counted)
        };
        counted.saturating_add(self.scaled(new))
    }

    /// Maximum tokens of the next request, for budgets: the provider's last count, whatever it was, plus what was
    /// added since by the same ratio; at least the estimate. What was left out since is subtracted by that ratio
    /// too.
    pub(super) fn reserved_tokens(&self, question: u64) -> u64 {
        let estimated = self.estimated.saturating_add(question);
        let Some(report) = self.report else { return estimated };
        let new = self.waiting.iter().filter(|item| item.at > report.at).map(ContextItem::shown);
        let new = new.fold(0, u64::saturating_add);
        let old = self.estimated.saturating_sub(new);
        let counted = match old.checked_sub(report.estimated) {
            Some(more) => report.counted.saturating_add(report.scaled(more)),
            None => report.scaled(old),
        };
        counted.saturating_add(report.scaled(new.saturating_add(question))).max(estimated)
    }

    /// Tokens of the next request by estimate alone.
    pub(super) const fn estimated_tokens(&self) -> u64 {
        self.estimated
    }

    /// Whether a provider has counted it.
    pub(super) const fn is_counted(&self) -> bool {
        self.report.is_some()
    }

    /// An estimate, corrected by the ratio of the provider's last count to its estimate.
    pub(super) fn scaled(&self, estimated: u64) -> u64 {
        estimated.saturating_mul(self.density()).div_ceil(1_000)
    }

    /// The uncorrected estimate that corresponds to `tokens`.
    pub(super) fn unscaled(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(1_000) / self.density()
    }

    /// Real tokens per thousand estimated ones.
    fn density(&self) -> u64 {
        let density = |anchor: CountAnchor| {
            let counted = anchor.counted.saturating_add(PRIOR_TOKENS);
            counted.saturating_mul(1_000) / anchor.estimated.saturating_add(PRIOR_TOKENS)
        };
        self.anchor.map_or(1_000, density).clamp(DENSITY_BOUNDS.0, DENSITY_BOUNDS.1)
    }

    /// The results and the other items, the newest first, with whether they have been sent before.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (&ContextItem, bool)> {
        let sent = self.spans.iter().rev().flat_map(|span| span.items.iter().rev());
        self.waiting.iter().rev().map(|item| (item, false)).chain(sent.map(|item| (item, true)))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut ContextItem> {
        self.spans.iter_mut().flat_map(|span| span.items.iter_mut()).chain(&mut self.waiting)
    }

    fn compact(&mut self, at: Seq, compacted: &Compacted) {
        if !compacted.through.is_start() {
            self.images_left_out = self.images_through(compacted.through);
            self.spans.retain(|span| span.through > compacted.through);
            self.waiting.retain(|item| item.at > compacted.through);
            self.summary = tokens_of(&compacted.summary).saturating_add(BLOCK_TOKENS);
            self.from = compacted.through;
            self.summed_up_at = at;
        }
        for item in self.all_mut() {
            let is_line = item.at <= compacted.lines_through || compacted.superseded.contains(&item.at);
            if is_line {
                item.form = ItemForm::Line;
            } else if item.at <= compacted.cut_through && item.is_result {
                item.form = item.form.max(ItemForm::Cut);
            }
        }
        self.estimated = self.sum();
    }

    fn sum(&self) -> u64 {
        let spans = self.spans.iter().map(ContextSpan::shown).fold(0, u64::saturating_add);
        let parts = [self.fixed, self.summary, spans, shown(&self.waiting)];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Images up to `through` that are shown, or were left out with what a summary replaces.
    pub(super) fn images_through(&self, through: Seq) -> usize {
        let sent = self.spans.iter().flat_map(|span| &span.items).chain(&self.waiting);
        let gone = sent.filter(|item| item.at <= through).map(|item| item.images);
        gone.fold(self.images_left_out, usize::saturating_add)
    }

    /// Tokens of the next request once `compacted` is committed.
    pub(super) fn tokens_after(&self, compacted: &Compacted) -> u64 {
        let mut after = self.clone();
        after.compact(Seq::START, compacted);
        after.tokens()
    }
}

fn tokens_of_tool(tool: &ToolSpec) -> u64 {
    let texts = [tool.name.as_str(), &tool.description, tool.input_schema.text()];
    texts.into_iter().map(tokens_of).sum::<u64>().saturating_add(BLOCK_TOKENS)
}

/// Estimated tokens of a block, without those of an image.
fn tokens_of_block(block: &Block) -> u64 {
    match block {
        Block::Text(text) => tokens_of(text),
        Block::Image(_) => 0,
        // A signature counts little or nothing with the providers that send it.
        Block::Thinking { text, signature, .. } => {
            let seal = signature.as_ref().map_or(0, |seal| seal.len().div_ceil(8));
            tokens_of(text).saturating_add(u64::try_from(seal).unwrap_or(u64::MAX))
        }
        Block::Opaque { json, .. } => tokens_of(json.text()),
        Block::ToolCall(call) => {
            tokens_of(&call.name).saturating_add(tokens_of(call.input.text())).saturating_add(BLOCK_TOKENS)
        }
    }
}

fn times(tokens: u64, count: usize) -> u64 {
    tokens.saturating_mul(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Tokens of what the model gets besides the conversation.
fn tokens_beside(policy: &AgentPolicy) -> u64 {
    let tools = policy.tools.iter().map(tokens_of_tool).sum::<u64>();
    let preamble = match policy.preamble.as_str() {
        "" => 0,
        preamble => tokens_of(preamble).saturating_add(BLOCK_TOKENS),
    };
    tokens_of(&policy.system_prompt).saturating_add(preamble).saturating_add(tools)
}
