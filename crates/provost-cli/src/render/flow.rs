//! The ends of the steps of a workflow, in words.

use provost_engine::RunState;
use provost_event::{OnStepFailure, Outcome, RunId, StepEnd, StepEnded};
use provost_view::StepCounts;

use super::context::outcome_in_words;
use super::saying::{Saying, Tag};
use super::words::plural;

pub(super) fn step_ended(entry: &StepEnded) -> Saying {
    let StepEnded { step, attempt, child, .. } = entry;
    match &entry.end {
        StepEnd::Done { .. } => Saying::kept(Tag::Run, format!("step {step} is done")),
        StepEnd::Again { outcome, .. } => {
            let why = outcome_in_words(child.run, outcome);
            Saying::kept(
                Tag::Failed,
                format!("step {step}: attempt {attempt} failed, it is tried again: {why}"),
            )
        }
        StepEnd::Failed { outcome, then, skipped } => {
            let then = match then {
                OnStepFailure::Abort => "the workflow is given up".to_owned(),
                OnStepFailure::Skip if skipped.is_empty() => "the others go on".to_owned(),
                OnStepFailure::Skip => format!("skipped with it: {}", skipped.join(", ")),
                OnStepFailure::Ask => "a person must say how to go on".to_owned(),
            };
            let line = format!("step {step} has failed: {}; {then}", outcome_in_words(child.run, outcome));
            Saying::kept(Tag::Failed, line)
        }
    }
}

/// How many steps of a run's workflow are done, have failed and were skipped: `1 of 3 steps done, 2 skipped`.
fn step_counts_in_words(counts: StepCounts) -> String {
    let StepCounts { all, done, failed, skipped } = counts;
    let others = [(failed, "failed"), (skipped, "skipped")];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let others = others.map(|(count, what)| format!(", {count} {what}")).collect::<String>();
    format!("{done} of {} done{others}", plural(all.into(), "step"))
}

/// The outcome of a run; of a workflow whose steps aren't all done with what became of them.
pub(crate) fn run_outcome_in_words(run: RunId, state: &RunState, outcome: &Outcome) -> String {
    outcome_with_steps(run, outcome, StepCounts::of(state))
}

/// The same, with the steps of its workflow.
pub(crate) fn outcome_with_steps(run: RunId, outcome: &Outcome, steps: Option<StepCounts>) -> String {
    let words = outcome_in_words(run, outcome);
    match (outcome, steps.map(step_counts_in_words)) {
        (Outcome::Completed { verdict: Some(_), .. }, Some(steps)) => format!("{words}: {steps}"),
        _ => words,
    }
}
