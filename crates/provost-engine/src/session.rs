//! One agent's actor: its state (the fold of its log) and its decisions.
//!
//! A turn goes `Ready` → (hooks) → (budget) → `Thinking` → `Acting` or `CheckingStop` → `Ready`. Every phase follows
//! from the entries alone, so that a state that is read back from the log continues in the same phase.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{
    AgentPolicy, Elapsed, Entry, Json, LifecycleEntry, Outcome, Plan, Purpose, Seq, ServiceKept, SessionId,
};

use serde::{Deserialize, Serialize};

use crate::decision::DecisionBuilder;
use crate::decision_time::DecisionTime;
use crate::snapshot::{self, Snapshots};
use crate::{Decision, Now, RulesSought, SessionEvent};

mod announce;
mod answer;
mod assignment;
mod calls;
mod change;
mod conversation;
mod decide;
mod end_check;
mod external_calls;
mod final_summary;
mod fingerprint;
mod fold;
mod folder_rules;
mod fork;
mod goal;
mod hooks;
mod last_report;
mod lifecycle;
mod model_call;
mod models;
mod progress;
mod recover;
mod segment;
mod services;
mod stop;
mod terminal;
mod turn;
mod worktree;
mod yielding;

use assignment::Assignment;
use calls::CallGate;
use calls::Calls;
use conversation::{Conversation, Window, WindowFacts};
use end_check::EndCheck;
use external_calls::ExternalCalls;
use folder_rules::FolderRulesTold;
use goal::{Goal, GoalFacts};
use hooks::HookQuestions;
use lifecycle::{Lifecycle, Phase, Yielding};
use models::Models;
use progress::Progress;
use services::Services;
use stop::StopObjections;
use terminal::Terminal;
use turn::Turns;
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

/// Items of the conversation per entry between two snapshots, if that gives more entries than the default: all
/// snapshots together stay smaller than a few times the log.
const ITEMS_AN_ENTRY: u64 = 2;

/// A session: the fold of its log. Each part has private state; `apply` passes each entry to the
/// parts that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    session: SessionId,
    /// The last entry.
    head: Seq,
    /// The last snapshot entry.
    snapshot: Seq,
    /// The run's elapsed time at the last entry.
    elapsed: Elapsed,
    assignment: Assignment,
    lifecycle: Lifecycle,
    turns: Turns,
    models: Models,
    conversation: Conversation,
    calls: Calls,
    hooks: HookQuestions,
    goal: Goal,
    progress: Box<Progress>,
    objections: StopObjections,
    end_check: EndCheck,
    terminal: Terminal,
    #[serde(default)]
    external_calls: ExternalCalls,
    worktree: OwnWorktree,
    services: Services,
    folder_rules: FolderRulesTold,
}

