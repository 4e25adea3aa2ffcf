//! A backend reduced to what decisions need, for a run of any number of agents: their logs, the open effects, a
//! clock. After every event it checks the states against their logs, and the run against laws that are counted
//! from its log alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use provost_engine::{
    Actor, AgentState, Answer, CallModel, Effect, Event, Message, PendingApproval, RunEvent, RunState,
    SessionEvent, SessionState, SessionStatus, ToolResult,
};
use provost_event::{
    Access, ActorKey, AgentEntry, AgentPolicy, AgentRetryScheduled, Block, Budget, BudgetEntry, CallId,
    EffectId, Entry, ErrorClass, Json, LifecycleEntry, ModelEntry, ModelFailure, Outcome, Priority, Purpose,
    Record, RunPolicy, Seq, SessionId, Snapshot, SpawnBudget, StopReason, SubAgentPolicy, Timestamp,
    ToolCall, ToolEntry, ToolStatus, Usage,
};

use crate::states;
use crate::time::{BEGIN, Clocks};
use crate::tree_laws::{RunLaws, SessionLaws};
use crate::world::{LAYOUT, RUN, without_hooks};

/// Maximum number of messages that one event may lead to.
const MESSAGES_MAX: usize = 20_000;

pub(crate) fn session(agent: u32) -> SessionId {
    SessionId { run: RUN, agent }
}

pub(crate) fn key(agent: u32) -> ActorKey {
    session(agent).into()
}

/// A run with this number of slots whose agents may request others: like themselves, or by the name of a priority.
pub(crate) fn policy(max_agents: u32) -> RunPolicy {
    let mut policy = without_hooks();
    policy.agent.tools.push(provost_engine::spawn_tool());
    let names = Priority::ALL.map(Priority::name);
    policy.agent.tools.extend(names.map(|name| provost_engine::agent_tool(name, "works")));
    policy.agent.model.window_tokens = None;
    policy.agent.limits.turns_max = 40;
    policy.spawn = SpawnBudget { max_agents, max_depth: 4, ..SpawnBudget::default() };
    policy.agents = Priority::ALL.map(|priority| sub_agent(priority.name(), priority, &policy.agent)).into();
    policy
}

pub(crate) fn sub_agent(name: &str, priority: Priority, agent: &AgentPolicy) -> SubAgentPolicy {
    SubAgentPolicy {
        name: name.to_owned(),
        agent: agent.clone(),
        priority,
        budget: Budget::default(),
        ask_timeout_ms: None,
        isolation: provost_event::Isolation::Shared,
    }
}

pub(crate) struct Tree {
    pub(crate) actors: BTreeMap<ActorKey, Actor>,
    pub(crate) logs: BTreeMap<ActorKey, Vec<Record>>,
    pub(crate) open: BTreeMap<(ActorKey, Seq), Effect>,
    pub(crate) aborted: BTreeSet<(ActorKey, Seq)>,
    /// Timers that have fired: a process lets each fire once.
    fired: BTreeSet<(ActorKey, Seq)>,
    pub(crate) now: Timestamp,
    pub(crate) clocks: Clocks,
    pub(crate) usage: Usage,
    entropy: u64,
    calls: u32,
    shown: usize,
    folded: BTreeMap<ActorKey, Actor>,
    restored: BTreeMap<ActorKey, Actor>,
    pub(crate) laws: RunLaws,
    pub(crate) sessions: BTreeMap<ActorKey, SessionLaws>,
}

impl Tree {
    pub(crate) fn start(policy: RunPolicy) -> Self {
        Self::start_for("n0", policy)
    }

    pub(crate) fn start_for(goal: &str, policy: RunPolicy) -> Self {
        let mut tree = Self {
            actors: BTreeMap::new(),
            logs: BTreeMap::new(),
            open: BTreeMap::new(),
            aborted: BTreeSet::new(),
            fired: BTreeSet::new(),
            now: BEGIN,
            clocks: Clocks::default(),
            usage: Usage { input_tokens: 50, output_tokens: 50, ..Usage::default() },
            entropy: 100,
            calls: 0,
            shown: 0,
            folded: BTreeMap::new(),
            restored: BTreeMap::new(),
            laws: RunLaws::default(),
            sessions: BTreeMap::new(),
        };
        let (goal, images) = (goal.to_owned(), Vec::new());
        tree.run_event(RunEvent::Start { goal, images, policy: Box::new(policy), baseline: None });
        tree
    }

