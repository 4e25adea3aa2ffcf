//! The run's actor: its agents, the budget of all of them, and how the run as a whole stands.

mod agents;
mod brief;
mod clock;
mod flow;
mod ledger;
mod orchestrate;
mod spawn;
mod worktree;

use provost_event::{
    Budget, BudgetCharged, BudgetExhausted, BudgetReserved, Dimension, EffectId, Entry, Exhausted, Image,
    MicroDollars, Outcome, PauseReason, Priority, Purpose, ResumeCause, Resumed, RunId, RunPolicy,
    RunStarted, Seq, SessionId, SessionStarted, Timestamp,
};

use serde::{Deserialize, Serialize};

pub use agents::AgentStanding;
pub use brief::{SPAWN_TOOL, agent_tool, spawn_tool};
pub use flow::{Attempt, FlowProblem, StepNumber, StepStanding, StepTracker, check_flow};
pub use ledger::{ExecutionTracker, LAST_WORDS_TOKENS, Ledger, Refusal};
pub use spawn::{Acquired, AgentNumber, SlotMove, SpawnTracker, Then};

use crate::snapshot::{self, Snapshots};
use crate::step::StepBuilder;
use crate::{
    ActorStatus, Effect, Event, Message, Now, ReserveRequest, RunEvent, SessionEvent, SettleNote, Step,
};
use agents::{Agents, ROOT};
use clock::WorkClock;

/// Between two snapshots there are so many entries for each agent, if that makes more than usual: all of them together
/// stay smaller than the log.
const ENTRIES_AN_AGENT: usize = 4;

/// One agent of a run, as the run knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus<'a> {
    /// Its session.
    pub session: SessionId,
    /// The agent that asked for it, if one did.
    pub parent: Option<SessionId>,
    /// How many stand above it.
    pub depth: u32,
    /// What it is called; empty for the root.
    pub name: &'a str,
    /// What it is to reach; absent for the root, and once its work is over.
    pub goal: Option<&'a str>,
    /// How urgent its work is; absent once it is over.
    pub priority: Option<Priority>,
    /// How it stands.
    pub standing: AgentStanding,
    /// What it and those below it may spend of the run's budget.
    pub budget: Budget,
    /// Turns that it took itself.
    pub turns: u32,
    /// Tokens charged for it and those below it.
    pub tokens: u64,
    /// Money charged for it and those below it, as far as prices are known.
    pub cost: MicroDollars,
    /// When it was asked for.
    pub spawned_at: Timestamp,
    /// Milliseconds that it worked, as of the run's last entry; 0 for the root.
    pub worked_ms: u64,
}

/// A run: the fold of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    run: RunId,
    head: Seq,
    #[serde(skip)]
    goal: String,
    #[serde(skip)]
    policy: Option<RunPolicy>,
    budget: Budget,
    turns_max: u32,
    ledger: Ledger,
    outcome: Option<Outcome>,
    /// It was told to come to this, and all its agents with it.
    stopping: Option<Outcome>,
    started_at: Timestamp,
    updated_at: Timestamp,
    clock: WorkClock,
    agents: Agents,
    /// Its steps, if it goes through a flow and has no root agent.
    flow: Option<StepTracker>,
    /// Who had it go on last.
    resumed_by: String,
    /// The entry that set the timer, while one runs, and when it is due.
    timer: Option<(Seq, Timestamp)>,
    /// The last entry that is a snapshot.
    snapshot: Seq,
}