impl SessionState {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            head: Seq::START,
            snapshot: Seq::START,
            elapsed: Elapsed::default(),
            assignment: Assignment::default(),
            lifecycle: Lifecycle::default(),
            turns: Turns::default(),
            models: Models::default(),
            conversation: Conversation::default(),
            calls: Calls::default(),
            hooks: HookQuestions::default(),
            goal: Goal::default(),
            progress: Box::default(),
            objections: StopObjections::default(),
            end_check: EndCheck::default(),
            terminal: Terminal::default(),
            external_calls: ExternalCalls::default(),
            worktree: OwnWorktree::default(),
            services: Services::default(),
            folder_rules: FolderRulesTold::default(),
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
        match (self.lifecycle.outcome(), self.lifecycle.phase()) {
            (Some(outcome), _) => SessionStatus::Stopped(outcome.clone()),
            (None, Phase::New) => SessionStatus::New,
            (None, Phase::Between) if !self.lifecycle.is_stopping() => {
                SessionStatus::BetweenTurns { next: self.turns.next() }
            }
            (None, _) => SessionStatus::Live,
        }
    }

    /// The name of its phase, as in the table of [`states::session`](crate::states::session).
    #[must_use]
    pub fn phase_name(&self) -> &'static str {
        match (self.lifecycle.outcome(), self.lifecycle.phase()) {
            (Some(outcome), _) if outcome.is_final() => "ended",
            (Some(_), _) => "suspended",
            (None, _) if self.closing().is_some() => "closing",
            (None, _) if self.lifecycle.is_stopping() => "stopping",
            (None, Phase::New) => "new",
            (None, Phase::MakingWorktree(_)) => "making_worktree",
            (None, Phase::Ready) => "ready",
            (None, Phase::Between) => "between",
            (None, Phase::Preparing(_)) => "preparing",
            (None, Phase::Thinking(_)) => "thinking",
            (None, Phase::Waiting(_)) => "waiting",
            (None, Phase::Compacting(_)) => "compacting",
            (None, Phase::Acting) => "acting",
            (None, Phase::CheckingStop(_)) => "checking_stop",
            (None, Phase::Verifying) => "verifying",
            (None, Phase::Judging(_)) => "judging",
            (None, Phase::JudgeWaits(_)) => "judge_waits",
        }
    }

    /// The policy in force; absent before the first entry.
    #[must_use]
    pub const fn policy(&self) -> Option<&AgentPolicy> {
        self.assignment.policy()
    }

    /// The entry since which its policy applies; 0 if it is the first entry's.
    #[must_use]
    pub const fn policy_since(&self) -> Seq {
        self.assignment.policy_since()
    }

    /// The agent's last text: the final summary at a limit, or else the text of the turn that it is in or stopped
    /// with.
    #[must_use]
    pub fn last_text(&self) -> &str {
        self.turns.last_text()
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
        model_call::request_tokens(self, purpose)
    }

    /// The agent's measured progress; absent before its first turn has ended.
    #[must_use]
    pub fn progress(&self) -> Option<ProgressReport> {
        self.progress.report(progress::stuck_turns(self))
    }

    /// What each tool gets at its next call.
    #[must_use]
    pub const fn memories(&self) -> &BTreeMap<String, Json> {
        self.calls.memories()
    }

    /// The estimated tokens of the next model call, with room for a useful answer.
    #[must_use]
    pub fn next_call_tokens(&self) -> u64 {
        model_call::request_tokens(self, Purpose::Turn).saturating_add(crate::USEFUL_OUTPUT_TOKENS)
    }

    /// The rules of folders that it can still be told, if any.
    fn rules_sought(&self) -> Option<RulesSought> {
        self.folder_rules.sought(self.policy()?.folder_rules_bytes)
    }

    /// Its services that run as far as the log knows, by name.
    pub fn services(&self) -> impl Iterator<Item = &ServiceKept> {
        self.services.running()
    }

    /// The effects whose results are awaited.
    #[must_use]
    pub fn open_effects(&self) -> Vec<Seq> {
        if self.lifecycle.outcome().is_some() {
            return Vec::new();
        }
        let mut open = self.hooks.entries().into_iter().collect::<BTreeSet<_>>();
        open.extend(self.lifecycle.yielding().and_then(|yielding| yielding.timer));
        open.extend(self.worktree.question());
        open.extend(self.terminal.question());
        open.extend(self.external_calls.timer());
        if self.stands_aside_of(Phase::Acting) {
            open.extend(self.calls.of_answer().approval_timers());
        }
        match self.lifecycle.phase() {
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
                open.extend(self.calls.of_answer().running_effects());
                open.extend(self.calls.of_answer().approval_timers());
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

    /// Its background commands that still ran when it last used one, in words. None outlives the process that serves
    /// the run.
    #[must_use]
    pub fn jobs(&self) -> &[String] {
        self.calls.jobs()
    }

    /// The run's elapsed time at its last entry.
    #[must_use]
    pub const fn elapsed(&self) -> Elapsed {
        self.elapsed
    }

    /// Whether its last segment has ended. Only a request begins another.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.lifecycle.has_ended()
    }

    pub(crate) fn decide(&mut self, event: SessionEvent, now: Now) -> Decision {
        let mut deciding = Deciding { state: self, step: DecisionBuilder::at(now), entropy: now.entropy };
        decide::on(&mut deciding, event);
        let decision_time = deciding.step.now();
        let step = deciding.step.finish();
        if self.lifecycle.outcome().is_some() { step } else { snapshot::taken(self, step, decision_time) }
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
            phase: self.lifecycle.phase(),
            turns_ended: self.turns.count(),
            answers: self.turns.answers(),
        }
    }

    /// Whether the session returns to `phase` after the final summary, or after the last check of the goal.
    fn stands_aside_of(&self, phase: Phase) -> bool {
        self.lifecycle.before_final_summary() == Some(phase) || self.goal.returns_to() == Some(phase)
    }

    /// Whether the goal may be reached at a limit: the agent has worked since the last verdict, and nothing is in
    /// flight.
    fn may_check_at_limit(&self, outcome: &Outcome) -> bool {
        self.goal.may_be_reached_at_limit(outcome, self.goal_facts())
            && !self.calls.of_answer().is_running()
            && self.lifecycle.interruptions() < self.assignment.limits().interruptions_max
    }

    /// The conversation against the model's window.
    fn window(&self) -> Window<'_> {
        Window::new(
            &self.conversation,
            WindowFacts {
                assignment: &self.assignment,
                model: self.model(),
                head: self.head,
                calls_are_done: self.calls.of_answer().are_done(),
                turns: self.turns.count(),
                tool_calls: self.calls.made(),
                memories: self.calls.memories(),
            },
        )
    }

    /// The checks of the calls.
    const fn gate(&self) -> CallGate<'_> {
        CallGate { calls: &self.calls, assignment: &self.assignment }
    }

    /// The tool calls of the last answer that have no result, each with its tool and arguments.
    pub fn unanswered_calls(
        &self,
    ) -> impl Iterator<Item = (&provost_event::CallId, &str, &provost_event::Json)> {
        self.calls.of_answer().unanswered()
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

/// One decision in progress.
struct Deciding<'a> {
    state: &'a mut SessionState,
    step: DecisionBuilder,
    entropy: u64,
}
