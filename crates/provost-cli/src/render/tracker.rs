//! The present status of a run, from its records: what a status line says.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use provost_engine::{AgentState, RunState, StepStatus, StepTracker};
use provost_event::{
    ActorKey, AgentEntry, Block, BudgetEntry, CallId, ConversationEntry, Delta, DeltaKind, Entry, GateEntry,
    GoalEntry, GoalJudged, GoalTrigger, GoalVerdict, LifecycleEntry, Limits, MicroDollars, ModelEntry,
    Purpose, Record, RunPolicy, Seq, StepEnd, StepEnded, TerminalEntry, TerminalEvent, TerminalState,
    ToolEntry,
};

use super::arguments;
use super::gate::waits_for;
use super::wait::whole_seconds;
use super::words::{one_line, plural, tokens_in_short};

/// The agent that a run begins with.
const ROOT: u32 = 0;
/// Columns for what is being done.
const DOING_MAX: usize = 60;

/// What an agent does now.
#[derive(Default)]
enum Doing {
    #[default]
    Starting,
    Thinking,
    Writing,
    SummingUp,
    FinalSummary,
    Judging,
    /// A judge is asked again then.
    WaitingForJudge(Instant),
    Tools(Vec<Running>),
    Waiting(Instant),
    AskingHooks(&'static str),
    AwaitingApproval,
    /// An external program does this.
    Program(TerminalState),
    Stopping,
}

struct Running {
    /// The entry that began it.
    started: Seq,
    call: CallId,
    words: String,
    since: Instant,
}

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
    has_hooks: bool,
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
            has_hooks: false,
        };
        if let Some(state) = before {
            state.policy().into_iter().for_each(|policy| tracker.given(policy));
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
        match record.actor {
            ActorKey::Run(_) => self.note_of_run(&record.entry),
            ActorKey::Session(session) => {
                let has_hooks = self.has_hooks && session.agent == ROOT;
                if let (ROOT, Entry::Model(ModelEntry::Called(entry))) = (session.agent, &record.entry) {
                    self.turn = entry.turn;
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
                self.turns_max = entry.turns_max.unwrap_or(self.turns_max)
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
        });
    }

    /// Takes in that a stop was asked for.
    pub(super) fn stop(&mut self) {
        self.doing.values_mut().for_each(|doing| *doing = Doing::Stopping);
    }

    /// The status in one line.
    pub(super) fn line(&self) -> String {
        let mut parts = Vec::new();
        let has_others = self.doing.len() > 1;
        if self.steps > 0 {
            parts.push(format!("{} of {} done", self.steps_done, plural(self.steps as u64, "step")));
        }
        if has_others {
            parts.push(format!("{} of {} at work", self.doing.len(), plural(self.slots as u64, "agent")));
        }
        parts.push(self.in_words());
        if self.turn > 0 && !has_others {
            match self.turns_max {
                Limits::TURNS_UNLIMITED => parts.push(format!("turn {}", self.turn)),
                most => parts.push(format!("turn {}/{most}", self.turn)),
            }
        }
        if self.tokens > 0 {
            parts.push(tokens_in_short(self.tokens));
            parts.extend(self.cost.map(|cost| cost.to_string()));
        }
        parts.push(whole_seconds(self.before_ms.saturating_add(ms(self.since.elapsed()))));
        parts.join(" · ")
    }

    /// The activities of all working agents, the most telling first.
    fn in_words(&self) -> String {
        let doing = || self.doing.values();
        let tools = doing().filter_map(|doing| match doing {
            Doing::Tools(all) => Some(all),
            _ => None,
        });
        let mut tools = tools.flatten().collect::<Vec<_>>();
        if doing().any(|doing| matches!(doing, Doing::Stopping)) {
            return Doing::Stopping.in_words();
        }
        if !tools.is_empty() {
            tools.sort_by_key(|running| running.since);
            return running(&tools);
        }
        if let Some(asks) = doing().find(|doing| matches!(doing, Doing::AwaitingApproval)) {
            return asks.in_words();
        }
        // An agent that waits for others is less informative than they are.
        let last = self.doing.values().next_back();
        last.map_or_else(|| "waiting for the next step".to_owned(), Doing::in_words)
    }
}

