//! Tools that settings name: a rule about a tool that doesn't exist would never match a call.

use provost_engine::{Pattern, SPAWN_ALIASES, SPAWN_TOOL, agent_names};
use provost_event::{HookContract, HookPoint, HookPolicy, KEEP_RUNNING, ToolIdentity, ToolSpec, ToolSubject};

use super::errors::Problem;
use super::hook::Hook;
use super::item::Item as _;
use super::mcp::OF_MCP;
use super::nearest::nearest;
use super::{Agent, Loading, Settings};

/// The lists of patterns that are read as rules.
const LISTS: [&str; 3] = ["permissions.allow", "permissions.ask", "permissions.deny"];
/// What a session's begin has instead of a tool.
const SOURCES: [&str; 2] = ["startup", "resume"];

/// The tools there are, but those that request an agent by its name: the settings say which those are.
#[derive(Debug, Clone, Copy, Default)]
pub struct AvailableTools<'a> {
    /// All of them; permissions and hooks may name these.
    pub all: &'a [ToolSpec],
    /// The names of those that a native agent can have.
    pub native: &'a [String],
}

/// Notes every rule and hook that names a tool which doesn't exist.
pub(crate) fn check(loading: &Loading, tools: AvailableTools<'_>) -> Vec<Problem> {
    let known = KnownTools::of(&loading.settings, tools);
    let rules = loading.items.iter().filter(|(key, _)| LISTS.contains(&key.as_str()));
    let rules = rules.filter_map(|(key, given)| {
        let (what, remedy) = known.objection_to_pattern(&given.shown)?;
        Some(Problem { source: given.source.clone(), key: key.clone(), what, remedy })
    });
    let agents = loading.settings.agents.iter().flat_map(|agent| of_agent(agent, &known));
    let hooks = loading.settings.hooks.iter().flat_map(|hook| of_hook(hook, &known, loading));
    rules.chain(agents).chain(hooks).collect()
}

fn of_agent(agent: &Agent, known: &KnownTools) -> Vec<Problem> {
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
    /// The notes on rules and hooks about tools of MCP servers that aren't configured: they match nothing.
    pub fn not_known_yet(&self) -> Vec<String> {
        let permissions = &self.permissions;
        let of_run = [&permissions.allow, &permissions.ask, &permissions.deny].into_iter().flatten();
        let of_agents =
            self.agents.iter().flat_map(|agent| agent.rules().into_iter().flat_map(|(_, rules)| rules));
        let policies = self.hooks.iter().filter_map(Hook::policy);
        let policies = policies.filter(|policy| super::hook::is_about_a_tool(policy.point));
        let of_hooks = policies
            .flat_map(|policy| policy.matcher.into_iter().chain(policy.condition))
            .collect::<Vec<_>>();
        [self.note("permissions", of_run.chain(of_agents)), self.note("hooks", of_hooks.iter())]
            .into_iter()
            .flatten()
            .collect()
    }

    fn note<'a>(&self, whose: &str, texts: impl Iterator<Item = &'a String>) -> Option<String> {
        let is_lost = |text: &&String| text.split('|').any(|part| self.names_no_server(part.trim()));
        let named = texts.filter(is_lost).map(|text| format!("`{text}`")).collect::<Vec<_>>();
        (!named.is_empty()).then(|| {
            let named = named.join(", ");
            format!("{whose} name tools of MCP servers that aren't configured, so that they match nothing: {named}")
        })
    }

    /// Whether `text` names a tool of a server that isn't configured.
    fn names_no_server(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(OF_MCP) else { return false };
        let server = rest.split("__").next().unwrap_or(rest);
        let server = server.split('(').next().unwrap_or(server);
        let is_name = server.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        is_name && !self.named.mcp.contains_key(server)
    }
}

fn of_hook(hook: &Hook, known: &KnownTools, loading: &Loading) -> Vec<Problem> {
    let Some(policy) = hook.policy().filter(|policy| policy.contract == HookContract::Provost) else {
        return Vec::new();
    };
    let problem = |field: &'static str, (what, remedy): (String, String)| Problem {
        source: hook.source_of(field).clone(),
        key: format!("{}.{field}", Hook::LIST),
        what,
        remedy,
    };
    let mut problems = Vec::new();
    if super::hook::is_about_a_tool(policy.point) {
        let names = known.0.iter().flat_map(ToolIdentity::names).collect::<Vec<_>>();
        let lost = lost(&policy, &names).filter(|name| !name.starts_with(OF_MCP));
        problems.extend(lost.map(|name| problem("matcher", known.objection_to(&name))));
    } else {
        let lost = lost_elsewhere(hook, &policy, loading);
        problems.extend(lost.into_iter().map(|objection| problem("matcher", objection)));
    }
    let condition = policy.condition.as_ref().and_then(|text| known.objection_to_pattern(text));
    problems.extend(condition.map(|objection| problem("if", objection)));
    if problems.is_empty() {
        problems.extend(known.exclusion(&policy, loading).map(|objection| problem("if", objection)));
    }
    problems
}

