//! The invariants of a tree of agents, checked by its logs alone, without the engine.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use provost_event::{
    ActorKey, AgentEntry, AgentSpawned, Block, Budget, BudgetEntry, CallId, ConversationEntry, Entry,
    LifecycleEntry, Outcome, PauseReason, Record, ResumeCause, RunId, Seq, ToolEntry,
};
use provost_harness::Backend;

use crate::tree_script::last_text;

const ROOT: u32 = 0;

/// All logs of a run.
pub(crate) type Logs = BTreeMap<ActorKey, Vec<Arc<Record>>>;

/// Every log of `run`, whole.
pub(crate) async fn logs(backend: &dyn Backend, run: RunId) -> Logs {
    let mut logs = Logs::new();
    for actor in backend.actors(run).await.unwrap() {
        let log: &mut Vec<Arc<Record>> = logs.entry(actor).or_default();
        loop {
            let after = log.last().map_or(Seq::START, |record| record.seq);
            let more = backend.read(actor, after, 1_000).await.unwrap();
            if more.is_empty() {
                break;
            }
            log.extend(more);
        }
    }
    logs
}

/// The last entries of each log without an end, for failure messages.
pub(crate) fn last_entries(logs: &Logs) -> String {
    let is_open = |log: &&Vec<Arc<Record>>| {
        !matches!(log.last().unwrap().entry, Entry::Lifecycle(LifecycleEntry::Ended(_)))
    };
    let shown = |log: &Vec<Arc<Record>>| {
        let last = log.iter().skip(log.len().saturating_sub(8));
        last.map(|record| record.to_line().unwrap().chars().take(300).collect::<String>() + "\n")
            .collect::<String>()
    };
    logs.values().filter(is_open).map(shown).collect()
}

/// Statistics of the logs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) agents: usize,
    pub(crate) at_work_most: usize,
    /// Agents that were preempted.
    pub(crate) preempted: usize,
    /// Those of them that were resumed, and those that were cancelled before.
    pub(crate) resumed: usize,
    pub(crate) cut_off: usize,
    /// Agents that were queued for their first slot.
    pub(crate) waited: usize,
    pub(crate) completed: usize,
    pub(crate) cancelled: usize,
    /// Agents that reached a limit.
    pub(crate) exhausted: usize,
    /// Tokens that calls used beyond their reservations.
    pub(crate) misreported: u64,
    /// The largest excess over a budget.
    pub(crate) passed_most: u64,
}

/// One agent, by the run's log.
struct Agent {
    parent: Option<u32>,
    name: String,
    goal: String,
    budget: Budget,
    has_begun: bool,
    suspended: Option<Outcome>,
    /// A resume was requested.
    is_awake: bool,
    finished: Option<Outcome>,
    spent: u64,
    misreported: u64,
    reserved: HashMap<u32, u64>,
}

/// The fold of a run's log.
struct Tree<'a> {
    slots: usize,
    budget: Budget,
    agents: BTreeMap<u32, Agent>,
    is_stopping: bool,
    counted: &'a mut Counted,
}

/// Checks the run's log and each of its agents'. `decisions` are the heads of the run's log after each decision.
#[track_caller]
pub(crate) fn check(run: RunId, logs: &Logs, decisions: &[Seq]) -> Counted {
    let mut counted = Counted::default();
    let log = &logs[&ActorKey::Run(run)];
    let decisions = decisions.iter().copied().collect::<BTreeSet<_>>();
    let mut tree = Tree::begin(&log[0].entry, &mut counted);
    for record in log {
        tree.take(record);
        if decisions.contains(&record.seq) {
            tree.waits_have_a_reason(record.seq);
        }
    }
    let is_final = matches!(log.last().unwrap().entry, Entry::Lifecycle(LifecycleEntry::Ended(_)));
    tree.ends(is_final);
    assert!(!is_final || tree.counted.preempted == tree.counted.resumed + tree.counted.cut_off);
    let agents = std::mem::take(&mut tree.agents);
    for (actor, log) in logs {
        if let ActorKey::Session(session) = actor {
            session_is_lawful(session.agent, log, &agents, is_final);
        }
    }
    counted
}

