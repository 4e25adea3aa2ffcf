//! The run's actor: the budget of the whole tree, and how the run as a whole stands.

mod ledger;
mod spawn;

use provost_event::{
    Budget, BudgetCharged, BudgetExhausted, BudgetReserved, Dimension, EffectId, Ended, Entry, Exhausted,
    Image, Outcome, PauseReason, Paused, Purpose, ResumeCause, Resumed, RunId, RunPolicy, RunStarted, Seq,
    SessionId, SessionStarted, Timestamp,
};

use serde::{Deserialize, Serialize};

pub use ledger::{ExecutionTracker, LAST_WORDS_TOKENS, Ledger, Refusal};
pub use spawn::{Acquired, AgentNumber, SlotMove, SpawnTracker, Then};

use crate::snapshot::{self, Snapshots};
use crate::step::StepBuilder;
use crate::{
    ActorStatus, Effect, Event, Message, Now, ReserveRequest, RunEvent, SessionEvent, SettleNote, Step,
};

/// This part of a run's time is kept for its agents' last words, and no more than so many milliseconds.
const LAST_WORDS_TIME_DIVISOR: u64 = 10;
const LAST_WORDS_MS_MAX: u64 = 60_000;

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
    started_at: Timestamp,
    updated_at: Timestamp,
    /// Milliseconds worked on it before `active_since`.
    active_before_ms: u64,
    active_since: Timestamp,
    /// The entry that set the deadline's timer, while it runs.
    deadline: Option<Seq>,
    /// The agents have been told that their time is over; what is left of it is for their last words.
    winds_down: bool,
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
            started_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            active_before_ms: 0,
            active_since: Timestamp::default(),
            deadline: None,
            winds_down: false,
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
        let running = if self.outcome.is_some() { 0 } else { self.updated_at.since_ms(self.active_since) };
        self.active_before_ms.saturating_add(running)
    }

    /// When the time that is left will be over, if nothing interrupts the work.
    fn end_of_time(&self) -> Option<Timestamp> {
        let limit = self.budget.wall_time_ms?;
        Some(self.active_since.plus_ms(limit.saturating_sub(self.active_before_ms)))
    }

    /// When the agents must stop, so that time is left for their last words.
    fn deadline_at(&self) -> Option<Timestamp> {
        let kept_ms = (self.budget.wall_time_ms? / LAST_WORDS_TIME_DIVISOR).min(LAST_WORDS_MS_MAX);
        let end = self.end_of_time()?;
        Some(Timestamp(end.0.saturating_sub(kept_ms)).max(self.active_since))
    }

    /// When the timer fires that is set next.
    fn timer_at(&self) -> Option<Timestamp> {
        if self.winds_down { self.end_of_time() } else { self.deadline_at() }
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
            Entry::BudgetExhausted(exhausted) if exhausted.dimension() == Dimension::WallTime => {
                self.deadline = Some(self.head);
                self.winds_down = true;
            }
            Entry::Snapshot(_) => self.snapshot = self.head,
            Entry::Paused(paused) => self.rests(&paused.outcome, at),
            Entry::Ended(ended) => self.rests(&ended.outcome, at),
            Entry::Resumed(resumed) => self.resumed(resumed, at),
            _ => {}
        }
        self.updated_at = at;
    }

    fn started(&mut self, started: &RunStarted, at: Timestamp) {
        self.goal.clone_from(&started.goal);
        self.budget = started.policy.budget;
        self.turns_max = started.policy.agent.limits.turns_max;
        self.policy = Some(started.policy.clone());
        self.started_at = at;
        self.active_since = at;
        self.set_deadline();
    }

    fn set_deadline(&mut self) {
        self.deadline = self.budget.wall_time_ms.map(|_| self.head);
        self.winds_down = false;
    }

    fn rests(&mut self, outcome: &Outcome, at: Timestamp) {
        self.active_before_ms = self.active_before_ms.saturating_add(at.since_ms(self.active_since));
        self.active_since = at;
        self.outcome = Some(outcome.clone());
        self.deadline = None;
    }

    fn resumed(&mut self, resumed: &Resumed, at: Timestamp) {
        if self.outcome.is_none() {
            // Interrupted: it was worked on until its last entry, as far as anybody knows.
            let worked = self.updated_at.since_ms(self.active_since);
            self.active_before_ms = self.active_before_ms.saturating_add(worked);
        }
        self.active_since = at;
        self.outcome = None;
        self.budget = self.budget.changed_by(resumed.budget);
        self.turns_max = resumed.turns_max.unwrap_or(self.turns_max);
        self.set_deadline();
        // What was set aside for calls that nobody waits for any more is settled by the sessions themselves.
    }

    /// The time that has been worked on it by `now`, if it is limited.
    fn time_used(&self, now: Timestamp) -> Option<Exhausted> {
        let used = self.active_before_ms.saturating_add(now.since_ms(self.active_since));
        Some(Exhausted { dimension: Dimension::WallTime, used, limit: self.budget.wall_time_ms? })
    }

    /// What is said to whoever wants to call a model when all time is over.
    fn time_is_over(&self, now: Timestamp) -> Option<Exhausted> {
        self.time_used(now).filter(|exhausted| self.winds_down && exhausted.used >= exhausted.limit)
    }

    pub(crate) fn decide(&mut self, event: RunEvent, now: Now) -> Step {
        let mut deciding = Deciding { state: self, step: StepBuilder::at(now.at) };
        deciding.on(event);
        let step = deciding.step.finish();
        if self.outcome.is_some() { step } else { snapshot::taken(self, step, now.at) }
    }
}