impl RunState {
    /// A run before its first entry.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            head: Seq::START,
            goal: String::new(),
            policy: None,
            budget: Budget::default(),
            turns_max: 0,
            ledger: Ledger::default(),
            outcome: None,
            stopping: None,
            started_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            clock: WorkClock::default(),
            agents: Agents::new(run),
            flow: None,
            resumed_by: String::new(),
            timer: None,
            snapshot: Seq::START,
        }
    }

    /// The last entry.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// How it rests or ended; absent while it is worked on.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// What it has spent.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What it may spend.
    #[must_use]
    pub const fn budget(&self) -> Budget {
        self.budget
    }

    /// Turns that its root agent may take, by its policy and what was changed since.
    #[must_use]
    pub const fn turns_max(&self) -> u32 {
        self.turns_max
    }

    /// What it was given; absent before its first entry.
    #[must_use]
    pub const fn policy(&self) -> Option<&RunPolicy> {
        self.policy.as_ref()
    }

    /// Milliseconds worked on it, as of its last entry.
    #[must_use]
    pub const fn active_ms(&self) -> u64 {
        self.clock.used_ms(self.updated_at)
    }

    /// Its agents, by number: the root first.
    pub fn agents(&self) -> impl Iterator<Item = AgentStatus<'_>> {
        self.agents.iter().map(|(number, agent)| {
            let spent = self.ledger.spent(number);
            AgentStatus {
                session: self.agents.session(number),
                parent: agent.parent.map(|parent| self.agents.session(parent)),
                depth: agent.depth,
                name: &agent.name,
                goal: agent.brief.as_ref().map(|brief| brief.goal.as_str()),
                priority: self.agents.slots.priority(number).filter(|_| agent.is_live()),
                standing: agent.standing(),
                budget: agent.brief.as_ref().map(|brief| brief.budget).unwrap_or_default(),
                turns: self.ledger.own_turns(number),
                tokens: spent.map_or(0, |spent| spent.tokens),
                cost: spent.map_or(MicroDollars(0), |spent| spent.cost),
                spawned_at: agent.spawned_at,
                worked_ms: agent.clock.used_ms(self.updated_at),
            }
        })
    }

    /// The steps of its flow, if it goes through one; then none of its agents is a root.
    #[must_use]
    pub const fn flow(&self) -> Option<&StepTracker> {
        self.flow.as_ref()
    }

    /// Slots that are held: agents that work, or that shall make way.
    #[must_use]
    pub fn slots_held(&self) -> usize {
        self.agents.slots.held()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::is_final)
    }

    pub(crate) fn status(&self) -> Option<ActorStatus> {
        let policy = self.policy.as_ref()?;
        Some(ActorStatus {
            goal: self.goal.clone(),
            workspace: policy.agent.workspace.clone(),
            model: policy.agent.model.name.clone(),
            outcome: self.outcome.clone(),
            started_at: self.started_at,
            updated_at: self.updated_at,
            turns: self.ledger.turns(),
            tokens: self.ledger.tokens,
            cost: self.ledger.cost,
        })
    }

    /// Takes from the log's first entry what a snapshot leaves out.
    pub(crate) fn complete(&mut self, first: &Entry) -> bool {
        let Entry::RunStarted(started) = first else { return false };
        self.goal.clone_from(&started.goal);
        self.policy = Some(started.policy.clone());
        true
    }

    pub(crate) fn apply(&mut self, entry: &Entry, at: Timestamp) {
        self.head = self.head.next();
        match entry {
            Entry::RunStarted(started) => self.started(started, at),
            Entry::BudgetReserved(reserved) => self.ledger.reserve(reserved),
            Entry::BudgetCharged(charged) => self.ledger.charge(charged),
            Entry::BudgetExhausted(exhausted) => self.exhausted(exhausted),
            Entry::ChildSpawned(spawned) => {
                let parent = spawned.parent.map(|parent| parent.agent);
                self.ledger.admit(spawned.child.agent, parent, spawned.brief.budget);
                if let Some(flow) = self.flow.as_mut().filter(|_| parent.is_none())
                    && let Some(step) = flow.find(&spawned.brief.name)
                {
                    flow.began(step, spawned.child.agent);
                }
                self.agents.spawned(spawned, at);
            }
            Entry::ChildStarted(started) => self.agents.started(started.child.agent, at),
            Entry::ChildYields(yields) => self.agents.yields(yields.child.agent, yields.to),
            Entry::ChildPaused(paused) => {
                self.ledger.rests(paused.child.agent);
                match paused.child.agent {
                    ROOT => self.agents.root_rests(&paused.outcome),
                    _ => self.agents.paused(paused, at),
                }
            }
            Entry::ChildFinished(finished) => {
                self.ledger.rests(finished.child.agent);
                match finished.child.agent {
                    ROOT => self.agents.root_rests(&finished.outcome),
                    _ => self.agents.finished(finished, at),
                }
            }
            Entry::ChildResumed(resumed) => {
                self.resumed_by.clone_from(&resumed.by);
                self.agents.resumed(resumed.child.agent);
            }
            Entry::Reprioritized(reprioritized) => self.agents.reprioritized(reprioritized),
            Entry::StepEnded(ended) => {
                if let Some(flow) = &mut self.flow {
                    flow.ended(ended);
                }
            }
            Entry::StopRequested(requested) => match requested.agent {
                Some(session) => self.agents.stopping(session.agent, &requested.outcome),
                None => self.stopping = Some(requested.outcome.clone()),
            },
            Entry::Snapshot(_) => self.snapshot = self.head,
            Entry::Paused(paused) => self.rests(&paused.outcome, at),
            Entry::Ended(ended) => self.rests(&ended.outcome, at),
            Entry::Resumed(resumed) => self.resumed(resumed, at),
            _ => {}
        }
        self.updated_at = at;
        let due = self.clock.due().into_iter().chain(self.agents.first_due()).chain(self.step_due()).min();
        let due = due.filter(|_| self.outcome.is_none());
        if due != self.timer.map(|(_, due)| due) {
            self.timer = due.map(|due| (self.head, due));
        }
    }

    fn started(&mut self, started: &RunStarted, at: Timestamp) {
        self.goal.clone_from(&started.goal);
        self.budget = started.policy.budget;
        self.turns_max = started.policy.agent.limits.turns_max;
        self.flow = started.policy.flow.as_ref().map(StepTracker::new);
        if self.flow.is_some() {
            self.agents.begin_without_root(started.policy.spawn);
        } else {
            self.agents.begin(started.policy.spawn, at);
        }
        self.policy = Some(started.policy.clone());
        self.started_at = at;
        self.clock = WorkClock::limited(self.budget.wall_time_ms);
        self.clock.start(at);
    }

    fn exhausted(&mut self, exhausted: &BudgetExhausted) {
        let is_time = exhausted.dimension() == Dimension::WallTime;
        if is_time && exhausted.of.is_none() {
            self.clock.winds_down = true;
        }
        self.agents.exhausted(exhausted.session.agent, exhausted.of, is_time);
    }

    fn rests(&mut self, outcome: &Outcome, at: Timestamp) {
        self.clock.stop(at);
        self.outcome = Some(outcome.clone());
        self.stopping = None;
        self.ledger.rests(ROOT);
        self.agents.root_rests(outcome);
    }

    fn resumed(&mut self, resumed: &Resumed, at: Timestamp) {
        if self.outcome.is_none() {
            // It was worked on until its last entry, as far as anybody knows.
            self.clock.interrupted(self.updated_at, at);
            self.agents.interrupted(self.updated_at, at);
        } else {
            self.clock.start(at);
            self.agents.run_resumed();
            if let Some(flow) = &mut self.flow {
                flow.resumed();
            }
        }
        self.outcome = None;
        if let ResumeCause::Asked { by } = &resumed.cause {
            self.resumed_by.clone_from(by);
        }
        self.budget = self.budget.changed_by(resumed.budget);
        self.clock.limit_ms = self.budget.wall_time_ms;
        self.turns_max = resumed.turns_max.unwrap_or(self.turns_max);
        // What was set aside for calls that nobody waits for any more is settled by the sessions themselves.
    }

    /// Whether nobody begins anything any more, since all come to an end or a rest.
    const fn comes_to_rest(&self) -> bool {
        self.stopping.is_some() || self.clock.winds_down
    }

    pub(crate) fn decide(&mut self, event: RunEvent, now: Now) -> Step {
        let timer_before = self.timer;
        let mut deciding = Deciding { state: self, step: StepBuilder::at(now.at), entropy: now.entropy };
        deciding.on(event);
        deciding.go_on();
        deciding.set_timer(timer_before);
        let step = deciding.step.finish();
        if self.outcome.is_some() { step } else { snapshot::taken(self, step, now.at) }
    }
}

