//! What is said of a goal: that it is verified, what each judge found, and what that comes to.

use provost_event::{
    Confidence, GoalCheckStarted, GoalCleared, GoalFinding, GoalJudged, GoalTrigger, GoalVerdict, JudgeAnswer,
};

use super::saying::{Saying, Tag};
use super::words::duration;

pub(super) fn check_started(entry: &GoalCheckStarted) -> Saying {
    let why = match entry.trigger {
        GoalTrigger::Claim => "the agent says that it is done",
        GoalTrigger::Interval => "so many turns have gone by",
        GoalTrigger::Limit => "a limit ends the work",
    };
    Saying::passing(Tag::Goal, format!("verifying: {why}"))
}

pub(super) fn judged(entry: &GoalJudged) -> Saying {
    let took = duration(entry.duration_ms);
    let late = if entry.stale { ", too late to count" } else { "" };
    let said = match &entry.answer {
        JudgeAnswer::Verdict(verdict) => {
            let word = if verdict.achieved { "achieved" } else { "not achieved" };
            format!("{word}, confidence {}", verdict.confidence)
        }
        JudgeAnswer::Failed(error) => format!("no verdict: {error}"),
    };
    let wait = entry.wait_ms.map(|ms| format!("; asked again in {}", duration(ms))).unwrap_or_default();
    Saying::passing(Tag::Goal, format!("{} ({took}{late}): {said}{wait}", entry.judge))
}

pub(super) fn verdict(entry: &GoalVerdict) -> Saying {
    match &entry.finding {
        GoalFinding::Achieved { confidence, reasoning } => {
            Saying::kept(Tag::Goal, format!("reached (confidence {confidence})")).with([reasoning.clone()])
        }
        GoalFinding::NotAchieved { reasoning, suggestions, confidence } => {
            let sure = confidence.map(|sure: Confidence| format!(" (confidence {sure})")).unwrap_or_default();
            let lines = suggestions.iter().map(|line| format!("- {line}"));
            Saying::kept(Tag::Goal, format!("not reached{sure}"))
                .with(std::iter::once(reasoning.clone()).chain(lines))
        }
        GoalFinding::Unverified { why } => Saying::kept(Tag::Goal, format!("not verified: {why}")),
    }
}

pub(super) fn cleared(entry: &GoalCleared) -> Saying {
    Saying::kept(Tag::Goal, format!("cleared by {}", entry.by))
}
