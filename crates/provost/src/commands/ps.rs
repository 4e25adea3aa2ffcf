//! `provost ps`: the runs.

use provost_event::{MicroDollars, Outcome, PauseReason, RunId, Timestamp, Verdict, Verification};
use provost_harness::{Clock as _, Home as _, RunQuery, RunStatus, RunSummary, SystemClock};
use serde::Serialize;

use super::status::{at_terminal, awaits_provider, status, suspended_until};
use super::{home_to_read, print};
use crate::cli::PsArgs;
use crate::exit::Exit;
use crate::questions::{Question, of_summary};
use crate::render::{Cells, Table, age, one_line, terminal_width, tokens};

/// Columns of a goal where there is no terminal to measure.
pub(super) const GOAL_WIDTH: usize = 200;
/// A run's open questions, how it stands with them, and until when it waits for its provider.
type Waiting = (Vec<Question>, String, Option<String>);

/// What is said of a store without runs.
pub(super) const NO_RUNS: &str = "no runs yet; start one with `provost run \"GOAL\"`\n";

pub(super) async fn ps(args: PsArgs) -> anyhow::Result<Exit> {
    let max = if args.all { usize::MAX } else { args.max };
    let home = home_to_read()?;
    let runs = home.list(RunQuery { max }).await?;
    let mut waiting = Vec::with_capacity(runs.len());
    for run in &runs {
        // A log that can't be read keeps no run out of the list; `show` says what is wrong with it.
        let open = of_summary(&home, run).await.unwrap_or_default();
        let status = status(run, &open, at_terminal(&home, run).await);
        let awaited = awaits_provider(&home, run).await.unwrap_or_default();
        let awaited = awaited.filter(|_| open.is_empty());
        let awaited = awaited.map(|awaited| suspended_until(&awaited, SystemClock.now()));
        waiting.push((open, status, awaited));
    }
    if args.json {
        for (run, (open, status, _)) in runs.iter().zip(&waiting) {
            print(&format!("{}\n", serde_json::to_string(&Line::of(run, open, status))?))?;
        }
    } else if runs.is_empty() {
        print(NO_RUNS)?;
    } else {
        print(&table(&runs, &waiting, SystemClock.now()).lines(terminal_width()))?;
    }
    Ok(Exit::Done)
}

/// What the table says: the word for how a run stands; of a completed one the agent's own verdict, unless it is a pass,
/// and whether it was verified; of one that its model has suspended the cause.
fn shown(run: &RunSummary, status: &str) -> String {
    match &run.status {
        RunStatus::Rests(
            outcome @ Outcome::Completed { verdict: Some(Verdict::Fail | Verdict::Partial), .. },
        ) => outcome.to_string(),
        RunStatus::Rests(Outcome::Paused { why: PauseReason::Model(trouble) }) => {
            format!("{status}: {}", trouble.cause().words())
        }
        RunStatus::Rests(Outcome::Completed { verification: Verification::Passed, .. }) => {
            format!("{status}, verified")
        }
        RunStatus::Rests(Outcome::Completed { .. }) => format!("{status}, not verified"),
        RunStatus::Rests(_) | RunStatus::Running | RunStatus::Interrupted => status.to_owned(),
    }
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
    for (run, (_, status, awaited)) in runs.iter().zip(waiting) {
        table.row(vec![
            run.run.to_string(),
            awaited.clone().unwrap_or_else(|| shown(run, status)),
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
    /// In the word that the table has too.
    status: &'a str,
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
    pub(super) fn of(run: &'a RunSummary, open: &[Question], status: &'a str) -> Self {
        let outcome = match &run.status {
            RunStatus::Rests(outcome) => Some(outcome),
            RunStatus::Running | RunStatus::Interrupted => None,
        };
        Self {
            run: run.run,
            status,
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
