//! `provost ps`: the runs.

use provost_event::{Outcome, PauseReason, RunId, Timestamp, Verification};
use provost_harness::{Clock as _, RunQuery, SystemClock};
use provost_process::Descent;
use provost_view::{ListedRun, RunListItem};

use super::{backend_to_read, place, print, status};
use crate::cli::PsArgs;
use crate::exit::Exit;
use crate::render::{
    Cells, Table, UncertaintyMarks, one_line, outcome_with_steps, span, terminal_width, tokens,
};

/// Columns of a goal where there is no terminal to measure.
pub(super) const GOAL_WIDTH: usize = 200;

/// How long ago a run was started. If the wall clock was set back, the logs' times count.
fn age(run: &RunListItem, now: Timestamp) -> String {
    span(now.max(run.updated_at_ms).since_ms(run.started_at_ms).max(run.elapsed_ms.0))
}

/// The message for a store without runs.
pub(super) const NO_RUNS: &str = "no runs yet; start one with `provost run \"GOAL\"`\n";

/// What the list says in place of runs. What a run has started isn't given the variables that name the state folder.
fn no_runs() -> String {
    let by = match provost_process::descent() {
        None => return NO_RUNS.to_owned(),
        Some(Descent::Of(bits)) => format!("run {}", RunId::from_entropy(bits)),
        Some(Descent::Unnamed | Descent::Lowered) => "a run".to_owned(),
    };
    format!(
        "no runs in the state folder that is set here; this was started by {by}, which is in another one\n"
    )
}

pub(super) async fn ps(args: PsArgs) -> anyhow::Result<Exit> {
    let max = if args.all { usize::MAX } else { args.max };
    let backend = backend_to_read()?;
    let runs = backend.list(RunQuery::newest(max)).await?;
    let now = SystemClock.now();
    let services = place()?.services().all();
    let mut listed = Vec::with_capacity(runs.len());
    for run in &runs {
        let ListedRun { item, provider } = ListedRun::read(&*backend, run, now).await;
        listed.push(ListedRun { item: item.with_services(&services), provider });
    }
    if args.json {
        for ListedRun { item, .. } in &listed {
            print(&format!("{}\n", serde_json::to_string(item)?))?;
        }
    } else if runs.is_empty() {
        print(&no_runs())?;
    } else {
        print(&table(&listed, now).lines(terminal_width()))?;
        print(&services_line(&listed))?;
    }
    Ok(Exit::Done)
}

/// A line on the services of these runs that go on; empty if there are none.
fn services_line(runs: &[ListedRun]) -> String {
    let of_run = |ListedRun { item, .. }: &ListedRun| {
        let names = item.services.iter().map(|name| format!("{name} (of {})", item.run));
        names.collect::<Vec<_>>()
    };
    let names = runs.iter().flat_map(of_run).collect::<Vec<_>>();
    if names.is_empty() {
        return String::new();
    }
    format!("\nservices that go on: {}; see provost services\n", names.join(", "))
}

/// The status in the table; of a completed run the agent's own verdict, unless it is a pass, and whether it was
/// verified; of one that its model has suspended the cause.
fn status_in_words(run: &RunListItem) -> String {
    match &run.outcome {
        _ if run.damage.is_some() => run.status.clone(),
        Some(outcome) if outcome.verdict_not_passed().is_some() => {
            outcome_with_steps(run.run, outcome, run.step_counts)
        }
        Some(Outcome::Completed { verification: Verification::Passed, .. }) => {
            format!("{}, verified", run.status)
        }
        Some(Outcome::Completed { .. }) => format!("{}, not verified", run.status),
        outcome => with_cause(outcome.as_ref(), &run.status),
    }
}

/// The status of a run with this outcome, with what its provider has to do with it.
pub(super) fn with_cause(outcome: Option<&Outcome>, status: &str) -> String {
    match outcome {
        Some(Outcome::Paused { why: PauseReason::Model(trouble) }) => {
            format!("{status}: {}", trouble.words())
        }
        Some(Outcome::Paused { why: PauseReason::Asked { awaited: Some(trouble), .. } }) => {
            format!("{status}: {}", trouble.past())
        }
        Some(_) | None => status.to_owned(),
    }
}

fn table(runs: &[ListedRun], now: Timestamp) -> Table {
    let mut table = Table::new(&[
        ("RUN", Cells::Text),
        ("STATUS", Cells::CutLast),
        ("TURNS", Cells::LeftOut),
        ("TOKENS", Cells::LeftOut),
        ("COST", Cells::Numbers),
        ("AGE", Cells::LeftOut),
        ("GOAL", Cells::CutAtEnd),
    ]);
    for ListedRun { item, provider } in runs {
        let uncertain = UncertaintyMarks::of_listed(item);
        table.row(vec![
            item.run.to_string(),
            provider.as_ref().map_or_else(|| status_in_words(item), status::in_words),
            item.turns.to_string(),
            uncertain.marked_tokens(tokens(item.tokens)),
            match &item.money {
                Some(partial) => {
                    format!("{} ({partial})", uncertain.marked_money(item.cost_micro_usd.to_string()))
                }
                None => uncertain.marked_money(item.cost_micro_usd.to_string()),
            },
            age(item, now),
            one_line(&item.goal, GOAL_WIDTH),
        ]);
    }
    table
}
