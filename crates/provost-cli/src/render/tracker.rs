//! The present status of a run, from its records: what a status line says.

mod doing;

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use provost_engine::{AgentState, RunState, StepStatus, StepTracker};
use provost_event::{
    ActorKey, AgentEntry, Budget, BudgetEntry, Delta, DeltaKind, Entry, GoalEntry, LifecycleEntry, Limits,
    MicroDollars, ModelEntry, Purpose, Record, RunPolicy, Seq, StepEnd, StepEnded, TerminalEntry, ToolEntry,
};

use super::status::{Mark, Spent, Status};
use super::wait::whole_seconds;
use super::words::plural;
use crate::names::Names;
use doing::Doing;

/// The agent that a run begins with.
pub(super) const ROOT: u32 = 0;

/// Counts and present activity.
pub(super) struct Tracker {
    /// The activity of each working agent.
    doing: BTreeMap<u32, Doing>,
    /// Calls that have another agent work, by caller: that agent shows what is done.
    delegated: HashSet<(u32, Seq)>,
    /// External agents.
    programs: HashSet<u32>,
    slots: usize,
    /// Steps of its workflow; none where it has no workflow.
    steps: usize,
    steps_done: usize,
    since: Instant,
    before_ms: u64,
    turn: u32,
    turns_max: u32,
    tokens: u64,
    cost: Option<MicroDollars>,
    limits: Budget,
    /// Verifications of the first agent's goal that have begun.
    rounds: u32,
    /// Whether nothing was shown of the first agent's present answer.
    begins_answer: bool,
    /// Whether its present model call is a turn: summaries and judges aren't shown while they are written.
    is_in_turn: bool,
    names: Names,
    has_hooks: bool,
}

/// A call of the first agent that runs.
pub(super) struct RunningCall {
    pub(super) words: String,
    pub(super) took: String,
    pub(super) output: String,
}

impl Tracker {
    /// From where the run was before, if it was.
    pub(super) fn new(before: Option<&RunState>) -> Self {
        let mut tracker = Self {
            doing: BTreeMap::from([(ROOT, Doing::Starting)]),
            delegated: HashSet::new(),
            programs: HashSet::new(),
            slots: 0,
            steps: 0,
            steps_done: 0,
            since: Instant::now(),
            before_ms: 0,
            turn: 0,
            turns_max: 0,
            tokens: 0,
            cost: None,
            limits: Budget::default(),
            rounds: 0,
            begins_answer: true,
            is_in_turn: false,
            names: before.map(Names::of).unwrap_or_default(),
            has_hooks: false,
        };
        if let Some(state) = before {
            state.policy().into_iter().for_each(|policy| tracker.given(policy));
            tracker.limits = state.budget();
            tracker.before_ms = state.active_ms();
            let root = state.agents().find(|agent| agent.session.agent == ROOT);
            tracker.turn = root.map_or(0, |root| root.turns);
            tracker.turns_max = state.turns_max().min(state.budget().turns.unwrap_or(u32::MAX));
            tracker.tokens = state.ledger().tokens;
            tracker.cost = tracker.cost.map(|_| state.ledger().cost);
            let steps = state.flow().into_iter().flat_map(StepTracker::iter);
            tracker.steps_done = steps.filter(|(_, standing)| **standing == StepStatus::Done).count();
            let works =
                |standing: &AgentState| matches!(standing, AgentState::Working | AgentState::Yielding { .. });
            let at_work = state.agents().filter(|agent| works(&agent.standing));
            tracker.doing.extend(at_work.map(|agent| (agent.session.agent, Doing::Starting)));
        }
        tracker
    }

    fn given(&mut self, policy: &RunPolicy) {
        self.turns_max = policy.agent.limits.turns_max.min(policy.budget.turns.unwrap_or(u32::MAX));
        self.has_hooks = !policy.agent.stop_hooks.is_empty();
        self.limits = policy.budget;
        self.cost = policy.agent.model.price.map(|_| MicroDollars(0));
        self.slots = policy.spawn.slots();
        if let Some(flow) = &policy.flow {
            self.steps = flow.steps.len();
            // The agents of its steps have no parent.
            self.doing.remove(&ROOT);
        }
    }