/// The parts of the hook's matcher that match none of `names`.
fn lost(policy: &HookPolicy, names: &[&str]) -> impl Iterator<Item = String> {
    let lost = policy.matcher.iter();
    lost.flat_map(|matcher| provost_hooks::matches_nothing(policy.point, matcher, names))
        .collect::<Vec<_>>()
        .into_iter()
}

/// What of a matcher of agents or of sources matches nothing, and what would be right.
fn lost_elsewhere(hook: &Hook, policy: &HookPolicy, loading: &Loading) -> Vec<(String, String)> {
    let agents = loading.settings.agents.iter().map(|agent| agent.name.as_str());
    let (kind, names) = match policy.point {
        // In the user's own file it may be about agents of another folder.
        HookPoint::Spawn | HookPoint::ChildEnd if !hook.source.is_in(&loading.user_file) => {
            let of_all = agent_names(None).into_iter().chain([SPAWN_TOOL]).chain(SPAWN_ALIASES);
            (
                "agent",
                agents.clone().flat_map(|name| agent_names(Some(name))).chain(of_all).collect::<Vec<_>>(),
            )
        }
        HookPoint::SessionStart => ("source of a session", SOURCES.to_vec()),
        _ => return Vec::new(),
    };
    let objection = |name: String| {
        let shown = if kind == "agent" { agents.clone().collect() } else { names.clone() };
        let remedy = match nearest(&name, shown.iter().map(|&name| name.to_owned())) {
            Some(near) => format!("did you mean `{near}`?"),
            None if shown.is_empty() => "[[agents]] names none".to_owned(),
            None => format!("there are {}", shown.join(", ")),
        };
        (format!("there is no {kind} `{name}`, so that this never matches"), remedy)
    };
    lost(policy, &names).map(objection).collect()
}

/// The tools there are.
pub(crate) struct KnownTools(Vec<ToolIdentity>);

impl KnownTools {
    pub(crate) fn of(settings: &Settings, tools: AvailableTools<'_>) -> Self {
        let agents = settings.agents.iter().map(|agent| ToolIdentity::unknown(&agent.name));
        Self(tools.all.iter().map(ToolSpec::identity).chain(agents).collect())
    }

    /// All names of the tools.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(ToolIdentity::names)
    }

    /// What is wrong with a pattern that matches the calls of no tool, and what would be right.
    pub(crate) fn objection_to_pattern(&self, text: &str) -> Option<(String, String)> {
        let tool = text.trim().split('(').next().unwrap_or_default();
        // One that can't be read is reported elsewhere.
        let pattern = Pattern::parse(text).ok().filter(|_| !tool.starts_with(OF_MCP))?;
        let kept = self.permission_to_keep();
        let named = self.0.iter().chain(&kept).filter(|tool| pattern.names(tool)).collect::<Vec<_>>();
        if named.is_empty() {
            return Some(self.objection_to(tool));
        }
        let mut mismatches = named.into_iter().map(|tool| pattern.mismatch(tool));
        let mismatch = mismatches.next()??;
        mismatches.all(|other| other.is_some()).then(|| {
            (format!("`{text}` {}, so that this never matches", mismatch.why(tool)), mismatch.remedy(tool))
        })
    }

    /// What patterns of the permission to keep a command running are compared with, as if it were a tool.
    fn permission_to_keep(&self) -> Option<ToolIdentity> {
        let keeps =
            |tool: &&ToolIdentity| matches!(tool.subject, ToolSubject::Command { keeps: Some(_), .. });
        let subject = self.0.iter().find(keeps)?.subject.clone();
        Some(ToolIdentity { subject, ..ToolIdentity::unknown(KEEP_RUNNING) })
    }

    /// That the hook's condition and its matcher are about different tools, if so.
    fn exclusion(&self, policy: &HookPolicy, loading: &Loading) -> Option<(String, String)> {
        let (matcher, text) = (policy.matcher.as_ref()?, policy.condition.as_ref()?);
        if !super::hook::is_about_a_tool(policy.point)
            || matcher.contains("mcp")
            || text.trim().starts_with(OF_MCP)
        {
            return None;
        }
        let pattern = Pattern::parse(text).ok()?;
        let is_agent = |name: &str| loading.settings.agents.iter().any(|agent| agent.name == name);
        let is_asked = |tool: &ToolIdentity| {
            let mut names = tool.names().collect::<Vec<_>>();
            if is_agent(&tool.name) {
                names.push(SPAWN_TOOL);
                names.extend(SPAWN_ALIASES);
            }
            pattern.names(tool) && provost_hooks::matches_any(policy.point, matcher, &names)
        };
        (!self.0.iter().any(is_asked)).then(|| {
            let what = format!(
                "`{text}` is about no tool that the matcher `{matcher}` matches, so that this is never asked"
            );
            (what, "name the same tool in both, or leave one out".to_owned())
        })
    }

    fn objection_to(&self, tool: &str) -> (String, String) {
        let what = format!("there is no tool `{tool}`, so that this never matches");
        let names = self.0.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        let other_case = names.iter().find(|name| name.eq_ignore_ascii_case(tool)).cloned();
        let remedy = match other_case.or_else(|| nearest(tool, names.iter().cloned())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        (what, remedy)
    }
}
