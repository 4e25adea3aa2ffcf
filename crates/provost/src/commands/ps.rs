//! `provost ps`: the runs.

use std::fmt::Write as _;

use console::{Term, pad_str, truncate_str};
use provost_event::{MicroDollars, Outcome, RunId, Timestamp};
use provost_harness::{Clock as _, Home as _, RunQuery, RunStatus, RunSummary, SystemClock};
use serde::Serialize;

use super::{home, print};
use crate::cli::PsArgs;
use crate::exit::Exit;
use crate::render::{age, one_line, tokens};

/// Columns of a goal where there is no terminal to measure.
const GOAL_WIDTH: usize = 200;

pub(super) async fn ps(args: PsArgs) -> anyhow::Result<Exit> {
    let max = if args.all { usize::MAX } else { args.max };
    let runs = home()?.list(RunQuery { max }).await?;
    if args.json {
        for run in &runs {
            print(&format!("{}\n", serde_json::to_string(&Line::of(run))?))?;
        }
    } else if runs.is_empty() {
        print("no runs yet; start one with `provost run \"GOAL\"`\n")?;
    } else {
        print(&table(&runs, SystemClock.now(), width()))?;
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

fn width() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

fn table(runs: &[RunSummary], now: Timestamp, width: Option<usize>) -> String {
    let head = ["RUN", "STATUS", "TURNS", "TOKENS", "COST", "AGE", "GOAL"].map(str::to_owned);
    let rows = runs.iter().map(|run| {
        let goal = one_line(&run.goal, GOAL_WIDTH);
        let (turns, cost) = (run.turns.to_string(), run.cost.to_string());
        let age = age(now, run.started_at);
        [run.run.to_string(), status(&run.status).to_owned(), turns, tokens(run.tokens), cost, age, goal]
    });
    let rows = std::iter::once(head).chain(rows).collect::<Vec<_>>();
    let widest = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or_default()
    };
    let widths = (0..6).map(widest).collect::<Vec<_>>();
    let mut out = String::new();
    for row in &rows {
        let line = line(row, &widths);
        let line = width.map_or_else(|| line.clone().into(), |width| truncate_str(&line, width, "…"));
        // Writing to a String can't fail.
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Numbers stand on the right.
fn line(row: &[String; 7], widths: &[usize]) -> String {
    let mut out = String::new();
    for (column, (text, width)) in row.iter().zip(widths).enumerate() {
        let side =
            if (2..6).contains(&column) { console::Alignment::Right } else { console::Alignment::Left };
        out.push_str(&pad_str(text, *width, side, None));
        out.push_str("  ");
    }
    out.push_str(row.last().map(String::as_str).unwrap_or_default());
    out
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