    /// Takes in an entry.
    pub(super) fn note(&mut self, record: &Record) {
        self.names.learn(record);
        match record.actor {
            ActorKey::Run(_) => self.note_of_run(&record.entry),
            ActorKey::Session(session) => {
                let has_hooks = self.has_hooks && session.agent == ROOT;
                if let (ROOT, Entry::Model(ModelEntry::Called(entry))) = (session.agent, &record.entry) {
                    self.turn = entry.turn;
                    self.is_in_turn = entry.purpose == Purpose::Turn;
                    self.begins_answer |= self.is_in_turn;
                }
                if let (ROOT, Entry::Goal(GoalEntry::CheckStarted(_))) = (session.agent, &record.entry) {
                    self.rounds = self.rounds.saturating_add(1);
                }
                if let (ROOT, Entry::Lifecycle(LifecycleEntry::Resumed(entry))) =
                    (session.agent, &record.entry)
                {
                    self.turns_max = entry.turns_max.unwrap_or(self.turns_max);
                }
                if matches!(record.entry, Entry::Tool(ToolEntry::Started(_)))
                    && self.delegated.contains(&(session.agent, record.seq))
                {
                    return;
                }
                if matches!(record.entry, Entry::Terminal(TerminalEntry::Noted(_))) {
                    self.programs.insert(session.agent);
                }
                let doing = self.doing.entry(session.agent).or_default();
                doing.note(record, has_hooks);
                // Only the program knows whether it calls its model.
                if matches!(doing, Doing::Thinking) && self.programs.contains(&session.agent) {
                    *doing = Doing::Starting;
                }
                if session.agent != ROOT
                    && matches!(
                        record.entry,
                        Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_))
                    )
                {
                    self.doing.remove(&session.agent);
                }
            }
        }
    }

    fn note_of_run(&mut self, entry: &Entry) {
        match entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(entry)) => self.given(&entry.policy),
            Entry::Budget(BudgetEntry::Charged(entry)) => {
                self.tokens = self.tokens.saturating_add(entry.usage.total());
                self.cost = self.cost.map(|cost| cost + entry.cost.unwrap_or_default());
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(entry)) => {
                self.turns_max = entry.turns_max.unwrap_or(self.turns_max);
                self.limits = entry.budget;
            }
            Entry::Agent(AgentEntry::Spawned(entry)) => {
                if let (Some(parent), Some(call)) = (entry.parent, entry.call) {
                    self.delegated.insert((parent.agent, call));
                    self.doing.entry(parent.agent).or_default().ends(|running| running.started == call);
                }
            }
            Entry::Agent(AgentEntry::AskedAgain(entry)) => {
                self.delegated.insert((entry.parent.agent, entry.call));
                self.doing
                    .entry(entry.parent.agent)
                    .or_default()
                    .ends(|running| running.started == entry.call);
            }
            Entry::Agent(AgentEntry::StepEnded(StepEnded { end: StepEnd::Done { .. }, .. })) => {
                self.steps_done = self.steps_done.saturating_add(1);
            }
            Entry::Agent(AgentEntry::Started(entry)) => {
                self.doing.entry(entry.child.agent).or_default();
            }
            Entry::Agent(AgentEntry::Suspended(entry)) if entry.child.agent != ROOT => {
                self.doing.remove(&entry.child.agent);
            }
            Entry::Agent(AgentEntry::RetryScheduled(entry)) => drop(self.doing.remove(&entry.agent.agent)),
            Entry::Agent(AgentEntry::Finished(entry)) if entry.child.agent != ROOT => {
                self.doing.remove(&entry.child.agent);
            }
            _ => {}
        }
    }

    /// Takes in that an answer has begun.
    pub(super) fn hear(&mut self, delta: &Delta) {
        let doing = self.doing.entry(delta.session.agent).or_default();
        if matches!(doing, Doing::SummingUp | Doing::FinalSummary | Doing::Judging) {
            return;
        }
        doing.now(match delta.kind {
            DeltaKind::Text => Doing::Writing,
            DeltaKind::Thinking => Doing::Thinking,
            DeltaKind::Output => return doing.prints(&delta.text),
        });
    }

    /// Takes in that a stop was asked for.
    pub(super) fn stop(&mut self) {
        self.doing.values_mut().for_each(|doing| *doing = Doing::Stopping);
    }

    /// The status, for one line.
    pub(super) fn status(&self) -> Status {
        let is_alone = self.doing.len() <= 1;
        let turn = (self.turn > 0 && is_alone).then(|| match self.turns_max {
            Limits::TURNS_UNLIMITED => format!("turn {}", self.turn),
            most => format!("turn {} of {most}", self.turn),
        });
        let agents = (!is_alone)
            .then(|| format!("{} of {} at work", self.doing.len(), plural(self.slots as u64, "agent")));
        Status {
            mark: self.mark(),
            state: self.in_words(),
            took: whole_seconds(self.before_ms.saturating_add(ms(self.since.elapsed()))),
            turn,
            spent: Spent {
                money: self.cost,
                money_max: self.cost.and(self.limits.money),
                tokens: self.tokens,
                tokens_max: self.limits.tokens,
            },
            steps: (self.steps > 0)
                .then(|| format!("{} of {} done", self.steps_done, plural(self.steps as u64, "step"))),
            round: (self.rounds > 0).then_some(self.rounds),
            agents,
        }
    }

    /// The turn of the first agent.
    pub(super) const fn turn(&self) -> u32 {
        self.turn
    }

    /// Whether the first agent's present model call is a turn.
    pub(super) const fn is_in_turn(&self) -> bool {
        self.is_in_turn
    }

    /// Whether what comes next of the first agent's answer is its beginning; only the first call says so.
    pub(super) fn begins_answer(&mut self) -> bool {
        std::mem::take(&mut self.begins_answer)
    }

    /// The calls of the first agent that run, the oldest first.
    pub(super) fn running_of_root(&self) -> Vec<RunningCall> {
        let Some(Doing::Tools(all)) = self.doing.get(&ROOT) else { return Vec::new() };
        let shown = all.iter().map(|running| RunningCall {
            words: running.words.clone(),
            took: whole_seconds(ms(running.since.elapsed())),
            output: running.output.clone(),
        });
        shown.collect()
    }

    /// What the other agents at work do, each with its label.
    pub(super) fn others(&self) -> Vec<(String, String)> {
        let others = self.doing.iter().filter(|(agent, _)| **agent != ROOT);
        let label = |agent: u32| crate::names::labelled(agent, self.names.name_of(agent));
        others.map(|(agent, doing)| (label(*agent), doing.in_words())).collect()
    }

    /// A question to the user comes before all else, then what is certain to end the work.
    fn mark(&self) -> Mark {
        let marks = || self.doing.values().map(Doing::mark);
        let first = [Mark::NeedsYou, Mark::Paused, Mark::Working, Mark::Verifying];
        first
            .into_iter()
            .find(|mark| marks().any(|found| found == *mark))
            .unwrap_or(if self.doing.is_empty() { Mark::Working } else { Mark::Waiting })
    }

    /// The activities of all working agents, the most telling first.
    fn in_words(&self) -> String {
        let doing = || self.doing.values();
        if doing().any(|doing| matches!(doing, Doing::Stopping)) {
            return Doing::Stopping.in_words();
        }
        // Each call has a line of its own.
        if doing().any(|doing| matches!(doing, Doing::Tools(_))) {
            return "working".to_owned();
        }
        if let Some(asks) = doing().find(|doing| matches!(doing, Doing::AwaitingApproval)) {
            return asks.in_words();
        }
        // An agent that waits for others is less informative than they are.
        let last = self.doing.values().next_back();
        last.map_or_else(|| "waiting for the next step".to_owned(), Doing::in_words)
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
