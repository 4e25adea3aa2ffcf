//! `provost show -f`: a run with all its agents, as it goes, until it is suspended or ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use console::truncate_str;
use provost_engine::{Actor, AgentState, RunState};
use provost_event::{ActorKey, Entry, GateEntry, LifecycleEntry, Record, Seq, SessionId, Timestamp};
use provost_harness::{Backend, Clock as _, RunStatus, RunSummary, SystemClock};
use provost_view::{
    AgentGoal, AgentOpening, AgentOpenings, AgentsRead, ApprovalQuestion, CurrentStatus, RunDetails, RunTree,
    agent_openings, goal_state_of, open_of,
};
use tokio::time::Instant;

use super::page::{RunPage, date_and_time, tree_below, used};
use super::screen::Screen;
use super::tree::Drawing;
use super::{print, summary as summary_of};
use crate::commands::follow::Following;
use crate::commands::status;
use crate::drive::why_no_final_summary;
use crate::exit::Exit;
use crate::names::Names;
use crate::render::{Sayer, Stopped, call_in_words, one_line, outcome_in_words, plural, safe, summary};

/// How long what happens is gathered before it is drawn.
const GATHER: Duration = Duration::from_millis(80);
/// How often times are redrawn, and how often to check whether a process holds the run.
const TICK: Duration = Duration::from_secs(1);
const GOAL_WIDTH: usize = 200;
/// Questions shown below the tree.
const QUESTIONS_MAX: usize = 5;
/// Rows of a terminal that the tree doesn't get.
const ROWS_KEPT: usize = 1;

pub(super) async fn follow(
    backend: &dyn Backend,
    summary: RunSummary,
    drawing: Drawing,
    json: bool,
) -> anyhow::Result<Exit> {
    let (run, after) = (summary.run, backend.run_head(summary.run).await?);
    let (mut board, heads) = Board::read(backend, summary, drawing).await?;
    let mut following = Following::new(backend, run, after, heads);
    let mut shown = match Screen::of_stdout().filter(|_| !json) {
        _ if json => ShowOutput::Json,
        Some(screen) => ShowOutput::Screen(screen),
        None => ShowOutput::Lines(Sayer::knowing(Names::of(board.state()?))),
    };
    shown.first(&board)?;
    while board.state()?.outcome().is_none() {
        let quiet_until = Instant::now() + TICK;
        let mut gathered_until = quiet_until;
        loop {
            tokio::select! {
                biased;
                record = following.next() => {
                    let record = record?;
                    shown.record(&record)?;
                    board.take(&record)?;
                    if board.state()?.outcome().is_some() {
                        break;
                    }
                    gathered_until = gathered_until.min(Instant::now() + GATHER);
                }
                () = tokio::time::sleep_until(gathered_until) => break,
            }
        }
        board.look(backend).await?;
        shown.draw(&board)?;
    }
    board.look(backend).await?;
    board.goal = AgentGoal::read(backend, SessionId::root(board.summary.run)).await?;
    board.no_final_summary = why_no_final_summary(backend, board.summary.run).await?;
    shown.last(&board)?;
    Ok(Exit::Done)
}

/// A run as its logs have it so far.
struct Board {
    summary: RunSummary,
    current: CurrentStatus,
    run: Actor,
    openings: AgentOpenings,
    open: Vec<ApprovalQuestion>,
    /// The agents whose work judges verify, as their logs have them.
    with_goals: HashMap<SessionId, Actor>,
    drawing: Drawing,
    /// What was verified of the first agent's work; known at the end.
    goal: Option<AgentGoal>,
    /// Why there is no final summary; known at the end.
    no_final_summary: Option<String>,
}

impl Board {
    /// The run as it stands, and up to where that was read.
    async fn read(
        backend: &dyn Backend,
        summary: RunSummary,
        drawing: Drawing,
    ) -> anyhow::Result<(Self, HashMap<ActorKey, Seq>)> {
        let key = ActorKey::Run(summary.run);
        let run = backend.state(key).await?;
        let mut board = Self {
            current: CurrentStatus { word: String::new(), provider: None },
            summary,
            run,
            openings: AgentOpenings::new(),
            open: Vec::new(),
            with_goals: HashMap::new(),
            drawing,
            goal: None,
            no_final_summary: None,
        };
        let state = board.state()?;
        let openings = agent_openings(backend, state, AgentsRead::Shown).await?;
        let mut heads = HashMap::from([(key, state.head())]);
        let (mut open, mut with_goals) = (Vec::new(), HashMap::new());
        for session in with_logs(state) {
            let actor = backend.state(session.into()).await?;
            open.extend(open_of(session, &actor));
            heads.insert(session.into(), actor.head());
            if goal_state_of(&actor).is_some() {
                with_goals.insert(session, actor);
            }
        }
        (board.openings, board.open, board.with_goals) = (openings, open, with_goals);
        board.current = board.current(backend).await?;
        Ok((board, heads))
    }

