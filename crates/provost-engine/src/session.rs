//! One agent's actor: what it is (the fold of its log) and what it decides (Think→Act).
//!
//! A turn goes `Ready` → (hooks) → (budget) → `Thinking` → `Acting` or `Wishing` → `Ready`. Every phase follows from
//! the entries alone, so that a state read back from the log goes on where the lost one stood.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use provost_event::{
    AgentPolicy, CallId, Dimension, Elapsed, Entry, HookSubject, Json, Outcome, Plan, Purpose, Seq,
    SessionId, SessionSource, ToolSpec,
};

use serde::{Deserialize, Serialize};

use crate::event::ToolResult;
use crate::moment::Moment;
use crate::permission::Permissions;
use crate::snapshot::{self, Snapshots};
use crate::step::StepBuilder;
use crate::{Now, SessionEvent, Step};

mod act;
mod announce;
mod answer;
mod approve;
mod ask;
mod call;
mod change;
mod compact;
mod context;
mod decide;
mod delegate;
mod fold;
mod fork;
mod gate;
mod goal;
mod hear;
mod outage;
mod progress;
mod recover;
mod repeats;
mod stop;
mod terminal;
mod worktree;
mod wrap_up;

use call::{Call, Consent, Stage, Word};
use compact::Compactions;
use context::Context;
use goal::GoalTrack;
use outage::Asked;
use progress::Progress;
use repeats::{CallsOfTurn, Repeats};
use terminal::TerminalTrack;
use worktree::OwnTree;

pub use call::PendingApproval;
pub use goal::{GoalStatus, JUDGE_TOKENS};
pub use progress::{ProgressReport, ProgressState, kind_of_text};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// Before its first entry.
    New,
    /// The worktree that it works in is made, by the effect that this entry opened.
    MakingWorktree(Seq),
    /// The next thing is a model call; its budget is asked for.
    Ready,
    /// A stepped session between turns.
    Between,
    /// Hooks are asked, by this entry, before the next model call.
    Preparing(Seq),
    /// A model call is in flight, opened by this entry.
    Thinking(Seq),
    /// A failed model call waits to be made again, with a timer opened by this entry.
    Waiting(Seq),
    /// Hooks are asked, by this entry, whether the conversation may be shortened.
    Compacting(Seq),
    /// The calls of the last answer are run.
    Acting,
    /// The agent wishes to stop, or its goal is verified; hooks or stop hooks are asked by the effect that this entry
    /// opened.
    Wishing(Seq),
    /// The goal is verified; the next thing is to ask a judge, for which budget is asked for.
    Verifying,
    /// A judge is being asked, by this entry.
    Judging(Seq),
    /// A judge that couldn't tell is asked again, with a timer opened by this entry.
    JudgeWaits(Seq),
}

/// Counters that a turn's or the whole session's limits look at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    turns_ended: u32,
    calls: u32,
    answers: u32,
    tool_calls: u32,
    /// How many of them were made when a turn last ended without any.
    tool_calls_at_stop: u32,
    /// Failed attempts at the present answer.
    failed_attempts: u32,
    empty_answers: u32,
    continuations: u32,
    /// Interruptions of the present turn.
    interruptions: u32,
    /// Turns in a row in which no call succeeded.
    failed_turns: u32,
    stop_blocks: u32,
}

/// A wish that it makes way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Yielding {
    /// The entry that set the timer, until that has fired.
    timer: Option<Seq>,
    /// For whom, if for somebody.
    to: Option<SessionId>,
}

/// What the stop hooks last objected to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    reasons: Vec<String>,
    evidence: String,
    tool_calls: u32,
    /// How often it came in a row on the same evidence.
    times: u32,
}