    pub(crate) fn run_event(&mut self, event: RunEvent) {
        self.post(RUN.into(), event.into());
    }

    pub(crate) fn event(&mut self, agent: u32, event: SessionEvent) {
        self.post(key(agent), event.into());
    }

    /// Posts an event, and all events that it leads to, one after the other.
    pub(crate) fn post(&mut self, to: ActorKey, event: Event) {
        let mut queue = VecDeque::from([Message { to, event }]);
        let mut touched = BTreeSet::new();
        let mut messages = 0;
        while let Some(Message { to, event }) = queue.pop_front() {
            messages += 1;
            assert!(messages < MESSAGES_MAX, "messages go round for ever");
            touched.insert(to);
            queue.extend(self.decide(to, event));
        }
        touched.iter().for_each(|key| self.check_fold(*key));
        self.sessions.values().for_each(|laws| laws.goal.at_quiet());
        let (sessions, actors) = (&self.sessions, &self.actors);
        if let Some(Actor::Run(run)) = actors.get(&RUN.into()) {
            self.laws.at_quiet(run, |agent| suspended_for_child(sessions, agent));
        }
        self.check_standings();
    }

    fn decide(&mut self, to: ActorKey, event: Event) -> Vec<Message> {
        let now = self.clocks.now(self.now, self.entropy);
        let actor = self.actors.entry(to).or_insert_with(|| Actor::new(to));
        let step = states::decide(actor, event, now);
        for entry in step.entries {
            self.append(to, entry);
        }
        for seq in step.closed {
            self.open.remove(&(to, seq));
            self.aborted.remove(&(to, seq));
            self.fired.remove(&(to, seq));
        }
        for seq in step.aborts {
            if let Some(Effect::RunTool(run)) = self.open.get(&(to, seq)) {
                assert!(self.sessions[&to].is_stopping(), "{} is cut for another agent", run.tool);
            }
            self.aborted.insert((to, seq));
        }
        for request in step.effects {
            let doubled = self.open.insert((to, request.seq), self.clocks.begun(self.now, request.effect));
            assert!(doubled.is_none(), "effect {to}#{} opened twice", request.seq);
        }
        step.messages
    }

    fn append(&mut self, to: ActorKey, entry: Entry) {
        let log = self.logs.entry(to).or_default();
        let record = self.clocks.record(self.now, to, Seq(log.len() as u64 + 1), entry);
        match to {
            ActorKey::Run(_) => {
                let sessions = &self.sessions;
                self.laws.see(&record, |agent| suspended_for_child(sessions, agent));
            }
            ActorKey::Session(_) => self.sessions.entry(to).or_default().see(&record),
        }
        log.push(record);
    }

    /// A fold of the log, whole or from its newest snapshot on, gives the state.
    fn check_fold(&mut self, key: ActorKey) {
        let Some(log) = self.logs.get(&key) else { return };
        let folded = self.folded.entry(key).or_insert_with(|| Actor::new(key));
        let seen = usize::try_from(folded.head().0).expect("a short log");
        for record in &log[seen..] {
            folded.replay(record).expect("the log replays");
            if let (Actor::Session(session), Some(laws)) = (&*folded, self.sessions.get_mut(&key)) {
                laws.goal.see(record, session.goal());
            }
            if let Entry::Lifecycle(LifecycleEntry::Snapshot(_)) = record.entry {
                let restored = Actor::restore(&log[0], record).expect("a snapshot that can be read");
                self.restored.insert(key, restored);
            } else if let Some(restored) = self.restored.get_mut(&key) {
                restored.replay(record).expect("the log replays from its snapshot on");
            }
        }
        let state = &self.actors[&key];
        assert_eq!(folded, state, "the fold of the log of {key} is the state");
        if let Some(restored) = self.restored.get(&key) {
            assert_eq!(restored, state, "the fold from the snapshot of {key} on is the state");
        }
    }

