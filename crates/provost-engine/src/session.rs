//! One agent's actor: what it is (the fold of its log) and what it decides (Think→Act).
//!
//! A turn goes `Ready` → (budget) → `Thinking` → `Acting` or `Wishing` → `Ready`. Every phase follows from the
//! entries alone, so that a state read back from the log goes on where the lost one stood.

use std::collections::BTreeMap;

use provost_event::{AgentPolicy, CallId, Json, Outcome, Seq, SessionId, Timestamp, ToolSpec};

use crate::event::ToolResult;
use crate::step::StepBuilder;
use crate::{Now, SessionEvent, Step};

mod act;
mod answer;
mod decide;
mod fold;
mod size;
mod stop;

use size::Size;

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has started it.
    New,
    /// It is worked on.
    Live,
    /// A stepped session between two turns: it waits to be told to take this one.
    BetweenTurns {
        /// The turn that comes next.
        next: u32,
    },
    /// It rests or has ended.
    Rests(Outcome),
}

/// Where in a turn a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before its first entry.
    New,
    /// The next thing is a model call; its budget is asked for.
    Ready,
    /// A stepped session between turns.
    Between,
    /// A model call is in flight, opened by this entry.
    Thinking(Seq),
    /// A failed model call waits to be made again, with a timer opened by this entry.
    Waiting(Seq),
    /// The calls of the last answer are run.
    Acting,
    /// The agent wishes to stop; the stop hooks are asked by the effect that this entry opened.
    Wishing(Seq),
}

/// Where one tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Pending,
    Running(Seq),
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    id: CallId,
    tool: String,
    input: Json,
    malformed: Option<String>,
    stage: Stage,
}

/// Counters that a turn's or the whole session's limits look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Counters {
    turns_ended: u32,
    calls: u32,
    answers: u32,
    tool_calls: u32,
    /// Failed attempts at the present answer.
    failed_attempts: u32,
    empty_answers: u32,
    continuations: u32,
    /// Interruptions of the present turn.
    interruptions: u32,
    failures_in_a_row: u32,
    stop_blocks: u32,
}

/// The last call's fingerprint, and how often it came in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Circle {
    fingerprint: u64,
    times: u32,
}

/// What the stop hooks last objected to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    reasons: Vec<String>,
    evidence: String,
    tool_calls: u32,
    /// How often it came in a row on the same evidence.
    times: u32,
}

/// A session: the fold of its log.
#[derive(Debug, Clone)]
pub struct SessionState {
    session: SessionId,
    head: Seq,
    goal: String,
    policy: Option<AgentPolicy>,
    turns_max: u32,
    phase: Phase,
    outcome: Option<Outcome>,
    stopping: Option<Outcome>,
    deadline: Option<Timestamp>,
    calls: Vec<Call>,
    counters: Counters,
    circle: Circle,
    block: Option<Block>,
    size: Size,
    /// What the agent said in the present turn; the last one's until the model is called again.
    turn_text: String,
    text_is_of_last_turn: bool,
    /// Somebody spoke after the last model call was made.
    unheard: bool,
    /// The conversation was compacted for the present answer.
    compacted: bool,
    memories: BTreeMap<String, Json>,
    /// Results that wait for those of earlier calls of the same answer. The one thing that isn't in the log:
    /// when it is lost, its effects are still open, and so count as interrupted.
    held: BTreeMap<Seq, ToolResult>,
}

impl PartialEq for SessionState {
    /// Equal as folds of a log: results that are held don't count.
    fn eq(&self, other: &Self) -> bool {
        let key = |s: &Self| (s.session, s.head, s.turns_max, s.phase, s.deadline, s.unheard, s.compacted);
        key(self) == key(other)
            && (&self.goal, &self.policy, &self.outcome, &self.stopping)
                == (&other.goal, &other.policy, &other.outcome, &other.stopping)
            && (&self.calls, &self.counters, &self.circle, &self.block)
                == (&other.calls, &other.counters, &other.circle, &other.block)
            && (&self.size, &self.turn_text, &self.memories)
                == (&other.size, &other.turn_text, &other.memories)
    }
}

impl Eq for SessionState {}

impl SessionState {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            head: Seq::START,
            goal: String::new(),
            policy: None,
            turns_max: 0,
            phase: Phase::New,
            outcome: None,
            stopping: None,
            deadline: None,
            calls: Vec::new(),
            counters: Counters::default(),
            circle: Circle::default(),
            block: None,
            size: Size::default(),
            turn_text: String::new(),
            text_is_of_last_turn: false,
            unheard: false,
            compacted: false,
            memories: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// The last entry.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match (&self.outcome, self.phase) {
            (Some(outcome), _) => Standing::Rests(outcome.clone()),
            (None, Phase::New) => Standing::New,
            (None, Phase::Between) => Standing::BetweenTurns { next: self.next_turn() },
            (None, _) => Standing::Live,
        }
    }

    /// What it was given; absent before its first entry.
    #[must_use]
    pub const fn policy(&self) -> Option<&AgentPolicy> {
        self.policy.as_ref()
    }

    /// What the agent said last, in the turn it is in or that it stopped with.
    #[must_use]
    pub fn last_text(&self) -> &str {
        &self.turn_text
    }

    /// What each tool asked to be told at its next call.
    #[must_use]
    pub const fn memories(&self) -> &BTreeMap<String, Json> {
        &self.memories
    }

    /// The effects whose results are awaited.
    #[must_use]
    pub fn open_effects(&self) -> Vec<Seq> {
        match self.phase {
            _ if self.outcome.is_some() => Vec::new(),
            Phase::Thinking(seq) | Phase::Waiting(seq) | Phase::Wishing(seq) => vec![seq],
            Phase::Acting => self.running().map(|(_, seq)| seq).collect(),
            Phase::New | Phase::Ready | Phase::Between => Vec::new(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::is_final)
    }

    pub(crate) fn decide(&mut self, event: SessionEvent, now: Now) -> Step {
        let mut deciding = Deciding { state: self, step: StepBuilder::at(now.at), entropy: now.entropy };
        deciding.on(event);
        deciding.step.finish()
    }

    const fn next_turn(&self) -> u32 {
        self.counters.turns_ended.saturating_add(1)
    }

    fn running(&self) -> impl Iterator<Item = (&Call, Seq)> {
        self.calls.iter().filter_map(|call| match call.stage {
            Stage::Running(seq) => Some((call, seq)),
            Stage::Pending | Stage::Done => None,
        })
    }

    fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.policy.as_ref()?.tools.iter().find(|spec| spec.name == name)
    }
}

/// One decision in the making.
struct Deciding<'a> {
    state: &'a mut SessionState,
    step: StepBuilder,
    entropy: u64,
}
