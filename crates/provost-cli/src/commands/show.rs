//! `provost show`: one run, with all its agents.

mod agents;
mod live;
mod page;
mod screen;
mod steps;
mod tree;

use std::path::PathBuf;

use anyhow::Context as _;
use provost_engine::{Actor, ProgressReport, RunState};
use provost_event::{
    Budget, Channel, CompactionKind, ConversationEntry, Entry, Exit as ProgramExit, ExternalPolicy,
    FinalSummaryFinished, Forked, GateEntry, HookReport, Image, LifecycleEntry, Limits, ModelEntry, Outcome,
    PlanItem, Retry, RetryCause, RunId, Seq, SessionId, TerminalEntry, TerminalEvent, TerminalState,
    ToolEntry, ToolStatus,
};
use provost_harness::{Backend, Clock as _, RunStatus, RunSummary, SystemClock, final_text, read_actor};
use serde::Serialize;

use self::agents::{AgentContext, Openings, Slots, Which, nodes, openings};
use self::page::{page, waiting};
use self::steps::steps;
use self::tree::{Branches, Crew, Drawing, Extent};
use super::target::Target;
use super::{backend_to_show, print};
use crate::cli::ShowArgs;
use crate::exit::Exit;
use crate::render::terminal_width;
use provost_view::AgentGoal;
use provost_view::run_state;
use provost_view::{Approval, CurrentStatus, RunListItem};
use provost_view::{ApprovalQuestion, questions_of};
use provost_view::{Segment, segments_of};

pub(crate) use self::page::date_and_time;

const READ_MAX: usize = 1_000;