    /// The open effects are those that the states wait for; the run's statuses match its agents; no agent waits
    /// without cause.
    fn check_standings(&self) {
        let mut open = BTreeMap::<ActorKey, BTreeSet<Seq>>::new();
        for (actor, seq) in self.open.keys() {
            open.entry(*actor).or_default().insert(*seq);
        }
        let none = BTreeSet::new();
        for agent in self.run().agents() {
            let key = ActorKey::from(agent.session);
            let state = self.session(agent.session.agent);
            let open = open.get(&key).unwrap_or(&none);
            let waited = state.map(|state| state.open_effects().into_iter().collect()).unwrap_or_default();
            assert_eq!(*open, waited, "open effects of {key}");
            let standing = state.map_or(SessionStatus::New, SessionState::standing);
            self.check_standing(&agent.standing, &standing, agent.session);
            if let SessionStatus::Live = standing {
                let waits = !open.is_empty() || self.laws.has_live_children(agent.session);
                assert!(waits, "{key} is alive and waits for nothing");
            }
        }
        if self.run().outcome().is_none() {
            assert!(!self.open.is_empty(), "the run goes on and waits for nothing");
        }
        let of_run = open.get(&RUN.into()).map_or(0, BTreeSet::len);
        assert!(of_run <= usize::from(self.run().outcome().is_none()), "timers of the run");
    }

    fn check_standing(&self, known: &AgentState, real: &SessionStatus, agent: SessionId) {
        let fits = match known {
            AgentState::Queued => match real {
                SessionStatus::New => !self.laws.has_begun(agent),
                SessionStatus::Stopped(outcome) => {
                    let may_go_on = outcome.may_restart() || self.laws.awaits_request(agent);
                    (!outcome.is_final() || may_go_on) && self.laws.has_begun(agent)
                }
                SessionStatus::Live | SessionStatus::BetweenTurns { .. } => false,
            },
            AgentState::Working | AgentState::Yielding { .. } => {
                matches!(real, SessionStatus::Live | SessionStatus::BetweenTurns { .. })
            }
            AgentState::Preempted { .. } => {
                matches!(real, SessionStatus::Stopped(outcome) if outcome.is_preempted())
            }
            AgentState::AwaitsRestart { failed, .. } => {
                matches!(real, SessionStatus::Stopped(outcome) if outcome == failed)
            }
            AgentState::Suspended(_) => match real {
                SessionStatus::New => !self.laws.has_begun(agent),
                SessionStatus::Stopped(outcome) => {
                    !outcome.is_final() || outcome.may_restart() || self.laws.awaits_request(agent)
                }
                SessionStatus::Live | SessionStatus::BetweenTurns { .. } => false,
            },
            AgentState::Finished(_) => match real {
                SessionStatus::New => !self.laws.has_begun(agent),
                SessionStatus::Stopped(outcome) => outcome.is_final(),
                SessionStatus::Live | SessionStatus::BetweenTurns { .. } => false,
            },
        };
        assert!(fits, "the run has {agent} as {known:?}, and it is {real:?}");
    }

    pub(crate) fn take_snapshot(&mut self, key: ActorKey) {
        let Some(actor) = self.actors.get_mut(&key) else { return };
        let state = match &*actor {
            Actor::Run(state) if state.outcome().is_none() => Json::of(state),
            Actor::Session(state) if matches!(state.standing(), SessionStatus::Live) => Json::of(state),
            _ => return,
        };
        let entry = Entry::from(Snapshot { layout: LAYOUT, state: state.expect("it has a JSON form") });
        let record = self.clocks.record(self.now, key, actor.head().next(), entry);
        actor.replay(&record).expect("it follows");
        self.append(key, record.entry);
        self.check_fold(key);
    }

    /// The process dies, and another takes over: the states are read back, and no process performs the open
    /// effects, except for those that `is_fresh` selects.
    pub(crate) fn crash(&mut self, is_fresh: impl Fn(EffectId) -> bool) {
        self.actors.extend(self.folded.iter().map(|(key, actor)| (*key, actor.clone())));
        self.actors.extend(self.restored.iter().map(|(key, actor)| (*key, actor.clone())));
        self.aborted.clear();
        self.fired.clear();
        let waits = self.open.iter().filter(|(_, effect)| !matches!(effect, Effect::Timer { .. }));
        let ids = waits.map(|((actor, seq), _)| EffectId { actor: *actor, seq: *seq });
        let fresh = ids.filter(|id| is_fresh(*id)).collect();
        self.run_event(RunEvent::Recover { fresh });
    }

