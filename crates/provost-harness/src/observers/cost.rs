//! `CostTracker`: the spending of runs, by model, agent and run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_event::{BudgetCharged, BudgetEntry, Entry, MicroDollars, RunId, SessionId, Usage};

use super::per_run::PerRun;
use crate::{ObservedBody, Observer, ObserverEventKind, observe_with};

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

impl fmt::Display for Spending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, unpriced_calls, usage, known_cost } = self;
        let (input, output) = (usage.prompt_tokens(), usage.output_tokens);
        write!(f, "model calls: {calls}, tokens in: {input}, out: {output}, cost: {known_cost}")?;
        if *unpriced_calls > 0 {
            write!(f, " and {unpriced_calls} calls without a known price")?;
        }
        Ok(())
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
/// its charges while it is observed. At the end of each segment of a run it says the run's sum, as an event of `tracing`
/// with the level INFO and the target `provost`.
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
        let tracker = self.clone();
        move |run| {
            let tracker = tracker.clone();
            observe_with(move |event| {
                if event.kind == ObserverEventKind::RunEnd {
                    tracing::info!(target: "provost", %run, "{}", tracker.run(run));
                }
                if let ObservedBody::Entry(record) = &event.body
                    && let Entry::Budget(BudgetEntry::Charged(charged)) = &record.entry
                {
                    tracker.sums().add(charged);
                }
                Ok(())
            })
        }
    }

    /// The current sum of one run; zero for an unknown one.
    #[must_use]
    pub fn run(&self, run: RunId) -> Spending {
        let agents = self.sums().of_runs.get(run).map(|agents| agents.values().copied().collect::<Vec<_>>());
        agents.unwrap_or_default().iter().fold(Spending::default(), Spending::plus)
    }

    /// The current sums.
    #[must_use]
    pub fn totals(&self) -> CostTotals {
        let sums = self.sums();
        let mut totals =
            CostTotals { all: sums.all, by_model: sums.by_model.clone(), ..CostTotals::default() };
        for (run, agents) in sums.of_runs.iter() {
            totals.by_run.insert(run, agents.values().fold(Spending::default(), Spending::plus));
            totals.by_agent.extend(agents);
        }
        totals
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    fn add(&mut self, charged: &BudgetCharged) {
        self.all.add(charged);
        self.by_model.entry(charged.model.clone()).or_default().add(charged);
        self.of_runs.entry(charged.session.run).entry(charged.session).or_default().add(charged);
    }
}