/// What hooks have been asked about already, and what the model was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    /// The session's beginning, or its going on.
    session: bool,
    goal: bool,
    /// The model call of this number.
    request: u32,
    turn_end: bool,
    batch: bool,
    /// The model knows that this turn is its last.
    last_turn: u32,
    /// Percent of each limit that it was told of last, in the order of [`Dimension`].
    limits: [u8; 4],
    /// A compaction that they are still to be told of.
    compaction_untold: bool,
    /// Last words were asked for at the present limit.
    wrapped_up: bool,
}

impl Told {
    /// Percent of a limit that the model was told of last.
    const fn percent_of(&self, dimension: Dimension) -> u8 {
        let [tokens, money, turns, time] = self.limits;
        match dimension {
            Dimension::Tokens => tokens,
            Dimension::Money => money,
            Dimension::Turns => turns,
            Dimension::WallTime => time,
        }
    }

    const fn told_of(&mut self, dimension: Dimension, percent: u8) {
        let [tokens, money, turns, time] = &mut self.limits;
        *match dimension {
            Dimension::Tokens => tokens,
            Dimension::Money => money,
            Dimension::Turns => turns,
            Dimension::WallTime => time,
        } = percent;
    }
}

/// Results that wait for those of earlier calls of the same answer. The one thing of a session that isn't in its log:
/// when it is lost, its effects are still open, and so count as interrupted. States are equal whatever they hold.
#[derive(Debug, Clone, Default)]
struct Held(BTreeMap<Seq, ToolResult>);

impl PartialEq for Held {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Held {}

/// Between two snapshots there is an entry for so many items of the conversation, if that makes more than usual: all of
/// them together stay smaller than a few times the log.
const ITEMS_AN_ENTRY: u64 = 2;

/// A session: the fold of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    session: SessionId,
    head: Seq,
    #[serde(skip)]
    goal: String,
    #[serde(skip)]
    policy: Option<AgentPolicy>,
    /// What binds it in place of what its first entry says, where somebody has changed that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_policy: Option<Box<AgentPolicy>>,
    /// The agent that asked for it.
    #[serde(skip)]
    parent: Option<SessionId>,
    #[serde(skip)]
    depth: u32,
    turns_max: u32,
    /// Turns that had ended when the agent that asked for it asked again: its limit counts from there.
    #[serde(default)]
    turns_before: u32,
    /// Its goal was taken away, and it hasn't been told.
    #[serde(default)]
    lost_goal: bool,
    phase: Phase,
    outcome: Option<Outcome>,
    /// What it was completed with, until something more is said to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done_before: Option<Outcome>,
    stopping: Option<Outcome>,
    /// It was asked to make way for an agent.
    yielding: Option<Yielding>,
    /// It stops only because agents rest that work for it.
    stops_for_child: bool,
    /// At what the agent rests that it waits for, if one does.
    child_rests: Option<Outcome>,
    /// How its goal stands, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    goal_track: Option<Box<GoalTrack>>,
    /// The agent's plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Box<Plan>>,
    /// The worktree that it works in, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<OwnTree>,
    /// What is known of its terminal, if it is an external agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    terminal: Option<Box<TerminalTrack>>,
    /// When the time limit that binds its work is reached, by the last call.
    ends: Option<WorkEnds>,
    elapsed: Elapsed,
    /// Which model is asked, and how it fares.
    #[serde(default)]
    asked: Asked,
    calls: Vec<Call>,
    counters: Counters,
    repeats: Repeats,
    calls_of_turn: CallsOfTurn,
    progress: Box<Progress>,
    block: Option<Block>,
    /// How often in a row, at wishes to stop, each stop hook whose silence counts gave no answer at all.
    #[serde(default)]
    unanswered: BTreeMap<String, u32>,
    context: Context,
    compactions: Compactions,
    /// What people said, in their own words.
    said: VecDeque<String>,
    /// The files that were written last.
    written: VecDeque<String>,
    /// What the model call in flight is for.
    purpose: Purpose,
    /// Where the session stands again when it has said its last words at a limit.
    before_last_words: Option<Phase>,
    last_words: Option<String>,
    /// What the agent said in the present turn; the last one's until the model is called again.
    turn_text: String,
    text_is_of_last_turn: bool,
    /// Somebody spoke after the last model call was made.
    unheard: bool,
    /// The last entry that somebody's words are.
    #[serde(default)]
    last_said: Seq,
    memories: BTreeMap<String, Json>,
    #[serde(skip)]
    permissions: Option<Permissions>,
    /// Patterns that somebody agreed to for the whole run.
    approved: Vec<String>,
    /// The last entry that is a snapshot.
    snapshot: Seq,
    /// What hooks are being asked, by the entry that asked.
    questions: BTreeMap<Seq, HookSubject>,
    approvals: BTreeMap<Seq, PendingApproval>,
    told: Told,
    source: SessionSource,
    #[serde(skip)]
    held: Held,
}

