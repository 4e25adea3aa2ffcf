//! `provost ps`: the runs.

use provost_engine::RunState;
use provost_event::{MicroDollars, Outcome, PauseReason, RunId, Timestamp, Verification};
use provost_harness::{Backend, Clock as _, RunQuery, RunStatus, RunSummary, SystemClock};
use provost_process::Descent;
use serde::Serialize;

use super::status::{ProviderLine, Suspension, at_terminal, status};
use super::{backend_to_read, print};
use crate::cli::PsArgs;
use crate::drive::run_state;
use crate::exit::Exit;
use crate::questions::{Question, of_summary};
use crate::render::{
    Cells, Table, UncertaintyMarks, one_line, run_outcome_in_words, span, terminal_width, tokens,
};

/// Columns of a goal where there is no terminal to measure.
pub(super) const GOAL_WIDTH: usize = 200;

/// What is shown of a run besides what the list of runs has.
#[derive(Default)]
struct RunExtras {
    open: Vec<Question>,
    /// Its status with these questions.
    status: String,
    /// The same for the table.
    words: String,
    /// That its provider keeps it from working.
    suspension: Option<Suspension>,
    /// What of its tokens and of its money no provider has reported.
    uncertain: UncertaintyMarks,
}

impl RunExtras {
    /// A log that can't be read doesn't keep a run out of the list; `show` reports what is wrong with it.
    async fn read(backend: &dyn Backend, run: &RunSummary) -> Self {
        let open = of_summary(backend, run).await.unwrap_or_default();
        let status = status(run, &open, at_terminal(backend, run).await);
        let uncertain = UncertaintyMarks::of(run.uncertain);
        // The list has all that is shown of a run that ended, except for what became of a workflow's steps.
        let is_told = matches!(&run.status, RunStatus::Stopped(outcome) if outcome.is_final() && outcome.verdict_not_passed().is_none());
        let state = if is_told { None } else { run_state(backend, run.run).await.unwrap_or_default() };
        let words = shown(run, state.as_deref(), &status);
        let Some(state) = state else { return Self { open, status, words, suspension: None, uncertain } };
        let suspension = Suspension::read(backend, (run, &state), &open).await;
        Self { open, status, words, suspension, uncertain: UncertaintyMarks::of_run(&state) }
    }
}

/// How long ago a run was started. If the wall clock was set back, the logs' times count.
fn age(run: &RunSummary, now: Timestamp) -> String {
    span(now.max(run.updated_at).since_ms(run.started_at).max(run.elapsed.0))
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
    let mut told = Vec::with_capacity(runs.len());
    for run in &runs {
        told.push(RunExtras::read(&*backend, run).await);
    }
    if args.json {
        for (run, told) in runs.iter().zip(&told) {
            let line = RunJson::of(run, &told.open, (&told.status, told.suspension.as_ref()));
            print(&format!("{}\n", serde_json::to_string(&line)?))?;
        }
    } else if runs.is_empty() {
        print(&no_runs())?;
    } else {
        print(&table(&runs, &told, now).lines(terminal_width()))?;
    }
    Ok(Exit::Done)
}

/// The status in the table; of a completed run the agent's own verdict, unless it is a pass, and whether it was
/// verified; of one that its model has suspended the cause.
fn shown(run: &RunSummary, state: Option<&RunState>, status: &str) -> String {
    match &run.status {
        _ if run.damage.is_some() => status.to_owned(),
        RunStatus::Stopped(outcome) if outcome.verdict_not_passed().is_some() => {
            state.map_or_else(|| outcome.to_string(), |state| run_outcome_in_words(run.run, state, outcome))
        }
        RunStatus::Stopped(Outcome::Completed { verification: Verification::Passed, .. }) => {
            format!("{status}, verified")
        }
        RunStatus::Stopped(Outcome::Completed { .. }) => format!("{status}, not verified"),
        RunStatus::Stopped(_) | RunStatus::Running | RunStatus::Interrupted => with_cause(run, status),
    }
}

/// The status of a run, with what its provider has to do with it.
pub(super) fn with_cause(run: &RunSummary, status: &str) -> String {
    match &run.status {
        _ if run.damage.is_some() => status.to_owned(),
        RunStatus::Stopped(Outcome::Paused { why: PauseReason::Model(trouble) }) => {
            format!("{status}: {}", trouble.words())
        }
        RunStatus::Stopped(Outcome::Paused { why: PauseReason::Asked { awaited: Some(trouble), .. } }) => {
            format!("{status}: {}", trouble.past())
        }
        RunStatus::Stopped(_) | RunStatus::Running | RunStatus::Interrupted => status.to_owned(),
    }
}

fn table(runs: &[RunSummary], told: &[RunExtras], now: Timestamp) -> Table {
    let mut table = Table::new(&[
        ("RUN", Cells::Text),
        ("STATUS", Cells::CutLast),
        ("TURNS", Cells::LeftOut),
        ("TOKENS", Cells::LeftOut),
        ("COST", Cells::Numbers),
        ("AGE", Cells::LeftOut),
        ("GOAL", Cells::CutAtEnd),
    ]);
    for (run, told) in runs.iter().zip(told) {
        table.row(vec![
            run.run.to_string(),
            told.suspension.as_ref().map_or_else(|| told.words.clone(), Suspension::words),
            run.turns.to_string(),
            told.uncertain.marked_tokens(tokens(run.tokens)),
            told.uncertain.marked_money(run.cost.to_string()),
            age(run, now),
            one_line(&run.goal, GOAL_WIDTH),
        ]);
    }
    table
}

/// A run for programs.
#[derive(Serialize)]
pub(super) struct RunJson<'a> {
    run: RunId,
    /// In the word that the table has too.
    status: &'a str,
    outcome: Option<&'a Outcome>,
    /// The provider that it waits for, or waited for when its process was killed; absent where it doesn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaits_provider: Option<ProviderLine>,
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
    /// What of both no provider has reported: estimated, or lost to a crash. Calls that have no report yet aren't
    /// included.
    uncertain_tokens: u64,
    uncertain_cost_micro_usd: MicroDollars,
    /// The open questions, by their names.
    approvals: Vec<String>,
}

impl<'a> RunJson<'a> {
    pub(super) fn of(
        run: &'a RunSummary,
        open: &[Question],
        (status, suspension): (&'a str, Option<&Suspension>),
    ) -> Self {
        let outcome = match &run.status {
            RunStatus::Stopped(outcome) => Some(outcome),
            RunStatus::Running | RunStatus::Interrupted => None,
        };
        Self {
            run: run.run,
            status: suspension.map_or(status, |suspension| suspension.word()),
            outcome,
            awaits_provider: suspension.map(Suspension::line),
            verification: outcome.and_then(Outcome::verification).map(Verification::word),
            goal: &run.goal,
            workspace: &run.workspace,
            model: &run.model,
            started_at_ms: run.started_at,
            updated_at_ms: run.updated_at,
            turns: run.turns,
            tokens: run.tokens,
            cost_micro_usd: run.cost,
            uncertain_tokens: run.uncertain.tokens,
            uncertain_cost_micro_usd: run.uncertain.cost,
            approvals: open.iter().map(|question| question.id().to_string()).collect(),
        }
    }
}
