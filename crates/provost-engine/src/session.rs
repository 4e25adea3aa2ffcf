//! One agent's actor: its state (the fold of its log) and its decisions.
//!
//! A turn goes `Ready` → (hooks) → (budget) → `Thinking` → `Acting` or `CheckingStop` → `Ready`. Every phase follows
//! from the entries alone, so that a state that is read back from the log continues in the same phase.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{
    AgentPolicy, Dimension, Elapsed, Entry, GoalTrigger, HookTrigger, Json, LifecycleEntry, ModelPolicy,
    Outcome, Plan, Purpose, Seq, SessionId, SessionSource,
};

use serde::{Deserialize, Serialize};

use crate::decision_time::DecisionTime;
use crate::snapshot::{self, Snapshots};
use crate::step::StepBuilder;
use crate::{Decision, Now, SessionEvent};

mod announce;
mod answer;
mod ask;
mod assignment;
mod calls;
mod change;
mod conversation;
mod decide;
mod final_summary;
mod fingerprint;
mod fold;
mod fork;
mod goal;
mod hook_decisions;
mod models;
mod progress;
mod recover;
mod stop;
mod terminal;
mod worktree;
mod yielding;

use assignment::Assignment;
use calls::CallGate;
use calls::Calls;
use conversation::{Conversation, RequestTokens, Window, WindowFacts};
use goal::{Goal, GoalFacts};
use models::Models;
use progress::Progress;
use stop::StopObjections;
use terminal::Terminal;
use worktree::OwnWorktree;

pub use calls::PendingApproval;
pub use goal::{GoalStatus, JUDGE_TOKENS};
pub use progress::{ProgressReport, ProgressState, kind_of_text};

/// The status of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStatus {
    /// It has not been started.
    New,
    /// It is worked on.
    Live,
    /// A stepped session between two turns: it waits for the event that allows this one.
    BetweenTurns {
        /// The next turn.
        next: u32,
    },
    /// It is suspended or has ended.
    Stopped(Outcome),
}

/// The phase of a session within a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// Before its first entry.
    New,
    /// Its worktree is being made, by the effect that this entry opened.
    MakingWorktree(Seq),
    /// A model call is next; budget for it was requested.
    Ready,
    /// A stepped session between turns.
    Between,
    /// Hooks are called, by this entry, before the next model call.
    Preparing(Seq),
    /// A model call is in flight, opened by this entry.
    Thinking(Seq),
    /// A failed model call waits for its retry, with a timer opened by this entry.
    Waiting(Seq),
    /// Hooks are called, by this entry, on whether the conversation may be shortened.
    Compacting(Seq),
    /// The tool calls of the last answer are run.
    Acting,
    /// The agent asks to stop, or its goal is verified; hooks or stop hooks are called by the effect that this
    /// entry opened.
    CheckingStop(Seq),
    /// The goal is verified; a judge is next, and budget for it was requested.
    Verifying,
    /// A judge is called, by this entry.
    Judging(Seq),
    /// A judge without a verdict is called again, with a timer opened by this entry.
    JudgeWaits(Seq),
}

/// Counters for the limits of a turn or of the whole session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    turns_ended: u32,
    calls: u32,
    answers: u32,
    continuations: u32,
    /// Interruptions of the current turn.
    interruptions: u32,
}

/// A request to yield the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Yielding {
    /// The entry that set the timer, until that has fired.
    timer: Option<Seq>,
    /// The agent that gets the slot, if any.
    to: Option<SessionId>,
}

/// The questions that hooks have already answered, and the notices that the model has already got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Announcements {
    /// The start or the resumption of the session.
    session: bool,
    goal: bool,
    /// The model call of this number.
    request: u32,
    turn_end: bool,
    batch: bool,
    /// The model was notified that this turn is its last.
    last_turn: u32,
    /// The percentage of each limit in the model's last notice, in the order of [`Dimension`].
    limits: [u8; 4],
    /// A compaction that hooks have yet to be notified of.
    compaction_untold: bool,
    /// A final summary was requested at the present limit.
    final_summary_finished: bool,
}

impl Announcements {
    /// The percentage of a limit in the model's last notice.
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

/// Items of the conversation per entry between two snapshots, if that gives more entries than the default: all
/// snapshots together stay smaller than a few times the log.
const ITEMS_AN_ENTRY: u64 = 2;

/// A session: the fold of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    session: SessionId,
    head: Seq,
    assignment: Assignment,
    turns_max: u32,
    /// Turns that had ended when its parent last asked it again: its limit counts from there.
    #[serde(default)]
    turns_before: u32,
    phase: Phase,
    outcome: Option<Outcome>,
    /// Its outcome when it completed, until the agent gets another message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done_before: Option<Outcome>,
    stopping: Option<Outcome>,
    /// The request to yield its slot, if there is one.
    yielding: Option<Yielding>,
    /// It stops only because its sub-agents are suspended.
    stops_for_child: bool,
    goal: Goal,
    worktree: OwnWorktree,
    terminal: Terminal,
    /// The end of the time limit on its work, as of the last call.
    ends: Option<WorkEnds>,
    elapsed: Elapsed,
    models: Models,
    calls: Calls,
    counters: Counters,
    progress: Box<Progress>,
    objections: StopObjections,
    conversation: Conversation,
    /// The purpose of the model call in flight.
    purpose: Purpose,
    /// The phase to return to after the final summary at a limit.
    before_final_summary: Option<Phase>,
    final_summary: Option<String>,
    /// The agent's text in the current turn; that of the last turn until the next model call.
    turn_text: String,
    text_is_of_last_turn: bool,
    /// A message arrived after the last model call was made.
    unheard: bool,
    /// The last message entry.
    #[serde(default)]
    last_said: Seq,
    /// The last snapshot entry.
    snapshot: Seq,
    /// The open questions to hooks, by the entry that asks.
    questions: BTreeMap<Seq, HookTrigger>,
    told: Announcements,
    source: SessionSource,
}

