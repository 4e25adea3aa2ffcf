//! Values that are valid alone and contradict each other.

use std::collections::BTreeMap;

use super::errors::{Problem, Source};
use super::hook::Hook;
use super::item::Item;
use super::named::{self, MODELS, PROVIDERS};
use super::stop_hook::StopHook;
use super::{Agent, AvailableTools, Loading, Settings, agent, goal, imported, known_tools, literal};

/// Notes all contradictions; `tools` are those that can be named.
pub(crate) fn check(loading: &mut Loading, tools: AvailableTools<'_>) {
    let of_goal = goal::check(loading);
    let found = [
        late_notices(loading),
        slow_hooks(loading),
        of_goal,
        same_names(loading),
        nowhere(loading),
        impossible_models(loading),
        keys_for_hooks(loading),
        literal::check(loading),
        super::mcp::check(loading),
        agent::check(loading, tools),
        known_tools::check(loading, tools),
    ];
    loading.problems.extend(found.into_iter().flatten());
}

fn late_notices(loading: &Loading) -> Vec<Problem> {
    let limits = loading.settings.limits;
    let pairs = [
        ("repeated_call_notice", limits.repeated_call_notice_at, "repeated_call", limits.repeated_call_max),
        ("failed_turns_notice", limits.failed_turns_notice_at, "failed_turns", limits.failed_turns_max),
    ];
    let late = pairs.into_iter().filter(|(_, notice_at, _, most)| notice_at >= most);
    let problem = |(notice, notice_at, limit, most): (&str, u32, &str, u32)| {
        let keys = [format!("limits.{limit}"), format!("limits.{notice}")];
        let given = keys.iter().find(|key| loading.source(key) != Source::Default);
        let key = given.cloned().unwrap_or_else(|| format!("limits.{limit}"));
        Problem {
            source: loading.source(&key),
            key,
            what: format!(
                "the notice must come before the run is suspended ({notice} is {notice_at}, {limit} is {most})"
            ),
            remedy: format!("e.g. {limit} = {}", notice_at.saturating_add(2)),
        }
    };
    late.map(problem).collect()
}

fn slow_hooks(loading: &Loading) -> Vec<Problem> {
    let Some(limit_ms) = loading.settings.budget.wall_time_ms else { return Vec::new() };
    let Settings { stop_hooks, hooks, .. } = &loading.settings;
    let stop_hooks = stop_hooks.iter().filter(|hook| hook.is_timeout_given).map(|hook| {
        (StopHook::LIST, hook.name.clone(), hook.timeout_secs.saturating_mul(1_000), &hook.timeout_source)
    });
    // The default is shortened to what the run has.
    let hooks = hooks.iter().filter(|hook| hook.has_given("timeout_secs"));
    let hooks =
        hooks.map(|hook| (Hook::LIST, hook.name(), hook.timeout_ms(), hook.source_of("timeout_secs")));
    let slow = stop_hooks.chain(hooks).filter(|(_, _, timeout_ms, _)| *timeout_ms > limit_ms);
    let problem = |(list, name, timeout_ms, source): (&str, String, u64, &Source)| Problem {
        source: source.clone(),
        key: format!("{list}.timeout_secs"),
        what: format!(
            "`{name}` may take longer ({} s) than the whole run (budget.wall_time is {} s, from {})",
            timeout_ms / 1_000,
            limit_ms / 1_000,
            loading.source("budget.wall_time"),
        ),
        remedy: format!("e.g. timeout_secs = {}", (limit_ms / 10_000).max(1)),
    };
    slow.map(problem).collect()
}

fn same_names(loading: &Loading) -> Vec<Problem> {
    let Settings { stop_hooks, hooks, agents, .. } = &loading.settings;
    let stop_hooks = stop_hooks.iter().map(|hook| (hook.name.clone(), &hook.source));
    let hooks = hooks.iter().filter(|hook| hook.is_named()).map(|hook| (hook.name(), &hook.source));
    let mut problems = taken_names(StopHook::LIST, "stop hook", stop_hooks);
    problems.extend(taken_names(Hook::LIST, "hook", hooks));
    let agents = agents.iter().map(|agent| (agent.name.clone(), &agent.source));
    problems.extend(taken_names(Agent::LIST, "agent", agents));
    problems
}