    /// Reads the run's present status.
    async fn look(&mut self, backend: &dyn Backend) -> anyhow::Result<()> {
        self.summary = summary_of(backend, self.summary.run).await?;
        self.current = self.current(backend).await?;
        Ok(())
    }

    async fn current(&self, backend: &dyn Backend) -> anyhow::Result<CurrentStatus> {
        let run = (&self.summary, self.state()?);
        Ok(CurrentStatus::with_questions(backend, run, &self.open, SystemClock.now()).await)
    }

    /// The status, with its cause where that is its provider.
    fn in_words(&self) -> String {
        self.current.provider.as_ref().map_or_else(|| self.current.word.clone(), status::in_words)
    }

    fn state(&self) -> anyhow::Result<&RunState> {
        match &self.run {
            Actor::Run(state) if state.policy().is_some() => Ok(state),
            Actor::Run(_) | Actor::Session(_) => {
                anyhow::bail!("the log of run {} is empty", self.summary.run)
            }
        }
    }

    fn take(&mut self, record: &Arc<Record>) -> anyhow::Result<()> {
        let ActorKey::Session(session) = record.actor else {
            return self.run.replay(record).context("the run's log can't be read");
        };
        self.verifies(session, record)?;
        self.open.extend(ApprovalQuestion::of(record));
        match &record.entry {
            Entry::Gate(GateEntry::ApprovalResolved(entry)) => {
                self.open.retain(|question| question.session != session || question.asked != entry.asked);
            }
            Entry::Lifecycle(LifecycleEntry::Ended(_)) => {
                self.open.retain(|question| question.session != session)
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes in what is known of an agent besides the run's log.
    fn verifies(&mut self, session: SessionId, record: &Record) -> anyhow::Result<()> {
        if let Some(opening) = AgentOpening::of(record) {
            if opening.goal_state.is_some() {
                self.with_goals.insert(session, Actor::new(session.into()));
            }
            self.openings.insert(session.agent, opening);
        }
        let Some(agent) = self.with_goals.get_mut(&session) else { return Ok(()) };
        agent.replay(record).with_context(|| format!("the log of agent {} can't be read", session.agent))?;
        if let Some(opening) = self.openings.get_mut(&session.agent) {
            opening.goal_state = goal_state_of(agent);
        }
        Ok(())
    }

    /// The lines for a terminal with this many rows and columns.
    fn frame(&self, (rows, columns): (usize, usize)) -> anyhow::Result<Vec<String>> {
        let state = self.state()?;
        let mut lines = vec![
            format!("{:<11} {} {}", "run", self.summary.run, one_line(&self.summary.goal, GOAL_WIDTH)),
            format!("{:<11} {}", "status", self.standing(state)),
        ];
        let details = self.details(state);
        let seen = RunPage {
            summary: &self.summary,
            state,
            details: &details,
            drawing: Drawing { width: Some(columns), ..self.drawing },
            suspension: self.current.provider.as_ref(),
        };
        let used = used(&seen).map(|(name, value)| with_unit(name, value));
        lines.push(format!("{:<11} {}", "used", used.join(" · ")));
        let tree = tree_below(&seen);
        let below = self.questions();
        let room = rows.saturating_sub(lines.len() + below.len() + ROWS_KEPT);
        lines.extend(fitted(tree.lines().map(str::to_owned).collect(), room));
        lines.extend(below);
        Ok(lines.into_iter().map(|line| truncate_str(&line, columns, "…").into_owned()).collect())
    }

    fn details(&self, state: &RunState) -> RunDetails {
        let run = (&self.summary, state);
        let tree = RunTree::new(run, &self.openings, &self.open, SystemClock.now());
        RunDetails::new(run, &self.open, &self.current, tree)
    }

    fn standing(&self, state: &RunState) -> String {
        match (state.outcome(), &self.summary.status) {
            (Some(outcome), _) => safe(&outcome_in_words(self.summary.run, outcome)).replace('\n', " "),
            (None, RunStatus::Interrupted) => {
                format!("{}; it goes on with: provost resume {}", self.in_words(), self.summary.run)
            }
            (None, _) => self.in_words(),
        }
    }

    fn questions(&self) -> Vec<String> {
        let line = |question: &ApprovalQuestion| {
            let call = one_line(&call_in_words(&question.tool, &question.input), GOAL_WIDTH);
            format!("? {} · provost approve {}", call, question.short_id())
        };
        let mut lines = self.open.iter().take(QUESTIONS_MAX).map(line).collect::<Vec<_>>();
        if let Some(more) = self.open.len().checked_sub(QUESTIONS_MAX).filter(|more| *more > 0) {
            lines.push(format!("? {more} more: provost approvals"));
        }
        if !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }

    fn json(&self) -> anyhow::Result<String> {
        Ok(format!("{}\n", serde_json::to_string(&self.details(self.state()?))?))
    }

    /// The outcome and how to go on, once there is one.
    fn end(&self) -> anyhow::Result<Option<String>> {
        let state = self.state()?;
        Ok(state.outcome().map(|outcome| {
            safe(&summary(&Stopped {
                run: self.summary.run,
                state,
                outcome,
                open: &self.open,
                goal: self.goal.as_ref(),
                no_final_summary: self.no_final_summary.as_deref(),
            }))
        }))
    }
}

/// The agents that have a log which may still grow.
fn with_logs(state: &RunState) -> Vec<SessionId> {
    let grows = |standing: &AgentState| !matches!(standing, AgentState::Queued | AgentState::Finished(_));
    state.agents().filter(|agent| grows(&agent.standing)).map(|agent| agent.session).collect()
}

/// A value of the page, with its unit where the form doesn't show it.
fn with_unit(name: &str, value: String) -> String {
    let turns = |count: &str| if count == "1" { "turn" } else { "turns" };
    match (name, value.split_once(' ')) {
        ("turns", Some((count, of))) => format!("{count} {} {of}", turns(count)),
        ("turns", None) => format!("{value} {}", turns(&value)),
        ("tokens", _) if value == "1" => "1 token".to_owned(),
        ("tokens", _) => format!("{value} tokens"),
        _ => value,
    }
}

/// As many lines as there is room for, and how many are left out.
fn fitted(mut lines: Vec<String>, room: usize) -> Vec<String> {
    let left_out = lines.len().saturating_sub(room.max(1));
    if left_out > 0 {
        lines.truncate(room.saturating_sub(1));
        lines.push(format!("… {} than there is room for", plural(left_out as u64 + 1, "more line")));
    }
    lines
}

/// How what happens is shown.
enum ShowOutput {
    /// Drawn anew.
    Screen(Screen),
    /// A line for each change.
    Lines(Sayer),
    /// A JSON object for each change.
    Json,
}

impl ShowOutput {
    fn first(&mut self, board: &Board) -> anyhow::Result<()> {
        match self {
            Self::Screen(_) | Self::Json => self.draw(board),
            Self::Lines(_) => {
                let lines = board.frame((usize::MAX, board.drawing.width.unwrap_or(usize::MAX)))?;
                print(&format!("{}\n\n", lines.join("\n")))
            }
        }
    }

    fn record(&mut self, record: &Record) -> anyhow::Result<()> {
        let Self::Lines(sayer) = self else { return Ok(()) };
        let said = sayer.say(record);
        let is_change = match record.actor {
            ActorKey::Run(_) => said.is_kept(),
            ActorKey::Session(_) => {
                matches!(
                    record.entry,
                    Entry::Gate(GateEntry::ApprovalRequested(_) | GateEntry::ApprovalResolved(_))
                )
            }
        };
        if is_change {
            let (at, who) = (clock(record.at), sayer.names().prefix(record.actor));
            let who = who.map(|who| format!("{who}: ")).unwrap_or_default();
            print(&format!("{at} {who}{}\n", said.one_line()))?;
        }
        Ok(())
    }

    fn draw(&mut self, board: &Board) -> anyhow::Result<()> {
        match self {
            Self::Screen(screen) => {
                let frame = board.frame(screen.size())?;
                screen.draw(frame).context("can't write to standard output")
            }
            Self::Lines(_) => Ok(()),
            Self::Json => print(&board.json()?),
        }
    }

    fn last(&mut self, board: &Board) -> anyhow::Result<()> {
        self.draw(board)?;
        match self {
            Self::Json => Ok(()),
            Self::Screen(_) | Self::Lines(_) => match board.end()? {
                Some(end) => print(&format!("\n{end}\n")),
                None => Ok(()),
            },
        }
    }
}

/// The time of a moment, without its day.
fn clock(at: Timestamp) -> String {
    date_and_time(at).split_once(' ').map(|(_, time)| time.to_owned()).unwrap_or_default()
}
