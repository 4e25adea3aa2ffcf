//! Finds the run that the user names.

use provost_event::RunId;
use provost_harness::{Backend, RunQuery, RunSummary};

use crate::exit::Refusal;
use crate::render::one_line;

/// The newest.
const LAST: &str = "last";
/// Candidates shown when a beginning fits several.
const SHOWN_MAX: usize = 5;
const GOAL_WIDTH: usize = 50;

/// The run with this id, the only one that begins so, or the last one.
///
/// # Errors
/// [`Refusal`] when there is none, or more than one.
pub(crate) async fn find(backend: &dyn Backend, word: &str) -> anyhow::Result<RunId> {
    if word == LAST {
        let newest = backend.list(RunQuery::newest(1)).await?.pop();
        let newest =
            newest.ok_or_else(|| Refusal::new("there are no runs yet", "start one with `provost run`"));
        return Ok(newest?.run);
    }
    let mut fitting = backend.find(word, SHOWN_MAX + 1).await?;
    fitting.sort_unstable_by_key(|run| std::cmp::Reverse(run.cursor()));
    match fitting.as_slice() {
        [run] => Ok(run.run),
        [] => Err(Refusal::new(format!("there is no run `{word}`"), "`provost ps --all` lists them").into()),
        several => Err(ambiguous(word, several).into()),
    }
}

fn ambiguous(word: &str, several: &[RunSummary]) -> Refusal {
    let count =
        if several.len() > SHOWN_MAX { format!("more than {SHOWN_MAX}") } else { several.len().to_string() };
    let shown =
        several.iter().take(SHOWN_MAX).map(|run| format!("{} {}", run.run, one_line(&run.goal, GOAL_WIDTH)));
    let lines = shown.collect::<Vec<_>>().join("\n  ");
    Refusal::new(format!("{count} runs begin with `{word}`:\n  {lines}"), "write more of the id")
}