impl Snapshots for RunState {
    fn is_due(&self) -> bool {
        self.head.0.saturating_sub(self.snapshot.0) >= snapshot::EVERY
    }

    fn take_in(&mut self, entry: &Entry, at: Timestamp) {
        self.apply(entry, at);
    }
}

struct Deciding<'a> {
    state: &'a mut RunState,
    step: StepBuilder,
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
            RunEvent::SessionRests { session, outcome } => self.session_rests(session, outcome),
            RunEvent::TimerFired { seq } => self.deadline_passed(seq),
            RunEvent::Say { text, by } => self.tell(self.root(), SessionEvent::Say { text, by }),
            RunEvent::Pause { by } => {
                let outcome = Outcome::Paused { why: PauseReason::Asked { by } };
                self.tell(self.root(), SessionEvent::Stop { outcome });
            }
            RunEvent::Cancel { by } => {
                self.tell(self.root(), SessionEvent::Stop { outcome: Outcome::Cancelled { by } });
            }
            RunEvent::Resume { by, budget, turns_max } => self.resume(by, budget, turns_max),
            RunEvent::Recover { fresh } => self.recover(&fresh),
        }
    }

    fn start(&mut self, goal: String, images: Vec<Image>, policy: RunPolicy) {
        let agent = policy.agent.clone();
        self.commit(RunStarted { goal: goal.clone(), policy });
        self.arm_deadline();
        let started = SessionStarted { goal, images, policy: agent, parent: None, depth: 0 };
        self.tell(self.root(), SessionEvent::Start(Box::new(started)));
    }

    /// Asks for the timer that the entry just committed has set.
    fn arm_deadline(&mut self) {
        if let (Some(seq), Some(due)) = (self.state.deadline, self.state.timer_at()) {
            self.step.effect(seq, Effect::Timer { due });
        }
    }

    fn disarm_deadline(&mut self) {
        if let Some(seq) = self.state.deadline {
            self.step.close(seq);
        }
    }

    fn reserve(&mut self, request: &ReserveRequest) {
        if self.state.outcome.is_some() {
            return;
        }
        let (session, call) = (request.session, request.call);
        if let Some(exhausted) = self.state.time_is_over(self.step.now()) {
            return self.tell(session, SessionEvent::Refused { call, exhausted });
        }
        if let Some(output_tokens_max) = self.state.ledger.reserved_output(session, call) {
            let deadline = self.state.timer_at();
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
                let deadline = self.state.timer_at();
                self.tell(session, SessionEvent::Reserved { call, output_tokens_max, deadline });
            }
            Err(Refusal { exhausted, .. }) => {
                if request.purpose == Purpose::Turn {
                    self.commit(BudgetExhausted { session, exhausted });
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

    fn session_rests(&mut self, session: SessionId, outcome: Outcome) {
        if session != self.root() || (self.state.outcome.is_some() && !outcome.is_final()) {
            return;
        }
        self.disarm_deadline();
        if outcome.is_final() {
            self.commit(Ended { outcome });
        } else {
            self.commit(Paused { outcome });
        }
    }

    fn deadline_passed(&mut self, seq: Seq) {
        if self.state.deadline != Some(seq) {
            return;
        }
        let Some(exhausted) = self.state.time_used(self.step.now()) else { return };
        self.step.close(seq);
        let session = self.root();
        if !self.state.winds_down {
            self.commit(BudgetExhausted { session, exhausted });
            self.arm_deadline();
        }
        self.tell(session, SessionEvent::Stop { outcome: Outcome::BudgetExhausted(exhausted) });
    }

    fn resume(&mut self, by: String, budget: Budget, turns_max: Option<u32>) {
        if self.state.outcome.is_none() {
            return;
        }
        self.commit(Resumed { cause: ResumeCause::Asked { by: by.clone() }, budget, turns_max });
        self.arm_deadline();
        self.tell(self.root(), SessionEvent::Resume { by, turns_max });
    }

    fn recover(&mut self, fresh: &[EffectId]) {
        if self.state.outcome.is_some() {
            return;
        }
        self.disarm_deadline();
        self.commit(Resumed { cause: ResumeCause::Interrupted, budget: Budget::default(), turns_max: None });
        self.arm_deadline();
        let root = self.root();
        let of_root = fresh.iter().filter(|id| id.actor == root.into()).map(|id| id.seq).collect();
        self.tell(root, SessionEvent::Recover { fresh: of_root });
    }
}
