//! What a run and each of its agents have spent and set aside, and what that leaves of their budgets.

mod calibration;
mod tracker;

use std::collections::BTreeMap;

use provost_event::{
    Budget, BudgetCharged, BudgetReserved, Certainty, Dimension, Exhausted, LimitOwner, MicroDollars,
    Purpose, SessionId, Usage,
};
use serde::{Deserialize, Serialize};

pub use tracker::{ExecutionTracker, USEFUL_OUTPUT_TOKENS};

use super::AgentNumber;
use crate::{LimitUse, ReserveRequest};
use calibration::Calibration;
use tracker::opens_turn;

/// Tokens that are kept back for an agent's last words at a limit, besides what the conversation takes.
pub const LAST_WORDS_TOKENS: u32 = 512;

/// What a run and each of its agents have spent and set aside. A call counts for its agent, for every agent above that
/// and for the run; to note one takes time by how deep the agent is, however many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Tokens charged.
    pub tokens: u64,
    /// Money charged, as far as prices are known.
    pub cost: MicroDollars,
    /// What of that is our estimate, since calls ended without the provider's final report.
    #[serde(default, skip_serializing_if = "Uncertain::is_none")]
    pub estimated: Uncertain,
    /// What of that was set aside for calls that were lost to a crash: nobody knows what they took.
    #[serde(default, skip_serializing_if = "Uncertain::is_none")]
    pub unconfirmed: Uncertain,
    run: ExecutionTracker,
    /// What the judges of all agents have taken of that.
    #[serde(default, skip_serializing_if = "ExecutionTracker::is_empty")]
    judges: ExecutionTracker,
    agents: BTreeMap<AgentNumber, Account>,
    /// How what providers count compares with our estimates.
    #[serde(default)]
    calibration: Calibration,
}

/// A part of what was charged that no provider has reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncertain {
    /// Tokens.
    pub tokens: u64,
    /// Money, as far as prices are known.
    pub cost: MicroDollars,
}

impl Uncertain {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: self.cost + other.cost }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// One agent's. A snapshot may have many, so that what is empty is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Account {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<AgentNumber>,
    #[serde(skip_serializing_if = "is_unlimited")]
    budget: Budget,
    /// With what those below it took.
    spent: ExecutionTracker,
    /// What of it was spent before the agent was last asked: its budget counts from there.
    #[serde(default, skip_serializing_if = "ExecutionTracker::is_empty")]
    spent_before: ExecutionTracker,
    own_turns: u32,
    /// By call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    reserved: BTreeMap<u32, Reservation>,
}

impl Account {
    /// What its budget counts.
    fn since_asked(&self) -> ExecutionTracker {
        self.spent.since(self.spent_before)
    }
}

fn is_unlimited(budget: &Budget) -> bool {
    *budget == Budget::default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Reservation {
    tokens: u64,
    cost: MicroDollars,
    output_tokens_max: u32,
    #[serde(default)]
    purpose: Purpose,
    /// 1 if it opens a turn.
    #[serde(default)]
    turns: u32,
    #[serde(default)]
    estimated: u64,
}

/// A call that doesn't fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The limit that leaves no useful answer.
    pub exhausted: Exhausted,
    /// Whose: the agent's own or one's above it; `None` is the run's.
    pub by: Option<AgentNumber>,
    /// Whether it is the judges' part of the run's limit that is used up, and not the limit.
    pub is_judges: bool,
}

impl Ledger {
    /// Turns of all agents.
    #[must_use]
    pub const fn turns(&self) -> u32 {
        self.run.turns
    }

    /// What of what was charged no provider has reported: estimated, or lost to a crash.
    #[must_use]
    pub fn uncertain(&self) -> Uncertain {
        self.estimated.plus(self.unconfirmed)
    }

    /// What the run has spent and set aside.
    #[must_use]
    pub const fn run(&self) -> &ExecutionTracker {
        &self.run
    }

    /// What an agent and all below it have spent and set aside; absent for one that was never heard of.
    #[must_use]
    pub fn spent(&self, agent: AgentNumber) -> Option<&ExecutionTracker> {
        self.agents.get(&agent).map(|account| &account.spent)
    }

    /// Turns that an agent took itself.
    #[must_use]
    pub fn own_turns(&self, agent: AgentNumber) -> u32 {
        self.agents.get(&agent).map_or(0, |account| account.own_turns)
    }

    /// Takes in an agent with what it and all below it may spend together. What it takes counts for its parent as well.
    /// An agent that is known already keeps its parent and gets the budget. One that nobody takes in before its first
    /// call has no parent and no budget of its own.
    pub fn admit(&mut self, agent: AgentNumber, parent: Option<AgentNumber>, budget: Budget) {
        // Agents come after those above them, so that no chain ever closes.
        if let Some(parent) = parent {
            self.agents.entry(parent).or_default();
        }
        self.agents.entry(agent).or_insert_with(|| Account { parent, ..Account::default() }).budget = budget;
    }

