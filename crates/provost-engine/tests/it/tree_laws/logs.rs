//! The laws of the logs of a tree of agents, counted from the entries alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use provost_engine::RunState;
use provost_event::{
    ActorKey, AgentAskedAgain, AgentEntry, AgentRetryScheduled, AgentSpawned, AgentSuspended, Block, Budget,
    BudgetCharged, BudgetEntry, BudgetReserved, CallId, ConversationEntry, Dimension, Entry, LifecycleEntry,
    MicroDollars, ModelEntry, Outcome, PauseReason, Paused, Priority, Purpose, Record, ResumeCause, Resumed,
    RunPolicy, Seq, SessionId, SlotAssignment, SpawnBudget, ToolEntry,
};

use crate::goal_laws::GoalLaws;
use crate::log_laws::SegmentLaw;

const ROOT: u32 = 0;

/// An agent's status, by the run's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// It has never had a slot.
    Line,
    Works,
    Yields,
    Preempted,
    /// It needs a person's request; `wanted` once that was made.
    Suspended {
        wanted: bool,
    },
    Finished,
}

/// The precedence of a queued agent, the highest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum QueueRank {
    None,
    /// Its priority was raised while it was paused.
    Risen,
    /// Another agent yields to it.
    Heir,
}

#[derive(Debug, Clone)]
struct One {
    parent: Option<u32>,
    depth: u32,
    priority: Priority,
    at: At,
    /// When it was queued.
    since: u64,
    /// When it was requested last.
    requested: u64,
    claim: QueueRank,
    has_begun: bool,
    /// Its sub-agents.
    children: u32,
    /// It was suspended by request, and only a request resumes it.
    is_held: bool,
    /// It has a slot, and is to be notified.
    is_granted: bool,
    budget: Budget,
    spent: Spent,
    spent_before: Spent,
    calls: BTreeSet<Seq>,
    reserved: BTreeMap<u32, (u64, MicroDollars)>,
    charged: BTreeSet<u32>,
    /// It has failed, and its parent wasn't notified: a restart is scheduled.
    awaits_restart: bool,
    awaits_request: bool,
    /// Nor was it resumed since.
    is_timed: bool,
    /// Restarts scheduled in a row, and in all.
    in_a_row: u32,
    restarts: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    tokens: u64,
    money: u64,
    tokens_set_aside: u64,
    money_set_aside: u64,
}

/// The state of the run by its log so far.
#[derive(Debug, Default)]
pub(crate) struct RunLaws {
    agents: BTreeMap<u32, One>,
    spawn: SpawnBudget,
    budget: Budget,
    spent: Spent,
    /// What the judges of all agents have used of that, and the percentage of each limit that they may use.
    judges: Spent,
    judges_calls: BTreeSet<(u32, u32)>,
    judges_percent: u64,
    /// It is being stopped, or has stopped.
    is_stopping: bool,
    suspended: bool,
    events: u64,
    segments: SegmentLaw,
    pub(crate) preempted: u32,
    /// Agents that were asked again.
    pub(crate) again: u32,
    pub(crate) most_at_work: usize,
    pub(crate) waited: u32,
}

