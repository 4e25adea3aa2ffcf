//! Policy changes after the start: the new policy and its differences from the old one.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AgentPolicy, Limits, MicroDollars, RunPolicy, counted, grouped};

/// Maximum characters of a value in a difference.
const VALUE_CHARS_MAX: usize = 160;

/// A new policy applies to a run from its next segment on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunPolicyChanged {
    /// The new policy.
    pub policy: RunPolicy,
    /// The new goal; absent if the run keeps its goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The differences, for display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<PolicyDifference>,
    /// Who changed it.
    pub by: String,
}

/// A new policy applies to an agent from its next segment on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentPolicyChanged {
    /// The new policy.
    pub policy: AgentPolicy,
    /// The new goal; absent if the agent keeps its goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Who changed it.
    pub by: String,
}

/// One value of a policy that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyDifference {
    /// The value's name, as in the settings if it has one there.
    pub what: String,
    /// The value before; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value after; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl std::fmt::Display for PolicyDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "(not set)".to_owned());
        write!(f, "{}: {} → {}", self.what, shown(&self.from), shown(&self.to))
    }
}

impl RunPolicy {
    /// The differences of `newer` from this policy, ordered by name. Empty if both are equal.
    #[must_use]
    pub fn differences(&self, newer: &Self) -> Vec<PolicyDifference> {
        let mut found = Vec::new();
        // A policy that has no JSON form couldn't have been logged.
        if let (Ok(old), Ok(new)) = (serde_json::to_value(self), serde_json::to_value(newer)) {
            compare("", Some(&old), Some(&new), &mut found);
        }
        found
    }
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<PolicyDifference>) {
    if old == new {
        return;
    }
    let old_fields = fields(old, new);
    let new_fields = fields(new, old);
    if let (Some(old), Some(new)) = (&old_fields, &new_fields) {
        let keys = old.keys().chain(new.keys()).collect::<BTreeSet<_>>();
        return keys
            .into_iter()
            .for_each(|key| compare(&below(path, key), old.get(key.as_str()), new.get(key.as_str()), found));
    }
    if is_tools(path) {
        let shown = |all: Option<&Value>, other| all.and_then(named).map(|all| tools(&all, other));
        let known = old.and_then(named).unwrap_or_default();
        found.push(PolicyDifference {
            what: called(path),
            from: shown(old, None),
            to: shown(new, Some(&known)),
        });
        return;
    }
    let old_names = elements(old, new);
    let new_names = elements(new, old);
    if let (Some(old), Some(new)) = (old_names, new_names) {
        let names =
            |all: &[(&str, &Value)]| all.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
        let names_old = names(&old);
        let names_new = names(&new);
        let of = |all: &[(&str, &Value)], name: &str| {
            all.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).clone())
        };
        let before = found.len();
        for name in names_old.iter().chain(&names_new).collect::<BTreeSet<_>>() {
            let old = of(&old, name);
            let new = of(&new, name);
            compare(&below(path, name), old.as_ref(), new.as_ref(), found);
        }
        if found.len() == before {
            let order = |names: &[String]| Some(names.join(", "));
            let from = order(&names_old);
            let to = order(&names_new);
            found.push(PolicyDifference { what: format!("{} (order)", called(path)), from, to });
        }
        return;
    }
    let shown = |value: Option<&Value>| match value {
        None | Some(Value::Null) if is_limit(path) => Some("no limit".to_owned()),
        value => value.map(|value| in_short(path, value)),
    };
    found.push(PolicyDifference { what: called(path), from: shown(old), to: shown(new) });
}

/// Whether the value is the list of an agent's tools.
fn is_tools(path: &str) -> bool {
    path == "tools" || path.ends_with(".tools")
}

