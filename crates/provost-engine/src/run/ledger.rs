//! What a run and each of its agents have spent and reserved, and what remains of their budgets.

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

/// Tokens that are kept back for an agent's final summary, besides the conversation's own.
pub const FINAL_SUMMARY_TOKENS: u32 = 512;

/// What a run and each of its agents have spent and reserved. A call counts for its agent, for every agent above
/// and for the run. Recording it takes time linear in the agent's depth, independent of the number of agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Tokens charged.
    pub tokens: u64,
    /// Money charged, as far as prices are known.
    pub cost: MicroDollars,
    /// The part that is our estimate, since calls ended without the provider's final report.
    #[serde(default, skip_serializing_if = "Uncertain::is_none")]
    pub estimated: Uncertain,
    /// The part that was reserved for calls that were lost to a crash: their actual usage is unknown.
    #[serde(default, skip_serializing_if = "Uncertain::is_none")]
    pub unconfirmed: Uncertain,
    run: ExecutionTracker,
    /// The part that the judges of all agents have used.
    #[serde(default, skip_serializing_if = "ExecutionTracker::is_empty")]
    judges: ExecutionTracker,
    agents: BTreeMap<AgentNumber, Account>,
    /// The ratio of the providers' counts to our estimates.
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
    /// The sum of both.
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

/// One agent's account. A snapshot may have many, so that empty fields are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Account {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<AgentNumber>,
    #[serde(skip_serializing_if = "is_unlimited")]
    budget: Budget,
    /// Including the agents below it.
    spent: ExecutionTracker,
    /// The part that was spent before the agent was last asked: its budget counts from there.
    #[serde(default, skip_serializing_if = "ExecutionTracker::is_empty")]
    spent_before: ExecutionTracker,
    own_turns: u32,
    /// By call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    reserved: BTreeMap<u32, Reservation>,
    /// Those of an external agent's program and of hooks, by numbers of their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    beside: BTreeMap<u32, Reservation>,
}

impl Account {
    const fn reservations(&self, purpose: Purpose) -> &BTreeMap<u32, Reservation> {
        if purpose.is_beside() { &self.beside } else { &self.reserved }
    }

    const fn reservations_mut(&mut self, purpose: Purpose) -> &mut BTreeMap<u32, Reservation> {
        if purpose.is_beside() { &mut self.beside } else { &mut self.reserved }
    }

    /// The part that counts for its budget.
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
    /// 1 if the call opens a turn.
    #[serde(default)]
    turns: u32,
    #[serde(default)]
    estimated: u64,
}

/// A call that doesn't fit the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The limit that leaves no useful answer.
    pub exhausted: Exhausted,
    /// The owner of the limit: the agent or one above it; `None` is the run.
    pub by: Option<AgentNumber>,
    /// Whether the judges' part of the run's limit is used up, and not the limit itself.
    pub is_judges: bool,
}

impl Ledger {
    /// Turns of all agents.
    #[must_use]
    pub const fn turns(&self) -> u32 {
        self.run.turns
    }

    /// The part of the charges that no provider has reported: estimated, or lost to a crash.
    #[must_use]
    pub fn uncertain(&self) -> Uncertain {
        self.estimated.plus(self.unconfirmed)
    }

    /// What the run has spent and reserved.
    #[must_use]
    pub const fn run(&self) -> &ExecutionTracker {
        &self.run
    }

    /// What an agent and all below it have spent and reserved; absent for an unknown agent.
    #[must_use]
    pub fn spent(&self, agent: AgentNumber) -> Option<&ExecutionTracker> {
        self.agents.get(&agent).map(|account| &account.spent)
    }

    /// Turns that an agent took itself.
    #[must_use]
    pub fn own_turns(&self, agent: AgentNumber) -> u32 {
        self.agents.get(&agent).map_or(0, |account| account.own_turns)
    }