impl<'a> Tree<'a> {
    fn begin(first: &Entry, counted: &'a mut Counted) -> Self {
        let Entry::Lifecycle(LifecycleEntry::RunStarted(started)) = first else {
            panic!("a run begins with {first:?}")
        };
        let root = Agent::new(None, "", "", Budget::default(), true);
        Self {
            slots: started.policy.spawn.max_agents as usize,
            budget: started.policy.budget,
            agents: BTreeMap::from([(ROOT, root)]),
            is_stopping: false,
            counted,
        }
    }

    fn agent(&mut self, number: u32, seq: Seq) -> &mut Agent {
        self.agents.get_mut(&number).unwrap_or_else(|| panic!("{seq}: agent {number} was never asked for"))
    }

    fn at_work(&self) -> usize {
        self.agents.values().filter(|agent| agent.is_at_work()).count()
    }

    fn children(&self, number: u32) -> usize {
        let live = self.agents.values().filter(|agent| agent.finished.is_none());
        live.filter(|agent| agent.parent == Some(number)).count()
    }

    fn take(&mut self, record: &Record) {
        let seq = record.seq;
        match &record.entry {
            Entry::Agent(AgentEntry::Spawned(spawned)) => self.spawned(spawned, seq),
            Entry::Agent(AgentEntry::Started(started)) => {
                let agent = self.agent(started.child.agent, seq);
                assert!(agent.finished.is_none(), "{seq}: {} starts after its end", agent.goal);
                assert!(!agent.is_at_work(), "{seq}: {} is at work already", agent.goal);
                let was_preempted = agent.suspended.as_ref().is_some_and(is_preempted);
                (agent.has_begun, agent.suspended, agent.is_awake) = (true, None, false);
                self.counted.resumed += usize::from(was_preempted);
                let at_work = self.at_work();
                assert!(at_work <= self.slots, "{seq}: {at_work} at work");
                self.counted.at_work_most = self.counted.at_work_most.max(at_work);
            }
            Entry::Agent(AgentEntry::YieldRequested(yields)) => {
                let agent = self.agent(yields.child.agent, seq);
                assert!(agent.is_at_work(), "{seq}: {} holds no slot and shall yield", agent.goal);
                assert_ne!(yields.child.agent, ROOT, "{seq}: the root never yields");
            }
            Entry::Agent(AgentEntry::Suspended(paused)) => {
                let agent = self.agent(paused.child.agent, seq);
                assert!(agent.is_at_work(), "{seq}: {} is suspended, and did before", agent.goal);
                agent.suspended = Some(paused.outcome.clone());
                // A call that was never made uses nothing.
                agent.reserved.clear();
                agent.is_awake = is_preempted(&paused.outcome);
                self.counted.preempted += usize::from(is_preempted(&paused.outcome));
            }
            Entry::Agent(AgentEntry::ResumeRequested(resumed)) => {
                self.agent(resumed.child.agent, seq).is_awake = true
            }
            Entry::Agent(AgentEntry::Finished(finished)) => {
                let agent = self.agent(finished.child.agent, seq);
                assert!(agent.finished.is_none(), "{seq}: {} is finished twice", agent.goal);
                agent.finished = Some(finished.outcome.clone());
                agent.reserved.clear();
                let is_cancelled = matches!(finished.outcome, Outcome::Cancelled { .. });
                assert!(
                    is_cancelled || agent.is_working(),
                    "{seq}: {} ends while it is suspended",
                    agent.goal
                );
                let was_preempted = agent.suspended.as_ref().is_some_and(is_preempted);
                self.counted.cut_off += usize::from(was_preempted);
                self.is_stopping |= finished.child.agent == ROOT;
            }
            Entry::Lifecycle(LifecycleEntry::StopRequested(stop)) => self.is_stopping |= stop.agent.is_none(),
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                let root = self.agent(ROOT, seq);
                root.suspended = Some(paused.outcome.clone());
                root.reserved.clear();
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => self.resumed(resumed),
            Entry::Budget(BudgetEntry::Reserved(reserved)) => {
                self.agent(reserved.session.agent, seq).reserved.insert(reserved.call, reserved.tokens);
                self.fits(reserved.session.agent, seq);
            }
            Entry::Budget(BudgetEntry::Charged(charged)) => {
                self.charge(charged.session.agent, charged.call, charged.usage.total(), seq);
            }
            _ => {}
        }
    }

