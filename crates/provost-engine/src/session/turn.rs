//! The turns of an agent: how many there were and may be, what it said, and what it was told of its limits.

use provost_event::{
    AssistantMessage, Block, Dimension, Elapsed, Exhausted, FinalSummaryFinished, LimitOwner, Limits,
    ModelCalled, Purpose, Resumed, Seq,
};
use serde::{Deserialize, Serialize};

use crate::LimitUse;

/// The end of a time limit, as the run's elapsed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct WorkEnds {
    /// When the agent is asked for its final summary.
    work: Elapsed,
    /// When all of the limit is used up.
    limit: Elapsed,
}

/// The turns of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turns {
    /// The limit of turns.
    turns_max: u32,
    /// Turns that had ended when its parent last asked it again: the limit counts from there.
    #[serde(default)]
    turns_before: u32,
    ended: u32,
    /// Model calls so far.
    model_calls: u32,
    /// The agent's answers so far.
    answers: u32,
    /// Answers of the current turn that were cut off.
    continuations: u32,
    /// The purpose of the model call in flight.
    purpose: Purpose,
    /// The end of the time limit on the agent's work, as of the last call.
    ends: Option<WorkEnds>,
    /// The agent's text in the current turn; that of the last turn until the next model call.
    text: String,
    text_is_of_last_turn: bool,
    final_summary: Option<String>,
    /// A final summary was requested at the present limit.
    final_summary_finished: bool,
    /// A message arrived after the last model call was made.
    unheard: bool,
    /// The last message entry.
    #[serde(default)]
    last_said: Seq,
    /// The model was notified that this turn is its last.
    last_turn_told: u32,
    /// The percentage of each limit in the model's last notice.
    limits_told: LimitsTold,
}

/// The percentage of each limit in the model's last notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LimitsTold {
    tokens: u8,
    money: u8,
    turns: u8,
    time: u8,
}

impl LimitsTold {
    const fn of(&mut self, dimension: Dimension) -> &mut u8 {
        match dimension {
            Dimension::Tokens => &mut self.tokens,
            Dimension::Money => &mut self.money,
            Dimension::Turns => &mut self.turns,
            Dimension::WallTime => &mut self.time,
        }
    }
}

/// How entries change them.
impl Turns {
    /// The policy sets this limit of turns.
    pub(super) const fn limited_to(&mut self, turns_max: u32) {
        self.turns_max = turns_max;
    }

    /// Takes over what a fork's source said.
    pub(super) fn taken_over(&mut self, from: Self) {
        self.text = from.text;
        self.answers = from.answers;
        self.text_is_of_last_turn = true;
    }

    /// The entry `head` is a message to the agent.
    pub(super) const fn spoken_to(&mut self, head: Seq) {
        self.unheard = true;
        self.last_said = head;
    }

    /// An external agent's program got what was said up to this entry.
    pub(super) fn submitted(&mut self, through: Seq) {
        if through >= self.last_said {
            self.unheard = false;
        }
    }

    pub(super) const fn continued(&mut self) {
        self.continuations = self.continuations.saturating_add(1);
    }

    pub(super) const fn last_turn_told(&mut self) {
        self.last_turn_told = self.next();
    }

    pub(super) const fn limit_told(&mut self, dimension: Dimension, percent: u8) {
        *self.limits_told.of(dimension) = percent;
    }

    pub(super) fn model_called(&mut self, called: &ModelCalled, now: Elapsed) {
        self.model_calls = called.call;
        self.ends = called
            .time_left
            .map(|left| WorkEnds { work: now.plus_ms(left.work_ms), limit: now.plus_ms(left.limit_ms) });
        self.purpose = called.purpose;
        if called.purpose == Purpose::Turn {
            self.unheard = false;
            if std::mem::take(&mut self.text_is_of_last_turn) {
                self.text.clear();
            }
        }
    }

    pub(super) fn answered(&mut self, answer: &AssistantMessage) {
        self.answers = self.answers.saturating_add(1);
        for block in &answer.content {
            if let Block::Text(text) = block {
                self.text.push_str(text);
            }
        }
    }

    pub(super) fn final_summary_finished(&mut self, finished: &FinalSummaryFinished) {
        self.final_summary_finished = true;
        self.final_summary = Some(finished.text.clone()).filter(|text| !text.is_empty());
    }

    pub(super) const fn ended(&mut self) {
        self.ended = self.ended.saturating_add(1);
        self.continuations = 0;
        self.text_is_of_last_turn = true;
    }

