//! Slots: random requests against a plain, readable model.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use provost_engine::{Acquired, SlotMove, SpawnTracker, Then};
use provost_event::{Priority, SpawnBudget};

const PRIORITIES: [Priority; 5] =
    [Priority::Background, Priority::Low, Priority::Normal, Priority::High, Priority::Critical];

/// Agents are given by their index among the existing ones; an index past the end is an unknown agent.
#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire(Priority),
    Wait(Priority),
    /// A repeated request of an existing agent.
    AcquireAgain(usize),
    WaitAgain(usize),
    Left(usize, Then),
    Wake(usize),
    Release(usize),
    Reprioritize(usize, Priority),
    Hold,
    GoOn,
}

impl Op {
    /// Random bytes as a request; a strategy for requests takes far longer.
    fn of(bytes: u32) -> Self {
        let [kind, agent, rest, _] = bytes.to_le_bytes();
        let (agent, priority) = (usize::from(agent), PRIORITIES[usize::from(rest) % PRIORITIES.len()]);
        let then = if rest.is_multiple_of(2) { Then::Waits } else { Then::Idles };
        match kind % 32 {
            0..8 => Self::Acquire(priority),
            8..11 => Self::Wait(priority),
            11 => Self::AcquireAgain(agent),
            12 => Self::WaitAgain(agent),
            13..19 => Self::Left(agent, then),
            19..23 => Self::Wake(agent),
            23..27 => Self::Release(agent),
            30 => Self::Hold,
            31 => Self::GoOn,
            _ => Self::Reprioritize(agent, priority),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Work,
    Leaving,
    /// Queued since.
    Line(usize),
    Sleep,
}

#[derive(Debug, Clone)]
struct One {
    number: u32,
    priority: Priority,
    at: At,
    /// Before all others in the queue if its priority has risen (1), before those too if another agent yields to
    /// it (2).
    claim: u8,
    has_worked: bool,
}

impl One {
    fn is_paused(&self) -> bool {
        self.has_worked && self.at != At::Work
    }
}

/// The rules as a list that is searched from one end to the other; agents are in it in order of arrival.
struct Naive {
    slots: usize,
    preempts: bool,
    has_root: bool,
    is_held: bool,
    all: Vec<One>,
    clock: usize,
}

impl Naive {
    fn held(&self) -> usize {
        self.all.iter().filter(|one| matches!(one.at, At::Work | At::Leaving)).count()
    }

    fn is_root(&self, number: u32) -> bool {
        self.has_root && number == 0
    }

    fn find(&mut self, number: u32) -> Option<&mut One> {
        self.all.iter_mut().find(|one| one.number == number)
    }

    fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }

    fn would_acquire(&self, priority: Priority) -> Acquired {
        if self.held() < self.slots {
            return Acquired::Granted;
        }
        if !self.preempts || priority <= Priority::Normal {
            return Acquired::Exhausted;
        }
        let mut victim: Option<&One> = None;
        for one in &self.all {
            let may = one.at == At::Work && one.priority < priority;
            let may = may && !self.is_root(one.number);
            // Among several with the lowest priority the last arrival.
            if may && victim.is_none_or(|known| one.priority <= known.priority) {
                victim = Some(one);
            }
        }
        victim.map_or(Acquired::Exhausted, |one| Acquired::After(one.number))
    }

    fn acquire(&mut self, number: u32, priority: Priority) -> Acquired {
        if let Some(known) = self.find(number) {
            let holds = matches!(known.at, At::Work | At::Leaving);
            return if holds { Acquired::Granted } else { Acquired::Exhausted };
        }
        let told = self.would_acquire(priority);
        let since = self.tick();
        match told {
            Acquired::Granted => {
                self.all.push(One { number, priority, at: At::Work, claim: 0, has_worked: true });
            }
            Acquired::After(victim) => {
                self.find(victim).expect("the victim").at = At::Leaving;
                self.all.push(One { number, priority, at: At::Line(since), claim: 2, has_worked: false });
            }
            Acquired::Exhausted => {}
        }
        told
    }

    fn wait(&mut self, number: u32, priority: Priority) -> Vec<SlotMove> {
        let since = self.tick();
        if self.find(number).is_none() {
            self.all.push(One { number, priority, at: At::Line(since), claim: 0, has_worked: false });
        }
        self.fill()
    }

    fn left(&mut self, number: u32, then: Then) -> Vec<SlotMove> {
        let since = self.tick();
        if !self.is_root(number)
            && let Some(one) = self.find(number)
        {
            one.at = match (one.at, then) {
                (_, Then::Idles) => At::Sleep,
                (At::Work | At::Leaving, Then::Waits) => At::Line(since),
                (at, Then::Waits) => at,
            };
        }
        self.fill()
    }

    fn wake(&mut self, number: u32) -> Vec<SlotMove> {
        let since = self.tick();
        if let Some(one) = self.find(number).filter(|one| one.at == At::Sleep) {
            one.at = At::Line(since);
        }
        self.fill()
    }

    fn release(&mut self, number: u32) -> Vec<SlotMove> {
        if !self.is_root(number) {
            self.all.retain(|one| one.number != number);
        }
        self.fill()
    }

    fn reprioritize(&mut self, number: u32, priority: Priority) -> Vec<SlotMove> {
        let has_queued = self.all.iter().any(|one| matches!(one.at, At::Line(_)));
        let is_root = self.is_root(number);
        let Some(one) = self.find(number) else { return Vec::new() };
        let before = std::mem::replace(&mut one.priority, priority);
        if priority < Priority::Normal {
            one.claim &= 2;
            if priority < before && one.at == At::Work && has_queued && !is_root {
                one.at = At::Leaving;
                return vec![SlotMove::Leave(number)];
            }
        } else if priority > before && one.is_paused() && one.claim == 0 {
            one.claim = 1;
        }
        Vec::new()
    }

    /// The first agent in the queue gets a slot, as long as there is one.
    fn fill(&mut self) -> Vec<SlotMove> {
        let mut moves = Vec::new();
        while self.held() < self.slots && !self.is_held {
            let mut next: Option<(&mut One, usize)> = None;
            for one in &mut self.all {
                let At::Line(since) = one.at else { continue };
                let is_before = next.as_ref().is_none_or(|(known, other)| {
                    let (mine, theirs) = ((one.claim, one.priority), (known.claim, known.priority));
                    mine > theirs || (mine == theirs && since < *other)
                });
                if is_before {
                    next = Some((one, since));
                }
            }
            let Some((one, _)) = next else { break };
            moves.push(if one.has_worked { SlotMove::GoOn(one.number) } else { SlotMove::Begin(one.number) });
            (one.at, one.claim, one.has_worked) = (At::Work, 0, true);
        }
        moves
    }
}

/// The tracker and the model, given the same requests.
struct Both {
    tracker: SpawnTracker,
    naive: Naive,
    /// The number of the next new agent.
    next: u32,
}

impl Both {
    fn new(budget: SpawnBudget, root: Option<Priority>) -> Self {
        let one = |priority| One { number: 0, priority, at: At::Work, claim: 0, has_worked: true };
        let naive = Naive {
            slots: budget.max_agents as usize,
            preempts: budget.allow_preempt,
            has_root: root.is_some(),
            is_held: false,
            all: root.map(one).into_iter().collect(),
            clock: 0,
        };
        let next = u32::from(root.is_some());
        Self { tracker: SpawnTracker::new(budget, root), naive, next }
    }

