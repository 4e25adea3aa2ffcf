//! The usage of one agent and all below it.

use provost_event::{
    Budget, Dimension, Exhausted, LimitOwner, MicroDollars, Price, Purpose, Shortfall, Usage,
};
use serde::{Deserialize, Serialize};

use super::{FINAL_SUMMARY_TOKENS, part, worst_cost};
use crate::{LimitUse, ReserveRequest};

/// The minimum useful length of an answer: with less room the budget counts as used up.
pub const USEFUL_OUTPUT_TOKENS: u64 = 256;

/// What an agent and all below it have spent and reserved. A released reservation leaves no trace; what was spent
/// only grows.
///
/// A run keeps its own. Used alone, it holds model calls of other code to a budget:
///
/// ```
/// use provost_engine::ExecutionTracker;
/// use provost_event::{Budget, Dimension, MicroDollars, Usage};
///
/// let budget = Budget::default().tokens(1_000).turns(10);
/// let call = Usage { input_tokens: 400, output_tokens: 100, ..Usage::default() };
/// let mut spent = ExecutionTracker::default();
/// assert_eq!(spent.consume(call, MicroDollars(250), budget), Ok(()));
/// let exhausted = spent.consume(call, MicroDollars(250), budget).expect_err("1,000 tokens are spent");
/// assert_eq!((exhausted.dimension, exhausted.used, exhausted.limit), (Dimension::Tokens, 1_000, 1_000));
/// assert_eq!((spent.cost, spent.turns), (MicroDollars(500), 2));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub struct ExecutionTracker {
    /// Tokens charged.
    pub tokens: u64,
    /// Money charged, as far as prices are known.
    pub cost: MicroDollars,
    /// Turns taken.
    pub turns: u32,
    /// Tokens reserved for calls that haven't been charged yet.
    pub tokens_set_aside: u64,
    /// Money reserved for them.
    pub cost_set_aside: MicroDollars,
    /// Turns that those calls open.
    pub turns_set_aside: u32,
}

/// A tracker without its fields' names: a snapshot may have many.
type Packed = (u64, MicroDollars, u32, u64, MicroDollars, u32);

impl From<Packed> for ExecutionTracker {
    fn from((tokens, cost, turns, tokens_set_aside, cost_set_aside, turns_set_aside): Packed) -> Self {
        Self { tokens, cost, turns, tokens_set_aside, cost_set_aside, turns_set_aside }
    }
}

impl From<ExecutionTracker> for Packed {
    fn from(spent: ExecutionTracker) -> Self {
        let of_tokens = spent.tokens_set_aside;
        let of_turns = spent.turns_set_aside;
        (spent.tokens, spent.cost, spent.turns, of_tokens, spent.cost_set_aside, of_turns)
    }
}

impl ExecutionTracker {
    /// Charges a model call with this usage and cost, as one turn.
    ///
    /// # Errors
    /// The first limit of `budget` of which nothing is left: tokens, money, turns. The call is charged all the same: it
    /// was made. Time isn't tracked here.
    pub fn consume(&mut self, usage: Usage, cost: MicroDollars, budget: Budget) -> Result<(), Exhausted> {
        self.charge(usage.total(), cost, 1);
        let of = |dimension, used: u64, limit: Option<u64>| {
            limit.filter(|limit| used >= *limit).map(|limit| Exhausted::new(dimension, used, limit))
        };
        let exhausted = of(Dimension::Tokens, self.tokens, budget.tokens)
            .or_else(|| of(Dimension::Money, self.cost.0, budget.money.map(|limit| limit.0)))
            .or_else(|| of(Dimension::Turns, self.turns.into(), budget.turns.map(u64::from)));
        exhausted.map_or(Ok(()), Err)
    }

