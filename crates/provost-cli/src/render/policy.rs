//! A changed policy in words.

use provost_event::{ActorKey, AgentPolicyChanged, PolicyDifference, RunPolicyChanged, ToolsChanged};

use provost_view::SettingsChange;

use super::saying::{Saying, Tag};
use super::words::one_line;
use crate::commands::date_and_time;

/// Columns of a difference in one line.
const WIDTH_MAX: usize = 400;

pub(super) fn run_changed(entry: &RunPolicyChanged) -> Saying {
    let by = &entry.by;
    let is_of_goal = |one: &PolicyDifference| one.what.starts_with("goal");
    let is_of_limits =
        |one: &PolicyDifference| one.what.contains("budget.") || one.what.ends_with("limits.turns_max");
    let text = match &entry.goal {
        Some(_) if entry.differences.iter().all(is_of_goal) => format!("the goal is given by {by}"),
        None if !entry.differences.is_empty() && entry.differences.iter().all(is_of_goal) => {
            format!("the goal is taken away by {by}")
        }
        None if !entry.differences.is_empty() && entry.differences.iter().all(is_of_limits) => {
            format!("limits are changed by {by}")
        }
        Some(_) => format!("the current settings and a goal bind the run from here on, given by {by}"),
        None => format!("the current settings bind the run from here on, taken by {by}"),
    };
    let is_told = |goal: &String| entry.differences.iter().any(|one| one.to.as_ref() == Some(goal));
    let goal = entry.goal.iter().filter(|goal| !is_told(goal)).map(|goal| format!("goal: {goal}"));
    let lines = goal.chain(entry.differences.iter().map(ToString::to_string));
    Saying::kept(Tag::Run, text).with(lines.map(|line| one_line(&line, WIDTH_MAX)))
}

pub(super) fn agent_changed(entry: &AgentPolicyChanged) -> Saying {
    let what = if entry.goal.is_some() { "a goal" } else { "the current settings" };
    Saying::detail(format!("{what} from here on, by {}", entry.by))
}

/// The run's own entry is followed by one of each agent that it concerns.
pub(super) fn tools_changed(actor: ActorKey, entry: &ToolsChanged) -> Saying {
    let ToolsChanged { added, removed, by } = entry;
    let added = added.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
    let parts = [("added", added), ("removed", removed.join(", "))];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts = parts.map(|(what, names)| format!("{what} {names}")).collect::<Vec<_>>();
    let text = format!("tools from here on, by {by}: {}", parts.join("; "));
    match actor {
        ActorKey::Run(_) => Saying::detail(text),
        ActorKey::Session(_) => Saying::kept(Tag::Run, text),
    }
}

/// When settings or a goal were replaced, by whom, and a line for each difference.
pub(crate) fn change_lines(change: &SettingsChange) -> impl Iterator<Item = String> {
    let head = format!("{} by {}", date_and_time(change.at_ms), change.by);
    let lines = change.differences.iter().map(|one| one_line(&one.to_string(), WIDTH_MAX));
    std::iter::once(head).chain(lines)
}