    pub(crate) fn run(&self) -> &RunState {
        match &self.actors[&RUN.into()] {
            Actor::Run(state) => state,
            Actor::Session(_) => unreachable!("a run's key"),
        }
    }

    pub(crate) fn session(&self, agent: u32) -> Option<&SessionState> {
        match self.actors.get(&key(agent))? {
            Actor::Session(state) => Some(state),
            Actor::Run(_) => None,
        }
    }

    pub(crate) fn log(&self, key: ActorKey) -> &[Record] {
        self.logs.get(&key).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.run().outcome().cloned()
    }

    pub(crate) fn standing(&self, agent: u32) -> AgentState {
        self.run().agents().nth(agent as usize).expect("an agent").standing
    }

    /// The outcome of an agent's session.
    pub(crate) fn suspended(&self, agent: u32) -> Option<Outcome> {
        match self.session(agent)?.standing() {
            SessionStatus::Stopped(outcome) => Some(outcome),
            _ => None,
        }
    }

    pub(crate) fn model_call(&self, agent: u32) -> Option<(Seq, CallModel)> {
        self.open_of(agent, |effect| match effect {
            Effect::CallModel(model_call) => Some(model_call.clone()),
            _ => None,
        })
    }

    fn open_of<T>(&self, agent: u32, wanted: impl Fn(&Effect) -> Option<T>) -> Option<(Seq, T)> {
        self.open
            .iter()
            .filter(|(id, _)| id.0 == key(agent))
            .find_map(|(id, effect)| Some((id.1, wanted(effect)?)))
    }

    /// The agents with a model call in flight.
    pub(crate) fn thinking(&self) -> Vec<u32> {
        let agents = self.run().agents().map(|agent| agent.session.agent);
        agents.filter(|agent| self.model_call(*agent).is_some()).collect()
    }

    /// Whether an agent's model call or tool was aborted.
    pub(crate) fn is_aborted(&self, agent: u32) -> bool {
        self.aborted.iter().any(|id| id.0 == key(agent))
    }

    pub(crate) fn answer(&mut self, agent: u32, content: Vec<Block>, stop: StopReason) {
        let Some((seq, _)) = self.model_call(agent) else { panic!("agent {agent} doesn't think") };
        let answer = Answer { cost: None, content, usage: self.usage, model: "m".to_owned(), stop };
        self.event(agent, SessionEvent::Answered { seq, answer });
    }

    pub(crate) fn say(&mut self, agent: u32, text: &str) {
        self.answer(agent, vec![Block::Text(text.to_owned())], StopReason::EndTurn);
    }

    /// `calls` are a tool's name and its arguments each.
    pub(crate) fn call(&mut self, agent: u32, calls: &[(&str, &str)]) {
        let content = calls.iter().map(|(name, input)| self.tool_call(name, input)).collect();
        self.answer(agent, content, StopReason::ToolUse);
    }

    fn tool_call(&mut self, name: &str, input: &str) -> Block {
        self.calls += 1;
        Block::ToolCall(ToolCall {
            id: CallId::from(format!("c{}", self.calls).as_str()),
            name: name.to_owned(),
            input: Json::parse(input.to_owned()).expect("JSON"),
            malformed: None,
        })
    }