    fn spawned(&mut self, spawned: &AgentSpawned, seq: Seq) {
        let parent = spawned.parent.map(|parent| parent.agent);
        let above = parent.map(|parent| self.agent(parent, seq));
        assert!(above.is_none_or(|above| above.is_at_work()), "{seq}: the parent is at work");
        let brief = &spawned.brief;
        let agent = Agent::new(parent, &brief.name, &brief.goal, brief.budget, false);
        assert!(self.agents.insert(spawned.child.agent, agent).is_none(), "{seq}: asked for twice");
        self.counted.waited += usize::from(spawned.slot != provost_event::SlotAssignment::Free);
        self.counted.agents += 1;
    }

    fn resumed(&mut self, resumed: &provost_event::Resumed) {
        self.budget = self.budget.changed_by(resumed.budget);
        self.is_stopping = false;
        if matches!(resumed.cause, ResumeCause::Asked { .. }) {
            let suspended = self.agents.values_mut().filter(|agent| agent.suspended.is_some());
            suspended.for_each(|agent| agent.is_awake = true);
        }
        self.agents.entry(ROOT).and_modify(|root| root.suspended = None);
    }

    /// The agents whose limits bind `number`: it and those above it.
    fn chain(&self, number: u32) -> Vec<u32> {
        let above = |number: &u32| self.agents[number].parent;
        std::iter::successors(Some(number), above).collect()
    }

    fn below(&self, top: u32) -> impl Iterator<Item = &Agent> {
        self.agents
            .iter()
            .filter(move |(number, _)| self.chain(**number).contains(&top))
            .map(|(_, agent)| agent)
    }

    /// A reservation fits every budget that applies.
    fn fits(&self, number: u32, seq: Seq) {
        for one in self.chain(number) {
            if let Some(limit) = self.limit(one) {
                let all = self.below(one).map(|agent| agent.spent + agent.reserved.values().sum::<u64>());
                let all = all.sum::<u64>();
                assert!(all <= limit, "{seq}: {all} of {limit} tokens for agent {one} and those below it");
            }
        }
    }

    fn charge(&mut self, number: u32, call: u32, tokens: u64, seq: Seq) {
        let agent = self.agent(number, seq);
        let reserved = agent.reserved.remove(&call).unwrap_or_else(|| panic!("{seq}: nothing was set aside"));
        agent.spent += tokens;
        agent.misreported += tokens.saturating_sub(reserved);
        self.counted.misreported += tokens.saturating_sub(reserved);
        for one in self.chain(number) {
            if let Some(limit) = self.limit(one) {
                let spent = self.below(one).map(|agent| agent.spent).sum::<u64>();
                let lied = self.below(one).map(|agent| agent.misreported).sum::<u64>();
                assert!(spent <= limit + lied, "{seq}: agent {one}: {spent} of {limit}, {lied} misreported");
                self.counted.passed_most = self.counted.passed_most.max(spent.saturating_sub(limit));
            }
        }
    }

    fn limit(&self, number: u32) -> Option<u64> {
        let own = self.agents[&number].budget.tokens;
        let runs = self.budget.tokens.filter(|_| number == ROOT);
        own.into_iter().chain(runs).min()
    }

    /// While a slot is free, no eligible agent is queued.
    fn waits_have_a_reason(&self, seq: Seq) {
        let is_suspended = self.agents[&ROOT].suspended.is_some();
        if self.is_stopping || is_suspended || self.at_work() >= self.slots {
            return;
        }
        for (number, agent) in self.agents.iter().filter(|(number, _)| **number != ROOT) {
            let waits = !agent.has_begun || (agent.is_awake && self.children(*number) == 0);
            assert!(!waits || agent.finished.is_some(), "{seq}: {} waits while a slot is free", agent.goal);
        }
    }

