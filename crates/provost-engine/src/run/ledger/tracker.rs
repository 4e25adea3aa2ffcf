//! What one agent and all below it have taken.

use provost_event::{Budget, Dimension, Exhausted, MicroDollars, Price};
use serde::{Deserialize, Serialize};

use super::{LAST_WORDS_TOKENS, part, worst_cost};
use crate::ReserveRequest;

/// An answer shorter than this isn't worth a call: the budget counts as used up instead.
pub const USEFUL_OUTPUT_TOKENS: u64 = 256;

/// What an agent and all below it have spent and set aside. What was set aside and is given back leaves no trace;
/// what was spent only grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub struct ExecutionTracker {
    /// Tokens charged.
    pub tokens: u64,
    /// Money charged, as far as prices are known.
    pub cost: MicroDollars,
    /// Turns taken.
    pub turns: u32,
    /// Tokens set aside for calls that haven't been charged yet.
    pub tokens_set_aside: u64,
    /// Money set aside for them.
    pub cost_set_aside: MicroDollars,
}

/// One without its fields' names: a snapshot may have many.
type Packed = (u64, MicroDollars, u32, u64, MicroDollars);

impl From<Packed> for ExecutionTracker {
    fn from((tokens, cost, turns, tokens_set_aside, cost_set_aside): Packed) -> Self {
        Self { tokens, cost, turns, tokens_set_aside, cost_set_aside }
    }
}

impl From<ExecutionTracker> for Packed {
    fn from(spent: ExecutionTracker) -> Self {
        (spent.tokens, spent.cost, spent.turns, spent.tokens_set_aside, spent.cost_set_aside)
    }
}

impl ExecutionTracker {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn set_aside(&mut self, tokens: u64, cost: MicroDollars) {
        self.tokens_set_aside = self.tokens_set_aside.saturating_add(tokens);
        self.cost_set_aside += cost;
    }

    pub(super) fn give_back(&mut self, tokens: u64, cost: MicroDollars) {
        self.tokens_set_aside = self.tokens_set_aside.saturating_sub(tokens);
        self.cost_set_aside = self.cost_set_aside.saturating_sub(cost);
    }

    pub(super) fn charge(&mut self, tokens: u64, cost: MicroDollars, turns: u32) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost += cost;
        self.turns = self.turns.saturating_add(turns);
    }

    /// The output cap that fits what is left of every limit of `budget`.
    ///
    /// # Errors
    /// The limit that leaves no useful one.
    pub(super) fn fitting_output(&self, budget: Budget, request: &ReserveRequest) -> Result<u64, Exhausted> {
        let wanted = u64::from(request.output_tokens_max);
        let floor = wanted.min(USEFUL_OUTPUT_TOKENS);
        let mut output = wanted;
        if let Some(limit) = budget.tokens {
            let fits = self.output_for_tokens(limit, request).filter(|fits| *fits >= floor);
            output = output.min(fits.ok_or(self.at_tokens(limit))?);
        }
        if let (Some(limit), Some(price)) = (budget.money, request.price) {
            let fits = self.output_for_money(limit, price, request).filter(|fits| *fits >= floor);
            output = output.min(fits.ok_or(self.at_money(limit))?);
        }
        Ok(output)
    }

    /// The longest answer that `limit` tokens leave room for; `None` if there is no room for the request itself.
    fn output_for_tokens(&self, limit: u64, request: &ReserveRequest) -> Option<u64> {
        let taken = self.tokens.saturating_add(self.tokens_set_aside).saturating_add(request.input_tokens);
        let left = limit.checked_sub(taken)?;
        if !request.keeps_back {
            return Some(left);
        }
        // Last words need what this call was asked, what it answers, and room for themselves.
        let last_words = request.input_tokens.saturating_add(u64::from(LAST_WORDS_TOKENS));
        let left = left.checked_sub(request.kept_tokens.min(part(limit, request.judges_percent)))?;
        Some(left.checked_sub(last_words)? / 2)
    }

    /// The same for money.
    fn output_for_money(&self, limit: MicroDollars, price: Price, request: &ReserveRequest) -> Option<u64> {
        let price = price.for_prompt(request.input_tokens);
        let taken = self.cost + self.cost_set_aside + worst_cost(request, 0);
        let left = limit.0.checked_sub(taken.0)?;
        if !request.keeps_back {
            return Some(price.output_tokens_for(MicroDollars(left)));
        }
        let last_words = worst_cost(request, LAST_WORDS_TOKENS);
        let left = left.checked_sub(request.kept_cost.0.min(part(limit.0, request.judges_percent)))?;
        let left = left.checked_sub(last_words.0)?;
        Some(price.output_tokens_for(MicroDollars(left)) / 2)
    }

    const fn at_tokens(&self, limit: u64) -> Exhausted {
        Exhausted { dimension: Dimension::Tokens, used: self.tokens, limit }
    }

    const fn at_money(&self, limit: MicroDollars) -> Exhausted {
        Exhausted { dimension: Dimension::Money, used: self.cost.0, limit: limit.0 }
    }
}
