//! What is wrong with sub-agents beside the rest of the settings.

use provost_event::Budget;

use super::Agent;
use crate::errors::{Problem, Source};
use crate::item::Item as _;
use crate::mcp::{OF_MCP, TOOL_SEARCH};
use crate::nearest::nearest;
use crate::{AvailableTools, Loading};

/// Everything that is.
pub(crate) fn check(loading: &Loading, tools: AvailableTools<'_>) -> Vec<Problem> {
    let agents = &loading.settings.agents;
    let mut problems = agents.iter().filter_map(|agent| name_of_tool(agent, tools)).collect::<Vec<_>>();
    for agent in agents {
        problems.extend(unknown_tools(agent, loading, tools));
        problems.extend(unknown_stop_hooks(agent, loading));
        problems.extend(more_than_the_run(agent, loading));
        problems.extend(longer_than_the_run(agent, loading));
        problems.extend(nothing_to_judge(agent));
    }
    problems
}

fn problem(agent: &Agent, field: &'static str, what: String, remedy: String) -> Problem {
    let place = Agent::FIELDS.iter().find(|known| known.name == field).map_or_else(String::new, |f| f.key());
    Problem { source: agent.source_of(field), key: format!("{}.{place}", Agent::LIST), what, remedy }
}

/// Hooks and permissions know tools by these names.
fn name_of_tool(agent: &Agent, tools: AvailableTools<'_>) -> Option<Problem> {
    let tool = tools.all.iter().find(|tool| tool.identity().names().any(|name| name == agent.name))?;
    let what = match tool.name == agent.name {
        true => format!("`{}` is the name of a tool", tool.name),
        false => format!("`{}` is another name of the tool {}", agent.name, tool.name),
    };
    Some(problem(agent, "name", what, "give it another".to_owned()))
}

fn unknown_tools(agent: &Agent, loading: &Loading, tools: AvailableTools<'_>) -> Vec<Problem> {
    let agents = loading.settings.agents.iter().map(|agent| agent.name.clone());
    let known = tools.native.iter().cloned().chain(agents).collect::<Vec<_>>();
    let servers = &loading.settings.named.mcp;
    let is_of_server = |tool: &str| {
        let rest = tool.strip_prefix(OF_MCP).and_then(|rest| rest.split_once("__"));
        rest.is_some_and(|(server, tool)| servers.contains_key(server) && !tool.is_empty())
    };
    // Which tools a server has, only the server knows.
    let named = agent.tools.iter().flatten();
    let named = named.filter(|tool| !is_of_server(tool) && (servers.is_empty() || *tool != TOOL_SEARCH));
    unknown(named, &known, "tool").map(|(what, remedy)| problem(agent, "tools", what, remedy)).collect()
}

fn unknown_stop_hooks(agent: &Agent, loading: &Loading) -> Vec<Problem> {
    let known = loading.settings.stop_hooks.iter().map(|hook| hook.name.clone()).collect::<Vec<_>>();
    let lost = unknown(agent.stop_hooks.iter(), &known, "stop hook");
    lost.map(|(what, remedy)| problem(agent, "stop_hooks", what, remedy)).collect()
}

/// What is wrong with each of `named` that isn't `known`, and what would be right.
fn unknown<'a>(
    named: impl Iterator<Item = &'a String>,
    known: &[String],
    kind: &str,
) -> impl Iterator<Item = (String, String)> {
    named.filter(|name| !known.contains(name)).map(move |name| {
        let remedy = match nearest(name, known.iter().cloned()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("there is no {kind} at all"),
            None => format!("there are {}", known.join(", ")),
        };
        (format!("there is no {kind} `{name}`"), remedy)
    })
}

/// A limit above the run's has no effect, so it is a mistake.
fn more_than_the_run(agent: &Agent, loading: &Loading) -> Vec<Problem> {
    let (own, run) = (agent.budget, loading.settings.budget);
    let is_above = |own: Option<u64>, run: Option<u64>| own.zip(run).is_some_and(|(own, run)| own > run);
    let dollars = |budget: Budget| budget.money.map(|money| money.0);
    let all = [
        ("tokens", is_above(own.tokens, run.tokens)),
        ("usd", is_above(dollars(own), dollars(run))),
        ("wall_time", is_above(own.wall_time_ms, run.wall_time_ms)),
    ];
    let above = all.into_iter().filter_map(|(field, is_above)| is_above.then_some(field));
    above.map(|field| above_the_run(agent, field, field, loading)).collect()
}

fn longer_than_the_run(agent: &Agent, loading: &Loading) -> Option<Problem> {
    let most = loading.settings.budget.wall_time_ms?;
    let is_above = agent.ask_timeout_ms.is_some_and(|timeout| timeout > most);
    is_above.then(|| above_the_run(agent, "ask_timeout", "wall_time", loading))
}

fn nothing_to_judge(agent: &Agent) -> Option<Problem> {
    let what = format!("`{}` has a judge and nothing to be judged by", agent.name);
    let remedy = "say in goal.condition what must be true, or leave it out".to_owned();
    (agent.judge.is_some() && agent.condition.is_none()).then(|| problem(agent, "judge", what, remedy))
}

fn above_the_run(agent: &Agent, field: &'static str, limit: &str, loading: &Loading) -> Problem {
    let key = format!("budget.{limit}");
    let given = loading.given.get(&key);
    let (shown, source) =
        given.map_or((String::new(), Source::Default), |given| (given.shown.clone(), given.source.clone()));
    let what =
        format!("`{}` would get more than the whole run ({key} is {shown}, from {source})", agent.name);
    problem(agent, field, what, "lower it, or leave it out".to_owned())
}