impl SessionState {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            head: Seq::START,
            assignment: Assignment::default(),
            turns_max: 0,
            turns_before: 0,
            phase: Phase::New,
            outcome: None,
            done_before: None,
            stopping: None,
            yielding: None,
            stops_for_child: false,
            goal: Goal::default(),
            worktree: OwnWorktree::default(),
            terminal: Terminal::default(),
            ends: None,
            elapsed: Elapsed::default(),
            models: Models::default(),
            calls: Calls::default(),
            counters: Counters::default(),
            progress: Box::default(),
            objections: StopObjections::default(),
            conversation: Conversation::default(),
            purpose: Purpose::Turn,
            before_final_summary: None,
            final_summary: None,
            turn_text: String::new(),
            text_is_of_last_turn: false,
            unheard: false,
            last_said: Seq::START,
            snapshot: Seq::START,
            questions: BTreeMap::new(),
            told: Announcements::default(),
            source: SessionSource::Startup,
        }
    }

    /// The last entry.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The status.
    #[must_use]
    pub fn standing(&self) -> SessionStatus {
        match (&self.outcome, self.phase) {
            (Some(outcome), _) => SessionStatus::Stopped(outcome.clone()),
            (None, Phase::New) => SessionStatus::New,
            (None, Phase::Between) if self.stopping.is_none() => {
                SessionStatus::BetweenTurns { next: self.next_turn() }
            }
            (None, _) => SessionStatus::Live,
        }
    }

    /// Its first entry's data; absent before that entry.
    #[must_use]
    pub const fn policy(&self) -> Option<&AgentPolicy> {
        self.assignment.policy()
    }

    /// The agent's last text: the final summary at a limit, or else the text of the turn that it is in or stopped
    /// with.
    #[must_use]
    pub fn last_text(&self) -> &str {
        self.final_summary.as_deref().unwrap_or(&self.turn_text)
    }

    /// The agent's plan as last stated; absent while it has none.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.conversation.plan()
    }

    /// Tokens of its next request for `purpose`, for the model's window: corrected by the provider's reports,
    /// within bounds. Budgets use the reports themselves.
    #[must_use]
    pub fn window_tokens(&self, purpose: Purpose) -> u64 {
        self.request_tokens(purpose)
    }

    /// The agent's measured progress; absent before its first turn has ended.
    #[must_use]
    pub fn progress(&self) -> Option<ProgressReport> {
        self.progress.report(self.stuck_turns())
    }

    /// What each tool gets at its next call.
    #[must_use]
    pub const fn memories(&self) -> &BTreeMap<String, Json> {
        self.calls.memories()
    }

    /// The estimated tokens of the next model call, with room for a useful answer.
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
        open.extend(self.worktree.question());
        open.extend(self.terminal.question());
        if self.stands_aside_of(Phase::Acting) {
            open.extend(self.calls.approval_timers());
        }
        match self.phase {
            Phase::MakingWorktree(seq)
            | Phase::Thinking(seq)
            | Phase::Waiting(seq)
            | Phase::CheckingStop(seq)
            | Phase::Judging(seq)
            | Phase::JudgeWaits(seq) => {
                // Once the last questions are asked, only their answers are awaited.
                open.extend(self.closing().is_none().then_some(seq));
            }
            Phase::Acting => {
                open.extend(self.calls.running_effects());
                open.extend(self.calls.approval_timers());
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

    /// The open approval questions, oldest first.
    pub fn approvals(&self) -> impl Iterator<Item = &PendingApproval> {
        self.calls.approvals()
    }

    /// The run's elapsed time at its last entry.
    #[must_use]
    pub const fn elapsed(&self) -> Elapsed {
        self.elapsed
    }

    /// Whether its last segment has ended. Only a request begins another.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::is_final)
    }

    pub(crate) fn decide(&mut self, event: SessionEvent, now: Now) -> Decision {
        let mut deciding = Deciding { state: self, step: StepBuilder::at(now), entropy: now.entropy };
        deciding.on(event);
        let decision_time = deciding.step.now();
        let step = deciding.step.finish();
        if self.outcome.is_some() { step } else { snapshot::taken(self, step, decision_time) }
    }

    /// Restores from the log's first entry what a snapshot leaves out.
    pub(crate) fn complete(&mut self, first: &Entry) -> bool {
        let Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) = first else { return false };
        self.assignment.started(started);
        self.calls.bound_by(&self.assignment);
        true
    }

    const fn goal_facts(&self) -> GoalFacts<'_> {
        GoalFacts {
            assignment: &self.assignment,
            head: self.head,
            phase: self.phase,
            turns_ended: self.counters.turns_ended,
            answers: self.counters.answers,
        }
    }

    /// The judge that is called now or next.
    fn judge_in_turn(&self) -> Option<&ModelPolicy> {
        self.goal.judge_in_turn(&self.assignment)
    }

    /// The turn of a verification.
    fn turn_checked(&self, trigger: GoalTrigger) -> u32 {
        match trigger {
            GoalTrigger::Claim => self.next_turn(),
            GoalTrigger::Interval | GoalTrigger::Limit => self.counters.turns_ended.max(1),
        }
    }

    /// Whether the next model call is a judge's.
    fn wants_judge(&self) -> bool {
        matches!(self.phase, Phase::Verifying | Phase::JudgeWaits(_)) && self.goal.is_verified()
    }

    /// Whether the session returns to `phase` after the final summary, or after the last check of the goal.
    fn stands_aside_of(&self, phase: Phase) -> bool {
        self.before_final_summary == Some(phase) || self.goal.returns_to() == Some(phase)
    }

    /// The open effect at a limit before the session stops: the final summary, or the last check of the goal.
    fn ending_at_limit(&self) -> Option<Seq> {
        let at_limit = self.goal.live_trigger() == Some(GoalTrigger::Limit);
        match self.phase {
            Phase::Judging(seq) | Phase::CheckingStop(seq) if at_limit => Some(seq),
            _ => self.wrapping_up(),
        }
    }

    /// Whether the goal may be reached at a limit: the agent has worked since the last verdict, and nothing is in
    /// flight.
    fn may_check_at_limit(&self, outcome: &Outcome) -> bool {
        self.goal.may_be_reached_at_limit(outcome, self.goal_facts())
            && !self.calls.is_running()
            && self.counters.interruptions < self.assignment.limits().interruptions_max
    }

    /// The conversation against the model's window.
    fn window(&self) -> Window<'_> {
        Window::new(
            &self.conversation,
            WindowFacts {
                assignment: &self.assignment,
                model: self.model(),
                head: self.head,
                calls_are_done: self.calls.are_done(),
                turns: self.counters.turns_ended,
                tool_calls: self.calls.made(),
                memories: self.calls.memories(),
            },
        )
    }

    /// Tokens of the next request for `purpose`, including the extra question.
    fn request_tokens(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Judge => goal::judge_request_tokens(&self.assignment),
            _ => self.window().request_tokens(self.question(purpose).as_deref()),
        }
    }

    /// The same for budgets.
    fn reserved_tokens(&self, purpose: Purpose) -> RequestTokens {
        match purpose {
            Purpose::Judge => {
                let tokens = goal::judge_request_tokens(&self.assignment);
                RequestTokens { most: tokens, estimated: tokens }
            }
            _ => self.window().reserved_tokens(self.question(purpose).as_deref()),
        }
    }

    const fn next_turn(&self) -> u32 {
        self.counters.turns_ended.saturating_add(1)
    }

    /// The checks of the calls.
    const fn gate(&self) -> CallGate<'_> {
        CallGate { calls: &self.calls, assignment: &self.assignment }
    }

    /// The tool calls of the last answer that have no result, each with its tool and arguments.
    pub fn unanswered_calls(
        &self,
    ) -> impl Iterator<Item = (&provost_event::CallId, &str, &provost_event::Json)> {
        self.calls.unanswered()
    }

    /// Whether hooks are called about a call.
    fn asks_about_calls(&self) -> bool {
        self.questions.values().any(|about| !matches!(about, HookTrigger::Prompt { .. }))
    }

    /// Whether hooks are called about all the results together.
    fn asks_about_batch(&self) -> bool {
        self.questions.values().any(|about| matches!(about, HookTrigger::Batch { .. }))
    }
}

impl Snapshots for SessionState {
    /// A long conversation makes a large state, which is written less often.
    fn is_due(&self) -> bool {
        let size = u64::from(self.conversation.items()) / ITEMS_AN_ENTRY;
        self.head.0.saturating_sub(self.snapshot.0) >= size.max(snapshot::EVERY)
    }

    fn take_in(&mut self, entry: &Entry, now: DecisionTime) {
        self.apply(entry, now);
    }
}

/// The end of a time limit, as the run's elapsed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct WorkEnds {
    /// When the agent is asked for its final summary.
    work: Elapsed,
    /// When all of the limit is used up.
    limit: Elapsed,
}

/// One decision in progress.
struct Deciding<'a> {
    state: &'a mut SessionState,
    step: StepBuilder,
    entropy: u64,
}
