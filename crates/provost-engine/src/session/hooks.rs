//! The questions of a session to hooks: which are open, and which are answered.

pub(super) mod ask;
pub(super) mod decisions;

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{HookPoint, HookReport, HookTimes, HookTrigger, Seq, SessionSource};
use serde::{Deserialize, Serialize};

use super::Phase;
use super::assignment::Assignment;

pub(super) use decisions::{CallReplacement, CombinedDecision};

/// The author of the goal text in the prompt hooks.
const GOAL: &str = "goal";

/// The questions to hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HookQuestions {
    /// The open ones, by the entry that asks.
    open: BTreeMap<Seq, HookTrigger>,
    /// How the session began.
    source: SessionSource,
    /// Hooks were notified of the start or the resumption of the session.
    session_asked: bool,
    goal_asked: bool,
    /// The last model call that they were asked about.
    request_asked: u32,
    turn_end_asked: bool,
    batch_asked: bool,
    /// They have yet to be notified of a compaction.
    compaction_untold: bool,
    /// Those that are asked once and have answered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    spent: BTreeSet<String>,
}

impl Default for HookQuestions {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            source: SessionSource::Startup,
            session_asked: false,
            goal_asked: false,
            request_asked: 0,
            turn_end_asked: false,
            batch_asked: false,
            compaction_untold: false,
            spent: BTreeSet::new(),
        }
    }
}

/// What is known when hooks have answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerFacts {
    /// The last entry.
    pub(super) head: Seq,
    pub(super) phase: Phase,
    /// The session isn't about to stop. Otherwise a decision may have been cut short: it is requested again when the
    /// session is resumed.
    pub(super) counts: bool,
}

/// A question that was answered.
pub(super) struct AnsweredQuestion {
    pub(super) about: HookTrigger,
    /// The phase that follows, if it changes.
    pub(super) phase: Option<Phase>,
}

/// How entries change them. Where the phase of the session changes, it is returned.
impl HookQuestions {
    /// The entry `head` calls hooks.
    pub(super) fn asked(&mut self, about: &HookTrigger, head: Seq, assignment: &Assignment) -> Option<Phase> {
        let phase = match about {
            HookTrigger::Session { .. } | HookTrigger::Subagent => {
                self.session_asked = true;
                Some(Phase::Preparing(head))
            }
            HookTrigger::Request { call } => {
                self.request_asked = *call;
                Some(Phase::Preparing(head))
            }
            HookTrigger::Compacted => {
                self.compaction_untold = false;
                Some(Phase::Preparing(head))
            }
            HookTrigger::Prompt { .. } if self.is_goal(about, assignment) => {
                self.goal_asked = true;
                Some(Phase::Preparing(head))
            }
            HookTrigger::Compaction => Some(Phase::Compacting(head)),
            HookTrigger::TurnEnd { .. } => Some(Phase::CheckingStop(head)),
            _ => None,
        };
        self.open.insert(head, about.clone());
        phase
    }

    /// Returns the question of entry `asked`, if it was open.
    pub(super) fn answered(&mut self, asked: Seq, facts: AnswerFacts) -> Option<AnsweredQuestion> {
        let about = self.open.remove(&asked)?;
        let AnswerFacts { head, phase, counts } = facts;
        let prepared = matches!(phase, Phase::Preparing(seq) | Phase::Compacting(seq) if seq == asked);
        match about {
            HookTrigger::Prompt { .. } if prepared => self.goal_asked = counts,
            HookTrigger::Request { call } if !counts => self.request_asked = call.saturating_sub(1),
            HookTrigger::TurnEnd { .. } => self.turn_end_asked = counts,
            HookTrigger::Batch { .. } => self.batch_asked = counts,
            _ => {}
        }
        let is_turn_end = matches!(about, HookTrigger::TurnEnd { .. });
        let phase = match about {
            _ if prepared => Some(Phase::Ready),
            _ if is_turn_end => Some(Phase::CheckingStop(head)),
            _ => None,
        };
        Some(AnsweredQuestion { about, phase })
    }

    /// Hooks have answered.
    pub(super) fn reported(&mut self, reports: &[HookReport], assignment: &Assignment) {
        let answered = reports.iter().filter(|report| report.decision.failure().is_none());
        let is_once = |report: &&HookReport| {
            let mut hooks = assignment.hooks().iter();
            hooks.any(|hook| hook.name == report.hook && hook.setup.times == HookTimes::Once)
        };
        self.spent.extend(answered.filter(is_once).map(|report| report.hook.clone()));
    }