impl RunLaws {
    /// `suspended_for_child` returns whether an agent is suspended only because its sub-agents are.
    pub(crate) fn see(&mut self, record: &Record, suspended_for_child: impl Fn(u32) -> bool) {
        self.events += 1;
        self.segments.see(record);
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => {
                self.bound_by(&started.policy);
                self.agents.insert(ROOT, One::new(None, 0, Priority::Normal, At::Works, 0));
            }
            Entry::Agent(AgentEntry::Spawned(spawned)) => self.spawned(spawned),
            Entry::Agent(AgentEntry::AskedAgain(asked)) => self.asked_again(asked),
            Entry::Agent(AgentEntry::Started(started)) => self.started(started.child.agent),
            Entry::Agent(AgentEntry::YieldRequested(yields)) => {
                let to = yields.to.map(|to| to.agent);
                self.yields(yields.child.agent, to);
            }
            Entry::Agent(AgentEntry::Suspended(paused)) => self.paused(paused),
            Entry::Agent(AgentEntry::RetryScheduled(scheduled)) => self.retry_scheduled(scheduled),
            Entry::Agent(AgentEntry::ResumeRequested(resumed)) => {
                self.agent_resume_requested(resumed.child.agent)
            }
            Entry::Agent(AgentEntry::Finished(finished)) => {
                let agent = finished.child.agent;
                assert_eq!(finished.restarts, self.one(agent).restarts, "restarts of {agent}");
                let parent = self.one(agent).parent;
                self.finished(agent, parent.is_some_and(&suspended_for_child));
            }
            Entry::Agent(AgentEntry::Reprioritized(changed)) => {
                let one = self.one(changed.agent.agent);
                assert!(one.at != At::Finished, "one that is done has a new priority");
                let is_paused =
                    matches!(one.at, At::Yields | At::Preempted | At::Suspended { .. }) && one.has_begun;
                let (rises, is_low) = (changed.priority > one.priority, changed.priority < Priority::Normal);
                one.claim = match one.claim {
                    QueueRank::Heir => QueueRank::Heir,
                    _ if is_low => QueueRank::None,
                    QueueRank::None if rises && is_paused => QueueRank::Risen,
                    claim => claim,
                };
                one.priority = changed.priority;
            }
            Entry::Budget(BudgetEntry::Reserved(reserved)) => self.reserved(reserved),
            Entry::Budget(BudgetEntry::Charged(charged)) => self.charged(charged),
            Entry::Budget(BudgetEntry::Exhausted(exhausted)) => {
                let is_time = exhausted.dimension() == Dimension::WallTime;
                self.is_stopping |= is_time && exhausted.of.is_none();
            }
            Entry::Lifecycle(LifecycleEntry::StopRequested(stop)) => match stop.agent {
                Some(agent) => self.one(agent.agent).is_held = !stop.outcome.is_final(),
                None => self.is_stopping = true,
            },
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                assert!(!paused.outcome.is_final(), "a suspension is no end");
                self.give_back(ROOT);
                (self.is_stopping, self.suspended) = (true, true);
                let at_work = self.at_work().filter(|agent| *agent != ROOT).collect::<Vec<_>>();
                assert!(at_work.is_empty(), "the run is suspended while {at_work:?} work");
            }
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => {
                assert!(ended.outcome.is_final(), "an end is no suspension");
                (self.is_stopping, self.suspended) = (true, true);
                let live =
                    self.agents.iter().filter(|(agent, one)| **agent != ROOT && one.at != At::Finished);
                let live = live.map(|(agent, _)| *agent).collect::<Vec<_>>();
                assert!(live.is_empty(), "the run has ended and {live:?} have not");
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => self.resumed(resumed),
            _ => {}
        }
        let at_work = self.at_work().count();
        self.most_at_work = self.most_at_work.max(at_work);
        assert!(at_work <= self.spawn.slots(), "{at_work} at work of {}", self.spawn.slots());
    }

    fn bound_by(&mut self, policy: &RunPolicy) {
        (self.spawn, self.budget) = (policy.spawn, policy.budget);
        let agents = policy.agents.iter().map(|one| &one.agent).chain([&policy.agent]);
        let goals = agents.filter_map(|agent| agent.goal.as_deref()).chain(policy.judging.as_deref());
        self.judges_percent = goals.map(|goal| goal.budget_percent).max().unwrap_or_default().into();
    }

    /// When no event is pending, no agent waits while a slot is free.
    pub(crate) fn at_quiet(&mut self, run: &RunState, suspended_for_child: impl Fn(u32) -> bool) {
        let waiting = self.waiting();
        self.waited += u32::from(!waiting.is_empty());
        if !self.is_stopping && self.at_work().count() < self.spawn.slots() {
            assert!(waiting.is_empty(), "{waiting:?} wait while a slot is free");
        }
        for (agent, one) in &self.agents {
            let suspended = one.is_timed || one.is_held || one.children > 0 || !suspended_for_child(*agent);
            assert!(
                self.is_stopping || suspended || one.at != (At::Suspended { wanted: false }),
                "{agent} is suspended without a reason"
            );
            let spent = run.ledger().spent(*agent);
            let known = spent.map_or((0, 0), |spent| (spent.tokens_set_aside, spent.tokens));
            let counted = (one.spent.tokens_set_aside, one.spent.tokens);
            assert_eq!(known, counted, "tokens set aside and charged of agent {agent}");
        }
    }

    fn agent_resume_requested(&mut self, agent: u32) {
        let one = self.one(agent);
        one.is_timed = false;
        one.in_a_row = if one.awaits_restart { one.in_a_row } else { 0 };
        assert!(matches!(one.at, At::Suspended { .. }), "{:?} is resumed", one.at);
        self.want(agent);
        self.grant(agent);
    }

    /// Attempts are neither lost nor doubled.
    fn retry_scheduled(&mut self, scheduled: &AgentRetryScheduled) {
        let events = self.events;
        let agent = scheduled.agent.agent;
        assert_ne!(agent, ROOT, "the root isn't restarted by itself");
        assert!(scheduled.outcome.may_restart(), "{agent} is restarted after: {}", scheduled.outcome);
        let one = self.one(agent);
        assert!(matches!(one.at, At::Works | At::Yields), "{agent} failed as {:?}", one.at);
        one.in_a_row += 1;
        assert_eq!(scheduled.attempt, one.in_a_row, "restarts of {agent} in a row");
        assert!(scheduled.attempt <= scheduled.attempts_max, "{agent} is restarted too often");
        (one.at, one.since, one.is_granted) = (At::Suspended { wanted: false }, events, false);
        (one.awaits_restart, one.is_timed) = (true, true);
        self.give_back(agent);
    }

    fn one(&mut self, agent: u32) -> &mut One {
        self.agents.get_mut(&agent).expect("an agent that was spawned")
    }

    /// The agents that hold a slot. The root's is never released.
    fn at_work(&self) -> impl Iterator<Item = u32> {
        let holds = |(agent, one): &(&u32, &One)| **agent == ROOT || matches!(one.at, At::Works | At::Yields);
        self.agents.iter().filter(holds).map(|(agent, _)| *agent)
    }

    fn waiting(&self) -> Vec<u32> {
        let waits = |one: &One| match one.at {
            At::Line => true,
            At::Preempted | At::Suspended { wanted: true } => one.children == 0,
            At::Works | At::Yields | At::Suspended { wanted: false } | At::Finished => false,
        };
        self.agents
            .iter()
            .filter(|(agent, one)| **agent != ROOT && waits(one))
            .map(|(agent, _)| *agent)
            .collect()
    }

    fn is_full(&self) -> bool {
        self.at_work().count() >= self.spawn.slots()
    }

    fn spawned(&mut self, spawned: &AgentSpawned) {
        let (child, parent) = (spawned.child.agent, spawned.parent.expect("a parent").agent);
        assert!(!self.is_stopping, "an agent for a run that stops");
        let above = self.one(parent);
        assert!(matches!(above.at, At::Works | At::Yields), "{:?} asks for an agent", above.at);
        assert!(above.calls.insert(spawned.call.expect("a call")), "one call, two agents");
        let (depth, siblings) = (above.depth + 1, above.children);
        above.children += 1;
        assert_eq!(spawned.depth, depth);
        assert!(depth <= self.spawn.max_depth, "too deep");
        self.slot_is_due(spawned.slot, spawned.priority, siblings);
        assert!(!self.agents.contains_key(&child), "a number twice");
        let claim =
            if matches!(spawned.slot, SlotAssignment::After(_)) { QueueRank::Heir } else { QueueRank::None };
        let one = One::new(Some(parent), depth, spawned.priority, At::Line, self.events);
        self.agents.insert(child, One { budget: spawned.brief.budget, claim, ..one });
    }

    /// A slot is assigned by the state of the pool.
    fn slot_is_due(&self, slot: SlotAssignment, priority: Priority, siblings: u32) {
        match slot {
            SlotAssignment::Free => assert!(!self.is_full(), "there is no free slot"),
            SlotAssignment::After(victim) => {
                assert!(self.is_full(), "an agent yields though a slot is free");
                assert!(priority > Priority::Normal && self.spawn.allow_preempt, "it may not");
                let found = self.victim_of(priority);
                assert_eq!(found, Some(victim.agent), "the lowest below, of several the youngest");
            }
            SlotAssignment::Queued => assert!(self.is_full() && siblings > 0, "it is queued"),
        }
    }

    /// Only the agent that first requested it asks again, once it has the result.
    fn asked_again(&mut self, asked: &AgentAskedAgain) {
        let events = self.events;
        let (child, parent) = (asked.child.agent, asked.parent.agent);
        assert!(!self.is_stopping, "an agent is asked again in a run that stops");
        let above = self.one(parent);
        assert!(matches!(above.at, At::Works | At::Yields), "{:?} asks again", above.at);
        assert!(above.calls.insert(asked.call), "one call, two agents");
        let siblings = above.children;
        above.children += 1;
        self.slot_is_due(asked.slot, asked.priority, siblings);
        let one = self.one(child);
        assert_eq!((one.at, one.parent), (At::Finished, Some(parent)), "{child} is asked again");
        assert!(one.has_begun, "{child} has no session to go on with");
        (one.at, one.since, one.priority) = (At::Line, events, asked.priority);
        one.requested = events;
        one.spent_before = one.spent;
        one.claim =
            if matches!(asked.slot, SlotAssignment::After(_)) { QueueRank::Heir } else { QueueRank::None };
        (one.is_held, one.is_timed, one.awaits_restart, one.in_a_row) = (false, false, false, 0);
        (one.awaits_request, one.restarts) = (true, 0);
        self.again += 1;
    }

    fn victim_of(&self, priority: Priority) -> Option<u32> {
        let below = self
            .agents
            .iter()
            .filter(|(agent, one)| **agent != ROOT && one.at == At::Works && one.priority < priority);
        below.min_by_key(|(_, one)| (one.priority, Reverse(one.requested))).map(|(agent, _)| *agent)
    }

    fn started(&mut self, agent: u32) {
        assert!(!self.is_stopping, "{agent} begins while the run stops");
        assert!(!self.is_full(), "{agent} begins without a slot");
        let one = self.agents[&agent].clone();
        let may = match one.at {
            At::Line => true,
            At::Preempted => one.children == 0,
            At::Suspended { wanted } => one.children == 0 && wanted,
            At::Works | At::Yields | At::Finished => false,
        };
        assert!(may, "{agent} begins as {:?} with {} children", one.at, one.children);
        let is_next = |other: &One| one.is_granted || other.rank() >= one.rank();
        let before = self.waiting().into_iter().filter(|other| !is_next(&self.agents[other]));
        let before = before.collect::<Vec<_>>();
        assert!(before.is_empty(), "{before:?} were before {agent}");
        let one = self.one(agent);
        (one.at, one.has_begun, one.claim) = (At::Works, true, QueueRank::None);
        (one.is_granted, one.is_held) = (false, false);
        one.restarts += u32::from(std::mem::take(&mut one.awaits_restart));
        (one.is_timed, one.awaits_request) = (false, false);
    }

    /// An agent that is queued while a slot is free gets it at once, whatever is queued later.
    fn grant(&mut self, agent: u32) {
        let granted = self.agents.values().filter(|one| one.is_granted).count();
        let is_free = self.at_work().count() + granted < self.spawn.slots();
        let is_stopping = self.is_stopping;
        let one = self.one(agent);
        one.is_granted = is_free && !is_stopping && one.children == 0 && one.at != At::Works;
    }

    fn yields(&mut self, agent: u32, to: Option<u32>) {
        assert_ne!(agent, ROOT, "the root never yields");
        let waits = !self.waiting().is_empty();
        let one = self.one(agent);
        assert_eq!(one.at, At::Works, "{agent} is told to yield");
        match to {
            Some(to) => assert_eq!(self.agents[&to].at, At::Line, "for one that waits"),
            None => assert!(one.priority < Priority::Normal && waits, "it has not fallen behind another"),
        }
        self.one(agent).at = At::Yields;
    }

    fn paused(&mut self, paused: &AgentSuspended) {
        let (events, agent) = (self.events, paused.child.agent);
        assert!(!paused.outcome.is_final(), "a suspension is no end");
        let one = self.one(agent);
        // An agent that waits for a slot may be suspended by request.
        let may = match one.at {
            At::Works | At::Yields => true,
            At::Line | At::Preempted => is_asked(&paused.outcome),
            At::Suspended { .. } => one.awaits_restart && is_asked(&paused.outcome),
            At::Finished => false,
        };
        assert!(may, "{agent} is suspended as {:?}: {}", one.at, paused.outcome);
        one.is_granted = false;
        one.since = events;
        one.is_timed = false;
        if paused.outcome.is_preempted() {
            assert_eq!(one.at, At::Yields, "{agent} was not told to yield");
            one.at = At::Preempted;
            self.preempted += 1;
        } else {
            one.at = At::Suspended { wanted: false };
        }
        self.give_back(agent);
    }

    /// A suspended or finished agent has no reservations.
    fn give_back(&mut self, agent: u32) {
        let reserved = std::mem::take(&mut self.one(agent).reserved);
        for (tokens, cost) in reserved.into_values() {
            self.each_up_from(agent, |spent, _, _| {
                spent.tokens_set_aside -= tokens;
                spent.money_set_aside -= cost.0;
            });
        }
    }

    fn resumed(&mut self, resumed: &Resumed) {
        self.budget = self.budget.changed_by(resumed.budget);
        if let ResumeCause::Asked { .. } = resumed.cause {
            (self.is_stopping, self.suspended) = (false, false);
            self.one(ROOT).at = At::Works;
            let has_worked = self.agents.values_mut().filter(|one| !one.awaits_restart);
            has_worked.for_each(|one| one.in_a_row = 0);
            // A wait for a restart continues.
            let suspended = self.agents.iter();
            let suspended =
                suspended.filter(|(_, one)| matches!(one.at, At::Suspended { .. }) && !one.is_timed);
            let suspended = suspended.map(|(agent, _)| *agent).collect::<Vec<_>>();
            suspended.into_iter().for_each(|agent| self.want(agent));
        }
    }

    fn want(&mut self, agent: u32) {
        let events = self.events;
        let one = self.one(agent);
        if one.children == 0 && one.at != (At::Suspended { wanted: true }) {
            one.since = events;
        }
        one.is_held = false;
        // The root has its slot.
        one.at = if agent == ROOT { At::Works } else { At::Suspended { wanted: true } };
    }

    fn finished(&mut self, agent: u32, parent_is_suspended_for_it: bool) {
        let events = self.events;
        let one = self.one(agent);
        assert!(one.at != At::Finished, "{agent} is done twice");
        (one.at, one.is_granted, one.awaits_request) = (At::Finished, false, false);
        self.give_back(agent);
        let Some(parent) = self.one(agent).parent else { return };
        let above = self.one(parent);
        above.children -= 1;
        if above.children == 0 && matches!(above.at, At::Preempted | At::Suspended { .. }) {
            above.since = events;
            if above.at == (At::Suspended { wanted: false })
                && parent_is_suspended_for_it
                && !above.is_held
                && parent != ROOT
            {
                above.at = At::Suspended { wanted: true };
            }
        }
    }

    /// The accounts of the agent, of those above it and of the run, with their limits.
    fn each_up_from(&mut self, agent: u32, mut change: impl FnMut(&mut Spent, Budget, &str)) {
        let mut next = Some(agent);
        while let Some(number) = next {
            let one = self.one(number);
            // Its own budget counts from when it was last asked.
            let before = one.spent_before;
            let limit = Budget {
                tokens: one.budget.tokens.map(|tokens| tokens + before.tokens),
                money: one.budget.money.map(|money| MicroDollars(money.0 + before.money)),
                ..one.budget
            };
            change(&mut one.spent, limit, &format!("agent {number}"));
            next = one.parent;
        }
        change(&mut self.spent, self.budget, "the run");
    }

    fn reserved(&mut self, reserved: &BudgetReserved) {
        let agent = reserved.session.agent;
        let one = self.one(agent);
        assert!(one.at != At::Finished, "budget for {agent}, which is done");
        assert!(!one.charged.contains(&reserved.call), "a call that is paid is paid again");
        let doubled = one.reserved.insert(reserved.call, (reserved.tokens, reserved.cost));
        assert_eq!(doubled, None, "set aside twice");
        let (tokens, cost) = (reserved.tokens, reserved.cost.0);
        if reserved.purpose == Purpose::Judge {
            self.judges_may_take(reserved);
        }
        self.each_up_from(agent, |spent, limit, whose| {
            spent.tokens_set_aside += tokens;
            spent.money_set_aside += cost;
            let used = spent.tokens + spent.tokens_set_aside;
            assert!(limit.tokens.is_none_or(|limit| used <= limit), "{used} tokens of {whose}: {limit:?}");
            let used = spent.money + spent.money_set_aside;
            assert!(limit.money.is_none_or(|limit| used <= limit.0), "{used} money of {whose}: {limit:?}");
        });
    }

    /// Including the reservations for the judges of other agents.
    fn judges_may_take(&mut self, reserved: &BudgetReserved) {
        self.judges_calls.insert((reserved.session.agent, reserved.call));
        let most = |limit: u64| limit * self.judges_percent / 100;
        let (tokens, money) = (self.judges.tokens + reserved.tokens, self.judges.money + reserved.cost.0);
        assert!(self.budget.tokens.is_none_or(|limit| tokens <= most(limit)), "{tokens} tokens for judges");
        assert!(self.budget.money.is_none_or(|limit| money <= most(limit.0)), "{money} for judges");
    }

    fn charged(&mut self, charged: &BudgetCharged) {
        let agent = charged.session.agent;
        if self.judges_calls.remove(&(agent, charged.call)) {
            self.judges.tokens += charged.usage.total();
            self.judges.money += charged.cost.unwrap_or_default().0;
        }
        let one = self.one(agent);
        assert!(one.charged.insert(charged.call), "call {} of {agent} is paid twice", charged.call);
        let set_aside = one.reserved.remove(&charged.call);
        let (aside_tokens, aside_money) = set_aside.expect("what is paid was set aside");
        let (tokens, money) = (charged.usage.total(), charged.cost.unwrap_or_default().0);
        self.each_up_from(agent, |spent, _, _| {
            spent.tokens_set_aside -= aside_tokens;
            spent.money_set_aside -= aside_money.0;
            spent.tokens += tokens;
            spent.money += money;
        });
    }

    pub(crate) fn has_live_children(&self, agent: SessionId) -> bool {
        self.agents.get(&agent.agent).is_some_and(|one| one.children > 0)
    }

    /// Whether it was asked again and has yet to begin with that request.
    pub(crate) fn awaits_request(&self, agent: SessionId) -> bool {
        self.agents.get(&agent.agent).is_some_and(|one| one.awaits_request)
    }

    pub(crate) fn has_begun(&self, agent: SessionId) -> bool {
        self.agents.get(&agent.agent).is_some_and(|one| one.has_begun)
    }

    /// How many model calls of an agent were paid.
    pub(crate) fn paid(&self, agent: u32) -> usize {
        self.agents.get(&agent).map_or(0, |one| one.charged.len())
    }
}

