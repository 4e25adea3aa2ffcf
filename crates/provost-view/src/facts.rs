//! What the log of a run's root agent tells beside its status: plan, answer, counts, its program.

use std::path::PathBuf;

use provost_engine::{Actor, ProgressReport, RunState};
use provost_event::{
    Channel, CompactionKind, ConversationEntry, Entry, Exit as ProgramExit, ExternalPolicy,
    FinalSummaryFinished, GateEntry, HookReport, Image, LifecycleEntry, Limits, ModelEntry, PlanItem,
    RetryCause, RunId, Seq, SessionId, TerminalEntry, TerminalEvent, TerminalState, ToolEntry, ToolStatus,
};
use provost_harness::{Backend, BackendError, final_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::READ_MAX;

/// What the root agent's log tells of a run; in a workflow, which has no root agent, only the counts of all agents' logs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFacts {
    /// The pictures that belong to the goal.
    pub goal_images: Vec<Image>,
    /// Maximum turns: the run's, or its root agent's where that is less; null if unlimited.
    pub turns_max: Option<u32>,
    /// The last text of the root agent, or the final text of a workflow; empty if there is none.
    pub last_text: String,
    /// The agent's plan; empty if it has none.
    pub plan: Vec<PlanItem>,
    /// The agent's measured progress; absent before its first turn has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<AgentProgress>,
    /// What the stop hooks reported when they were last asked.
    pub stop_hooks: Vec<HookReport>,
    /// Calls of tools that have a result.
    pub tool_calls: u32,
    /// Those of them that failed, unknown ones included.
    pub failed_tool_calls: u32,
    /// Those of them of which it isn't known whether they took effect.
    pub unknown_tool_calls: u32,
    /// Model calls that were made again.
    pub retries: u32,
    /// How often the conversation was shortened.
    pub compactions: u32,
    /// The same by kind.
    pub compactions_by_kind: CompactionCounts,
    /// Why the agent couldn't be asked for a final summary at the limit that suspended it; absent where it was, or
    /// no limit did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_final_summary: Option<String>,
    /// The program; absent for a native agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramFacts>,
}

/// An agent's measured progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentProgress {
    /// `converging`, `busy` or `idle`.
    pub state: String,
    /// The reasons, the most important first: the progress of the last ten turns.
    pub reasons: Vec<String>,
    /// Turns in a row without measurable progress; those that only waited don't count.
    pub idle_turns: u32,
    /// The number of turns without progress at which it is suspended; 0: never.
    pub stuck_turns: u32,
    /// Whether each of the last ten turns moved something that lasts (files, results of checks, steps of the plan, a new
    /// kind of call and result), the oldest first.
    pub moved: Vec<bool>,
}

impl From<ProgressReport> for AgentProgress {
    fn from(report: ProgressReport) -> Self {
        let ProgressReport { state, reasons, idle_turns, stuck_turns, moved } = report;
        Self { state: state.to_string(), reasons, idle_turns, stuck_turns, moved }
    }
}

/// An external agent's program, as its terminal's log has it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFacts {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its profile.
    pub profile: String,
    /// How Provost talks to it.
    pub channel: Channel,
    /// Its state.
    pub state: TerminalState,
    /// How often it was started.
    pub starts: u32,
    /// The id of its process when it was last started; absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The file with the recording of its terminal; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<PathBuf>,
    /// How it exited; absent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProgramExit>,
}

/// How often a conversation was shortened, by kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionCounts {
    /// Long outputs were cut.
    pub trim: u32,
    /// The model wrote a summary.
    pub summary: u32,
    /// By rule, since no summary could be made or fitted.
    pub emergency: u32,
}

/// Turns that the run may take: its own limit, or its root agent's where that is less.
fn turns_max(state: &RunState) -> Option<u32> {
    let own = Some(state.turns_max()).filter(|most| *most != Limits::TURNS_UNLIMITED);
    own.into_iter().chain(state.budget().turns).min()
}

impl ProgramFacts {
    fn of(policy: &ExternalPolicy) -> Self {
        let command = std::iter::once(&policy.program).chain(&policy.args).cloned().collect();
        Self { command, profile: policy.profile.clone(), channel: policy.channel, ..Self::default() }
    }

