//! The texts in a line of the tree.

use std::collections::BTreeMap;

use console::Style;
use provost_event::{Budget, GoalState, MicroDollars, Outcome, Verification};
use provost_view::{RunAgent, RunAgentState, WorkflowStep, WorkflowStepState};

use super::forest::Numbers;
use super::{Branches, end_in_a_word};
use crate::names::labelled;
use crate::render::{checked, duration, exhausted_in_words, one_line, tokens, visible};

const NAME_WIDTH: usize = 20;
const GOAL_WIDTH: usize = 120;
/// Columns of why an agent is suspended or how it ended.
const REASON_WIDTH: usize = 30;
/// Columns of which steps a step waits for.
const WAITS_WIDTH: usize = 40;

/// One line of the tree, before it is set.
pub(super) struct Row {
    pub(super) label: String,
    /// An agent's number, where that has a column of its own.
    pub(super) agent: String,
    pub(super) state: String,
    pub(super) priority: String,
    pub(super) turns: String,
    pub(super) tokens: String,
    pub(super) cost: String,
    pub(super) time: String,
    pub(super) goal: String,
    pub(super) style: Style,
}

pub(super) fn agent_row(stem: &str, node: &RunAgent, numbers: Numbers) -> Row {
    let (number, name) = (node.number(), one_line(&node.name, NAME_WIDTH));
    let (label, agent) = match numbers {
        Numbers::InLabel => (labelled(number, &name), String::new()),
        Numbers::Apart => (if name.is_empty() { "-".to_owned() } else { name }, number.to_string()),
    };
    let used = Used {
        turns: (node.turns, node.turns_max),
        tokens: node.tokens,
        cost: node.cost,
        worked_ms: node.worked_ms,
        budget: node.budget,
    };
    Row {
        label: format!("{stem}{label}"),
        agent,
        state: standing(node),
        priority: node.priority.map(|priority| priority.to_string()).unwrap_or_default(),
        turns: used.turns(),
        tokens: used.tokens(),
        cost: used.cost(),
        time: used.time(),
        goal: one_line(&node.goal, GOAL_WIDTH),
        style: style(&node.state),
    }
}

pub(super) fn step_row(step: &WorkflowStep) -> Row {
    let used = Used {
        turns: (step.turns, step.turns_max),
        tokens: step.tokens,
        cost: step.cost,
        worked_ms: step.worked_ms,
        budget: step.budget,
    };
    let once_begun = |text: String| if step.agents.is_empty() { String::new() } else { text };
    Row {
        label: one_line(&step.name, NAME_WIDTH),
        agent: step.agent.map(|number| number.to_string()).unwrap_or_default(),
        state: step_in_words(step),
        priority: step.priority.map(|priority| priority.to_string()).unwrap_or_default(),
        turns: once_begun(used.turns()),
        tokens: once_begun(used.tokens()),
        cost: once_begun(used.cost()),
        time: once_begun(used.time()),
        goal: one_line(&step.goal, GOAL_WIDTH),
        style: step_style(&step.state),
    }
}

/// What was used, of what may be.
struct Used {
    turns: (u32, Option<u32>),
    tokens: u64,
    cost: Option<MicroDollars>,
    worked_ms: u64,
    budget: Budget,
}

impl Used {
    fn turns(&self) -> String {
        let (turns, max) = self.turns;
        format!("{turns}{}", of(max.map(|max| max.to_string())))
    }

    fn tokens(&self) -> String {
        format!("{}{}", tokens(self.tokens), of(self.budget.tokens.map(tokens)))
    }

    fn cost(&self) -> String {
        format!("{}{}", money(self.cost), of(self.budget.money.map(|money| money.to_string())))
    }

    fn time(&self) -> String {
        format!("{}{}", duration(self.worked_ms), of(self.budget.wall_time_ms.map(duration)))
    }
}

