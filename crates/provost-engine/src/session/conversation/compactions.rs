//! How a conversation has been shortened so far.

use provost_event::{Compacted, CompactionKind, Purpose};
use serde::{Deserialize, Serialize};

/// A compaction that frees a smaller percentage is a poor one; after the maximum of poor ones in a row the window
/// is exhausted.
pub(super) const POOR_BELOW: u64 = 5;
const POOR_MAX: u32 = 3;

/// The hooks' decision on the compaction that is due.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CompactionConsent {
    #[default]
    Unasked,
    Given,
    Refused {
        hook: String,
        reason: String,
        /// The compaction couldn't be postponed when they were called. Otherwise they are called once more when it
        /// can't.
        is_last: bool,
    },
}

/// How the conversation has been shortened so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Compactions {
    /// Summaries so far, by the model and by rule.
    pub(super) summaries: u32,
    /// Compactions in a row that freed next to nothing.
    poor: u32,
    /// The hooks' decision on the next one.
    pub(super) consent: CompactionConsent,
    /// The compaction that they were called about can't be postponed.
    pub(super) is_last_question: bool,
    /// The provider has refused the request as too long.
    pub(super) overflow: bool,
    /// The estimate of the smallest request that was refused as too long: the upper bound if the window is
    /// unknown.
    pub(super) refused_at: Option<u64>,
    /// A request for the current answer has been refused already.
    pub(super) refused: bool,
    /// A summary was requested, and its answer is unusable.
    pub(super) useless: bool,
    /// One was made for the current answer, other than a trim.
    pub(super) made: bool,
    /// The latest replacement for what was left out.
    pub(super) summary: String,
}

impl Compactions {
    /// A request that was refused as too long may be accepted after a resumption or by another model.
    pub(super) const fn forget_refusals(&mut self) {
        self.overflow = false;
        self.refused = false;
        self.refused_at = None;
    }

    /// The provider refused a request of `tokens`, by estimate, as too long.
    pub(super) fn refused(&mut self, tokens: u64, purpose: Purpose) {
        self.overflow = true;
        self.refused_at = Some(self.refused_at.map_or(tokens, |known| known.min(tokens)));
        self.refused |= purpose == Purpose::Turn;
    }

    /// The model has answered: a request that was refused before fits after all.
    pub(super) const fn answered(&mut self) {
        if self.overflow {
            self.forget_refusals();
        }
        self.made = false;
        self.refused = false;
    }

    /// Returns whether hooks are to be notified: of one compaction for each answer, because their reminders may in
    /// turn require another.
    pub(super) fn made(&mut self, compacted: &Compacted) -> bool {
        let freed = compacted.tokens_before.saturating_sub(compacted.tokens_after);
        let is_poor = freed.saturating_mul(100) < compacted.tokens_before.saturating_mul(POOR_BELOW);
        self.poor = if is_poor { self.poor.saturating_add(1) } else { 0 };
        self.consent = CompactionConsent::Unasked;
        self.overflow = false;
        self.useless = false;
        if !compacted.through.is_start() {
            self.summary.clone_from(&compacted.summary);
        }
        if compacted.how == CompactionKind::Trim {
            return false;
        }
        self.summaries = self.summaries.saturating_add(1);
        !std::mem::replace(&mut self.made, true)
    }

    /// Whether the last ones freed next to nothing.
    pub(super) const fn are_poor(&self) -> bool {
        self.poor >= POOR_MAX
    }
}
