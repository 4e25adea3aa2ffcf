//! How the budget of a run fared, from the run's own log.

use std::collections::{BTreeMap, BTreeSet};

use provost_engine::FINAL_SUMMARY_TOKENS;
use provost_engine::RunState;
use provost_event::{
    Budget, BudgetCharged, BudgetEntry, BudgetExhausted, BudgetReserved, Dimension, Effort, Elapsed, Entry,
    LifecycleEntry, MicroDollars, ModelPolicy, Price, Purpose,
};

use super::agent::AgentSums;
use super::limits::{Count, LimitUnit, LimitUse, ReservedUse};
use super::say::RuleUse;

/// The sums of a run's log.
#[derive(Default)]
pub(super) struct BudgetSums {
    at_first: Budget,
    /// What the policy in force has.
    of_policy: Budget,
    budget: Budget,
    /// The model of each agent.
    models: BTreeMap<u32, ModelPolicy>,
    /// Calls for summaries, final summaries and judges, whose answers are short anyway.
    asides: BTreeSet<(u32, u32)>,
    tokens: Account,
    money: Account,
    wall_time: Count,
    turns: Count,
    /// What is reserved for calls in flight.
    open: BTreeMap<(u32, u32, bool), (u64, MicroDollars)>,
}

/// One dimension of spending.
#[derive(Default)]
struct Account {
    used: u64,
    reserved: u64,
    reservations: u64,
    sums: ReservedUse,
}

impl Account {
    fn reserve(&mut self, amount: u64) {
        self.reserved = self.reserved.saturating_add(amount);
        self.sums.reserved_most = self.sums.reserved_most.max(self.reserved);
    }

    const fn charge(&mut self, reserved: u64, used: u64) {
        self.reserved = self.reserved.saturating_sub(reserved);
        self.used = self.used.saturating_add(used);
    }

    const fn refuse(&mut self) {
        self.reservations += 1;
        self.sums.refused += 1;
    }
}

impl BudgetSums {
    /// Before the run's log; the agents' are summed up.
    pub(super) fn of(agents: &[AgentSums]) -> Self {
        let models = agents.iter().map(|agent| (agent.session().agent, agent.policy().model.clone()));
        let asides =
            agents.iter().flat_map(|agent| agent.asides().iter().map(|call| (agent.session().agent, *call)));
        Self { models: models.collect(), asides: asides.collect(), ..Self::default() }
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => {
                self.at_first = started.policy.budget;
                self.budget = started.policy.budget;
                self.of_policy = started.policy.budget;
                self.clock_runs();
            }
            Entry::Lifecycle(LifecycleEntry::RunPolicyChanged(changed)) => {
                let new = changed.policy.budget;
                self.budget = self.budget.under(self.of_policy, new);
                self.of_policy = new;
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => {
                self.budget = self.budget.changed_by(resumed.budget);
                self.clock_runs();
            }
            Entry::Budget(BudgetEntry::Reserved(reserved)) => self.reserved(reserved),
            Entry::Budget(BudgetEntry::Charged(charged)) => self.charged(charged),
            Entry::Budget(BudgetEntry::Exhausted(exhausted)) => self.exhausted(exhausted),
            _ => {}
        }
    }

    fn clock_runs(&mut self) {
        if self.budget.wall_time_ms.is_some() {
            self.wall_time.asked();
        }
    }

    fn price(&self, agent: u32) -> Option<Price> {
        self.models.get(&agent).and_then(|model| model.price)
    }

    fn reserved(&mut self, entry: &BudgetReserved) {
        let agent = entry.session.agent;
        let wanted = self.models.get(&agent).map_or(u32::MAX, |model| model.output_tokens_max);
        // What a program or a hook asks for isn't known from its reservation.
        let is_turn = !entry.purpose.is_beside() && !self.asides.contains(&(agent, entry.call));
        if entry.purpose == Purpose::Turn && self.budget.turns.is_some() {
            self.turns.asked();
        }
        if is_turn && entry.output_tokens_max < wanted {
            let by_tokens = self.is_lowered_by_tokens(entry);
            let account = if by_tokens { &mut self.tokens } else { &mut self.money };
            account.sums.lowered += 1;
        }
        self.tokens.reservations += u64::from(self.budget.tokens.is_some());
        self.money.reservations += u64::from(self.budget.money.is_some() && self.price(agent).is_some());
        self.tokens.reserve(entry.tokens);
        self.money.reserve(entry.cost.0);
        let is_beside = entry.purpose.is_beside();
        self.open.insert((agent, entry.call, is_beside), (entry.tokens, entry.cost));
    }