impl Snapshots for RunState {
    fn is_due(&self) -> bool {
        let size = u64::try_from(self.agents.len().saturating_mul(ENTRIES_AN_AGENT)).unwrap_or(u64::MAX);
        self.head.0.saturating_sub(self.snapshot.0) >= size.max(snapshot::EVERY)
    }

    fn take_in(&mut self, entry: &Entry, at: Timestamp) {
        self.apply(entry, at);
    }
}

struct Deciding<'a> {
    state: &'a mut RunState,
    step: StepBuilder,
    /// Fresh random bits.
    entropy: u64,
}

impl Deciding<'_> {
    fn commit(&mut self, entry: impl Into<Entry>) {
        let entry = entry.into();
        self.state.apply(&entry, self.step.now());
        self.step.entry(entry);
    }

    fn tell(&mut self, session: SessionId, event: SessionEvent) {
        self.step.message(Message { to: session.into(), event: Event::Session(event) });
    }

    fn root(&self) -> SessionId {
        SessionId::root(self.state.run)
    }

    fn on(&mut self, event: RunEvent) {
        match event {
            RunEvent::Start { goal, images, policy } if self.state.policy.is_none() => {
                self.start(goal, images, *policy);
            }
            _ if self.state.policy.is_none() || self.state.has_ended() => {}
            RunEvent::Start { .. } => {}
            RunEvent::Reserve(request) => self.reserve(&request),
            RunEvent::Settle(note) => self.settle(note),
            RunEvent::Spawn { parent, call, tool, input } => self.spawn(parent, call, &tool, &input),
            RunEvent::SessionRests { session, outcome, text, for_child } => {
                self.session_rests(session, outcome, &text, for_child);
            }
            RunEvent::TimerFired { seq } => self.timer_fired(seq),
            RunEvent::Say { agent, text, by } => self.say(agent, text, by),
            RunEvent::Pause { agent, by } => {
                let outcome = Outcome::Paused { why: PauseReason::Asked { by } };
                self.stop(agent, outcome);
            }
            RunEvent::Cancel { agent, by } => self.stop(agent, Outcome::Cancelled { by }),
            RunEvent::Reprioritize { agent, priority, by } => self.reprioritize(agent, priority, by),
            RunEvent::Resume { agent: None | Some(ROOT), by, budget, turns_max } => {
                self.resume(by, budget, turns_max);
            }
            RunEvent::Resume { agent: Some(agent), by, .. } => self.resume_agent(agent, &by),
            RunEvent::Recover { fresh } => self.recover(&fresh),
        }
    }

    fn start(&mut self, goal: String, images: Vec<Image>, policy: RunPolicy) {
        let agent = policy.agent.clone();
        let has_root = policy.flow.is_none();
        self.commit(RunStarted { goal: goal.clone(), policy });
        if !has_root {
            return;
        }
        let started = SessionStarted {
            goal,
            images,
            policy: agent,
            parent: None,
            depth: 0,
            call: None,
            agent: None,
            worktree: None,
        };
        self.tell(self.root(), SessionEvent::Start(Box::new(started)));
    }

    /// Has the timer run that the entries just committed want, in place of the one `before`.
    fn set_timer(&mut self, before: Option<(Seq, Timestamp)>) {
        if self.state.timer == before {
            return;
        }
        if let Some((seq, _)) = before {
            self.step.close(seq);
        }
        if let Some((seq, due)) = self.state.timer {
            self.step.effect(seq, Effect::Timer { due });
        }
    }

    fn reserve(&mut self, request: &ReserveRequest) {
        if self.state.outcome.is_some() {
            return;
        }
        let (session, call) = (request.session, request.call);
        if let Some(exhausted) = self.state.time_is_over(session, self.step.now()) {
            return self.tell(session, SessionEvent::Refused { call, exhausted });
        }
        let deadline = self.state.deadline_of(session);
        if let Some(output_tokens_max) = self.state.ledger.reserved_output(session, call) {
            return self.tell(session, SessionEvent::Reserved { call, output_tokens_max, deadline });
        }
        match self.state.ledger.fitting_output(self.state.budget, request) {
            Ok(output_tokens_max) => {
                self.commit(BudgetReserved {
                    session,
                    call,
                    tokens: request.input_tokens.saturating_add(u64::from(output_tokens_max)),
                    cost: ledger::worst_cost(request, output_tokens_max),
                    output_tokens_max,
                });
                self.tell(session, SessionEvent::Reserved { call, output_tokens_max, deadline });
            }
            Err(Refusal { exhausted, by }) => {
                if request.purpose == Purpose::Turn {
                    let of = by.map(|agent| self.state.agents.session(agent));
                    self.commit(BudgetExhausted { session, of, exhausted });
                }
                self.tell(session, SessionEvent::Refused { call, exhausted });
            }
        }
    }

    fn settle(&mut self, note: SettleNote) {
        if self.state.ledger.reserved_output(note.session, note.call).is_some() {
            self.commit(BudgetCharged {
                session: note.session,
                call: note.call,
                turn: note.turn,
                model: note.model,
                usage: note.usage,
                cost: note.cost,
            });
        }
    }

    fn timer_fired(&mut self, seq: Seq) {
        if self.state.timer.is_none_or(|(timer, _)| timer != seq) || self.state.outcome.is_some() {
            return;
        }
        self.step.close(seq);
        let now = self.step.now();
        if self.state.clock.due().is_some_and(|due| due <= now) {
            self.time_passed();
        }
        for agent in self.state.agents.due_by(now) {
            self.agents_time_passed(agent);
        }
    }

    /// The run's time is over, but for the agents' last words; or all of it.
    fn time_passed(&mut self) {
        let Some(exhausted) = self.state.clock.used(self.step.now()) else { return };
        if !self.state.clock.winds_down {
            self.commit(BudgetExhausted { session: self.root(), of: None, exhausted });
        }
        let outcome = Outcome::BudgetExhausted(exhausted);
        for agent in self.state.at_work() {
            self.tell(agent, SessionEvent::Stop { outcome: outcome.clone() });
        }
    }

    fn resume(&mut self, by: String, budget: Budget, turns_max: Option<u32>) {
        if self.state.outcome.is_none() {
            return;
        }
        self.commit(Resumed { cause: ResumeCause::Asked { by: by.clone() }, budget, turns_max });
        if self.state.flow.is_none() {
            self.tell(self.root(), SessionEvent::Resume { by, turns_max });
        }
    }

    fn recover(&mut self, fresh: &[EffectId]) {
        if self.state.outcome.is_some() {
            return;
        }
        self.commit(Resumed { cause: ResumeCause::Interrupted, budget: Budget::default(), turns_max: None });
        for session in self.state.at_work() {
            let of_it = fresh.iter().filter(|id| id.actor == session.into()).map(|id| id.seq).collect();
            self.tell(session, SessionEvent::Recover { fresh: of_it });
        }
    }
}

impl RunState {
    /// The sessions that are worked on.
    fn at_work(&self) -> Vec<SessionId> {
        let at_work = self.agents.iter().filter(|(_, agent)| agent.is_at_work());
        at_work.map(|(number, _)| self.agents.session(number)).collect()
    }

    /// When an agent must have come to its end, if its time or the run's is limited.
    fn deadline_of(&self, session: SessionId) -> Option<Timestamp> {
        let own = self.agents.get(session.agent).and_then(|agent| agent.clock.due());
        own.into_iter().chain(self.clock.due()).min()
    }

    /// What is said to whoever wants to call a model when all time is over.
    fn time_is_over(&self, session: SessionId, now: Timestamp) -> Option<Exhausted> {
        let own = self.agents.get(session.agent).and_then(|agent| agent.clock.over(now));
        self.clock.over(now).or(own)
    }
}
