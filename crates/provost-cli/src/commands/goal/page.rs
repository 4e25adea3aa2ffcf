//! Goals on a page, for people.

use std::fmt::Write as _;

use provost_event::{GoalFinding, GoalState, JudgeAnswer, MicroDollars, OnHookError};

use crate::commands::ps::GOAL_WIDTH;
use crate::commands::show::date_and_time;
use crate::names::{agent_in_words, short};
use crate::render::{
    amount, duration, failure_in_words, finding_in_words, one_line, outcome_in_words, plural, reasons,
    tokens_in_short, trigger_in_words,
};
use provost_view::{AgentGoal, GoalAnswer, GoalVerification, JudgeSums, Judging, RunGoals};

const NAME_WIDTH: usize = 60;
/// Columns of a line, where there is no terminal to measure.
const LINE_WIDTH: usize = 160;
/// The narrowest that reasons are set.
const LINE_WIDTH_MIN: usize = 30;
const INDENT: &str = "            ";

/// All of it.
pub(super) fn page(shown: &RunGoals, width: Option<usize>) -> String {
    let mut out = String::new();
    let mut head = vec![("run", shown.run.to_string()), ("status", shown.status.clone())];
    head.extend(shown.outcome.as_ref().map(|outcome| ("outcome", outcome_in_words(shown.run, outcome))));
    head.push(("task", one_line(&shown.task, GOAL_WIDTH)));
    push_rows(&mut out, &head, width);
    for goal in &shown.goals {
        out.push('\n');
        if shown.goals.len() > 1 || goal.session.agent > 0 {
            let name = if goal.session.agent == 0 {
                "the root agent".to_owned()
            } else {
                agent_in_words(goal.agent, &short(&goal.name))
            };
            push_rows(&mut out, &[("agent", name)], width);
        }
        push_rows(&mut out, &rows(goal), width);
        push_verdicts(&mut out, goal, width);
    }
    out
}

fn push_rows(out: &mut String, rows: &[(&str, String)], width: Option<usize>) {
    for (name, value) in rows {
        for (place, line) in value.lines().enumerate() {
            let head = if place == 0 { format!("{name:<11} ") } else { INDENT.to_owned() };
            push_set(out, line, (&head, INDENT), width);
        }
    }
}

/// A line, set to the width there is: what begins it, and what begins the further ones.
fn push_set(out: &mut String, line: &str, (first, further): (&str, &str), width: Option<usize>) {
    let width = width.unwrap_or(LINE_WIDTH).max(LINE_WIDTH_MIN);
    let options = textwrap::Options::new(width).initial_indent(first).subsequent_indent(further);
    for line in textwrap::wrap(&line.replace('\t', " "), options) {
        // Writing to a String can't fail.
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn rows(goal: &AgentGoal) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("condition", goal.condition.clone()),
        ("state", format!("{} (generation {})", standing(goal), goal.generation)),
        ("rounds", format!("{} of {}: claims that were found wrong", goal.rounds, goal.rounds_max)),
        (
            "failures",
            format!(
                "{} of {}: times in a row that the judges couldn't tell",
                goal.failures, goal.failures_max
            ),
        ),
        (
            "idle turns",
            format!("{} of {}: in a row, without measurable progress", goal.idle_turns, goal.stuck_turns),
        ),
        ("verified", when(goal)),
    ];
    let judges = &goal.judges;
    let needed = match judges.len() {
        1 => String::new(),
        count => format!("{} of {count} must agree; ", goal.agree),
    };
    rows.push((
        "judges",
        format!("{needed}each at least {} sure, within {}", goal.threshold, duration(goal.timeout_ms)),
    ));
    rows.extend(judges.iter().map(|judge| ("", judge_in_words(judge))));
    rows.push(("judging", took(goal.judging)));
    rows
}

fn when(goal: &AgentGoal) -> String {
    let every = match goal.verify_every {
        Some(1) => "after every turn, ".to_owned(),
        Some(every) => format!("every {every} turns, "),
        None => String::new(),
    };
    let errors = match goal.stop_hook_errors {
        OnHookError::Block => "",
        OnHookError::Ignore => "; errors of stop hooks are ignored",
    };
    format!("{every}when the agent says that it is done, and at a limit{errors}")
}

/// The status of a goal, in a few words.
pub(in crate::commands) fn standing(goal: &AgentGoal) -> String {
    match (&goal.cleared_by, goal.state, goal.current_finding()) {
        (Some(by), ..) => format!("cleared by {}", one_line(by, NAME_WIDTH)),
        (None, GoalState::Achieved, Some(GoalFinding::Achieved { confidence, .. })) => {
            format!("achieved, confidence {confidence}")
        }
        (None, state, _) => state.word().to_owned(),
    }
}

