//! What a program has consumed, and what of it was charged.

use provost_event::{Certainty, MicroDollars, Usage};

use super::said::{Cost, Used};

/// Counts what was told of one session's usage: each token is charged once, whatever the figures count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meter {
    /// All since the session's beginning, as last told by a program that counts so; kept over its processes.
    session: Usage,
    /// Of the present prompt.
    prompt: Usage,
    charged: Usage,
    /// Money spent since the session's beginning, and by this process, as last told.
    spent: MicroDollars,
    spent_here: MicroDollars,
    /// Of what was spent, what wasn't charged yet; absent where nobody tells.
    due: Option<MicroDollars>,
}

impl Meter {
    /// One that goes on where this had been told of the session.
    pub(super) fn from(session: Usage, spent: MicroDollars) -> Self {
        Self { session, spent, ..Self::default() }
    }

    /// All since the session's beginning, where the program counts so.
    pub(super) const fn session(&self) -> (Usage, MicroDollars) {
        (self.session, self.spent)
    }

    /// The session is another.
    pub(super) fn forget_session(&mut self) {
        (self.session, self.spent) = (Usage::default(), MicroDollars(0));
    }

    /// The process is another.
    pub(super) fn forget_process(&mut self) {
        self.spent_here = MicroDollars(0);
    }

    /// A prompt was given: figures of prompts begin anew.
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
        // Who says that nothing was spent may not know prices.
        if total > MicroDollars(0) {
            *self.due.get_or_insert_default() += fresh;
        }
    }

    /// What wasn't charged yet; from now on it is.
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