    /// Whether it was the limit of tokens that lowered an answer's cap: to what it leaves, or to half of what it
    /// leaves besides the final summary. If only one limit is set it was that.
    fn is_lowered_by_tokens(&self, entry: &BudgetReserved) -> bool {
        let Some(limit) = self.budget.tokens else { return false };
        if self.budget.money.is_none() || self.price(entry.session.agent).is_none() {
            return true;
        }
        let output = u64::from(entry.output_tokens_max);
        let input = entry.tokens.saturating_sub(output);
        let taken = self.tokens.used.saturating_add(self.tokens.reserved).saturating_add(input);
        let left = limit.saturating_sub(taken);
        left == output
            || left.saturating_sub(input).saturating_sub(self.final_summary_tokens(entry.session.agent)) / 2
                == output
    }

    /// What is kept back for an agent's final summary.
    fn final_summary_tokens(&self, agent: u32) -> u64 {
        let thinks = self.models.get(&agent).map_or(0, |model| model.thinking_tokens(Some(Effort::Minimal)));
        u64::from(FINAL_SUMMARY_TOKENS.saturating_add(thinks))
    }

    fn charged(&mut self, entry: &BudgetCharged) {
        let is_beside = entry.purpose.is_beside();
        let key = (entry.session.agent, entry.call, is_beside);
        let (tokens, cost) = self.open.remove(&key).unwrap_or_default();
        self.tokens.charge(tokens, entry.usage.total());
        self.money.charge(cost.0, entry.cost.unwrap_or_default().0);
    }

    fn exhausted(&mut self, entry: &BudgetExhausted) {
        if entry.of.is_some() {
            // It was an agent's own limit, and the run's was not reached.
            return;
        }
        match entry.dimension() {
            Dimension::Tokens => self.tokens.refuse(),
            Dimension::Money => {
                // Tokens are checked first.
                self.tokens.reservations += u64::from(self.budget.tokens.is_some());
                self.money.refuse();
            }
            Dimension::WallTime => self.wall_time.decided += 1,
            Dimension::Turns => {
                self.turns.asked();
                self.turns.decided += 1;
            }
        }
    }

    /// The limits of the run that its log has brought to `state`, by its elapsed time.
    pub(super) fn limits(&self, state: &RunState, elapsed: Elapsed) -> Vec<LimitUse> {
        let money = |money: Option<MicroDollars>| money.map(|money| money.0);
        let limits = [
            self.tokens.limit(LimitUnit::Tokens, self.at_first.tokens, self.budget.tokens),
            self.money.limit(LimitUnit::MicroUsd, money(self.at_first.money), money(self.budget.money)),
            self.time(state.worked_ms(elapsed)),
            self.turns(state),
        ];
        limits.into_iter().map(|limit| self.with_standing(limit)).collect()
    }

    fn time(&self, worked_ms: u64) -> LimitUse {
        let (at_first, set_to) = (self.at_first.wall_time_ms, self.budget.wall_time_ms);
        LimitUse {
            name: "wall_time".to_owned(),
            unit: LimitUnit::Ms,
            set_to,
            set_to_at_first: at_first.filter(|_| at_first != set_to),
            most: worked_ms,
            consulted: self.wall_time.consulted,
            decided: self.wall_time.decided,
            reserved: None,
            standing: RuleUse::NOT_SET,
        }
    }

    /// Of all agents together.
    fn turns(&self, state: &RunState) -> LimitUse {
        let at_first = self.at_first.turns.map(u64::from);
        let set_to = self.budget.turns.map(u64::from);
        LimitUse {
            name: "turns".to_owned(),
            unit: LimitUnit::Times,
            set_to,
            set_to_at_first: at_first.filter(|_| at_first != set_to),
            most: state.ledger().turns().into(),
            consulted: self.turns.consulted,
            decided: self.turns.decided,
            reserved: None,
            standing: RuleUse::NOT_SET,
        }
    }

    fn with_standing(&self, limit: LimitUse) -> LimitUse {
        let standing = match limit.set_to {
            None => RuleUse::NOT_SET,
            Some(_) if limit.unit == LimitUnit::MicroUsd && self.has_no_price() => {
                RuleUse::unreachable("the price of the model isn't known")
            }
            Some(_) => RuleUse::of(limit.consulted, || "no model was called".to_owned()),
        };
        LimitUse { standing, ..limit }
    }

    fn has_no_price(&self) -> bool {
        !self.models.is_empty() && self.models.values().all(|model| model.price.is_none())
    }
}

impl Account {
    fn limit(&self, unit: LimitUnit, at_first: Option<u64>, set_to: Option<u64>) -> LimitUse {
        LimitUse {
            name: if unit == LimitUnit::MicroUsd { "money".to_owned() } else { "tokens".to_owned() },
            unit,
            set_to,
            set_to_at_first: at_first.filter(|_| at_first != set_to),
            most: self.used,
            consulted: self.reservations,
            decided: self.sums.lowered + self.sums.refused,
            reserved: Some(self.sums),
            standing: RuleUse::NOT_SET,
        }
    }
}