fn of(limit: Option<String>) -> String {
    limit.map(|limit| format!("/{limit}")).unwrap_or_default()
}

fn money(cost: Option<MicroDollars>) -> String {
    cost.map_or_else(|| "?".to_owned(), |cost| cost.to_string())
}

fn style(state: &RunAgentState) -> Style {
    let plain = Style::new();
    match state {
        RunAgentState::Working => plain,
        RunAgentState::Asks | RunAgentState::Interrupted | RunAgentState::Suspended { .. } => plain.yellow(),
        RunAgentState::Queued
        | RunAgentState::Yields { .. }
        | RunAgentState::Preempted { .. }
        | RunAgentState::Restarts { .. } => plain.cyan(),
        RunAgentState::Done { outcome: outcome @ Outcome::Completed { .. } }
            if outcome.verdict_not_passed().is_none() =>
        {
            plain.dim()
        }
        RunAgentState::Done { .. } => plain.red(),
    }
}

fn step_style(state: &WorkflowStepState) -> Style {
    let plain = Style::new();
    match state {
        WorkflowStepState::AtWork { worker } => style(worker),
        WorkflowStepState::Interrupted => style(&RunAgentState::Interrupted),
        WorkflowStepState::Stopped { outcome } => style(&RunAgentState::Done { outcome: outcome.clone() }),
        WorkflowStepState::Waits { .. } | WorkflowStepState::Ready => plain.cyan(),
        WorkflowStepState::Again { .. }
        | WorkflowStepState::Asks { .. }
        | WorkflowStepState::Skipped { .. } => plain.yellow(),
        WorkflowStepState::Done | WorkflowStepState::NeverBegun => plain.dim(),
        WorkflowStepState::Failed { .. } => plain.red(),
    }
}

/// The status of a step, in a few words.
fn step_in_words(step: &WorkflowStep) -> String {
    let attempt = match step.attempt {
        1 => String::new(),
        attempt => format!("attempt {attempt} of {}", step.attempts_max),
    };
    let with_attempt = |words: String| match attempt.as_str() {
        "" => words,
        attempt => format!("{words}, {attempt}"),
    };
    match &step.state {
        WorkflowStepState::Waits { waits_for } => {
            one_line(&format!("waits for {}", waits_for.join(", ")), WAITS_WIDTH)
        }
        WorkflowStepState::Ready => "ready".to_owned(),
        WorkflowStepState::AtWork { worker: RunAgentState::Working } => with_attempt("at work".to_owned()),
        WorkflowStepState::AtWork { worker } => with_attempt(state_in_words(worker)),
        WorkflowStepState::Interrupted => with_attempt(state_in_words(&RunAgentState::Interrupted)),
        WorkflowStepState::Stopped { outcome } => {
            with_attempt(state_in_words(&RunAgentState::Done { outcome: outcome.clone() }))
        }
        WorkflowStepState::Again { wait_ms } => format!("{} ({attempt})", in_time(*wait_ms)),
        WorkflowStepState::Done => "done".to_owned(),
        WorkflowStepState::Asks { outcome } => format!("failed, asks: {}", why(outcome)),
        WorkflowStepState::Failed { outcome } => format!("failed: {}", why(outcome)),
        WorkflowStepState::Skipped { because_of: Some(failed) } => {
            format!("skipped because of {}", one_line(failed, NAME_WIDTH))
        }
        WorkflowStepState::Skipped { because_of: None } => "skipped".to_owned(),
        WorkflowStepState::NeverBegun => "never begun".to_owned(),
    }
}

/// In how long it is tried again.
fn in_time(wait_ms: Option<u64>) -> String {
    match wait_ms {
        None => "tried again".to_owned(),
        Some(0) => "tried again now".to_owned(),
        Some(wait_ms) => format!("tried again in {} s", wait_ms.div_ceil(1_000)),
    }
}

/// Why an attempt at a step counts as failed.
fn why(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed { verdict: Some(verdict), .. } => format!("verdict {verdict}"),
        other => in_short(other),
    }
}

