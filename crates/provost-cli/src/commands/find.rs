//! Finds the run that the user names.

use std::sync::OnceLock;

use provost_event::RunId;
use provost_harness::{Backend, RunFilter, RunQuery, RunSummary};

use crate::exit::Refusal;
use crate::render::one_line;

/// The newest of this folder.
const LAST: &str = "last";
/// Runs that are read at a time.
const PAGE: usize = 200;

/// Set where `last` is the newest of all folders.
static IS_GLOBAL: OnceLock<()> = OnceLock::new();

/// From now on `last` is the newest run of all folders.
pub(super) fn make_global() {
    IS_GLOBAL.get_or_init(|| ());
}
/// Candidates shown when a beginning fits several.
const SHOWN_MAX: usize = 5;
const GOAL_WIDTH: usize = 50;

/// The run with this id, the only one that begins so, or the last one.
///
/// # Errors
/// [`Refusal`] when there is none, or more than one.
pub(crate) async fn find(backend: &dyn Backend, word: &str) -> anyhow::Result<RunId> {
    if word == LAST {
        return last(backend).await;
    }
    let mut fitting = backend.find(word, SHOWN_MAX + 1).await?;
    fitting.sort_unstable_by_key(|run| std::cmp::Reverse(run.cursor()));
    match fitting.as_slice() {
        [run] => Ok(run.run),
        [] => Err(Refusal::new(format!("there is no run `{word}`"), "`provost ps --all` lists them").into()),
        several => Err(ambiguous(word, several).into()),
    }
}

/// The newest run of the folder that the user is in: it works there, above or below.
async fn last(backend: &dyn Backend) -> anyhow::Result<RunId> {
    let none = || Refusal::new("there are no runs yet", "start one with `provost run`");
    let newest = backend.list(RunQuery::newest(1)).await?.pop().ok_or_else(none)?;
    if IS_GLOBAL.get().is_some() {
        return Ok(newest.run);
    }
    let folder = super::run::folder(None)?;
    let mut after = None;
    loop {
        let filter = RunFilter::default();
        let page = backend.list(RunQuery { filter, after, max: PAGE }).await?;
        if let Some(run) =
            page.iter().find(|run| folder.starts_with(&run.workspace) || run.workspace.starts_with(&folder))
        {
            return Ok(run.run);
        }
        after = page.last().map(RunSummary::cursor);
        if page.len() < PAGE {
            break;
        }
    }
    let what = format!("no run has worked in {}", super::shown(&folder));
    let hint = format!("the last run of all folders is {}: name it, or add --global", newest.run);
    Err(Refusal::new(what, hint).into())
}

fn ambiguous(word: &str, several: &[RunSummary]) -> Refusal {
    let count =
        if several.len() > SHOWN_MAX { format!("more than {SHOWN_MAX}") } else { several.len().to_string() };
    let shown =
        several.iter().take(SHOWN_MAX).map(|run| format!("{} {}", run.run, one_line(&run.goal, GOAL_WIDTH)));
    let lines = shown.collect::<Vec<_>>().join("\n  ");
    Refusal::new(format!("{count} runs begin with `{word}`:\n  {lines}"), "write more of the id")
}
