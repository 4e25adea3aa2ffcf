//! Slots: random requests against a model so plain that it can be read.

use proptest::prelude::*;
use provost_engine::{Acquired, SlotMove, SpawnTracker};
use provost_event::{Priority, SpawnBudget};

const PRIORITIES: [Priority; 5] =
    [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire(usize, bool),
    Left(usize),
    Release(usize),
    Reprioritize(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0..5_usize, any::<bool>()).prop_map(|(p, spares)| Op::Acquire(p, spares)),
        3 => (0..12_usize).prop_map(Op::Left),
        3 => (0..12_usize).prop_map(Op::Release),
        2 => (0..12_usize, 0..5_usize).prop_map(|(a, p)| Op::Reprioritize(a, p)),
    ]
}

/// An agent in a list: the order of the list is that in which they came.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Work,
    Leaving,
    /// In the line since.
    Line(usize),
}

#[derive(Debug, Clone)]
struct One {
    number: u32,
    priority: Priority,
    at: At,
    first: bool,
    has_worked: bool,
}

/// The rules as a list that is searched from one end to the other.
struct Naive {
    slots: usize,
    preempts: bool,
    all: Vec<One>,
    clock: usize,
}

impl Naive {
    fn held(&self) -> usize {
        self.all.iter().filter(|one| !matches!(one.at, At::Line(_))).count()
    }

    fn acquire(&mut self, number: u32, priority: Priority, spared: &[u32]) -> Acquired {
        self.clock += 1;
        let one = One { number, priority, at: At::Work, first: false, has_worked: true };
        if self.held() < self.slots {
            self.all.push(one);
            return Acquired::Granted;
        }
        if !self.preempts || priority <= Priority::Normal {
            return Acquired::Exhausted;
        }
        let mut victim: Option<usize> = None;
        for (place, one) in self.all.iter().enumerate() {
            let may = one.number != 0 && one.at == At::Work && one.priority < priority;
            let lower = victim.is_none_or(|known| one.priority <= self.all[known].priority);
            if may && lower && !spared.contains(&one.number) {
                victim = Some(place);
            }
        }
        let Some(victim) = victim else { return Acquired::Exhausted };
        self.all[victim].at = At::Leaving;
        self.all.push(One { at: At::Line(self.clock), has_worked: false, ..one });
        Acquired::After(self.all[victim].number)
    }

    fn left(&mut self, number: u32) -> Vec<SlotMove> {
        self.clock += 1;
        let clock = self.clock;
        if let Some(one) = self.all.iter_mut().find(|one| one.number == number && one.at == At::Leaving) {
            one.at = At::Line(clock);
        }
        self.fill()
    }

    fn release(&mut self, number: u32) -> Vec<SlotMove> {
        self.all.retain(|one| one.number == 0 || one.number != number);
        self.fill()
    }

    fn reprioritize(&mut self, number: u32, priority: Priority) -> Option<SlotMove> {
        let line = self.all.iter().any(|one| matches!(one.at, At::Line(_)));
        let one = self.all.iter_mut().find(|one| one.number == number)?;
        let rises = priority > one.priority && priority >= Priority::Normal;
        one.priority = priority;
        if one.at == At::Work && number != 0 && priority < Priority::Normal && line {
            (one.at, one.first) = (At::Leaving, false);
            return Some(SlotMove::Leave(number));
        }
        if one.at == At::Leaving || (one.has_worked && one.at != At::Work) {
            one.first |= rises;
        }
        None
    }

    fn fill(&mut self) -> Vec<SlotMove> {
        let mut turns = Vec::new();
        while self.held() < self.slots {
            let mut next: Option<usize> = None;
            for (place, one) in self.all.iter().enumerate() {
                let At::Line(since) = one.at else { continue };
                let before = next.is_none_or(|known| {
                    let At::Line(other) = self.all[known].at else { return true };
                    let known = &self.all[known];
                    (one.first, one.priority) > (known.first, known.priority)
                        || ((one.first, one.priority) == (known.first, known.priority) && since < other)
                });
                if before {
                    next = Some(place);
                }
            }
            let Some(next) = next else { break };
            let one = &mut self.all[next];
            turns.push(if one.has_worked { SlotMove::GoOn(one.number) } else { SlotMove::Begin(one.number) });
            (one.at, one.first, one.has_worked) = (At::Work, false, true);
        }
        turns
    }
}

fn cases() -> u32 {
    std::env::var("PROVOST_SPAWN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(10_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_held_as_the_rules_say(
        max_agents in 1_u32..=8,
        allow_preempt in proptest::bool::weighted(0.8),
        root in 0..5_usize,
        ops in proptest::collection::vec(op(), 0..60),
    ) {
        let budget = SpawnBudget { max_agents, allow_preempt, max_depth: 9 };
        let mut tracker = SpawnTracker::new(budget, PRIORITIES[root]);
        let first = One { number: 0, priority: PRIORITIES[root], at: At::Work, first: false, has_worked: true };
        let mut naive = Naive { slots: max_agents as usize, preempts: allow_preempt, all: vec![first], clock: 0 };
        let mut next = 1;
        for op in ops {
            let known = |place: usize| naive.all[place % naive.all.len()].number;
            match op {
                Op::Acquire(priority, spares) => {
                    let spared = if spares { vec![known(1)] } else { Vec::new() };
                    let told = tracker.acquire(next, PRIORITIES[priority], &spared);
                    prop_assert_eq!(told, naive.acquire(next, PRIORITIES[priority], &spared));
                    next += 1;
                }
                Op::Left(place) => {
                    let agent = known(place);
                    prop_assert_eq!(tracker.left(agent), naive.left(agent));
                }
                Op::Release(place) => {
                    let agent = known(place);
                    prop_assert_eq!(tracker.release(agent), naive.release(agent));
                }
                Op::Reprioritize(place, priority) => {
                    let agent = known(place);
                    let told = tracker.reprioritize(agent, PRIORITIES[priority]);
                    prop_assert_eq!(told, naive.reprioritize(agent, PRIORITIES[priority]));
                }
            }
            prop_assert!(tracker.held() <= max_agents as usize);
            prop_assert_eq!(tracker.held(), naive.held());
            let waits = naive.all.iter().any(|one| matches!(one.at, At::Line(_)));
            prop_assert!(!waits || tracker.held() == max_agents as usize, "somebody waits while a slot is free");
            for one in &naive.all {
                let paused = one.at == At::Leaving || (one.has_worked && one.at != At::Work);
                prop_assert_eq!(tracker.is_paused(one.number), paused);
            }
        }
        for number in 1..next {
            tracker.release(number);
        }
        prop_assert_eq!(tracker.held(), 1, "what all gave back is free");
    }
}
