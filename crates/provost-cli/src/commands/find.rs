//! Finds the run that the user names.

use provost_backend::EmbeddedBackend;
use provost_event::RunId;
use provost_harness::{Backend as _, RunQuery, RunSummary};

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
pub(super) async fn find(backend: &EmbeddedBackend, word: &str) -> anyhow::Result<RunId> {
    let max = if word == LAST { 1 } else { usize::MAX };
    let runs = backend.list(RunQuery { max }).await?;
    if word == LAST {
        let newest = runs.first().map(|run| run.run);
        return Ok(
            newest.ok_or_else(|| Refusal::new("there are no runs yet", "start one with `provost run`"))?
        );
    }
    let fitting = runs
        .iter()
        .filter(|run| !word.is_empty() && run.run.to_string().starts_with(word))
        .collect::<Vec<_>>();
    match fitting.as_slice() {
        [run] => Ok(run.run),
        [] => Err(Refusal::new(format!("there is no run `{word}`"), "`provost ps --all` lists them").into()),
        several => Err(ambiguous(word, several).into()),
    }
}

fn ambiguous(word: &str, several: &[&RunSummary]) -> Refusal {
    let shown =
        several.iter().take(SHOWN_MAX).map(|run| format!("{} {}", run.run, one_line(&run.goal, GOAL_WIDTH)));
    let lines = shown.collect::<Vec<_>>().join("\n  ");
    Refusal::new(format!("{} runs begin with `{word}`:\n  {lines}", several.len()), "write more of the id")
}
