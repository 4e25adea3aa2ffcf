//! Tools that settings name: a rule about a tool that doesn't exist would never match a call.

use provost_engine::{Pattern, names_of};
use provost_event::HookContract;

use super::errors::Problem;
use super::hook::Hook;
use super::item::Item as _;
use super::nearest::nearest;
use super::{Agent, Loading, Settings};
use crate::wiring::tool_names;

/// The lists of patterns that are read as rules.
const LISTS: [&str; 3] = ["permissions.allow", "permissions.ask", "permissions.deny"];
/// Tools that stand for external agents' questions, and that no native agent has.
const OF_PROGRAMS: [&str; 2] = ["fetch", "consent"];
/// What the tools of MCP servers begin with, by the names that such rules give them.
const OF_MCP: &str = "mcp__";

/// Notes every rule and hook that names a tool which doesn't exist.
pub(super) fn check(loading: &Loading) -> Vec<Problem> {
    let known = Known::of(&loading.settings);
    let rules = loading.items.iter().filter(|(key, _)| LISTS.contains(&key.as_str()));
    let rules = rules.filter_map(|(key, given)| {
        let (what, remedy) = known.objection_to_pattern(&given.shown)?;
        Some(Problem { source: given.source.clone(), key: key.clone(), what, remedy })
    });
    let agents = loading.settings.agents.iter().flat_map(|agent| of_agent(agent, &known));
    let hooks = loading.settings.hooks.iter().flat_map(|hook| of_hook(hook, &known));
    rules.chain(agents).chain(hooks).collect()
}

fn of_agent(agent: &Agent, known: &Known) -> Vec<Problem> {
    let rules =
        agent.rules().into_iter().flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule)));
    let problem = |(list, rule): (&str, &String)| {
        let (what, remedy) = known.objection_to_pattern(rule)?;
        let key = format!("{}.permissions.{list}", Agent::LIST);
        Some(Problem { source: agent.source_of(list), key, what, remedy })
    };
    rules.filter_map(problem).collect()
}

impl Settings {
    /// The note on rules about tools of MCP servers: whether those exist shows only when a server is asked.
    pub(crate) fn not_known_yet(&self) -> Option<String> {
        let permissions = &self.permissions;
        let of_run = [&permissions.allow, &permissions.ask, &permissions.deny].into_iter().flatten();
        let of_agents =
            self.agents.iter().flat_map(|agent| agent.rules().into_iter().flat_map(|(_, rules)| rules));
        let rules = of_run.chain(of_agents);
        let of_mcp = rules.filter(|text| text.trim().starts_with(OF_MCP)).map(|text| format!("`{text}`"));
        let named = of_mcp.collect::<Vec<_>>();
        (!named.is_empty()).then(|| {
            let named = named.join(", ");
            format!("permissions name tools of MCP servers, which aren't known yet, so that nothing says whether they match: {named}")
        })
    }
}

fn of_hook(hook: &Hook, known: &Known) -> Vec<Problem> {
    let Some(policy) = hook.policy().filter(|policy| policy.contract == HookContract::Provost) else {
        return Vec::new();
    };
    let problem = |field: &'static str, (what, remedy): (String, String)| Problem {
        source: hook.source_of(field).clone(),
        key: format!("{}.{field}", Hook::LIST),
        what,
        remedy,
    };
    let names = known.0.iter().flat_map(|name| names_of(name)).collect::<Vec<_>>();
    let lost = policy.matcher.iter().filter(|_| super::hook::is_about_a_tool(policy.moment));
    let lost = lost.flat_map(|matcher| provost_hooks::matches_nothing(policy.moment, matcher, &names));
    let lost = lost.filter(|name| !name.starts_with(OF_MCP));
    let mut problems = lost.map(|name| problem("matcher", known.objection_to(&name))).collect::<Vec<_>>();
    let condition = policy.condition.as_ref().and_then(|text| known.objection_to_pattern(text));
    problems.extend(condition.map(|objection| problem("if", objection)));
    problems
}

/// The tools there are, by their own names.
struct Known(Vec<String>);

impl Known {
    fn of(settings: &Settings) -> Self {
        let agents = settings.agents.iter().map(|agent| agent.name.clone());
        let of_programs = OF_PROGRAMS.into_iter().map(str::to_owned);
        Self(tool_names().into_iter().chain(of_programs).chain(agents).collect())
    }

    /// What is wrong with a pattern that matches the calls of no tool, and what would be right.
    fn objection_to_pattern(&self, text: &str) -> Option<(String, String)> {
        let tool = text.trim().split('(').next().unwrap_or_default();
        // One that can't be read is reported elsewhere.
        let pattern = Pattern::parse(text).ok().filter(|_| !tool.starts_with(OF_MCP))?;
        let named = self.0.iter().filter(|name| pattern.names(name)).collect::<Vec<_>>();
        if named.is_empty() {
            return Some(self.objection_to(tool));
        }
        named.into_iter().all(|name| pattern.misses_all(name)).then(|| {
            let what = format!(
                "`{text}` is compared to the arguments of `{tool}` as JSON, so that this never matches"
            );
            let remedy = format!(
                "write `{tool}` for all of its calls, or a pattern such as `{tool}({{*\"name\":\"value\"*}})`"
            );
            (what, remedy)
        })
    }

    fn objection_to(&self, tool: &str) -> (String, String) {
        let what = format!("there is no tool `{tool}`, so that this never matches");
        let other_case = self.0.iter().find(|name| name.eq_ignore_ascii_case(tool)).cloned();
        let remedy = match other_case.or_else(|| nearest(tool, self.0.iter().cloned())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", self.0.join(", ")),
        };
        (what, remedy)
    }
}