    /// The limit of tokens or money that was passed.
    pub(super) fn over(&self, (budget, owner): (Budget, LimitOwner)) -> Option<Exhausted> {
        let of = |dimension, used: u64, limit: Option<u64>| {
            let limit = limit.filter(|limit| used > *limit)?;
            Some(Exhausted { owner, ..Exhausted::new(dimension, used, limit) })
        };
        let money = budget.money.map(|limit| limit.0);
        of(Dimension::Tokens, self.tokens, budget.tokens).or_else(|| of(Dimension::Money, self.cost.0, money))
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The charges, without reservations.
    pub(super) fn charged(self) -> Self {
        let Self { tokens, cost, turns, .. } = self;
        Self { tokens, cost, turns, ..Self::default() }
    }

    /// The charges after `before`, and all reservations.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(before.tokens),
            cost: self.cost.saturating_sub(before.cost),
            turns: self.turns.saturating_sub(before.turns),
            ..self
        }
    }

    pub(super) fn set_aside(&mut self, tokens: u64, cost: MicroDollars, turns: u32) {
        self.turns_set_aside = self.turns_set_aside.saturating_add(turns);
        self.tokens_set_aside = self.tokens_set_aside.saturating_add(tokens);
        self.cost_set_aside += cost;
    }

    pub(super) fn give_back(&mut self, tokens: u64, cost: MicroDollars, turns: u32) {
        self.turns_set_aside = self.turns_set_aside.saturating_sub(turns);
        self.tokens_set_aside = self.tokens_set_aside.saturating_sub(tokens);
        self.cost_set_aside = self.cost_set_aside.saturating_sub(cost);
    }

    pub(super) fn charge(&mut self, tokens: u64, cost: MicroDollars, turns: u32) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.cost += cost;
        self.turns = self.turns.saturating_add(turns);
    }

    /// The output cap that fits the remainder of every limit of `budget`, whose owner is `owner`; with
    /// `opens_turn` the call takes a turn that hasn't been counted yet.
    ///
    /// # Errors
    /// The limit that leaves no useful one.
    pub(super) fn fitting_output(
        &self,
        (budget, owner): (Budget, LimitOwner),
        request: &ReserveRequest,
        opens_turn: bool,
    ) -> Result<u64, Exhausted> {
        let wanted = u64::from(request.output_tokens_max);
        let floor = wanted.min(USEFUL_OUTPUT_TOKENS);
        let mut output = wanted;
        if let Some(limit) = budget.turns.filter(|limit| opens_turn && self.turns_taken() >= *limit) {
            return Err(Exhausted { owner, ..self.at_turns(limit) });
        }
        if let Some(limit) = budget.tokens {
            let fits = self.output_for_tokens(limit, request).filter(|fits| *fits >= floor);
            let exhausted = || Exhausted { owner, ..self.at_tokens(limit, request) };
            output = output.min(fits.ok_or_else(exhausted)?);
        }
        if let Some(limit) = budget.money
            && let Some(price) = request.price
        {
            let fits = self.output_for_money(limit, price, request).filter(|fits| *fits >= floor);
            let exhausted = || Exhausted { owner, ..self.at_money(limit, price, request) };
            output = output.min(fits.ok_or_else(exhausted)?);
        }
        Ok(output)
    }

    /// The longest answer that `limit` tokens leave room for; `None` if there is no room for the request itself.
    fn output_for_tokens(&self, limit: u64, request: &ReserveRequest) -> Option<u64> {
        let taken = self.tokens.saturating_add(self.tokens_set_aside).saturating_add(request.input_tokens);
        let left = limit.checked_sub(taken)?;
        if !request.keeps_back {
            return Some(granted(left, request));
        }
        let left = left.checked_sub(kept_for_judges(request.kept_tokens, limit, request))?;
        Some(left.checked_sub(summary_tokens(request))? / 2)
    }

    /// The same for money.
    fn output_for_money(&self, limit: MicroDollars, price: Price, request: &ReserveRequest) -> Option<u64> {
        let price = price.for_prompt(request.input_tokens);
        let taken = self.cost + self.cost_set_aside + worst_cost(request, 0);
        let left = limit.0.checked_sub(taken.0)?;
        if !request.keeps_back {
            return Some(granted(price.output_tokens_for(MicroDollars(left)), request));
        }
        let left = left.checked_sub(kept_for_judges(request.kept_cost.0, limit.0, request))?;
        let left = left.checked_sub(worst_cost(request, final_summary_tokens(request)).0)?;
        Some(price.output_tokens_for(MicroDollars(left)) / 2)
    }

    /// Turns taken and reserved.
    pub(super) const fn turns_taken(&self) -> u32 {
        self.turns.saturating_add(self.turns_set_aside)
    }

    fn at_turns(&self, limit: u32) -> Exhausted {
        Exhausted::new(Dimension::Turns, self.turns_taken().into(), limit.into())
    }

    fn at_tokens(&self, limit: u64, request: &ReserveRequest) -> Exhausted {
        let keeps = |amount: u64| if request.keeps_back { amount } else { 0 };
        // The final summary's request includes this answer again.
        let floor = u64::from(request.output_tokens_max).min(USEFUL_OUTPUT_TOKENS);
        let shortfall = Shortfall {
            needs: request.input_tokens.saturating_add(floor),
            reserved: self.tokens_set_aside,
            summary: keeps(summary_tokens(request).saturating_add(floor)),
            judges: keeps(kept_for_judges(request.kept_tokens, limit, request)),
        };
        Exhausted { shortfall: Some(shortfall), ..Exhausted::new(Dimension::Tokens, self.tokens, limit) }
    }

    fn at_money(&self, limit: MicroDollars, price: Price, request: &ReserveRequest) -> Exhausted {
        let keeps = |amount: u64| if request.keeps_back { amount } else { 0 };
        let floor = request.output_tokens_max.min(u32::try_from(USEFUL_OUTPUT_TOKENS).unwrap_or(u32::MAX));
        let answer = price.for_prompt(request.input_tokens).output_cost(floor.into()).0;
        let shortfall = Shortfall {
            needs: worst_cost(request, floor).0,
            reserved: self.cost_set_aside.0,
            summary: keeps(worst_cost(request, final_summary_tokens(request)).0.saturating_add(answer)),
            judges: keeps(kept_for_judges(request.kept_cost.0, limit.0, request)),
        };
        Exhausted { shortfall: Some(shortfall), ..Exhausted::new(Dimension::Money, self.cost.0, limit.0) }
    }

    /// The limits of `budget` that are at least half used.
    pub(super) fn limits_near(&self, budget: Budget, owner: LimitOwner) -> impl Iterator<Item = LimitUse> {
        let of = |dimension, used: u64, limit: Option<u64>| {
            limit.map(|limit| LimitUse { dimension, used, limit, owner })
        };
        let all = [
            of(Dimension::Tokens, self.tokens, budget.tokens),
            of(Dimension::Money, self.cost.0, budget.money.map(|limit| limit.0)),
            of(Dimension::Turns, self.turns.into(), budget.turns.map(u64::from)),
        ];
        all.into_iter().flatten().filter(|limit| limit.percent() >= LimitUse::NEAR)
    }

    /// Whether no further turn fits.
    pub(super) fn is_at_last_turn(&self, budget: Budget) -> bool {
        budget.turns.is_some_and(|limit| self.turns_taken() >= limit)
    }
}