    fn take(&mut self, event: &TerminalEvent) {
        match event {
            TerminalEvent::Started { command, pid, channel, recording } => {
                self.starts += 1;
                (self.command, self.pid, self.channel) = (command.clone(), Some(*pid), *channel);
                self.recording.clone_from(recording);
                (self.state, self.exit) = (TerminalState::Starting, None);
            }
            TerminalEvent::State(state) => self.state = *state,
            TerminalEvent::Exited { exit } => (self.state, self.exit) = (TerminalState::Exited, Some(*exit)),
            _ => {}
        }
    }
}

impl RunFacts {
    /// No process holds the run: what its program did last says nothing of now.
    pub(crate) fn lose_program(&mut self) {
        if let Some(program) = self.program.as_mut().filter(|program| program.exit.is_none()) {
            (program.state, program.pid) = (TerminalState::Unknown, None);
        }
    }

    /// Reads them.
    ///
    /// # Errors
    /// When a log can't be read.
    pub async fn read(backend: &dyn Backend, run: RunId, state: &RunState) -> Result<Self, BackendError> {
        let turns_max = turns_max(state);
        if state.flow().is_some() {
            return Ok(Self { turns_max, ..Self::of_flow(backend, run, state).await? });
        }
        let root = SessionId::root(run);
        let mut facts = Self { turns_max, ..Self::default() };
        if let Actor::Session(session) = backend.state(root.into()).await? {
            session.last_text().clone_into(&mut facts.last_text);
            facts.progress = session.progress().map(AgentProgress::from);
            facts.plan = session.plan().map(|plan| plan.items.clone()).unwrap_or_default();
        }
        facts.see(backend, root, Self::take).await?;
        Ok(facts)
    }

    async fn of_flow(backend: &dyn Backend, run: RunId, state: &RunState) -> Result<Self, BackendError> {
        let mut facts = Self { last_text: final_text(backend, run).await?, ..Self::default() };
        for agent in state.agents() {
            facts.see(backend, agent.session, Self::count).await?;
        }
        Ok(facts)
    }

    async fn see(
        &mut self,
        backend: &dyn Backend,
        agent: SessionId,
        take: fn(&mut Self, &Entry),
    ) -> Result<(), BackendError> {
        let mut after = Seq::START;
        let mut is_cut_off = false;
        loop {
            let records = backend.read(agent.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { return Ok(()) };
            after = last.seq;
            for record in &*records {
                // A call that a stop cut off isn't made again.
                match &record.entry {
                    // Nor is a summary that can't be made.
                    Entry::Model(ModelEntry::Retried(retry)) => {
                        is_cut_off = !matches!(retry.cause, RetryCause::UselessSummary { .. });
                    }
                    Entry::Model(ModelEntry::Called(_)) => {
                        self.retries += u32::from(std::mem::take(&mut is_cut_off));
                    }
                    _ => {}
                }
                take(self, &record.entry);
            }
        }
    }

    /// Takes in an entry of one agent, uncounted facts included.
    fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                self.goal_images.clone_from(&started.images);
                self.program = started.policy.external.as_deref().map(ProgramFacts::of);
            }
            Entry::Terminal(TerminalEntry::Noted(noted)) => {
                self.program.iter_mut().for_each(|program| program.take(&noted.event));
            }
            Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => {
                self.no_final_summary = why_none(wrapped)
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => self.no_final_summary = None,
            Entry::Gate(GateEntry::StopChecked(verdicts)) => self.stop_hooks.clone_from(&verdicts.reports),
            counted => self.count(counted),
        }
    }

    fn count(&mut self, entry: &Entry) {
        match entry {
            Entry::Tool(ToolEntry::Finished(finished)) => {
                self.tool_calls += 1;
                self.failed_tool_calls += u32::from(finished.status.is_error());
                self.unknown_tool_calls += u32::from(finished.status == ToolStatus::Unknown);
            }
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => self.compacted(compacted.how),
            _ => {}
        }
    }
}

impl RunFacts {
    const fn compacted(&mut self, how: CompactionKind) {
        self.compactions += 1;
        let kinds = &mut self.compactions_by_kind;
        match how {
            CompactionKind::Trim => kinds.trim += 1,
            CompactionKind::Summary => kinds.summary += 1,
            CompactionKind::Emergency => kinds.emergency += 1,
        }
    }
}

/// Why an agent that was asked for a final summary has given none. If none fits the very limit it is about, the
/// outcome says so.
fn why_none(wrapped: &FinalSummaryFinished) -> Option<String> {
    wrapped.problem.clone().filter(|_| wrapped.call.is_some())
}
