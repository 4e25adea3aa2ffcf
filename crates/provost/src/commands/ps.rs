//! `provost ps`: the runs.

use provost_event::{MicroDollars, Outcome, RunId, Timestamp};
use provost_harness::{Clock as _, Home as _, RunQuery, RunStatus, RunSummary, SystemClock};
use serde::Serialize;

use super::{home, print};
use crate::cli::PsArgs;
use crate::exit::Exit;
use crate::render::{Cells, Table, age, one_line, terminal_width, tokens};

/// Columns of a goal where there is no terminal to measure.
pub(super) const GOAL_WIDTH: usize = 200;
/// What is said of a store without runs.
pub(super) const NO_RUNS: &str = "no runs yet; start one with `provost run \"GOAL\"`\n";

pub(super) async fn ps(args: PsArgs) -> anyhow::Result<Exit> {
    let max = if args.all { usize::MAX } else { args.max };
    let runs = home()?.list(RunQuery { max }).await?;
    if args.json {
        for run in &runs {
            print(&format!("{}\n", serde_json::to_string(&Line::of(run))?))?;
        }
    } else if runs.is_empty() {
        print(NO_RUNS)?;
    } else {
        print(&table(&runs, SystemClock.now()).lines(terminal_width()))?;
    }
    Ok(Exit::Done)
}

/// How a run stands, in a word or two.
pub(super) fn status(status: &RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Rests(outcome) => outcome.word(),
    }
}

fn table(runs: &[RunSummary], now: Timestamp) -> Table {
    let mut table = Table::new(&[
        ("RUN", Cells::Text),
        ("STATUS", Cells::Text),
        ("TURNS", Cells::Numbers),
        ("TOKENS", Cells::Numbers),
        ("COST", Cells::Numbers),
        ("AGE", Cells::Numbers),
        ("GOAL", Cells::CutAtEnd),
    ]);
    for run in runs {
        table.row(vec![
            run.run.to_string(),
            status(&run.status).to_owned(),
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
    goal: &'a str,
    workspace: &'a std::path::Path,
    model: &'a str,
    started_at_ms: Timestamp,
    updated_at_ms: Timestamp,
    turns: u32,
    tokens: u64,
    cost_micro_usd: MicroDollars,
}

impl<'a> Line<'a> {
    pub(super) fn of(run: &'a RunSummary) -> Self {
        Self {
            run: run.run,
            status: status(&run.status),
            outcome: match &run.status {
                RunStatus::Rests(outcome) => Some(outcome),
                RunStatus::Running | RunStatus::Interrupted => None,
            },
            goal: &run.goal,
            workspace: &run.workspace,
            model: &run.model,
            started_at_ms: run.started_at,
            updated_at_ms: run.updated_at,
            turns: run.turns,
            tokens: run.tokens,
            cost_micro_usd: run.cost,
        }
    }
}