/// The number of tools, and which of them are missing from `before` or differ from it.
fn tools(all: &[(&str, &Value)], before: Option<&[(&str, &Value)]>) -> String {
    let count = counted(all.len() as u64, "tool");
    let Some(before) = before else { return count };
    let of = |tools: &[(&str, &Value)], name: &str| {
        tools.iter().find(|(own, _)| *own == name).map(|(_, tool)| (*tool).clone())
    };
    let names = |tools: &[(&str, &Value)], fits: &dyn Fn(&str) -> bool| {
        let names = tools.iter().map(|(name, _)| *name).filter(|name| fits(name));
        names.collect::<Vec<_>>().join(", ")
    };
    let parts = [
        ("with", names(all, &|name| of(before, name).is_none())),
        ("without", names(before, &|name| of(all, name).is_none())),
        (
            "otherwise described",
            names(all, &|name| of(before, name).is_some_and(|old| Some(old) != of(all, name))),
        ),
    ];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts = parts.map(|(what, names)| format!("{what} {names}")).collect::<Vec<_>>();
    if parts.is_empty() {
        format!("{count}, in another order")
    } else {
        format!("{count}: {}", parts.join("; "))
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The fields of a value; none if it is absent and `other` has fields. A check, a hook and a goal are described by
/// one of their fields if there is no other to compare with.
fn fields(value: Option<&Value>, other: Option<&Value>) -> Option<Map<String, Value>> {
    match (value, other) {
        (Some(Value::Object(fields)), Some(Value::Object(_))) => Some(fields.clone()),
        (Some(one @ Value::Object(fields)), None | Some(Value::Null)) if described(one).is_none() => {
            Some(fields.clone())
        }
        (None | Some(Value::Null), Some(one @ Value::Object(_))) if described(one).is_none() => {
            Some(Map::new())
        }
        _ => None,
    }
}

/// The elements of a list by name; none if it is absent and `other` has named elements.
fn elements<'a>(value: Option<&'a Value>, other: Option<&Value>) -> Option<Vec<(&'a str, &'a Value)>> {
    match value {
        None | Some(Value::Null) => other.and_then(named).map(|_| Vec::new()),
        Some(value) => named(value),
    }
}

/// The command of a check or a hook, or the condition of a goal.
fn described(one: &Value) -> Option<&str> {
    let program =
        ["/command", "/condition", "/program/shell/command", "/program/exec/command", "/program/http/url"];
    program.iter().find_map(|field| one.pointer(field)).and_then(Value::as_str)
}

/// The elements of a list with their names, if each has one.
fn named(value: &Value) -> Option<Vec<(&str, &Value)>> {
    let name = |value: &'_ Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    let all = value.as_array()?;
    if all.iter().any(|one| name(one).is_none()) {
        return None;
    }
    let pair = |one| Some((Value::get(one, "name")?.as_str()?, one));
    all.iter().map(pair).collect()
}

/// The settings' name of the value at `path`.
fn called(path: &str) -> String {
    let path = path.strip_prefix("agent.").unwrap_or(path).replace(".agent.", ".");
    let path = match path.split_once("limits.turns_max") {
        Some(("", "")) => "agent.max_turns".to_owned(),
        Some((before, "")) => format!("{before}max_turns"),
        _ => path,
    };
    match path.as_str() {
        "system_prompt" => "agent.instructions".to_owned(),
        "budget.money" => "budget.usd".to_owned(),
        "limits.stop_blocks_max" => "limits.stop_blocks".to_owned(),
        other => other.strip_suffix("_ms").unwrap_or(other).to_owned(),
    }
}

/// Whether an absent value means no limit.
fn is_limit(path: &str) -> bool {
    path.split('.').rev().nth(1) == Some("budget")
}

/// Milliseconds in the notation of the settings: `2h`, `1m30s`, `500ms`.
fn as_setting(ms: u64) -> String {
    let parts = [(ms / 3_600_000, "h"), (ms / 60_000 % 60, "m"), (ms / 1_000 % 60, "s"), (ms % 1_000, "ms")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let text = parts.map(|(count, unit)| format!("{count}{unit}")).collect::<String>();
    if text.is_empty() { "0s".to_owned() } else { text }
}

fn in_short(path: &str, value: &Value) -> String {
    let is_money = path.ends_with("budget.money") || path.contains("price.");
    let is_unlimited =
        path.ends_with("limits.turns_max") && value.as_u64() == Some(u64::from(Limits::TURNS_UNLIMITED));
    let text = match value {
        Value::Number(number) if is_money => {
            number.as_u64().map_or_else(|| number.to_string(), |money| MicroDollars(money).to_string())
        }
        Value::Number(_) if is_unlimited => "no limit".to_owned(),
        Value::Number(number) if path.ends_with("_ms") => {
            number.as_u64().map_or_else(|| format!("{number} ms"), as_setting)
        }
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        Value::Null => "(not set)".to_owned(),
        Value::String(text) if path.ends_with("system_prompt") => {
            counted(text.chars().count() as u64, "character")
        }
        Value::String(text) => text.clone(),
        Value::Object(_) => described(value).map_or_else(|| value.to_string(), str::to_owned),
        Value::Array(all) if all.iter().all(Value::is_string) => {
            all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short = line.chars().take(VALUE_CHARS_MAX).collect::<String>();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}
