//! Values that are right alone and wrong together.

use std::collections::BTreeMap;

use super::errors::{Problem, Source};
use super::named::{self, MODELS, PROVIDERS};
use super::{Loading, StopHook};

/// Notes all contradictions.
pub(super) fn check(loading: &mut Loading) {
    let found = [
        circles(loading),
        slow_hooks(loading),
        same_names(&loading.settings.stop_hooks),
        nowhere(loading),
        impossible_models(loading),
    ];
    loading.problems.extend(found.into_iter().flatten());
}

fn circles(loading: &Loading) -> Vec<Problem> {
    let limits = loading.settings.limits;
    if limits.circle_notice_at < limits.circle_pause_at {
        return Vec::new();
    }
    let keys = ["limits.circle_pause", "limits.circle_notice"];
    let given = keys.into_iter().find(|key| loading.source(key) != Source::Default);
    let key = given.unwrap_or("limits.circle_pause");
    vec![Problem {
        source: loading.source(key),
        key: key.to_owned(),
        what: format!(
            "the notice must come before the pause (circle_notice is {}, circle_pause is {})",
            limits.circle_notice_at, limits.circle_pause_at
        ),
        remedy: format!("e.g. circle_pause = {}", limits.circle_notice_at.saturating_add(2)),
    }]
}

fn slow_hooks(loading: &Loading) -> Vec<Problem> {
    let Some(limit_ms) = loading.settings.budget.wall_time_ms else { return Vec::new() };
    let slow =
        loading.settings.stop_hooks.iter().filter(|hook| hook.timeout_secs.saturating_mul(1_000) > limit_ms);
    let problem = |hook: &StopHook| Problem {
        source: hook.timeout_source.clone(),
        key: "stop_hooks.timeout_secs".to_owned(),
        what: format!(
            "`{}` may take longer ({} s) than the whole run (budget.wall_time is {} s, from {})",
            hook.name,
            hook.timeout_secs,
            limit_ms / 1_000,
            loading.source("budget.wall_time"),
        ),
        remedy: format!("e.g. timeout_secs = {}", (limit_ms / 10_000).max(1)),
    };
    slow.map(problem).collect()
}

fn same_names(hooks: &[StopHook]) -> Vec<Problem> {
    let mut first = BTreeMap::new();
    let mut problems = Vec::new();
    for hook in hooks {
        if let Some(source) = first.get(&hook.name) {
            problems.push(Problem {
                source: hook.source.clone(),
                key: "stop_hooks.name".to_owned(),
                what: format!("`{}` is taken by the stop hook at {source}", hook.name),
                remedy: "give each its own name".to_owned(),
            });
        } else {
            first.insert(&hook.name, &hook.source);
        }
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