    /// A conversation was shortened; `is_news` if hooks are to be notified.
    pub(super) const fn compacted(&mut self, is_news: bool) {
        self.compaction_untold |= is_news;
    }

    /// The model is called for the agent's next answer.
    pub(super) const fn model_called(&mut self) {
        self.turn_end_asked = false;
    }

    /// The agent's answer has come.
    pub(super) const fn model_answered(&mut self) {
        self.batch_asked = false;
    }

    pub(super) const fn turn_ended(&mut self) {
        self.turn_end_asked = false;
    }

    pub(super) const fn resumed(&mut self) {
        self.session_asked = false;
        self.source = SessionSource::Resume;
    }

    /// The session begins as a fork: its goal is no new prompt.
    pub(super) const fn forked(&mut self) {
        self.goal_asked = true;
        self.source = SessionSource::Resume;
    }
}

/// What others ask about them.
impl HookQuestions {
    /// The open question of entry `seq`.
    pub(super) fn get(&self, seq: Seq) -> Option<&HookTrigger> {
        self.open.get(&seq)
    }

    pub(super) fn is_open(&self, seq: Seq) -> bool {
        self.open.contains_key(&seq)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The entries that ask the open questions.
    pub(super) fn entries(&self) -> Vec<Seq> {
        self.open.keys().copied().collect()
    }

    /// The open question before the session stops.
    fn closing(&self) -> Option<Seq> {
        let is_closing = |about: &HookTrigger| matches!(about, HookTrigger::Closing { .. });
        self.open.iter().find(|(_, about)| is_closing(about)).map(|(seq, _)| *seq)
    }

    /// The hooks that aren't asked any more.
    pub(super) fn spent(&self) -> Vec<String> {
        self.spent.iter().cloned().collect()
    }

    /// Whether a message waits for hooks to accept it.
    pub(super) fn have_prompts(&self) -> bool {
        self.open.values().any(|about| matches!(about, HookTrigger::Prompt { .. }))
    }

    /// Whether one is about a call, or anything else that isn't a message.
    pub(super) fn are_about_calls(&self) -> bool {
        self.open.values().any(|about| !matches!(about, HookTrigger::Prompt { .. }))
    }

    /// Whether one is about all results of an answer together.
    pub(super) fn are_about_batch(&self) -> bool {
        self.open.values().any(|about| matches!(about, HookTrigger::Batch { .. }))
    }

    /// Whether hooks have yet to decide on all results of the last answer together.
    pub(super) fn lack_batch(&self, assignment: &Assignment) -> bool {
        !self.batch_asked && assignment.has_hook(HookPoint::PostToolBatch)
    }

    /// Whether hooks have yet to decide on the end of the turn.
    pub(super) fn lack_turn_end(&self, assignment: &Assignment) -> bool {
        !self.turn_end_asked && assignment.has_hook(HookPoint::TurnEnd)
    }

    /// The question before the model call of this number, if there is one.
    pub(super) fn before_request(&self, call: u32, assignment: &Assignment) -> Option<HookTrigger> {
        let beginning = match (assignment.parent(), self.source) {
            (Some(_), SessionSource::Startup) => HookTrigger::Subagent,
            (_, source) => HookTrigger::Session { source },
        };
        // A goal from another agent is no prompt of a person: hooks have seen it in that agent's call.
        let is_by_person = assignment.parent().is_none();
        if !self.session_asked && assignment.has_hooks_for(&beginning) {
            Some(beginning)
        } else if is_by_person && !self.goal_asked && assignment.has_hook(HookPoint::PromptSubmit) {
            Some(HookTrigger::Prompt { text: assignment.goal().to_owned(), by: GOAL.to_owned() })
        } else if self.compaction_untold && assignment.has_hook(HookPoint::PostCompact) {
            Some(HookTrigger::Compacted)
        } else if self.request_asked < call && assignment.has_hook(HookPoint::PreLlmRequest) {
            Some(HookTrigger::Request { call })
        } else {
            None
        }
    }

    fn is_goal(&self, about: &HookTrigger, assignment: &Assignment) -> bool {
        let is_goal = |text: &str, by: &str| by == GOAL && text == assignment.goal();
        !self.goal_asked && matches!(about, HookTrigger::Prompt { text, by } if is_goal(text, by))
    }
}