fn is_asked(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Paused { why: PauseReason::Asked { .. } })
}

impl One {
    fn new(parent: Option<u32>, depth: u32, priority: Priority, at: At, since: u64) -> Self {
        Self {
            parent,
            depth,
            priority,
            at,
            since,
            requested: since,
            claim: QueueRank::None,
            has_begun: parent.is_none(),
            children: 0,
            is_held: false,
            is_granted: false,
            budget: Budget::default(),
            spent: Spent::default(),
            spent_before: Spent::default(),
            calls: BTreeSet::new(),
            reserved: BTreeMap::new(),
            charged: BTreeSet::new(),
            awaits_restart: false,
            awaits_request: false,
            is_timed: false,
            in_a_row: 0,
            restarts: 0,
        }
    }

    /// The order of the queue, the lowest first.
    fn rank(&self) -> (Reverse<QueueRank>, Reverse<Priority>, u64) {
        (Reverse(self.claim), Reverse(self.priority), self.since)
    }
}

/// The state of a session by its log so far.
#[derive(Debug, Default)]
pub(crate) struct SessionLaws {
    asked: BTreeSet<CallId>,
    started: BTreeSet<CallId>,
    finished: BTreeSet<CallId>,
    /// By the call that requested an agent: whether that agent is suspended.
    delegated: BTreeMap<CallId, bool>,
    by_entry: BTreeMap<Seq, CallId>,
    delegates: BTreeSet<String>,
    is_stopping: bool,
    /// For another reason than its sub-agents.
    is_told_to_stop: bool,
    yields: bool,
    segments: SegmentLaw,
    suspended_for_child: bool,
    has_ended: bool,
    pub(crate) model_calls: BTreeSet<u32>,
    pub(crate) goal: GoalLaws,
}