    fn ends(&mut self, is_final: bool) {
        for agent in self.agents.values().filter(|agent| agent.parent.is_some()) {
            let Some(outcome) = &agent.finished else {
                assert!(!is_final, "{} was never finished", agent.goal);
                continue;
            };
            match outcome {
                Outcome::Completed { .. } => self.counted.completed += 1,
                Outcome::Cancelled { .. } => self.counted.cancelled += 1,
                Outcome::BudgetExhausted(_) => self.counted.exhausted += 1,
                other => panic!("{} ends as {other}", agent.goal),
            }
        }
    }
}

impl Agent {
    fn new(parent: Option<u32>, name: &str, goal: &str, budget: Budget, has_begun: bool) -> Self {
        Self {
            parent,
            name: name.to_owned(),
            goal: goal.to_owned(),
            budget,
            has_begun,
            suspended: None,
            is_awake: false,
            finished: None,
            spent: 0,
            misreported: 0,
            reserved: HashMap::new(),
        }
    }

    fn is_working(&self) -> bool {
        self.has_begun && self.suspended.is_none()
    }

    fn is_at_work(&self) -> bool {
        self.is_working() && self.finished.is_none()
    }
}

fn is_preempted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Paused { why: PauseReason::Preempted { .. } })
}

/// An agent's log: one end, one result for each call, an end of each suspension, and results that match the
/// outcomes of the agents it spawned.
#[track_caller]
fn session_is_lawful(number: u32, log: &[Arc<Record>], agents: &BTreeMap<u32, Agent>, is_final: bool) {
    let mut open: HashMap<CallId, String> = HashMap::new();
    let (mut ends, mut suspended) = (0, None);
    for record in log {
        let place = format!("agent {number} at {}", record.seq);
        assert_eq!(ends, 0, "{place}: {} behind the end", record.entry.kind());
        match &record.entry {
            Entry::Conversation(ConversationEntry::AssistantMessage(message)) => {
                assert!(suspended.is_none(), "{place}: it speaks while it is suspended");
                for block in &message.content {
                    if let Block::ToolCall(call) = block {
                        let twice = open.insert(call.id.clone(), call.input.text().to_owned());
                        assert!(twice.is_none(), "{place}: {} twice", call.id);
                    }
                }
            }
            Entry::Tool(ToolEntry::Started(_)) => {
                assert!(suspended.is_none(), "{place}: it acts while it is suspended")
            }
            Entry::Tool(ToolEntry::Finished(finished)) => {
                let input = open.remove(&finished.call);
                let input = input.unwrap_or_else(|| panic!("{place}: a second result of {}", finished.call));
                result_is_true(number, &input, &finished.output, agents);
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => suspended = Some(paused.outcome.clone()),
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => {
                if resumed.cause == ResumeCause::SlotFree {
                    assert!(suspended.as_ref().is_some_and(is_preempted), "{place}: it had not yielded");
                }
                suspended = None;
            }
            Entry::Lifecycle(LifecycleEntry::Ended(_)) => ends += 1,
            _ => {}
        }
    }
    if is_final {
        assert_eq!(ends, 1, "agent {number} has no end: {:?}", log.last());
        assert!(open.is_empty(), "agent {number} has calls without a result: {open:?}");
    }
}

fn result_is_true(parent: u32, input: &str, output: &str, agents: &BTreeMap<u32, Agent>) {
    let asked = agents.values().find(|agent| {
        agent.parent == Some(parent) && !agent.goal.is_empty() && input.contains(agent.goal.as_str())
    });
    let Some(asked) = asked else { return };
    let Some(outcome) = &asked.finished else { panic!("{} isn't finished and has a result", asked.goal) };
    let is_told = output.contains(&format!("): {outcome};")) || output.contains("was stopped");
    assert!(is_told, "{} ({}) ends as {outcome}, and its result is {output:?}", asked.goal, asked.name);
    let is_completed = matches!(outcome, Outcome::Completed { .. });
    assert!(!is_completed || output.starts_with(&last_text(&asked.goal)), "{} says {output:?}", asked.goal);
}