/// The status of an agent, and its goal where that says more.
fn standing(node: &RunAgent) -> String {
    let words = state_in_words(&node.state);
    match (&node.state, node.goal_state) {
        (RunAgentState::Working, Some(GoalState::Verifying)) => "goal: verifying".to_owned(),
        (
            RunAgentState::Done { outcome: Outcome::Completed { verification: Verification::None, .. } },
            Some(_),
        ) => {
            format!("{words}, not verified")
        }
        (RunAgentState::Restarts { .. }, _) => words,
        _ if node.restarts > 0 => format!("{words}, attempt {}", node.restarts.saturating_add(1)),
        _ => words,
    }
}

/// The status of an agent, in a few words.
fn state_in_words(state: &RunAgentState) -> String {
    let way = |to: &Option<u32>| to.map(|to| format!(" for {to}")).unwrap_or_default();
    match state {
        RunAgentState::Queued | RunAgentState::Working | RunAgentState::Interrupted | RunAgentState::Asks => {
            state.word().to_owned()
        }
        RunAgentState::Yields { yields_to: to } => format!("yields{}", way(to)),
        RunAgentState::Preempted { yields_to: to } => format!("preempted{}", way(to)),
        RunAgentState::Restarts { attempt, attempts_max, outcome: failed } => {
            format!("failed, retry {attempt} of {attempts_max}: {}", in_short(failed))
        }
        RunAgentState::Suspended { outcome } => format!("suspended: {}", in_short(outcome)),
        RunAgentState::Done { outcome } if outcome.verdict_not_passed().is_some() => {
            end_in_a_word(outcome).to_owned()
        }
        RunAgentState::Done { outcome: Outcome::Completed { verdict, verification } } => {
            let verdict = verdict.map(|verdict| format!(", verdict {verdict}")).unwrap_or_default();
            format!("done{verdict}{}", checked(verification))
        }
        RunAgentState::Done { outcome } => in_short(outcome),
    }
}

fn in_short(outcome: &Outcome) -> String {
    let words = match outcome {
        Outcome::BudgetExhausted(exhausted) => exhausted_in_words(exhausted),
        other => other.to_string(),
    };
    one_line(&visible(&words), REASON_WIDTH)
}

pub(super) fn sum_row(stem: &str, nodes: &[&RunAgent], branches: Branches) -> Row {
    let queued = nodes.iter().all(|node| node.state == RunAgentState::Queued);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for outcome in nodes.iter().filter_map(|node| node.state.outcome()) {
        let word = match end_in_a_word(outcome) {
            "done" => "completed",
            other => other,
        };
        *outcomes.entry(word).or_default() += 1;
    }
    let completed = outcomes.get("completed") == Some(&nodes.len());
    let outcomes = outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>();
    let sum = |of: fn(&RunAgent) -> u64| nodes.iter().map(|node| of(node)).fold(0, u64::saturating_add);
    let add = |sum: MicroDollars, node: &&RunAgent| node.cost.map(|cost| sum + cost);
    let cost = nodes.iter().try_fold(MicroDollars(0), add);
    let (what, style) = match (queued, completed) {
        (true, _) => ("more queued", Style::new().cyan()),
        (false, true) => ("done", Style::new().dim()),
        (false, false) => ("ended", Style::new().red()),
    };
    let shown = |text: String| if queued { String::new() } else { text };
    Row {
        label: format!("{stem}{} {} {what}", branches.more, nodes.len()),
        agent: String::new(),
        state: outcomes.join(", "),
        priority: String::new(),
        turns: shown(sum(|node| node.turns.into()).to_string()),
        tokens: shown(tokens(sum(|node| node.tokens))),
        cost: shown(money(cost)),
        time: shown(duration(sum(|node| node.worked_ms))),
        goal: String::new(),
        style,
    }
}
