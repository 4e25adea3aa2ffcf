//! The ends of the steps of a workflow, in words.

use provost_event::{OnStepFailure, StepEnd, StepEnded};

use super::context::outcome_in_words;
use super::saying::{Saying, Tag};

pub(super) fn step_ended(entry: &StepEnded) -> Saying {
    let StepEnded { step, attempt, .. } = entry;
    match &entry.end {
        StepEnd::Done { .. } => Saying::kept(Tag::Run, format!("step {step} is done")),
        StepEnd::Again { outcome, .. } => {
            let why = outcome_in_words(outcome);
            Saying::kept(
                Tag::Failed,
                format!("step {step}: attempt {attempt} failed, it is tried again: {why}"),
            )
        }
        StepEnd::Failed { outcome, then, skipped } => {
            let then = match then {
                OnStepFailure::Abort => "the flow is given up".to_owned(),
                OnStepFailure::Skip if skipped.is_empty() => "the others go on".to_owned(),
                OnStepFailure::Skip => format!("skipped with it: {}", skipped.join(", ")),
                OnStepFailure::Ask => "a person must say how to go on".to_owned(),
            };
            let line = format!("step {step} has failed: {}; {then}", outcome_in_words(outcome));
            Saying::kept(Tag::Failed, line)
        }
    }
}