fn judge_in_words(judge: &JudgeSums) -> String {
    let name = one_line(&judge.name, NAME_WIDTH);
    if judge.asked == 0 {
        return format!("{name}: not asked so far");
    }
    let counts = [
        (judge.achieved, "reached"),
        (judge.not_achieved, "not reached"),
        (judge.failed, "no verdict"),
        (judge.stale, "of them too late"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ");
    format!("{name}: asked {} ({counts})", plural(judge.asked.into(), "time"))
}

fn took(judging: Judging) -> String {
    let Judging { calls, unknown_price_calls, usage, cost } = judging;
    let cost = match (unknown_price_calls, cost) {
        (0, cost) => cost.to_string(),
        (_, MicroDollars(0)) => "unknown price".to_owned(),
        (unknown, cost) => format!("{cost}, and {} of unknown price", plural(unknown, "call")),
    };
    format!("{} · {} · {cost}", plural(calls, "call"), tokens_in_short(usage.total()))
}

fn push_verdicts(out: &mut String, goal: &AgentGoal, width: Option<usize>) {
    let told = told(goal).collect::<Vec<_>>();
    out.push_str(if told.is_empty() { "\nno verdict so far\n" } else { "\nverdicts\n" });
    for verification in told {
        let (head, at) = (head(verification), date_and_time(verification.at_ms));
        let head = format!("{head} ({at}, entry {})", amount(verification.entry.0));
        push_set(out, &head, ("  ", "  "), width);
        let lines = verification.finding.as_ref().map(reasons).unwrap_or_default();
        let answers = verification.answers.iter().map(answer_in_words);
        for line in lines.into_iter().chain(answers) {
            push_set(out, &line, ("    ", "      "), width);
        }
    }
}

/// A judge's answer, in a line.
fn answer_in_words(answer: &GoalAnswer) -> String {
    let said = match &answer.answer {
        JudgeAnswer::Verdict(verdict) if verdict.achieved => format!("reached, {}", verdict.confidence),
        JudgeAnswer::Verdict(verdict) => format!("not reached, {}", verdict.confidence),
        JudgeAnswer::Failed(error) => failure_in_words(error),
    };
    let late = if answer.stale && matches!(answer.answer, JudgeAnswer::Verdict(_)) {
        "; too late, it counts for nothing"
    } else {
        ""
    };
    let cost = answer.cost.map(|cost| format!(", {cost}")).unwrap_or_default();
    let (judge, took) = (one_line(&answer.judge, NAME_WIDTH), duration(answer.duration_ms));
    format!("· {judge}: {said} ({took}, {}{cost}){late}", tokens_in_short(answer.usage.total()))
}

/// A line for each verification, the newest last. At most `most` of them; a line before them counts those left
/// out.
pub(in crate::commands) fn verdict_lines(goal: &AgentGoal, most: usize, width: Option<usize>) -> Vec<String> {
    let told = told(goal).collect::<Vec<_>>();
    let left_out = told.len().saturating_sub(most);
    let mut lines = Vec::new();
    if left_out > 0 {
        lines.push(format!("… {} before: provost goal show {}", left_out, goal.session.run));
    }
    let width = width.unwrap_or(LINE_WIDTH).max(LINE_WIDTH_MIN);
    lines.extend(told.into_iter().skip(left_out).map(|verification| {
        let why = verification.finding.as_ref().and_then(|finding| reasons(finding).into_iter().next());
        let why = why.map(|why| format!(": {}", why.trim())).unwrap_or_default();
        one_line(&format!("{}{why}", head(verification)), width.saturating_sub(2))
    }));
    lines
}

/// Verifications worth showing: not those that stop hooks ended before a judge was asked.
fn told(goal: &AgentGoal) -> impl Iterator<Item = &GoalVerification> {
    goal.verifications.iter().filter(|one| one.finding.is_some() || !one.answers.is_empty())
}

fn head(verification: &GoalVerification) -> String {
    let (turn, trigger) = (verification.turn, trigger_in_words(verification.trigger));
    let found = match &verification.finding {
        Some(finding) => finding_in_words(finding),
        None if verification.answers.iter().any(|answer| answer.stale) => "given up".to_owned(),
        None => "not concluded".to_owned(),
    };
    format!("turn {turn}, {trigger}: {found}")
}