    /// An agent requests others by these tools.
    pub(crate) fn spawn(&mut self, agent: u32, tools: &[&str]) {
        let calls = tools.iter().map(|tool| (*tool, r#"{"goal":"g"}"#)).collect::<Vec<_>>();
        self.call(agent, &calls);
    }

    pub(crate) fn fail(&mut self, agent: u32, class: ErrorClass) {
        let Some((seq, _)) = self.model_call(agent) else { panic!("agent {agent} doesn't think") };
        let failure = ModelFailure::new(class, "its message");
        self.event(agent, SessionEvent::ModelFailed { seq, failure });
    }

    /// The first running tool of an agent finishes.
    pub(crate) fn finish(&mut self, agent: u32, status: ToolStatus, output: &str) {
        let running = self.open_of(agent, |effect| matches!(effect, Effect::RunTool(_)).then_some(()));
        let Some((seq, ())) = running else { panic!("agent {agent} runs no tool") };
        self.event(agent, SessionEvent::ToolDone { seq, result: result(status, output) });
    }

    pub(crate) fn runs_tool(&self, agent: u32) -> bool {
        self.open_of(agent, |effect| matches!(effect, Effect::RunTool(_)).then_some(())).is_some()
    }

    pub(crate) fn approvals(&self, agent: u32) -> Vec<PendingApproval> {
        self.session(agent).map(|state| state.approvals().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn timers(&self) -> Vec<(ActorKey, Seq, Timestamp)> {
        let due = |effect: &Effect| match effect {
            Effect::Timer { due, .. } => Some(*due),
            _ => None,
        };
        let open = self.open.iter().filter(|(id, _)| !self.fired.contains(id));
        open.filter_map(|(id, effect)| Some((id.0, id.1, due(effect)?))).collect()
    }

    /// Lets the earliest timer fire that hasn't yet.
    pub(crate) fn tick(&mut self) {
        let Some((actor, seq, due)) = self.timers().into_iter().min_by_key(|timer| timer.2) else { return };
        self.now = self.now.max(due);
        self.fired.insert((actor, seq));
        match actor {
            ActorKey::Run(_) => self.run_event(RunEvent::TimerFired { seq }),
            ActorKey::Session(_) => self.post(actor, SessionEvent::TimerFired { seq }.into()),
        }
    }

    pub(crate) fn pause(&mut self, agent: Option<u32>) {
        self.run_event(RunEvent::Pause { agent, by: "p".to_owned() });
    }

    pub(crate) fn cancel(&mut self, agent: Option<u32>) {
        self.run_event(RunEvent::Cancel { agent, by: "c".to_owned() });
    }

    pub(crate) fn resume(&mut self, agent: Option<u32>) {
        self.resume_with(agent, Budget::default());
    }

    pub(crate) fn resume_with(&mut self, agent: Option<u32>, budget: Budget) {
        self.run_event(RunEvent::Resume { agent, by: "r".to_owned(), budget, turns_max: None, text: None });
    }

    pub(crate) fn reprioritize(&mut self, agent: u32, priority: Priority) {
        self.run_event(RunEvent::Reprioritize { agent, priority, by: "p".to_owned() });
    }

    /// The results of an agent's calls so far: the status, and the first line.
    pub(crate) fn results(&self, agent: u32) -> Vec<(ToolStatus, String)> {
        let of = |record: &Record| match &record.entry {
            Entry::Tool(ToolEntry::Finished(done)) => {
                Some((done.status, done.output.lines().next().unwrap_or_default().to_owned()))
            }
            _ => None,
        };
        self.log(key(agent)).iter().filter_map(of).collect()
    }

    /// The new entries of the run's log on its agents, a line each.
    pub(crate) fn news(&mut self) -> String {
        let log = self.log(RUN.into());
        let lines = log[self.shown..].iter().filter_map(|record| line(&record.entry));
        let text = lines.map(|line| line + "\n").collect::<String>();
        self.shown = log.len();
        text
    }

    pub(crate) fn has(&self, agent: u32, wanted: impl Fn(&Entry) -> bool) -> bool {
        self.log(key(agent)).iter().any(|record| wanted(&record.entry))
    }

    /// Tokens charged by the run's log.
    pub(crate) fn charged(&self) -> u64 {
        let tokens = |record: &Record| match &record.entry {
            Entry::Budget(BudgetEntry::Charged(charged)) => charged.usage.total(),
            _ => 0,
        };
        self.log(RUN.into()).iter().map(tokens).sum()
    }
}

fn suspended_for_child(sessions: &BTreeMap<ActorKey, SessionLaws>, agent: u32) -> bool {
    sessions.get(&key(agent)).is_some_and(SessionLaws::suspended_for_child)
}

pub(crate) fn result(status: ToolStatus, output: &str) -> ToolResult {
    ToolResult {
        tools: Vec::new(),
        asks: None,
        plan: None,
        facts: provost_event::CallFacts::default(),
        status,
        output: output.to_owned(),
        images: Vec::new(),
        whole: None,
        duration_ms: 1,
        memory: None,
    }
}

fn line(entry: &Entry) -> Option<String> {
    Some(match entry {
        Entry::Agent(AgentEntry::Spawned(spawned)) => {
            let parent = spawned.parent.map(|parent| parent.agent.to_string()).unwrap_or_default();
            let slot = match spawned.slot {
                provost_event::SlotAssignment::Free => "a slot is free".to_owned(),
                provost_event::SlotAssignment::After(victim) => format!("after {}", victim.agent),
                provost_event::SlotAssignment::Queued => "queued".to_owned(),
            };
            format!("{} spawned by {parent} ({}, {slot})", spawned.child.agent, spawned.priority)
        }
        Entry::Agent(AgentEntry::AskedAgain(asked)) => {
            format!(
                "{} asked again by {} ({}, {:?})",
                asked.child.agent, asked.parent.agent, asked.priority, asked.slot
            )
        }
        Entry::Agent(AgentEntry::Started(started)) => format!("{} started", started.child.agent),
        Entry::Agent(AgentEntry::YieldRequested(yields)) => match yields.to {
            Some(to) => format!("{} yields to {}", yields.child.agent, to.agent),
            None => format!("{} yields", yields.child.agent),
        },
        Entry::Agent(AgentEntry::Suspended(paused)) => {
            let why = match &paused.outcome {
                outcome if outcome.is_preempted() => "preempted".to_owned(),
                outcome => outcome.to_string(),
            };
            format!("{} is suspended: {why}", paused.child.agent)
        }
        Entry::Agent(AgentEntry::ResumeRequested(resumed)) => {
            format!("{} resumed by {}", resumed.child.agent, resumed.by)
        }
        Entry::Agent(AgentEntry::RetryScheduled(scheduled)) => {
            let AgentRetryScheduled { agent, outcome, attempt, attempts_max, .. } = scheduled;
            format!("{} failed: {outcome}; retry {attempt} of {attempts_max}", agent.agent)
        }
        Entry::Agent(AgentEntry::Finished(finished)) => {
            let restarts = match finished.restarts {
                0 => String::new(),
                restarts => format!(", restarted {restarts} times"),
            };
            format!("{} finished: {}{restarts}", finished.child.agent, finished.outcome)
        }
        Entry::Agent(AgentEntry::Reprioritized(changed)) => {
            format!("{} is {}", changed.agent.agent, changed.priority)
        }
        Entry::Lifecycle(LifecycleEntry::StopRequested(stop)) => match stop.agent {
            Some(agent) => format!("{} shall stop: {}", agent.agent, stop.outcome),
            None => format!("all shall stop: {}", stop.outcome),
        },
        Entry::Budget(BudgetEntry::Exhausted(exhausted)) => {
            let of = exhausted.of.map_or("the run".to_owned(), |of| of.agent.to_string());
            format!("{} at a limit of {of}: {}", exhausted.session.agent, exhausted.exhausted)
        }
        Entry::Lifecycle(LifecycleEntry::Paused(paused)) => format!("suspended: {}", paused.outcome),
        Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => match &resumed.cause {
            provost_event::ResumeCause::Asked { by } => format!("resumed by {by}"),
            cause => format!("resumed: {cause:?}"),
        },
        Entry::Lifecycle(LifecycleEntry::Ended(ended)) => format!("ended: {}", ended.outcome),
        _ => return None,
    })
}

/// The tools of a policy that request agents.
pub(crate) fn delegating(policy: &AgentPolicy) -> Vec<&str> {
    let delegates = policy.tools.iter().filter(|tool| tool.access == Access::Delegates);
    delegates.map(|tool| tool.name.as_str()).collect()
}

pub(crate) fn is_final_summary(entry: &Entry) -> bool {
    matches!(entry, Entry::Model(ModelEntry::Called(called)) if called.purpose == Purpose::FinalSummary)
}
