//! An agent's conversation: its size as the model sees it, how it was shortened, and what every summary keeps.
//!
//! It is kept within the model's window first by what costs nothing, then by a summary from the model, and if
//! neither is enough by a rule that always succeeds.
//!
//! The rule always succeeds if the room is at least 400 tokens more than three times the total of the system
//! prompt, the tools and the goal: the replacement for the part that is left out takes at most 55 % of the room,
//! and the rule stops at 95 %. With less room the session may end because nothing is left to leave out.

pub(super) mod compact;
mod compactions;
mod context;
mod plan;
mod text;
mod window;

use std::collections::VecDeque;

use provost_event::{
    AgentPolicy, Block, Compacted, Entry, Plan, Purpose, RetryCause, Seq, SessionStarted, UserMessage,
};
use serde::{Deserialize, Serialize};

use super::hooks::CombinedDecision;
use crate::View;
use compactions::{CompactionConsent, Compactions};
use context::Context;

pub(super) use window::{RequestTokens, SUMMARY_QUESTION, Window, WindowFacts, aside_effort};

/// How many of the last messages of people, and of the last files written, are kept for summaries.
const SAID_MAX: usize = 100;
const WRITTEN_MAX: usize = 50;

/// An agent's conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Conversation {
    context: Context,
    compactions: Compactions,
    /// The messages of people, verbatim.
    said: VecDeque<String>,
    /// The files that were written last.
    written: VecDeque<String>,
    /// The agent's plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Box<Plan>>,
}

impl Conversation {
    /// Adds the size of what the model sees of an entry; `reads` identifies the call of a result, if that only
    /// reads.
    pub(super) fn add(&mut self, at: Seq, entry: &Entry, reads: Option<u64>) {
        self.context.add(at, entry, reads);
    }

    pub(super) fn said(&mut self, message: &UserMessage) {
        for block in &message.content {
            if let Block::Text(text) = block {
                self.said.push_back(text.clone());
            }
        }
        while self.said.len() > SAID_MAX {
            self.said.pop_front();
        }
    }

    /// Records a file that a call has written; only the last ones are kept.
    pub(super) fn wrote(&mut self, path: String) {
        self.written.retain(|known| *known != path);
        self.written.push_back(path);
        if self.written.len() > WRITTEN_MAX {
            self.written.pop_front();
        }
    }

    /// The files that calls have written, the last one last.
    pub(super) fn written(&self) -> impl Iterator<Item = &str> {
        self.written.iter().map(String::as_str)
    }

    pub(super) fn planned(&mut self, plan: &Plan) {
        self.plan = Some(Box::new(plan.clone()));
    }

    pub(super) const fn answered(&mut self) {
        self.compactions.answered();
    }

    /// A model call for `purpose` is made again.
    pub(super) fn retried(&mut self, cause: &RetryCause, purpose: Purpose) {
        match cause {
            RetryCause::Compacted => self.compactions.refused(self.context.tokens(), purpose),
            RetryCause::UselessSummary { .. } => self.compactions.useless = true,
            RetryCause::Failed { .. } | RetryCause::EmptyAnswer | RetryCause::Interrupted => {}
        }
    }

    /// Returns whether hooks are to be notified.
    pub(super) fn compacted(&mut self, compacted: &Compacted) -> bool {
        self.compactions.made(compacted)
    }

    /// Hooks are called on the compaction that is due; `is_last` if it can't be postponed.
    pub(super) const fn asked_hooks(&mut self, is_last: bool) {
        self.compactions.is_last_question = is_last;
    }

    /// Hooks have decided on the compaction that is due.
    pub(super) fn hooks_answered(&mut self, decision: CombinedDecision) {
        let is_last = self.compactions.is_last_question;
        self.compactions.consent = match decision {
            CombinedDecision::Deny { hook, reason } => CompactionConsent::Refused { hook, reason, is_last },
            CombinedDecision::Pause { .. } | CombinedDecision::Abort { .. } => CompactionConsent::Unasked,
            CombinedDecision::Free | CombinedDecision::Allow | CombinedDecision::Ask(_) => {
                CompactionConsent::Given
            }
        };
    }

    /// Another model, or the same one after a resumption, may accept what was refused as too long.
    pub(super) const fn forget_refusals(&mut self) {
        self.compactions.forget_refusals();
    }

    /// The model gets other content besides the conversation from here on.
    pub(super) fn policy_changed(&mut self, old: &AgentPolicy, new: &AgentPolicy) {
        self.context.policy_changed(old, new);
        self.forget_refusals();
    }

    /// Takes over the conversation of a fork's source.
    pub(super) fn taken_over(&mut self, from: Self) {
        *self = from;
        self.forget_refusals();
    }

    /// Begins a fork, whose model may get other content besides the conversation.
    pub(super) fn forked(&mut self, started: &SessionStarted) {
        self.context.forked(started);
    }

    /// The agent's plan as last stated.
    pub(super) fn plan(&self) -> Option<&Plan> {
        self.plan.as_deref()
    }

    /// The part of the log that the model sees.
    pub(super) const fn view(&self) -> View {
        self.context.view()
    }

    /// Messages, results and items that the next call sends; all that was left out counts as one.
    pub(super) fn items(&self) -> u32 {
        self.context.items()
    }

    /// Tokens of the last request, if the provider has counted them.
    pub(super) const fn last_input_tokens(&self) -> Option<u64> {
        self.context.last_input_tokens()
    }

    /// Whether a provider has counted it.
    pub(super) const fn is_counted(&self) -> bool {
        self.context.is_counted()
    }

    /// Whether the next call includes anything that the model hasn't answered yet.
    pub(super) fn has_news(&self) -> bool {
        self.context.has_news()
    }

    /// Summaries so far, by the model and by rule.
    pub(super) const fn summaries(&self) -> u32 {
        self.compactions.summaries
    }

    /// The latest replacement for what was left out; empty if nothing was.
    pub(super) fn summary(&self) -> &str {
        &self.compactions.summary
    }

    /// Whether a request for the current answer has been refused as too long already.
    pub(super) const fn was_refused(&self) -> bool {
        self.compactions.refused
    }
}