    fn agent(&self, place: usize) -> u32 {
        let place = place % (self.naive.all.len() + 1);
        self.naive.all.get(place).map_or(self.next + 7, |one| one.number)
    }

    fn newcomer(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn acquire(&mut self, number: u32, priority: Priority) -> Result<(), TestCaseError> {
        let would = self.tracker.would_acquire(priority);
        prop_assert_eq!(would, self.naive.would_acquire(priority));
        let is_new = self.naive.find(number).is_none();
        let told = self.tracker.acquire(number, priority);
        prop_assert_eq!(told, self.naive.acquire(number, priority));
        prop_assert!(!is_new || told == would);
        Ok(())
    }

    fn apply(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Acquire(priority) => {
                let number = self.newcomer();
                self.acquire(number, priority)?;
            }
            Op::AcquireAgain(place) => {
                let number = self.agent(place);
                if self.naive.find(number).is_some() {
                    self.acquire(number, Priority::Critical)?;
                }
            }
            Op::Wait(priority) => {
                let number = self.newcomer();
                prop_assert_eq!(self.tracker.wait(number, priority), self.naive.wait(number, priority));
            }
            Op::WaitAgain(place) => {
                let number = self.agent(place);
                if self.naive.find(number).is_some() {
                    let told = self.tracker.wait(number, Priority::Critical);
                    prop_assert_eq!(told, self.naive.wait(number, Priority::Critical));
                }
            }
            Op::Left(place, then) => {
                let number = self.agent(place);
                prop_assert_eq!(self.tracker.left(number, then), self.naive.left(number, then));
            }
            Op::Wake(place) => {
                let number = self.agent(place);
                prop_assert_eq!(self.tracker.wake(number), self.naive.wake(number));
            }
            Op::Release(place) => {
                let number = self.agent(place);
                prop_assert_eq!(self.tracker.release(number), self.naive.release(number));
                let stays = self.naive.is_root(number);
                prop_assert!(
                    stays || (self.tracker.priority(number), self.tracker.is_paused(number)) == (None, false)
                );
            }
            Op::Reprioritize(place, priority) => {
                let number = self.agent(place);
                let told = self.tracker.reprioritize(number, priority);
                prop_assert_eq!(told, self.naive.reprioritize(number, priority));
            }
            Op::Hold => {
                self.tracker.hold();
                self.naive.is_held = true;
            }
            Op::GoOn => {
                self.naive.is_held = false;
                prop_assert_eq!(self.tracker.go_on(), self.naive.fill());
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let Self { tracker, naive, .. } = self;
        prop_assert!(tracker.held() <= naive.slots);
        prop_assert_eq!(tracker.held(), naive.held());
        let has_queued = naive.all.iter().any(|one| matches!(one.at, At::Line(_)));
        prop_assert!(
            !has_queued || naive.is_held || tracker.held() == naive.slots,
            "an agent is queued while a slot is free"
        );
        for one in &naive.all {
            prop_assert_eq!(tracker.priority(one.number), Some(one.priority));
            prop_assert_eq!(tracker.is_paused(one.number), one.is_paused());
        }
        Ok(())
    }

    /// Serializes the tracker and continues with the deserialized one.
    fn read_back(&mut self) -> Result<(), TestCaseError> {
        let text = serde_json::to_string(&self.tracker).expect("JSON");
        let read = serde_json::from_str::<SpawnTracker>(&text).expect("a tracker");
        prop_assert_eq!(&read, &self.tracker);
        self.tracker = read;
        Ok(())
    }
}

/// The number of cases, unless the variable sets another.
fn cases() -> u32 {
    std::env::var("PROVOST_SPAWN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(10_000)
}

#[test]
fn slots_are_held_as_the_rules_say() {
    let sequence = (
        1_u32..=8,
        proptest::bool::weighted(0.8),
        proptest::option::weighted(0.7, proptest::sample::select(&PRIORITIES[..])),
        proptest::collection::vec(any::<u32>().prop_map(Op::of), 0..=60),
        0..60_usize,
    );
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let told =
        TestRunner::new(config).run(&sequence, |(max_agents, allow_preempt, root, ops, read_back_at)| {
            let mut both = Both::new(SpawnBudget { max_agents, allow_preempt, max_depth: 9 }, root);
            for (place, op) in ops.into_iter().enumerate() {
                both.apply(op)?;
                both.check()?;
                if place == read_back_at {
                    both.read_back()?;
                }
            }
            for number in 0..both.next {
                both.tracker.release(number);
            }
            prop_assert_eq!(both.tracker.held(), usize::from(root.is_some()), "what all gave back is free");
            Ok(())
        });
    told.unwrap_or_else(|problem| panic!("{problem}"));
}
