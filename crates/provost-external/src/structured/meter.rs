//! A program's usage, and how much of it was charged.

use provost_event::{Certainty, MicroDollars, Usage};

use super::stream_item::{Cost, Used};

/// The usage of one session: each token is charged once, whichever period the figures cover.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meter {
    /// The total since the session's beginning, as last reported by a program that counts that way; kept over its
    /// processes.
    session: Usage,
    /// The usage of the present prompt.
    prompt: Usage,
    charged: Usage,
    /// The cost since the session's beginning and of this process, as last reported.
    spent: MicroDollars,
    spent_here: MicroDollars,
    /// The cost that wasn't charged yet; absent if the program reports none.
    due: Option<MicroDollars>,
}

impl Meter {
    /// A meter that continues from these totals of the session.
    pub(super) fn from(session: Usage, spent: MicroDollars) -> Self {
        Self { session, spent, ..Self::default() }
    }

    /// The totals since the session's beginning, if the program counts that way.
    pub(super) const fn session(&self) -> (Usage, MicroDollars) {
        (self.session, self.spent)
    }

    /// A new session has begun.
    pub(super) fn forget_session(&mut self) {
        (self.session, self.spent) = (Usage::default(), MicroDollars(0));
    }

    /// A new process has begun.
    pub(super) fn forget_process(&mut self) {
        self.spent_here = MicroDollars(0);
    }

    /// A prompt was given: per-prompt figures begin anew.
    pub(super) fn begin(&mut self) {
        (self.prompt, self.charged) = (Usage::default(), Usage::default());
    }

    pub(super) fn count(&mut self, used: Used) {
        match used {
            Used::Call(usage) => self.prompt += usage,
            Used::Prompt(usage) => self.prompt = usage,
            Used::Session(usage) => {
                self.prompt = less(usage, self.session);
                self.session = usage;
            }
        }
    }

    pub(super) fn pay(&mut self, cost: Cost) {
        let (known, total) = match cost {
            Cost::Process(total) => (&mut self.spent_here, total),
            Cost::Session(total) => (&mut self.spent, total),
        };
        let fresh = total.saturating_sub(*known);
        *known = total;
        // A program that reports zero may not know prices.
        if total > MicroDollars(0) {
            *self.due.get_or_insert_default() += fresh;
        }
    }

    /// Takes what wasn't charged yet.
    pub(super) fn charge(&mut self) -> (Usage, Option<MicroDollars>) {
        let used = less(self.prompt, self.charged);
        self.charged += used;
        (used, self.due.as_mut().map(std::mem::take))
    }
}

fn less(usage: Usage, by: Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens.saturating_sub(by.input_tokens),
        output_tokens: usage.output_tokens.saturating_sub(by.output_tokens),
        cache_read_tokens: usage.cache_read_tokens.saturating_sub(by.cache_read_tokens),
        cache_write_tokens: usage.cache_write_tokens.saturating_sub(by.cache_write_tokens),
        reasoning_tokens: usage.reasoning_tokens.saturating_sub(by.reasoning_tokens),
        certainty: Certainty::Reported,
    }
}
