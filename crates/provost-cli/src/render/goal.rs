//! The texts about a goal: that it is verified, what each judge found, and the result.

use provost_event::{
    ErrorClass, GoalCheckStarted, GoalCleared, GoalEntry, GoalFinding, GoalJudged, GoalState, GoalTrigger,
    GoalVerdict, JudgeAnswer, Outcome, SupervisorError,
};

use super::saying::{Saying, Tag};
use super::words::{duration, one_line};
use provost_view::AgentGoal;

/// Columns of what went wrong with a judge, and of why a goal isn't reached where that is a line.
const WIDTH_MAX: usize = 100;
/// Lines shown of the judges' reasons and suggestions.
const LINES_MAX: usize = 12;

/// The entry in words.
pub(super) fn in_words(entry: &GoalEntry) -> Saying {
    match entry {
        GoalEntry::CheckStarted(entry) => check_started(entry),
        GoalEntry::Judged(entry) => judged(entry),
        GoalEntry::Verdict(entry) => verdict(entry),
        GoalEntry::Cleared(entry) => cleared(entry),
    }
}

pub(super) fn check_started(entry: &GoalCheckStarted) -> Saying {
    let why = match entry.trigger {
        GoalTrigger::Claim => "the agent says that it is done",
        GoalTrigger::Interval => "the interval has passed",
        GoalTrigger::Limit => "a limit ends the work",
    };
    Saying::passing(Tag::Goal, format!("verifying the goal: {why}"))
}

pub(super) fn judged(entry: &GoalJudged) -> Saying {
    let (judge, took) = (one_line(&entry.judge, WIDTH_MAX), duration(entry.duration_ms));
    let said = match &entry.answer {
        JudgeAnswer::Verdict(verdict) => {
            let word = if verdict.achieved { "reached" } else { "not reached" };
            format!("{word}, confidence {} ({took})", verdict.confidence)
        }
        JudgeAnswer::Failed(error) => format!("{} ({took})", failure_in_words(error)),
    };
    if entry.stale && matches!(entry.answer, JudgeAnswer::Failed(_)) {
        return Saying::passing(Tag::Goal, format!("{judge}: {said}"));
    }
    if entry.stale {
        return Saying::passing(Tag::Goal, format!("{judge}: {said}; too late, it counts for nothing"));
    }
    let wait = entry.wait_ms.map(|ms| format!("; a judge is asked again in {}", duration(ms)));
    let words = format!("{judge}: {said}{}", wait.unwrap_or_default());
    match &entry.answer {
        JudgeAnswer::Verdict(_) => Saying::passing(Tag::Goal, words),
        JudgeAnswer::Failed(_) if entry.wait_ms.is_some() => Saying::kept(Tag::Retry, words),
        JudgeAnswer::Failed(_) => Saying::kept(Tag::Goal, words),
    }
}

pub(super) fn verdict(entry: &GoalVerdict) -> Saying {
    let words = format!("the goal {}", finding_in_words(&entry.finding));
    Saying::kept(Tag::Goal, words).with(reasons(&entry.finding))
}

pub(super) fn cleared(entry: &GoalCleared) -> Saying {
    Saying::kept(Tag::Goal, format!("the goal was cleared by {}", one_line(&entry.by, WIDTH_MAX)))
}

/// Why a judge gave no verdict.
pub(crate) fn failure_in_words(error: &SupervisorError) -> String {
    match error {
        SupervisorError::Llm { class: ErrorClass::Aborted, .. } => {
            "stopped before it gave a verdict".to_owned()
        }
        other => format!("no verdict: {}", one_line(&other.to_string(), WIDTH_MAX)),
    }
}

/// What was found, behind `the goal`: `is reached (confidence 0.95)`.
pub(crate) fn finding_in_words(finding: &GoalFinding) -> String {
    match finding {
        GoalFinding::Achieved { confidence, .. } => format!("is reached (confidence {confidence})"),
        GoalFinding::NotAchieved { confidence: Some(sure), .. } => {
            format!("isn't reached (confidence {sure})")
        }
        // The reasons say that the judges aren't sure enough.
        GoalFinding::NotAchieved { confidence: None, .. } => "isn't reached".to_owned(),
        GoalFinding::Unverified { why } => {
            format!("couldn't be verified: {}", one_line(why, WIDTH_MAX))
        }
    }
}

/// Why, and what is left to do, a line each, up to a limit.
pub(crate) fn reasons(finding: &GoalFinding) -> Vec<String> {
    let (reasoning, suggestions) = match finding {
        GoalFinding::Achieved { reasoning, .. } => (reasoning, [].as_slice()),
        GoalFinding::NotAchieved { reasoning, suggestions, .. } => (reasoning, suggestions.as_slice()),
        GoalFinding::Unverified { .. } => return Vec::new(),
    };
    let reasoning = reasoning.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned);
    let suggestions = suggestions.iter().map(|line| format!("- {}", one_line(line, usize::MAX)));
    let mut lines = reasoning.chain(suggestions).collect::<Vec<_>>();
    if let Some(more) = lines.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        lines.truncate(LINES_MAX);
        lines.push(format!("… {}", super::words::plural(more as u64, "more line")));
    }
    lines
}

/// Why it was verified, in a word.
pub(crate) const fn trigger_in_words(trigger: GoalTrigger) -> &'static str {
    match trigger {
        GoalTrigger::Claim => "claim",
        GoalTrigger::Interval => "in between",
        GoalTrigger::Limit => "at the limit",
    }
}

/// The state of the goal of a run's first agent at `outcome`, where that doesn't say so itself.
pub(crate) fn goal_at_end(outcome: &Outcome, goal: &AgentGoal) -> Option<String> {
    match outcome {
        Outcome::Completed { .. } if goal.state == GoalState::Achieved => {
            Some(format!("verified: the goal {}", goal.current_finding().map(finding_in_words)?))
        }
        Outcome::Completed { .. } => {
            goal.cleared_by.as_ref().map(|by| format!("the goal was cleared by {by}; it wasn't verified"))
        }
        Outcome::BudgetExhausted(_) if goal.is_cleared() => None,
        Outcome::BudgetExhausted(_) => Some(at_limit(goal.current_finding())),
        Outcome::Blocked { .. }
        | Outcome::Paused { .. }
        | Outcome::Aborted { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Failed { .. } => None,
    }
}

fn at_limit(finding: Option<&GoalFinding>) -> String {
    let Some(finding) = finding else {
        return "the goal wasn't verified: the last work wasn't judged".to_owned();
    };
    let why = reasons(finding).into_iter().next().map(|why| format!(": {}", one_line(&why, WIDTH_MAX)));
    format!("the goal {}{}", finding_in_words(finding), why.unwrap_or_default())
}