    /// An agent is asked again: its budget counts from here.
    pub fn asked_again(&mut self, agent: AgentNumber) {
        if let Some(account) = self.agents.get_mut(&agent) {
            account.spent_before = account.spent.charged();
        }
    }

    /// Notes what is set aside for a call, in place of what already was.
    pub fn reserve(&mut self, entry: &BudgetReserved) {
        let (agent, call) = (entry.session.agent, entry.call);
        self.give_back(agent, call);
        let turns = u32::from(opens_turn(entry.purpose, entry.turn, self.own_turns(agent)));
        let reservation = Reservation {
            tokens: entry.tokens,
            cost: entry.cost,
            output_tokens_max: entry.output_tokens_max,
            purpose: entry.purpose,
            turns,
            estimated: entry.estimated_tokens,
        };
        if reservation.purpose == Purpose::Judge {
            self.judges.set_aside(entry.tokens, entry.cost, 0);
        }
        self.agents.entry(agent).or_default().reserved.insert(call, reservation);
        self.each_up_from(agent, |spent| spent.set_aside(entry.tokens, entry.cost, turns));
    }

    /// Notes what a call took, and gives back what was set aside for it, if anything was.
    pub fn charge(&mut self, entry: &BudgetCharged) {
        let agent = entry.session.agent;
        let reserved = self.give_back(agent, entry.call);
        let purpose = reserved.map_or(Purpose::Turn, |reserved| reserved.purpose);
        let is_judges = purpose == Purpose::Judge;
        if let Some(reserved) = reserved.filter(|_| entry.usage.certainty.is_reported()) {
            self.calibration.note(&entry.model, is_judges, reserved.estimated, entry.usage.prompt_tokens());
        }
        let account = self.agents.entry(agent).or_default();
        // A summary or a judge opens no turn of its own.
        let turns = match purpose {
            Purpose::Turn => entry.turn.saturating_sub(account.own_turns),
            Purpose::Summary | Purpose::WrapUp | Purpose::Judge => 0,
        };
        account.own_turns = account.own_turns.saturating_add(turns);
        let (tokens, cost) = (entry.usage.total(), entry.cost.unwrap_or_default());
        self.each_up_from(agent, |spent| spent.charge(tokens, cost, turns));
        if is_judges {
            self.judges.charge(tokens, cost, 0);
        }
        (self.tokens, self.cost) = (self.run.tokens, self.run.cost);
        let uncertain = match entry.usage.certainty {
            Certainty::Reported => return,
            Certainty::Estimated => &mut self.estimated,
            Certainty::Unconfirmed => &mut self.unconfirmed,
        };
        uncertain.tokens = uncertain.tokens.saturating_add(tokens);
        uncertain.cost += cost;
    }

    /// The agent calls no model for now: what was set aside for calls of it that weren't made is free again.
    pub fn rests(&mut self, agent: AgentNumber) {
        let calls =
            self.agents.get(&agent).map(|account| account.reserved.keys().copied().collect::<Vec<_>>());
        for call in calls.into_iter().flatten() {
            self.give_back(agent, call);
        }
    }

    /// Returns what was set aside.
    fn give_back(&mut self, agent: AgentNumber, call: u32) -> Option<Reservation> {
        let reserved = self.agents.get_mut(&agent).and_then(|account| account.reserved.remove(&call))?;
        let Reservation { tokens, cost, purpose, turns, .. } = reserved;
        self.each_up_from(agent, |spent| spent.give_back(tokens, cost, turns));
        if purpose == Purpose::Judge {
            self.judges.give_back(tokens, cost, 0);
        }
        Some(reserved)
    }

    /// The agent's numbers, those of all above it, and the run's.
    fn each_up_from(&mut self, agent: AgentNumber, change: impl Fn(&mut ExecutionTracker)) {
        let mut next = Some(agent);
        while let Some(account) = next.and_then(|agent| self.agents.get_mut(&agent)) {
            change(&mut account.spent);
            next = account.parent;
        }
        change(&mut self.run);
    }

    /// Whether something is set aside for a session's call.
    #[must_use]
    pub fn is_reserved(&self, session: SessionId, call: u32) -> bool {
        self.reservation(session, call).is_some()
    }

    /// The output cap that is set aside for a session's call with this purpose, if any is.
    #[must_use]
    pub fn reserved_output(&self, session: SessionId, call: u32, purpose: Purpose) -> Option<u32> {
        let reservation = self.reservation(session, call).filter(|reserved| reserved.purpose == purpose)?;
        Some(reservation.output_tokens_max)
    }

    /// What a call took of which nobody knows more than that so much was set aside for it.
    #[must_use]
    pub fn unconfirmed_usage(&self, session: SessionId, call: u32) -> Option<(Usage, MicroDollars)> {
        let reserved = self.reservation(session, call)?;
        let output_tokens = u64::from(reserved.output_tokens_max);
        let input_tokens = reserved.tokens.saturating_sub(output_tokens);
        Some((Usage { input_tokens, output_tokens, ..Usage::unconfirmed() }, reserved.cost))
    }