pub(super) async fn show(args: ShowArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_show()?;
    let run = Target::whole_run(&*backend, &args.run, "show").await?;
    let extent = if args.all { Extent::Whole } else { Extent::SummedUp };
    let drawing = Drawing { branches: Branches::choose(), extent, width: terminal_width() };
    let summary = summary(&*backend, run).await?;
    if args.follow {
        return live::follow(&*backend, summary, drawing, args.json).await;
    }
    let state = run_state(&*backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    let facts = Facts { turns_max: turns_max(&state), ..Facts::read(&*backend, run, &state).await? };
    let open = questions_of(&*backend, &summary).await?;
    let now = SystemClock.now();
    let current = CurrentStatus::with_questions(&*backend, (&summary, &state), &open, now).await;
    let which = if args.all || args.json { Which::All } else { Which::Shown };
    let openings = openings(&*backend, &state, which).await?;
    let crew = crew(&state, &summary, &openings, &open);
    let segments = segments_of(&*backend, run).await?;
    let pruned_forks = pruned_forks(&*backend, &state).await?;
    if args.json {
        let goals = AgentGoal::all(&*backend, &state).await?;
        let whole = Whole {
            facts: Some(&facts),
            goals,
            segments: &segments,
            pruned_forks: &pruned_forks,
            ..Whole::of((&summary, &open, &current), &state, &crew)
        };
        print(&format!("{}\n", serde_json::to_string(&whole)?))?;
    } else {
        let goal = AgentGoal::read(&*backend, SessionId::root(run)).await?;
        let seen = page::RunPage {
            summary: &summary,
            status: &current.word,
            state: &state,
            crew: &crew,
            drawing,
            goal: goal.as_ref(),
            suspension: current.provider.as_ref(),
            pruned_forks: &pruned_forks,
            segments: &segments,
        };
        print(&page(&seen, &facts))?;
        print(&waiting(&summary, &open, &crew.agents))?;
    }
    Ok(Exit::Done)
}

/// The forks of a run that aren't in the store any more.
async fn pruned_forks(backend: &dyn Backend, state: &RunState) -> anyhow::Result<Vec<RunId>> {
    let mut pruned = Vec::new();
    for fork in state.forks() {
        if backend.get(fork.to).await?.is_none() {
            pruned.push(fork.to);
        }
    }
    Ok(pruned)
}

pub(super) async fn summary(backend: &dyn Backend, run: RunId) -> anyhow::Result<RunSummary> {
    let summary = backend.get(run).await?;
    summary.with_context(|| format!("there is no run {run}"))
}

/// The agents of the run, and the steps that they do.
fn crew(state: &RunState, summary: &RunSummary, openings: &Openings, open: &[ApprovalQuestion]) -> Crew {
    let is_interrupted = summary.status == RunStatus::Interrupted;
    let agents = nodes(state, &AgentContext { openings, open, is_interrupted, elapsed: summary.elapsed });
    let now = matches!(summary.status, RunStatus::Running).then(|| SystemClock.now());
    let steps = steps(state, &agents, now);
    Crew { agents, steps }
}

/// Turns that the run may take: its own limit, or its root agent's where that is less.
fn turns_max(state: &RunState) -> Option<u32> {
    let own = Some(state.turns_max()).filter(|most| *most != Limits::TURNS_UNLIMITED);
    own.into_iter().chain(state.budget().turns).min()
}

/// Facts from the root agent's log; in a workflow, which has no root agent, only the counts of all agents' logs.
#[derive(Default, Serialize)]
struct Facts {
    goal_images: Vec<Image>,
    /// `None` is unlimited.
    turns_max: Option<u32>,
    last_text: String,
    plan: Vec<PlanItem>,
    /// The agent's measured progress; absent before its first turn has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressReport>,
    stop_hooks: Vec<HookReport>,
    tool_calls: u32,
    failed_tool_calls: u32,
    unknown_tool_calls: u32,
    retries: u32,
    compactions: u32,
    compactions_by_kind: Compactions,
    /// Why the agent couldn't be asked for a final summary at the limit that suspended it; absent where it was, or
    /// no limit did.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_final_summary: Option<String>,
    /// The program, if the agent is external.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramFacts>,
}

/// A program, as its terminal's log has it.
#[derive(Default, Serialize)]
struct ProgramFacts {
    command: Vec<String>,
    profile: String,
    channel: Channel,
    state: TerminalState,
    /// How often it was started.
    starts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<ProgramExit>,
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

#[derive(Default, Serialize)]
struct Compactions {
    trim: u32,
    summary: u32,
    emergency: u32,
}

impl Facts {
    async fn read(backend: &dyn Backend, run: RunId, state: &RunState) -> anyhow::Result<Self> {
        if state.flow().is_some() {
            return Self::of_flow(backend, run, state).await;
        }
        let root = SessionId::root(run);
        let mut facts = Self::default();
        if let Actor::Session(session) = read_actor(backend, root.into()).await? {
            session.last_text().clone_into(&mut facts.last_text);
            facts.progress = session.progress();
            facts.plan = session.plan().map(|plan| plan.items.clone()).unwrap_or_default();
        }
        facts.see(backend, root, Self::take).await?;
        Ok(facts)
    }

    async fn of_flow(backend: &dyn Backend, run: RunId, state: &RunState) -> anyhow::Result<Self> {
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
    ) -> anyhow::Result<()> {
        let mut after = Seq::START;
        loop {
            let records = backend.read(agent.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { return Ok(()) };
            after = last.seq;
            records.iter().for_each(|record| take(self, &record.entry));
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
            // A summary that can't be made isn't retried.
            Entry::Model(ModelEntry::Retried(Retry { cause: RetryCause::UselessSummary { .. }, .. })) => {}
            Entry::Model(ModelEntry::Retried(_)) => self.retries += 1,
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => self.compacted(compacted.how),
            _ => {}
        }
    }
}

impl Facts {
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

/// A run with all that is known of it, for programs.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    line: RunListItem,
    outcome_text: Option<String>,
    verdict: Option<provost_event::Verdict>,
    budget: Budget,
    /// Worked on it by now, as far as the process that holds it has noted.
    active_ms: u64,
    /// What is asked, in full.
    waits_for: Vec<Approval>,
    slots: Slots,
    agents: Vec<agents::AgentJson<'a>>,
    /// From a start or resume to its outcome each, with what was spent in it.
    #[serde(skip_serializing_if = "<[Segment]>::is_empty")]
    segments: &'a [Segment],
    /// What it is a fork of; absent where it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<&'a Forked>,
    /// The runs that were forked from it; absent where there are none.
    #[serde(skip_serializing_if = "<[Forked]>::is_empty")]
    forks: &'a [Forked],
    /// Those of them that aren't in the store any more; absent where there are none.
    #[serde(skip_serializing_if = "<[RunId]>::is_empty")]
    pruned_forks: &'a [RunId],
    /// The steps of its workflow; absent where it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<steps::StepJson<'a>>,
    /// What judges verify, of all agents that have a goal; absent where none has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    goals: Vec<AgentGoal>,
    #[serde(flatten)]
    facts: Option<&'a Facts>,
}

impl<'a> Whole<'a> {
    fn of(
        (summary, open, current): (&RunSummary, &[ApprovalQuestion], &CurrentStatus),
        state: &'a RunState,
        crew: &'a Crew,
    ) -> Self {
        Self {
            line: RunListItem::new(summary, open, current).with_state(state),
            waits_for: open
                .iter()
                .map(|question| Approval::new(summary, question.clone(), &current.word))
                .collect(),
            outcome_text: state.outcome().map(Outcome::to_string),
            verdict: match state.outcome() {
                Some(Outcome::Completed { verdict, .. }) => *verdict,
                _ => None,
            },
            budget: state.budget(),
            active_ms: state.worked_ms(summary.elapsed),
            slots: Slots::of(state),
            agents: crew.agents.iter().map(agents::AgentJson::of).collect(),
            segments: &[],
            forked_from: state.forked_from(),
            forks: state.forks(),
            pruned_forks: &[],
            steps: crew.steps.iter().map(steps::StepJson::of).collect(),
            goals: Vec::new(),
            facts: None,
        }
    }
}
