//! `provost ps`: the runs.

use std::path::PathBuf;

use futures::{StreamExt as _, stream};
use jiff::tz::TimeZone;
use provost_event::{Outcome, PauseReason, RunId, Timestamp, Verification};
use provost_harness::{Backend, Clock as _, RunFilter, RunQuery, RunSummary, SystemClock};
use provost_process::Descent;
use provost_view::{ListedRun, RUNS_AT_ONCE, RunGroup, RunListItem};

use super::cost::moment_of;
use super::{backend_to_read, place, print, status};
use crate::cli::{PsArgs, StatusGroup};
use crate::exit::Exit;
use crate::render::{
    Cells, Table, UncertaintyMarks, one_line, outcome_with_steps, span, terminal_width, tokens,
};

/// Columns of a goal where there is no terminal to measure.
pub(super) const GOAL_WIDTH: usize = 200;
/// Runs that are read at a time where not all of them are listed.
const PAGE: usize = 200;

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
    let now = SystemClock.now();
    let wanted = Wanted::of(&args, now)?;
    let backend = backend_to_read().await?;
    let services = place()?.services().all();
    let listed = wanted.read(&*backend, now).await?.into_iter();
    let listed = listed
        .map(|ListedRun { item, provider }| ListedRun { item: item.with_services(&services), provider })
        .collect::<Vec<_>>();
    if args.json {
        for ListedRun { item, .. } in &listed {
            print(&format!("{}\n", serde_json::to_string(item)?))?;
        }
    } else if listed.is_empty() && wanted.is_all() {
        print(&no_runs())?;
    } else if listed.is_empty() {
        print("no such runs; without --here, --status and --since all are listed\n")?;
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

/// Which runs are listed.
struct Wanted {
    max: usize,
    /// The folder that they work in, or below which they do.
    folder: Option<PathBuf>,
    groups: Vec<RunGroup>,
    since: Option<Timestamp>,
}

impl Wanted {
    fn of(args: &PsArgs, now: Timestamp) -> anyhow::Result<Self> {
        Ok(Self {
            max: if args.all { usize::MAX } else { usize::try_from(args.max).unwrap_or(usize::MAX) },
            folder: args.here.then(|| super::run::folder(None)).transpose()?,
            groups: args.status.iter().map(|group| group_of(*group)).collect(),
            since: args
                .since
                .as_deref()
                .map(|since| moment_of(since, now, &TimeZone::system()))
                .transpose()?,
        })
    }

    fn is_all(&self) -> bool {
        self.folder.is_none() && self.groups.is_empty() && self.since.is_none()
    }

    async fn read(&self, backend: &dyn Backend, now: Timestamp) -> anyhow::Result<Vec<ListedRun>> {
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let max = if self.is_all() { self.max } else { PAGE };
            let page = backend.list(RunQuery { filter: RunFilter::default(), after, max }).await?;
            let is_before = |run: &RunSummary| self.since.is_some_and(|since| run.started_at < since);
            let is_there = |run: &&RunSummary| {
                self.folder.as_ref().is_none_or(|folder| run.workspace.starts_with(folder))
            };
            let wanted = page.iter().take_while(|run| !is_before(run)).filter(is_there);
            let mut read =
                stream::iter(wanted.map(|run| ListedRun::read(backend, run, now))).buffered(RUNS_AT_ONCE);
            while let Some(run) = read.next().await {
                if self.groups.is_empty() || self.groups.contains(&RunGroup::of(&run.item, now)) {
                    listed.push(run);
                }
                if listed.len() >= self.max {
                    return Ok(listed);
                }
            }
            after = page.last().map(RunSummary::cursor);
            if page.len() < max || page.last().is_some_and(is_before) {
                return Ok(listed);
            }
        }
    }
}

const fn group_of(group: StatusGroup) -> RunGroup {
    match group {
        StatusGroup::NeedsYou => RunGroup::NeedsYou,
        StatusGroup::Working => RunGroup::Working,
        StatusGroup::Stuck => RunGroup::Stuck,
        StatusGroup::Finished => RunGroup::Finished,
        StatusGroup::Failed => RunGroup::Failed,
        StatusGroup::Waiting => RunGroup::Waiting,
        StatusGroup::Idle => RunGroup::Idle,
    }
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