fn taken_names<'a>(
    list: &str,
    one: &str,
    hooks: impl IntoIterator<Item = (String, &'a Source)>,
) -> Vec<Problem> {
    let mut first = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, source) in hooks {
        let Some(other) = first.get(&name) else {
            first.insert(name, source);
            continue;
        };
        problems.push(Problem {
            source: source.clone(),
            key: format!("{list}.name"),
            what: format!("`{name}` is taken by the {one} at {other}"),
            remedy: "give each its own name".to_owned(),
        });
    }
    problems
}

/// Providers of the user's own without an address.
fn nowhere(loading: &Loading) -> Vec<Problem> {
    let tables = loading.settings.named.providers.iter();
    let lost = tables.filter(|(name, table)| table.lacks_address(name));
    let problem = |name: &String| {
        let key = named::key(PROVIDERS, name, "");
        let prefix = format!("{key}.");
        let given = loading.given.iter().find(|(key, _)| key.starts_with(&prefix));
        Problem {
            source: given.map_or(Source::Default, |(_, given)| given.source.clone()),
            key,
            what: "no provider of this name is built in, and no base_url says where it is".to_owned(),
            remedy: "e.g. base_url = \"http://127.0.0.1:8080/v1\"; `provost models` lists those that are"
                .to_owned(),
        }
    };
    lost.map(|(name, _)| problem(name)).collect()
}

/// Hooks whose headers are to name a provider's key.
fn keys_for_hooks(loading: &Loading) -> Vec<Problem> {
    let keys = loading.settings.named.key_variables();
    let mut problems = Vec::new();
    for hook in &loading.settings.hooks {
        let program = hook.policy().and_then(|policy| policy.program);
        problems.extend(imported::withheld(program.as_ref(), &keys).into_iter().map(|what| Problem {
            source: hook.source_of("allowed_env").clone(),
            key: format!("{}.allowed_env", Hook::LIST),
            what,
            remedy: "give the server a secret of its own, e.g. allowed_env = [\"HOOK_TOKEN\"]".to_owned(),
        }));
    }
    for variable in &loading.settings.hook_env {
        let Some(provider) = keys.get(&variable.name) else { continue };
        let source = variable.source.clone();
        problems.push(Problem {
            source: source.unwrap_or_else(|| loading.source_of_item("hooks.env", &variable.name)),
            key: "hooks.env".to_owned(),
            what: format!("{} holds the key of the provider {provider}, which no hook gets", variable.name),
            remedy: "give the hook a key of its own in another variable".to_owned(),
        });
    }
    problems
}

/// Variables for hooks that hold a provider's key under another name.
pub(crate) fn keys_by_other_names(loading: &Loading, variables: &BTreeMap<String, String>) -> Vec<Problem> {
    let keys = loading.settings.named.key_variables();
    let held =
        |value: &String| keys.iter().find(|(key, _)| !value.is_empty() && variables.get(*key) == Some(value));
    let own = |name: &String| keys.contains_key(name);
    let problem = |source: Source, key: String, name: &String| {
        let (variable, provider) = held(variables.get(name)?).filter(|_| !own(name))?;
        Some(Problem {
            source,
            key,
            what: format!(
                "{name} has the value of {variable}, the key of the provider {provider}, which no hook gets"
            ),
            remedy: "give the hook a key of its own".to_owned(),
        })
    };
    let of_env = loading.settings.hook_env.iter().filter_map(|variable| {
        let source = variable.source.clone();
        let source = source.unwrap_or_else(|| loading.source_of_item("hooks.env", &variable.name));
        problem(source, "hooks.env".to_owned(), &variable.name)
    });
    let of_headers = loading.settings.hooks.iter().flat_map(|hook| {
        let source = hook.source_of("allowed_env");
        let key = format!("{}.allowed_env", Hook::LIST);
        hook.header_variables()
            .filter_map(|name| problem(source.clone(), key.clone(), name))
            .collect::<Vec<_>>()
    });
    of_env.chain(of_headers).collect()
}

fn impossible_models(loading: &Loading) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, table) in &loading.settings.named.models {
        if let Some((field, what, remedy)) = table.contradiction() {
            let key = named::key(MODELS, name, field);
            problems.push(Problem { source: loading.source(&key), key, what, remedy: remedy.to_owned() });
        }
    }
    problems
}
