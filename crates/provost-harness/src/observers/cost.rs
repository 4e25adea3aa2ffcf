//! `CostTracker`: the spending of runs, by model, agent and run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use provost_event::{BudgetCharged, BudgetEntry, Entry, MicroDollars, RunId, SessionId, Usage};

use super::per_run::PerRun;
use crate::{ObservedBody, Observer, observe_with};

/// Default maximum of runs with sums by agent.
const RUNS_MAX: usize = 1_000;

/// A sum over model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spending {
    /// Charged calls.
    pub calls: u64,
    /// Calls without a known price: their cost isn't in `known_cost`.
    pub unpriced_calls: u64,
    /// Tokens of all kinds.
    pub usage: Usage,
    /// Cost, as far as prices are known.
    pub known_cost: MicroDollars,
}

impl Spending {
    /// The cost, if all of it is known.
    #[must_use]
    pub const fn cost(&self) -> Option<MicroDollars> {
        if self.unpriced_calls == 0 { Some(self.known_cost) } else { None }
    }

    fn add(&mut self, charged: &BudgetCharged) {
        self.calls += 1;
        self.unpriced_calls += u64::from(charged.cost.is_none());
        self.usage += charged.usage;
        self.known_cost += charged.cost.unwrap_or_default();
    }

    fn plus(mut self, other: &Self) -> Self {
        self.calls += other.calls;
        self.unpriced_calls += other.unpriced_calls;
        self.usage += other.usage;
        self.known_cost += other.known_cost;
        self
    }
}

/// Sums of spending, in groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostTotals {
    /// Everything.
    pub all: Spending,
    /// By the policy's name of the model.
    pub by_model: BTreeMap<String, Spending>,
    /// By agent, of the runs in `by_run`.
    pub by_agent: BTreeMap<SessionId, Spending>,
    /// By run; only the newest 1,000 with any spending.
    pub by_run: BTreeMap<RunId, Spending>,
}

/// Sums up the spending of runs. Clones share their sums, which can be read at any time; each observed run adds
/// its charges while it is observed.
///
/// ```
/// use provost_harness::{CostTracker, ObserverOptions, Observers};
///
/// let costs = CostTracker::new();
/// let observers = Observers::new().with("costs", ObserverOptions::default(), costs.observer());
/// assert_eq!(costs.totals().all.calls, 0);
/// # drop(observers);
/// ```
#[derive(Debug, Clone)]
pub struct CostTracker {
    sums: Arc<Mutex<Sums>>,
}

#[derive(Debug)]
struct Sums {
    all: Spending,
    by_model: BTreeMap<String, Spending>,
    of_runs: PerRun<BTreeMap<SessionId, Spending>>,
}

impl Default for CostTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl CostTracker {
    /// A tracker with zero sums.
    #[must_use]
    pub fn new() -> Self {
        let sums =
            Sums { all: Spending::default(), by_model: BTreeMap::new(), of_runs: PerRun::new(RUNS_MAX) };
        Self { sums: Arc::new(Mutex::new(sums)) }
    }

    /// Creates the observer of a run, for [`Observers::with`](crate::Observers::with).
    pub fn observer(&self) -> impl Fn(RunId) -> Box<dyn Observer> + Send + Sync + use<> {
        let sums = self.sums.clone();
        move |_| {
            let sums = sums.clone();
            observe_with(move |event| {
                if let ObservedBody::Entry(record) = &event.body
                    && let Entry::Budget(BudgetEntry::Charged(charged)) = &record.entry
                {
                    sums.lock().unwrap_or_else(PoisonError::into_inner).add(charged);
                }
                Ok(())
            })
        }
    }

    /// The current sums.
    #[must_use]
    pub fn totals(&self) -> CostTotals {
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let mut totals =
            CostTotals { all: sums.all, by_model: sums.by_model.clone(), ..CostTotals::default() };
        for (run, agents) in sums.of_runs.iter() {
            totals.by_run.insert(run, agents.values().fold(Spending::default(), Spending::plus));
            totals.by_agent.extend(agents);
        }
        totals
    }
}

impl Sums {
    fn add(&mut self, charged: &BudgetCharged) {
        self.all.add(charged);
        self.by_model.entry(charged.model.clone()).or_default().add(charged);
        self.of_runs.entry(charged.session.run).entry(charged.session).or_default().add(charged);
    }
}