/// Whether the call takes a turn that isn't among the agent's `counted` ones.
pub(super) const fn opens_turn(purpose: Purpose, turn: u32, counted: u32) -> bool {
    matches!(purpose, Purpose::Turn) && turn > counted
}

/// Maximum tokens of the final summary, including the thinking before it.
const fn final_summary_tokens(request: &ReserveRequest) -> u32 {
    FINAL_SUMMARY_TOKENS.saturating_add(request.thinking_tokens)
}

/// The final summary needs this call's request, its answer, and room for itself.
fn summary_tokens(request: &ReserveRequest) -> u64 {
    request.input_tokens.saturating_add(u64::from(final_summary_tokens(request)))
}

/// The part of `left` output tokens that a call gets. A program makes calls side by side, and so do hooks, and the answers tend to be
/// much shorter than the cap: half is left for others while that is useful.
fn granted(left: u64, request: &ReserveRequest) -> u64 {
    let floor = u64::from(request.output_tokens_max).min(USEFUL_OUTPUT_TOKENS);
    match request.purpose {
        Purpose::External | Purpose::Hook => (left / 2).max(left.min(floor)),
        Purpose::Turn | Purpose::Summary | Purpose::FinalSummary | Purpose::Judge => left,
    }
}

/// The reserve for judges, at most their part of the limit.
fn kept_for_judges(kept: u64, limit: u64, request: &ReserveRequest) -> u64 {
    kept.min(part(limit, request.judges_percent))
}