    /// Adds an agent with the budget for it and all below it. Its usage counts for its parent as well. A known
    /// agent keeps its parent and gets the new budget. An agent that isn't added before its first call has no
    /// parent and no budget of its own.
    pub fn admit(&mut self, agent: AgentNumber, parent: Option<AgentNumber>, budget: Budget) {
        // Agents are added after their parents, so that there are no cycles.
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

    /// Records the reservation for a call, replacing an earlier one.
    pub fn reserve(&mut self, entry: &BudgetReserved) {
        let agent = entry.session.agent;
        let call = entry.call;
        self.give_back(agent, call, entry.purpose);
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
        let account = self.agents.entry(agent).or_default();
        account.reservations_mut(entry.purpose).insert(call, reservation);
        self.each_up_from(agent, |spent| spent.set_aside(entry.tokens, entry.cost, turns));
    }

    /// Records the usage of a call, and releases its reservation, if any.
    pub fn charge(&mut self, entry: &BudgetCharged) {
        let agent = entry.session.agent;
        let reserved = self.give_back(agent, entry.call, entry.purpose);
        let purpose = reserved.map_or(entry.purpose, |reserved| reserved.purpose);
        let is_judges = purpose == Purpose::Judge;
        if let Some(reserved) = reserved.filter(|_| entry.usage.certainty.is_reported()) {
            self.calibration.note(&entry.model, is_judges, reserved.estimated, entry.usage.prompt_tokens());
        }
        let account = self.agents.entry(agent).or_default();
        // A summary or a judge opens no turn of its own.
        let turns = match purpose {
            Purpose::Turn => entry.turn.saturating_sub(account.own_turns),
            Purpose::Summary | Purpose::FinalSummary | Purpose::Judge | Purpose::External | Purpose::Hook => {
                0
            }
        };
        account.own_turns = account.own_turns.saturating_add(turns);
        let tokens = entry.usage.total();
        let cost = entry.cost.unwrap_or_default();
        self.each_up_from(agent, |spent| spent.charge(tokens, cost, turns));
        if is_judges {
            self.judges.charge(tokens, cost, 0);
        }
        self.tokens = self.run.tokens;
        self.cost = self.run.cost;
        let uncertain = match entry.usage.certainty {
            Certainty::Reported => return,
            Certainty::Estimated => &mut self.estimated,
            Certainty::Unconfirmed => &mut self.unconfirmed,
        };
        uncertain.tokens = uncertain.tokens.saturating_add(tokens);
        uncertain.cost += cost;
    }

    /// The agent makes no model calls for now: reservations for calls that weren't made are released.
    pub fn agent_stopped(&mut self, agent: AgentNumber) {
        for purpose in [Purpose::Turn, Purpose::External] {
            let account = self.agents.get(&agent);
            let calls =
                account.map(|account| account.reservations(purpose).keys().copied().collect::<Vec<_>>());
            for call in calls.into_iter().flatten() {
                self.give_back(agent, call, purpose);
            }
        }
    }

    /// Removes a reservation and returns it.
    fn give_back(&mut self, agent: AgentNumber, call: u32, purpose: Purpose) -> Option<Reservation> {
        let account = self.agents.get_mut(&agent)?;
        let reserved = account.reservations_mut(purpose).remove(&call)?;
        let Reservation { tokens, cost, purpose, turns, .. } = reserved;
        self.each_up_from(agent, |spent| spent.give_back(tokens, cost, turns));
        if purpose == Purpose::Judge {
            self.judges.give_back(tokens, cost, 0);
        }
        Some(reserved)
    }

    /// The accounts of the agent and of all above it, and the run's.
    fn each_up_from(&mut self, agent: AgentNumber, change: impl Fn(&mut ExecutionTracker)) {
        let mut next = Some(agent);
        while let Some(account) = next.and_then(|agent| self.agents.get_mut(&agent)) {
            change(&mut account.spent);
            next = account.parent;
        }
        change(&mut self.run);
    }

    /// Whether there is a reservation for a session's call. Those beside the conversation have numbers of their
    /// own; other purposes aren't distinguished.
    #[must_use]
    pub fn is_reserved(&self, session: SessionId, call: u32, purpose: Purpose) -> bool {
        self.reservation(session, call, purpose).is_some()
    }

    /// The output cap of the reservation for a session's call with this purpose, if any.
    #[must_use]
    pub fn reserved_output(&self, session: SessionId, call: u32, purpose: Purpose) -> Option<u32> {
        let reservation =
            self.reservation(session, call, purpose).filter(|reserved| reserved.purpose == purpose)?;
        Some(reservation.output_tokens_max)
    }

    /// The usage of a call that is unknown beyond its reservation.
    #[must_use]
    pub fn unconfirmed_usage(
        &self,
        session: SessionId,
        call: u32,
        purpose: Purpose,
    ) -> Option<(Usage, MicroDollars)> {
        let reserved = self.reservation(session, call, purpose)?;
        let output_tokens = u64::from(reserved.output_tokens_max);
        let input_tokens = reserved.tokens.saturating_sub(output_tokens);
        Some((Usage { input_tokens, output_tokens, ..Usage::unconfirmed() }, reserved.cost))
    }

    /// Whether there is a reservation for any call of the agent.
    pub(super) fn has_reserved(&self, agent: AgentNumber) -> bool {
        self.agents
            .get(&agent)
            .is_some_and(|account| !account.reserved.is_empty() || !account.beside.is_empty())
    }

    fn reservation(&self, session: SessionId, call: u32, purpose: Purpose) -> Option<&Reservation> {
        self.agents.get(&session.agent)?.reservations(purpose).get(&call)
    }

    /// `request` corrected by the providers' reports in this run: an agent's first request, and every judge's, is
    /// scaled by the ratio that earlier requests to that model had.
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

    /// The output cap that fits the remainder of every limit: the agent's own, those of the agents above it, and
    /// the run's.
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

    /// For each dimension the limit of an agent, of those above it or of the run that is nearest to its end, if at
    /// least half of it is used.
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

    /// The limit of tokens or money that an agent, one above it or the run has passed.
    pub(super) fn over(
        &self,
        run_budget: Budget,
        agent: AgentNumber,
    ) -> Option<(Option<AgentNumber>, Exhausted)> {
        let of_agent = |(by, account): (AgentNumber, &Account)| {
            let over = account.since_asked().over((account.budget, LimitOwner::Agent))?;
            Some((Some(by), over))
        };
        let of_run = || Some((None, self.run.over((run_budget, LimitOwner::Run))?));
        self.up_from(agent).find_map(of_agent).or_else(of_run)
    }

    /// Whether no further turn fits besides those taken or reserved, by the limits of `agent` or of the run.
    #[must_use]
    pub fn is_at_last_turn(&self, run_budget: Budget, agent: AgentNumber) -> bool {
        self.run.is_at_last_turn(run_budget)
            || self.up_from(agent).any(|(_, account)| account.since_asked().is_at_last_turn(account.budget))
    }

    /// Whether the budget of the agent or of one above it limits money.
    pub(super) fn limits_money(&self, agent: AgentNumber) -> bool {
        self.up_from(agent).any(|(_, account)| account.budget.money.is_some())
    }

    /// An agent's account and those of all above it.
    fn up_from(&self, agent: AgentNumber) -> impl Iterator<Item = (AgentNumber, &Account)> {
        let one = |agent: AgentNumber| Some((agent, self.agents.get(&agent)?));
        std::iter::successors(one(agent), move |(_, account)| one(account.parent?))
    }
}

/// This percentage of each limit.
fn share(budget: Budget, percent: u8) -> Budget {
    let of = |limit| part(limit, percent);
    Budget {
        tokens: budget.tokens.map(of),
        money: budget.money.map(|limit| MicroDollars(of(limit.0))),
        turns: None,
        ..budget
    }
}

/// This percentage of a limit.
fn part(limit: u64, percent: u8) -> u64 {
    limit.saturating_mul(u64::from(percent)) / 100
}

/// The cost of the call if no input is cached and the answer is as long as allowed.
pub(super) fn worst_cost(request: &ReserveRequest, output_tokens: u32) -> MicroDollars {
    let usage = Usage {
        input_tokens: request.input_tokens,
        output_tokens: u64::from(output_tokens),
        ..Usage::default()
    };
    request.price.map(|price| price.worst().cost(usage)).unwrap_or_default()
}