    /// The turn continues after an attempt to stop whose answers don't count any more.
    pub(super) const fn reopened(&mut self) {
        self.text_is_of_last_turn = true;
    }

    /// The session was resumed by a request.
    pub(super) fn resumed(&mut self, resumed: &Resumed, is_sub_agent: bool) {
        self.final_summary_finished = false;
        self.continuations = 0;
        self.limits_told = LimitsTold::default();
        self.final_summary = None;
        if let Some(turns_max) = resumed.turns_max {
            self.turns_max = turns_max;
            if is_sub_agent {
                self.turns_before = self.ended;
            }
        }
    }
}

/// What others ask about them.
impl Turns {
    /// Turns that have ended.
    pub(super) const fn count(&self) -> u32 {
        self.ended
    }

    /// The number of the turn that is next or in progress.
    pub(super) const fn next(&self) -> u32 {
        self.ended.saturating_add(1)
    }

    /// Model calls so far; the number of the last one.
    pub(super) const fn model_calls(&self) -> u32 {
        self.model_calls
    }

    /// The agent's answers so far.
    pub(super) const fn answers(&self) -> u32 {
        self.answers
    }

    /// Answers of the current turn that were cut off.
    pub(super) const fn continuations(&self) -> u32 {
        self.continuations
    }

    /// Answers of the current turn that were cut off before they said anything.
    pub(super) fn cut_without_text(&self) -> u32 {
        if self.text.is_empty() { self.continuations } else { 0 }
    }

    /// The purpose of the model call in flight.
    pub(super) const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// When the agent is asked for its final summary, if its time is limited.
    pub(super) fn work_ends(&self) -> Option<Elapsed> {
        self.ends.map(|ends| ends.work)
    }

    /// When its time is used up, if that is limited.
    pub(super) fn limit_ends(&self) -> Option<Elapsed> {
        self.ends.map(|ends| ends.limit)
    }

    /// The agent's text in the current turn; that of the last turn until the next model call.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The final summary at a limit, or else the agent's text.
    pub(super) fn last_text(&self) -> &str {
        self.final_summary.as_deref().unwrap_or(&self.text)
    }

    /// Whether a final summary was requested at the present limit.
    pub(super) const fn has_final_summary(&self) -> bool {
        self.final_summary_finished
    }

    /// Whether a message arrived after the last model call was made.
    pub(super) const fn is_unheard(&self) -> bool {
        self.unheard
    }

    /// Whether the model was notified that the turn is its last.
    pub(super) const fn knows_last_turn(&self) -> bool {
        self.last_turn_told >= self.next()
    }

    /// Whether the next turn is the agent's own last.
    pub(super) fn is_last(&self) -> bool {
        self.limit() == Some(self.next())
    }

    /// The percentage of a limit in the model's last notice.
    pub(super) const fn percent_told(&self, dimension: Dimension) -> u8 {
        let mut told = self.limits_told;
        *told.of(dimension)
    }

    /// The agent's own turn limit since it was last asked.
    fn limit(&self) -> Option<u32> {
        let limit = Some(self.turns_max).filter(|turns| *turns != Limits::TURNS_UNLIMITED)?;
        Some(limit.saturating_sub(self.turns_before))
    }

    const fn since_asked(&self) -> u32 {
        self.ended.saturating_sub(self.turns_before)
    }

    /// The agent's own turn limit, once it is used up.
    pub(super) fn exhausted(&self) -> Option<Exhausted> {
        let turns = self.since_asked();
        let limit = self.limit().filter(|limit| turns >= *limit)?;
        let exhausted = Exhausted::new(Dimension::Turns, turns.into(), limit.into());
        Some(Exhausted { owner: LimitOwner::Agent, ..exhausted })
    }

    /// `limits` with the agent's own turn limit, if that is nearer to its end.
    pub(super) fn limits_near(&self, limits: &[LimitUse]) -> Vec<LimitUse> {
        let own = self.limit().map(|limit| LimitUse {
            dimension: Dimension::Turns,
            used: self.since_asked().into(),
            limit: limit.into(),
            owner: LimitOwner::Agent,
        });
        let is_turns = |limit: &&LimitUse| limit.dimension == Dimension::Turns;
        let mut all = limits.iter().filter(|limit| !is_turns(limit)).copied().collect::<Vec<_>>();
        all.extend(limits.iter().filter(is_turns).copied().chain(own).max_by_key(LimitUse::percent));
        all
    }
}