impl SessionState {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            head: Seq::START,
            goal: String::new(),
            policy: None,
            changed_policy: None,
            parent: None,
            depth: 0,
            turns_max: 0,
            turns_before: 0,
            lost_goal: false,
            phase: Phase::New,
            outcome: None,
            done_before: None,
            stopping: None,
            yielding: None,
            stops_for_child: false,
            child_rests: None,
            goal_track: None,
            plan: None,
            tree: None,
            terminal: None,
            ends: None,
            elapsed: Elapsed::default(),
            asked: Asked::default(),
            calls: Vec::new(),
            counters: Counters::default(),
            repeats: Repeats::default(),
            calls_of_turn: CallsOfTurn::default(),
            progress: Box::default(),
            block: None,
            unanswered: BTreeMap::new(),
            context: Context::default(),
            compactions: Compactions::default(),
            said: VecDeque::new(),
            written: VecDeque::new(),
            purpose: Purpose::Turn,
            before_last_words: None,
            last_words: None,
            turn_text: String::new(),
            text_is_of_last_turn: false,
            unheard: false,
            last_said: Seq::START,
            memories: BTreeMap::new(),
            permissions: None,
            approved: Vec::new(),
            snapshot: Seq::START,
            questions: BTreeMap::new(),
            approvals: BTreeMap::new(),
            told: Told::default(),
            source: SessionSource::Startup,
            held: Held::default(),
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
            (None, Phase::Between) if self.stopping.is_none() => {
                Standing::BetweenTurns { next: self.next_turn() }
            }
            (None, _) => Standing::Live,
        }
    }

    /// What it was given; absent before its first entry.
    #[must_use]
    pub const fn policy(&self) -> Option<&AgentPolicy> {
        self.policy.as_ref()
    }

    /// What the agent said last: at the limit it rests at, or else in the turn it is in or stopped with.
    #[must_use]
    pub fn last_text(&self) -> &str {
        self.last_words.as_deref().unwrap_or(&self.turn_text)
    }

    /// What the agent means to do, as it last said; absent while it has no plan.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_deref()
    }

    /// Tokens of its next request for `purpose`, as the model's window is reckoned with: corrected by what the provider
    /// reported, within bounds. Budgets go by the report itself.
    #[must_use]
    pub fn window_tokens(&self, purpose: Purpose) -> u64 {
        self.request_tokens(purpose)
    }

    /// How it gets on, by what was measured; absent before its first turn has ended.
    #[must_use]
    pub fn progress(&self) -> Option<ProgressReport> {
        self.progress.report(self.stuck_turns())
    }

    /// What each tool asked to be told at its next call.
    #[must_use]
    pub const fn memories(&self) -> &BTreeMap<String, Json> {
        &self.memories
    }

    /// About how many tokens the next model call takes that has room for a useful answer.
    #[must_use]
    pub fn next_call_tokens(&self) -> u64 {
        self.request_tokens(Purpose::Turn).saturating_add(crate::USEFUL_OUTPUT_TOKENS)
    }

    /// The effects whose results are awaited.
    #[must_use]
    pub fn open_effects(&self) -> Vec<Seq> {
        if self.outcome.is_some() {
            return Vec::new();
        }
        let mut open = self.questions.keys().copied().collect::<BTreeSet<_>>();
        open.extend(self.yielding.and_then(|yielding| yielding.timer));
        open.extend(self.worktree_question());
        open.extend(self.terminal_question());
        if self.stands_aside_of(Phase::Acting) {
            open.extend(self.approval_timers());
        }
        match self.phase {
            Phase::MakingWorktree(seq)
            | Phase::Thinking(seq)
            | Phase::Waiting(seq)
            | Phase::Wishing(seq)
            | Phase::Judging(seq)
            | Phase::JudgeWaits(seq) => {
                // With the last questions asked, nothing but their answers is awaited.
                open.extend(self.closing().is_none().then_some(seq));
            }
            Phase::Acting => {
                open.extend(self.running().map(|(_, seq)| seq));
                open.extend(self.approval_timers());
            }
            Phase::New
            | Phase::Ready
            | Phase::Between
            | Phase::Preparing(_)
            | Phase::Compacting(_)
            | Phase::Verifying => {}
        }
        open.into_iter().collect()
    }

    /// The questions that wait for somebody's answer, the oldest first.
    pub fn approvals(&self) -> impl Iterator<Item = &PendingApproval> {
        self.approvals.values()
    }

    /// The run's elapsed time at its last entry.
    #[must_use]
    pub const fn elapsed(&self) -> Elapsed {
        self.elapsed
    }

    /// Whether its last segment has ended, and only somebody's ask begins another.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::is_final)
    }

    pub(crate) fn decide(&mut self, event: SessionEvent, now: Now) -> Step {
        let mut deciding = Deciding { state: self, step: StepBuilder::at(now), entropy: now.entropy };
        deciding.on(event);
        let moment = deciding.step.now();
        let step = deciding.step.finish();
        if self.outcome.is_some() { step } else { snapshot::taken(self, step, moment) }
    }

    /// Takes from the log's first entry what a snapshot leaves out.
    pub(crate) fn complete(&mut self, first: &Entry) -> bool {
        let Entry::SessionStarted(started) = first else { return false };
        self.goal.clone_from(&started.goal);
        (self.parent, self.depth) = (started.parent, started.depth);
        self.is_bound_by(self.changed_policy.as_deref().unwrap_or(&started.policy).clone());
        true
    }

    const fn next_turn(&self) -> u32 {
        self.counters.turns_ended.saturating_add(1)
    }

    fn running(&self) -> impl Iterator<Item = (&Call, Seq)> {
        self.calls.iter().filter_map(|call| match call.stage {
            Stage::Running(seq) => Some((call, seq)),
            Stage::Pending
            | Stage::Asking(_)
            | Stage::Approving { .. }
            | Stage::Reviewing(_)
            | Stage::Delegated { .. }
            | Stage::Done => None,
        })
    }

    fn call(&self, id: &CallId) -> Option<&Call> {
        self.calls.iter().find(|call| &call.id == id)
    }

    fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.policy.as_ref()?.tools.iter().find(|spec| spec.name == name)
    }
}

impl Snapshots for SessionState {
    /// A conversation that nothing shortens makes for a large state, which is written the more seldom.
    fn is_due(&self) -> bool {
        let size = u64::from(self.context.items()) / ITEMS_AN_ENTRY;
        self.head.0.saturating_sub(self.snapshot.0) >= size.max(snapshot::EVERY)
    }

    fn take_in(&mut self, entry: &Entry, now: Moment) {
        self.apply(entry, now);
    }
}

/// When a time limit is reached, as the run's elapsed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct WorkEnds {
    /// The agent is asked for its final summary.
    work: Elapsed,
    /// All of it is used up.
    limit: Elapsed,
}

/// One decision in the making.
struct Deciding<'a> {
    state: &'a mut SessionState,
    step: StepBuilder,
    entropy: u64,
}