    /// Whether something is set aside for a call of the agent.
    pub(super) fn has_reserved(&self, agent: AgentNumber) -> bool {
        self.agents.get(&agent).is_some_and(|account| !account.reserved.is_empty())
    }

    fn reservation(&self, session: SessionId, call: u32) -> Option<&Reservation> {
        self.agents.get(&session.agent)?.reserved.get(&call)
    }

    /// `request` by what providers have reported in this run: an agent's first request, and every judge's, is taken
    /// for as much as earlier ones to that model came to.
    #[must_use]
    pub fn calibrated(&self, request: ReserveRequest) -> ReserveRequest {
        let is_judges = request.purpose == Purpose::Judge;
        let judges = |amount| self.calibration.of_judges(amount);
        let counted = self.calibration.of(&request.model, is_judges, request.estimated_tokens);
        ReserveRequest {
            input_tokens: match request.is_counted {
                true => request.input_tokens,
                false => request.input_tokens.max(counted),
            },
            kept_tokens: judges(request.kept_tokens),
            kept_cost: MicroDollars(judges(request.kept_cost.0)),
            ..request
        }
    }

    /// The output cap that fits what is left of every limit: the agent's own, those of the agents above it, and the
    /// run's.
    ///
    /// # Errors
    /// The first limit, in that order, that leaves no useful cap.
    pub fn fitting_output(&self, run_budget: Budget, request: &ReserveRequest) -> Result<u32, Refusal> {
        let agent = request.session.agent;
        let opens = opens_turn(request.purpose, request.turn, self.own_turns(agent));
        let mut output = u64::from(request.output_tokens_max);
        for (by, account) in self.up_from(agent) {
            let limit = (account.budget, LimitOwner::Agent);
            let fits = account.since_asked().fitting_output(limit, request, opens);
            output = output.min(fits.map_err(|exhausted| Refusal {
                exhausted,
                by: Some(by),
                is_judges: false,
            })?);
        }
        if request.purpose == Purpose::Judge {
            let limit = (share(run_budget, request.judges_percent), LimitOwner::Run);
            let fits = self.judges.fitting_output(limit, request, false);
            output =
                output.min(fits.map_err(|exhausted| Refusal { exhausted, by: None, is_judges: true })?);
        }
        let fits = self.run.fitting_output((run_budget, LimitOwner::Run), request, opens);
        output = output.min(fits.map_err(|exhausted| Refusal { exhausted, by: None, is_judges: false })?);
        Ok(u32::try_from(output).unwrap_or(u32::MAX))
    }

    /// Of each dimension the limit of an agent, of those above it or of the run that is nearest to its end, where half
    /// of it is used or more.
    #[must_use]
    pub fn limits_near(&self, run_budget: Budget, agent: AgentNumber) -> Vec<LimitUse> {
        let mut nearest = BTreeMap::<Dimension, LimitUse>::new();
        let own = self.up_from(agent);
        let own = own.flat_map(|(_, account)| {
            account.since_asked().limits_near(account.budget, LimitOwner::Agent).collect::<Vec<_>>()
        });
        for limit in own.chain(self.run.limits_near(run_budget, LimitOwner::Run)) {
            let known = nearest.entry(limit.dimension).or_insert(limit);
            if limit.percent() > known.percent() {
                *known = limit;
            }
        }
        nearest.into_values().collect()
    }

    /// Whether no turn fits any more beside those that are taken or set aside, for `agent` or by the run.
    #[must_use]
    pub fn is_at_last_turn(&self, run_budget: Budget, agent: AgentNumber) -> bool {
        self.run.is_at_last_turn(run_budget)
            || self.up_from(agent).any(|(_, account)| account.since_asked().is_at_last_turn(account.budget))
    }

    /// An agent's account and those of all above it.
    fn up_from(&self, agent: AgentNumber) -> impl Iterator<Item = (AgentNumber, &Account)> {
        let one = |agent: AgentNumber| Some((agent, self.agents.get(&agent)?));
        std::iter::successors(one(agent), move |(_, account)| one(account.parent?))
    }
}

/// So many hundredths of each limit.
fn share(budget: Budget, percent: u8) -> Budget {
    let of = |limit| part(limit, percent);
    Budget {
        tokens: budget.tokens.map(of),
        money: budget.money.map(|limit| MicroDollars(of(limit.0))),
        turns: None,
        ..budget
    }
}

/// So many hundredths of a limit.
fn part(limit: u64, percent: u8) -> u64 {
    limit.saturating_mul(u64::from(percent)) / 100
}

/// What the call costs if nothing comes from a cache and the answer is as long as it may be.
pub(super) fn worst_cost(request: &ReserveRequest, output_tokens: u32) -> MicroDollars {
    let usage = Usage {
        input_tokens: request.input_tokens,
        output_tokens: u64::from(output_tokens),
        ..Usage::default()
    };
    request.price.map(|price| price.worst().cost(usage)).unwrap_or_default()
}