impl Doing {
    fn note(&mut self, record: &Record, has_hooks: bool) {
        match &record.entry {
            Entry::Terminal(TerminalEntry::Noted(noted)) => {
                if let TerminalEvent::State(state) = noted.event {
                    self.now(Self::Program(state));
                }
            }
            Entry::Model(ModelEntry::Called(entry)) => match entry.purpose {
                // A program's own calls are part of its exchange.
                Purpose::Turn | Purpose::External => self.now(Self::Thinking),
                Purpose::Summary => self.now(Self::SummingUp),
                // These are what a stop waits for.
                Purpose::Judge => *self = Self::Judging,
                Purpose::FinalSummary => *self = Self::FinalSummary,
            },
            Entry::Conversation(ConversationEntry::AssistantMessage(entry)) => {
                let asks = entry.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
                self.now(if asks || !has_hooks {
                    Self::Starting
                } else {
                    Self::AskingHooks("asking the stop hooks")
                });
            }
            Entry::Model(ModelEntry::Retried(entry)) => {
                self.now(Self::Waiting(Instant::now() + Duration::from_millis(entry.delay_ms)));
            }
            Entry::Tool(ToolEntry::Started(entry)) => {
                let words = arguments::call(&entry.tool, &entry.input);
                let (started, call) = (record.seq, entry.call.clone());
                self.begins(Running { started, call, words, since: Instant::now() });
            }
            Entry::Tool(ToolEntry::Finished(entry)) => self.ends(|running| running.call == entry.call),
            Entry::Lifecycle(LifecycleEntry::StopRequested(_))
            | Entry::Conversation(ConversationEntry::FinalSummary(_)) => *self = Self::Stopping,
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => *self = Self::Starting,
            Entry::Conversation(ConversationEntry::Compacted(_)) => self.gated(Self::Starting),
            Entry::Gate(GateEntry::StopChecked(_)) => self.now(Self::Starting),
            Entry::Goal(GoalEntry::CheckStarted(started)) if has_hooks => {
                let asking = Self::AskingHooks("asking the stop hooks");
                match started.trigger {
                    // This is what the stop waits for.
                    GoalTrigger::Limit => *self = asking,
                    GoalTrigger::Claim | GoalTrigger::Interval => self.now(asking),
                }
            }
            Entry::Goal(GoalEntry::Judged(GoalJudged { wait_ms: Some(ms), .. })) => {
                self.now(Self::WaitingForJudge(Instant::now() + Duration::from_millis(*ms)));
            }
            Entry::Goal(GoalEntry::Verdict(GoalVerdict { trigger: GoalTrigger::Limit, .. })) => {
                *self = Self::Stopping
            }
            Entry::Goal(GoalEntry::Verdict(_)) => self.now(Self::Starting),
            Entry::Gate(GateEntry::HooksAsked(entry)) => {
                self.gated(Self::AskingHooks(waits_for(&entry.about)))
            }
            Entry::Gate(GateEntry::ApprovalRequested(_)) => self.gated(Self::AwaitingApproval),
            Entry::Gate(GateEntry::HooksDecided(_) | GateEntry::ApprovalResolved(_)) => {
                self.gated(Self::Starting)
            }
            _ => {}
        }
    }

    /// A stop that was requested stays visible until it has come.
    fn now(&mut self, doing: Self) {
        if !matches!(self, Self::Stopping) {
            *self = doing;
        }
    }

    /// Tools that run meanwhile are more informative.
    fn gated(&mut self, doing: Self) {
        if !matches!(self, Self::Tools(_)) {
            self.now(doing);
        }
    }

    fn begins(&mut self, running: Running) {
        match self {
            Self::Tools(all) => all.push(running),
            _ => self.now(Self::Tools(vec![running])),
        }
    }

    fn ends(&mut self, is_it: impl Fn(&Running) -> bool) {
        if let Self::Tools(all) = self {
            all.retain(|running| !is_it(running));
            if all.is_empty() {
                *self = Self::Starting;
            }
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Starting => "working".to_owned(),
            Self::Thinking => "thinking".to_owned(),
            Self::Writing => "writing".to_owned(),
            Self::SummingUp => "summing up".to_owned(),
            Self::FinalSummary => "saying how far it is".to_owned(),
            Self::Judging => "verifying the goal".to_owned(),
            Self::Tools(all) => running(&all.iter().collect::<Vec<_>>()),
            Self::Waiting(until) => format!("waiting {}", left(*until)),
            Self::WaitingForJudge(until) => format!("waiting {} for a judge", left(*until)),
            Self::AskingHooks(words) => (*words).to_owned(),
            Self::AwaitingApproval => "waiting for approval".to_owned(),
            Self::Program(state) => state.to_string(),
            Self::Stopping => "stopping".to_owned(),
        }
    }
}

fn running(all: &[&Running]) -> String {
    let Some(first) = all.first() else { return "working".to_owned() };
    let others = if all.len() > 1 { format!(" and {} more", all.len() - 1) } else { String::new() };
    let took = whole_seconds(ms(first.since.elapsed()));
    format!("running {}{others} ({took})", one_line(&first.words, DOING_MAX))
}

fn left(until: Instant) -> String {
    whole_seconds(ms(until.saturating_duration_since(Instant::now())))
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