/// After an end only another segment may follow, and none of an agent that was delivered.
fn may_follow_an_end(record: &Record) {
    let kind = record.entry.kind();
    assert!(
        matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Resumed(_))),
        "{kind} after the end of {}",
        record.actor
    );
    let is_root = matches!(record.actor, ActorKey::Session(session) if session.agent == ROOT);
    let may_go_on = match &record.entry {
        Entry::Lifecycle(LifecycleEntry::Resumed(Resumed { cause: ResumeCause::Retry { .. }, .. })) => true,
        Entry::Lifecycle(LifecycleEntry::Resumed(Resumed { cause: ResumeCause::Asked { by }, .. })) => {
            by.starts_with("agent ")
        }
        _ => false,
    };
    assert!(is_root || may_go_on, "{} had been delivered, and goes on", record.actor);
}

impl SessionLaws {
    pub(crate) fn see(&mut self, record: &Record) {
        self.segments.see(record);
        if std::mem::take(&mut self.has_ended) {
            may_follow_an_end(record);
        }
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                let delegates = crate::tree_world::delegating(&started.policy);
                self.delegates = delegates.into_iter().map(str::to_owned).collect();
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                self.results_are_complete(record, "an answer");
                for block in &answer.content {
                    if let Block::ToolCall(call) = block {
                        assert!(self.asked.insert(call.id.clone()), "a call's name twice");
                    }
                }
            }
            Entry::Model(ModelEntry::Called(called)) => {
                assert!(self.model_calls.insert(called.call), "two calls of one number");
                if matches!(called.purpose, Purpose::Turn | Purpose::Summary) {
                    self.results_are_complete(record, "a model call");
                }
                if called.purpose != Purpose::FinalSummary {
                    let may = !self.yields || self.is_stopping;
                    assert!(may, "{} was told to yield and calls its model", record.actor);
                }
            }
            Entry::Tool(ToolEntry::Started(start)) => {
                assert!(self.started.insert(start.call.clone()) || start.again, "started twice unsaid");
                assert!(!self.yields || start.again, "{} was told to yield and begins a call", record.actor);
                if self.delegates.contains(&start.tool) {
                    self.delegated.insert(start.call.clone(), false);
                    self.by_entry.insert(record.seq, start.call.clone());
                }
            }
            Entry::Tool(ToolEntry::Finished(end)) => {
                assert!(self.asked.contains(&end.call), "a result of no call");
                assert!(self.finished.insert(end.call.clone()), "one result each");
                self.delegated.remove(&end.call);
            }
            Entry::Agent(AgentEntry::SubAgentSuspended(suspended)) => {
                let call = &self.by_entry[&suspended.started];
                *self.delegated.get_mut(call).expect("it is waited for") = true;
            }
            Entry::Agent(AgentEntry::SubAgentResumed(on)) => {
                let call = &self.by_entry[&on.started];
                *self.delegated.get_mut(call).expect("it is waited for") = false;
            }
            Entry::Agent(AgentEntry::MustYield(wish)) if wish.due.is_none() => {
                assert!(self.yields, "its time is over before it began")
            }
            Entry::Agent(AgentEntry::MustYield(requested)) => {
                // The second request says that the grace period is over.
                assert_eq!(self.yields, requested.due.is_none(), "told to yield, or that it is late");
                self.yields = true;
            }
            Entry::Lifecycle(LifecycleEntry::StopRequested(stop)) => {
                self.is_stopping = true;
                self.is_told_to_stop |= !stop.for_child;
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => self.paused(record, paused),
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => self.resumed(resumed),
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.ended(record, &ended.outcome),
            _ => {}
        }
    }

    fn ended(&mut self, record: &Record, outcome: &provost_event::Outcome) {
        assert!(outcome.is_final(), "an end is no suspension");
        self.results_are_complete(record, "an end");
        self.delegated.clear();
        (self.is_stopping, self.is_told_to_stop, self.yields) = (false, false, false);
        self.has_ended = true;
    }

    fn resumed(&mut self, resumed: &Resumed) {
        self.suspended_for_child = false;
        if resumed.cause != ResumeCause::Interrupted {
            self.delegated.values_mut().for_each(|suspended| *suspended = false);
        }
    }

    fn paused(&mut self, record: &Record, paused: &Paused) {
        let is_preempted = paused.outcome.is_preempted();
        assert!(!is_preempted || self.yields, "{} was not told to yield", record.actor);
        let waits = !self.delegated.is_empty() && self.delegated.values().all(|suspended| *suspended);
        self.suspended_for_child = waits && !self.is_told_to_stop && !is_preempted;
        (self.is_stopping, self.is_told_to_stop, self.yields) = (false, false, false);
    }

    fn results_are_complete(&self, record: &Record, before: &str) {
        let open = self.asked.difference(&self.finished).collect::<Vec<_>>();
        assert!(open.is_empty(), "{before} of {} before {open:?} have a result", record.actor);
    }

    pub(crate) const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Whether it is suspended only because its sub-agents are.
    pub(crate) const fn suspended_for_child(&self) -> bool {
        self.suspended_for_child
    }
}
