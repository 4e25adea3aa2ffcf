//! (j) What it costs to hand out the slots of a run, by how many agents it has.

use std::hint::black_box;

use anyhow::ensure;
use provost_engine::{Acquired, AgentNumber, SpawnTracker, Then};
use provost_event::{Priority, SpawnBudget};
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::case::Case;
use crate::measure::Start;
use crate::sample::{Sample, repeated};
use crate::table::{self, Target};

/// Nanoseconds that a call may take with [`TARGET_AGENTS`].
const TARGET_NS: f64 = 1_000.0;
const TARGET_AGENTS: usize = 10_000;
const SIZES: [usize; 5] = [8, 100, 1_000, 10_000, 100_000];
const PAIRS: usize = 1_000_000;
const PRIORITIES: [Priority; 5] =
    [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

/// How busy the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Busy {
    /// A slot is free for each newcomer.
    Room,
    /// All slots are taken and as many agents are queued: new agents preempt others or are queued, and the first
    /// of the queue gets each released slot.
    Full,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("Slots of a run");
    for (what, busy) in [("a slot is free", Busy::Room), ("none is free, and as many wait", Busy::Full)] {
        for agents in SIZES {
            let case = Case::Slots { agents, busy, pairs: PAIRS };
            let samples = repeated(&case, options.dir(), options.runs)?;
            let calls = samples.iter().map(|sample| sample.cpu_us() * 1e3).collect::<Vec<_>>();
            let target = if agents == TARGET_AGENTS { Target::AtMost(TARGET_NS) } else { Target::None };
            table::row(&format!("{what}: CPU"), &format!("{agents} agents"), "ns/call", &calls, target);
        }
    }
    Ok(())
}

/// One run: `pairs` times an agent starts and one ends, so that `agents` work all the time.
pub(crate) fn case(agents: usize, busy: Busy, pairs: usize) -> anyhow::Result<Sample> {
    let mut pool = Pool::new(agents, busy)?;
    let before = pool.calls;
    let start = Start::now()?;
    for _ in 0..pairs {
        pool.come();
        pool.go();
    }
    let sample = start.sample(pool.calls - before)?;
    ensure!(pool.tracker.held() == agents, "{} of {agents} slots are held", pool.tracker.held());
    Ok(sample)
}

struct Pool {
    tracker: SpawnTracker,
    random: fastrand::Rng,
    /// Working and queued agents.
    agents: Vec<AgentNumber>,
    /// The number of the newest agent.
    last: AgentNumber,
    /// Calls of the tracker.
    calls: usize,
}

impl Pool {
    fn new(agents: usize, busy: Busy) -> anyhow::Result<Self> {
        let (slots, known) = match busy {
            Busy::Room => (agents + 1, agents),
            Busy::Full => (agents, 2 * agents),
        };
        let budget =
            SpawnBudget { max_agents: u32::try_from(slots)?, max_depth: 4, ..SpawnBudget::default() };
        let tracker = SpawnTracker::new(budget, None);
        let random = fastrand::Rng::with_seed(1);
        let mut pool = Self { tracker, random, agents: Vec::new(), last: 0, calls: 0 };
        for _ in 0..known {
            pool.come();
        }
        Ok(pool)
    }

    fn come(&mut self) {
        self.last += 1;
        self.agents.push(self.last);
        let priority = self.random.choice(PRIORITIES).unwrap_or_default();
        let acquired = self.tracker.acquire(self.last, priority);
        self.calls += 1;
        match acquired {
            Acquired::Granted => return,
            Acquired::After(victim) => black_box(self.tracker.left(victim, Then::Waits)),
            Acquired::Exhausted => black_box(self.tracker.wait(self.last, priority)),
        };
        self.calls += 1;
    }

    fn go(&mut self) {
        let place = self.random.usize(..self.agents.len());
        black_box(self.tracker.release(self.agents.swap_remove(place)));
        self.calls += 1;
    }
}
