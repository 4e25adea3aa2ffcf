//! `provost ps`: the runs.

use provost_engine::Actor;
use provost_event::{
    Blocker, MicroDollars, Outcome, PauseReason, RunId, SessionId, TerminalState, Timestamp, Verification,
};
use provost_harness::{Clock as _, Home as _, RunQuery, RunStatus, RunSummary, SystemClock, read_actor};
use provost_store::LocalHome;
use serde::Serialize;

use super::{home, print};
use crate::cli::PsArgs;
use crate::exit::Exit;
use crate::questions::{Question, of_summary};
use crate::render::{Cells, Table, age, one_line, terminal_width, tokens};
use crate::wiring::is_program;

/// Columns of a goal where there is no terminal to measure.
pub(super) const GOAL_WIDTH: usize = 200;
/// A run's open questions, and what its program waits for besides.
type Waiting = (Vec<Question>, Option<&'static str>);

const NEEDS_APPROVAL: &str = "needs approval";
/// What is said of a store without runs.
pub(super) const NO_RUNS: &str = "no runs yet; start one with `provost run \"GOAL\"`\n";

pub(super) async fn ps(args: PsArgs) -> anyhow::Result<Exit> {
    let max = if args.all { usize::MAX } else { args.max };
    let home = home()?;
    let runs = home.list(RunQuery { max }).await?;
    let mut waiting = Vec::with_capacity(runs.len());
    for run in &runs {
        // A log that can't be read keeps no run out of the list; `show` says what is wrong with it.
        let open = of_summary(&home, run).await.unwrap_or_default();
        waiting.push((open, at_terminal(&home, run).await.unwrap_or_default()));
    }
    if args.json {
        for (run, (open, _)) in runs.iter().zip(&waiting) {
            print(&format!("{}\n", serde_json::to_string(&Line::of(run, open))?))?;
        }
    } else if runs.is_empty() {
        print(NO_RUNS)?;
    } else {
        print(&table(&runs, &waiting, SystemClock.now()).lines(terminal_width()))?;
    }
    Ok(Exit::Done)
}

/// How a run stands, in a word or two, and whether what is completed was verified.
fn status_in_words(status_of: &RunStatus) -> String {
    match status_of {
        RunStatus::Rests(Outcome::Completed { verification: Verification::Passed, .. }) => {
            "completed, verified".to_owned()
        }
        RunStatus::Rests(Outcome::Completed { .. }) => "completed, not verified".to_owned(),
        other => status(other).to_owned(),
    }
}

/// How a run stands, in a word or two.
pub(super) fn status(status: &RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Rests(outcome) => outcome.word(),
    }
}

/// How a run stands that has these open questions: what it waits for is more worth knowing than that it runs or rests.
fn standing(run: &RunSummary, open: &[Question], at_terminal: Option<&'static str>) -> String {
    match &run.status {
        _ if open.is_empty() => at_terminal.map_or_else(|| status_in_words(&run.status), str::to_owned),
        RunStatus::Running => NEEDS_APPROVAL.to_owned(),
        RunStatus::Rests(Outcome::Paused { why: PauseReason::Approval { .. } }) => NEEDS_APPROVAL.to_owned(),
        RunStatus::Interrupted | RunStatus::Rests(_) => format!("{}, {NEEDS_APPROVAL}", status(&run.status)),
    }
}

/// What a run's first agent waits for at its terminal, if it is somebody else's program that is at work.
async fn at_terminal(home: &LocalHome, run: &RunSummary) -> anyhow::Result<Option<&'static str>> {
    if run.status != RunStatus::Running || !is_program(&run.model) {
        return Ok(None);
    }
    let Actor::Session(session) = read_actor(home, SessionId::root(run.run).into()).await? else {
        return Ok(None);
    };
    Ok(session.terminal().and_then(|state| match state {
        TerminalState::WaitingForInput | TerminalState::Blocked(Blocker::Question) => Some("needs input"),
        TerminalState::Password => Some("needs a password"),
        TerminalState::Blocked(Blocker::Auth) => Some("needs a login"),
        TerminalState::Blocked(Blocker::Approval) => Some(NEEDS_APPROVAL),
        TerminalState::Stalled => Some("stalled"),
        TerminalState::Starting
        | TerminalState::Working
        | TerminalState::Idle
        | TerminalState::Exiting
        | TerminalState::Exited
        | TerminalState::Unknown => None,
    }))
}

fn table(runs: &[RunSummary], waiting: &[Waiting], now: Timestamp) -> Table {
    let mut table = Table::new(&[
        ("RUN", Cells::Text),
        ("STATUS", Cells::Text),
        ("TURNS", Cells::Numbers),
        ("TOKENS", Cells::Numbers),
        ("COST", Cells::Numbers),
        ("AGE", Cells::Numbers),
        ("GOAL", Cells::CutAtEnd),
    ]);
    for (run, (open, at_terminal)) in runs.iter().zip(waiting) {
        table.row(vec![
            run.run.to_string(),
            standing(run, open, *at_terminal),
            run.turns.to_string(),
            tokens(run.tokens),
            run.cost.to_string(),
            age(now, run.started_at),
            one_line(&run.goal, GOAL_WIDTH),
        ]);
    }
    table
}

/// A run for programs.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    run: RunId,
    status: &'static str,
    outcome: Option<&'a Outcome>,
    /// `passed`, `none` or `ignored`; null where it isn't completed.
    verification: Option<&'static str>,
    goal: &'a str,
    workspace: &'a std::path::Path,
    model: &'a str,
    started_at_ms: Timestamp,
    updated_at_ms: Timestamp,
    turns: u32,
    tokens: u64,
    cost_micro_usd: MicroDollars,
    /// The questions that wait for somebody, by their names.
    approvals: Vec<String>,
}

impl<'a> Line<'a> {
    pub(super) fn of(run: &'a RunSummary, open: &[Question]) -> Self {
        let outcome = match &run.status {
            RunStatus::Rests(outcome) => Some(outcome),
            RunStatus::Running | RunStatus::Interrupted => None,
        };
        Self {
            run: run.run,
            status: status(&run.status),
            outcome,
            verification: outcome.and_then(Outcome::verification).map(Verification::word),
            goal: &run.goal,
            workspace: &run.workspace,
            model: &run.model,
            started_at_ms: run.started_at,
            updated_at_ms: run.updated_at,
            turns: run.turns,
            tokens: run.tokens,
            cost_micro_usd: run.cost,
            approvals: open.iter().map(|question| question.id().to_string()).collect(),
        }
    }
}
