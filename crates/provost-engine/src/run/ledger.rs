//! What a run has spent and set aside, and what that leaves of its budget.

use std::collections::BTreeMap;

use provost_event::{
    Budget, BudgetCharged, BudgetReserved, Dimension, Exhausted, MicroDollars, Price, SessionId, Usage,
};

use serde::{Deserialize, Serialize};

use crate::ReserveRequest;

/// An answer shorter than this isn't worth a call: the budget counts as used up instead.
const USEFUL_OUTPUT_TOKENS: u64 = 256;
/// Tokens that are kept back for an agent's last words at a limit, besides what the conversation takes.
pub const LAST_WORDS_TOKENS: u32 = 512;

/// What a run has spent and set aside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Tokens charged.
    pub tokens: u64,
    /// Money charged, as far as prices are known.
    pub cost: MicroDollars,
    turns: BTreeMap<u32, u32>,
    /// By agent and call.
    reserved: BTreeMap<u32, BTreeMap<u32, Reservation>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Reservation {
    tokens: u64,
    cost: MicroDollars,
    output_tokens_max: u32,
}

impl Ledger {
    /// Turns of all agents.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.turns.values().fold(0, |sum, turns| sum.saturating_add(*turns))
    }

    fn reserved_tokens(&self) -> u64 {
        self.reservations().map(|r| r.tokens).fold(0, u64::saturating_add)
    }

    fn reserved_cost(&self) -> MicroDollars {
        self.reservations().fold(MicroDollars(0), |sum, r| sum + r.cost)
    }

    fn reservations(&self) -> impl Iterator<Item = &Reservation> {
        self.reserved.values().flat_map(BTreeMap::values)
    }

    pub(super) fn reserve(&mut self, entry: &BudgetReserved) {
        let reservation = Reservation {
            tokens: entry.tokens,
            cost: entry.cost,
            output_tokens_max: entry.output_tokens_max,
        };
        self.reserved.entry(entry.session.agent).or_default().insert(entry.call, reservation);
    }

    pub(super) fn charge(&mut self, entry: &BudgetCharged) {
        if let Some(calls) = self.reserved.get_mut(&entry.session.agent) {
            calls.remove(&entry.call);
        }
        self.tokens = self.tokens.saturating_add(entry.usage.total());
        self.cost += entry.cost.unwrap_or_default();
        let turns = self.turns.entry(entry.session.agent).or_default();
        *turns = (*turns).max(entry.turn);
    }

    /// The output cap that is set aside for a session's call, if any is.
    pub(super) fn reserved_output(&self, session: SessionId, call: u32) -> Option<u32> {
        Some(self.reserved.get(&session.agent)?.get(&call)?.output_tokens_max)
    }

    /// The output cap that fits what is left of every limit of `budget`.
    ///
    /// # Errors
    /// The limit that leaves no useful one.
    pub(super) fn fitting_output(&self, budget: Budget, request: &ReserveRequest) -> Result<u32, Exhausted> {
        let wanted = u64::from(request.output_tokens_max);
        let floor = wanted.min(USEFUL_OUTPUT_TOKENS);
        let mut output = wanted;
        if let Some(limit) = budget.tokens {
            let taken =
                self.tokens.saturating_add(self.reserved_tokens()).saturating_add(request.input_tokens);
            let left = limit.saturating_sub(taken);
            // Last words need what this call was asked, what it answers, and room for themselves.
            let last_words = request.input_tokens.saturating_add(u64::from(LAST_WORDS_TOKENS));
            let fits = if request.keeps_back { left.saturating_sub(last_words) / 2 } else { left };
            output = output.min(fits);
            if output < floor {
                return Err(Exhausted { dimension: Dimension::Tokens, used: self.tokens, limit });
            }
        }
        if let (Some(limit), Some(price)) = (budget.money, request.price) {
            let price = price.for_prompt(request.input_tokens);
            let taken = self.cost + self.reserved_cost() + worst_cost(request, 0);
            let left = limit.saturating_sub(taken);
            let last_words = worst_cost(request, LAST_WORDS_TOKENS);
            let fits = if request.keeps_back {
                price.output_tokens_for(left.saturating_sub(last_words)) / 2
            } else {
                price.output_tokens_for(left)
            };
            output = output.min(fits);
            if output < floor {
                return Err(Exhausted { dimension: Dimension::Money, used: self.cost.0, limit: limit.0 });
            }
        }
        Ok(u32::try_from(output).unwrap_or(u32::MAX))
    }
}

/// What the call costs if nothing comes from a cache and the answer is as long as it may be.
pub(super) fn worst_cost(request: &ReserveRequest, output_tokens: u32) -> MicroDollars {
    let worst = |price: Price| {
        let dearest = Price { input: price.input.max(price.cache_write), ..price };
        dearest.cost(Usage {
            input_tokens: request.input_tokens,
            output_tokens: u64::from(output_tokens),
            ..Usage::default()
        })
    };
    request.price.map(worst).unwrap_or_default()
}
