//! A policy that somebody has changed after the start: what binds from here on, and what is different about it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentPolicy, MicroDollars, RunPolicy};

/// Characters of a value that a difference shows.
const VALUE_CHARS_MAX: usize = 160;

/// A run is bound by another policy from its next segment on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPolicyChanged {
    /// What binds it.
    pub policy: RunPolicy,
    /// The goal that was given, which is what the run is to reach from here on; absent where it keeps the one it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What is different, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<PolicyDifference>,
    /// Who wants it.
    pub by: String,
}

/// An agent is bound by another policy from its next segment on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPolicyChanged {
    /// What binds it.
    pub policy: AgentPolicy,
    /// The goal that was given; absent where the agent keeps the one it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// Who wants it.
    pub by: String,
}

/// One value of a policy that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDifference {
    /// Which value, as the settings call it where they have it.
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
    /// What `newer` has otherwise, in the order of the names. Empty where both are the same.
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
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
        let keys = old.keys().chain(new.keys()).collect::<BTreeSet<_>>();
        return keys
            .into_iter()
            .for_each(|key| compare(&below(path, key), old.get(key), new.get(key), found));
    }
    if let (Some(old), Some(new)) = (old.and_then(named), new.and_then(named)) {
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
    let shown = |value: Option<&Value>| value.map(|value| in_short(path, value));
    found.push(PolicyDifference { what: called(path), from: shown(old), to: shown(new) });
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The elements of a list with their names, where each has one.
fn named(value: &Value) -> Option<Vec<(&str, &Value)>> {
    let name = |value: &'_ Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
    let all = value.as_array()?;
    if all.iter().any(|one| name(one).is_none()) {
        return None;
    }
    let pair = |one| Some((Value::get(one, "name")?.as_str()?, one));
    all.iter().map(pair).collect()
}

/// The value at `path`, as the settings call it.
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
        other => other.strip_suffix("_ms").unwrap_or(other).to_owned(),
    }
}

fn in_short(path: &str, value: &Value) -> String {
    let is_money = path.ends_with("budget.money") || path.contains("price.");
    let text = match value {
        Value::Number(number) if is_money => {
            number.as_u64().map_or_else(|| number.to_string(), |money| MicroDollars(money).to_string())
        }
        Value::Number(number) if path.ends_with("_ms") => format!("{number} ms"),
        Value::String(text) if path.ends_with("system_prompt") => {
            format!("{} characters", text.chars().count())
        }
        Value::String(text) => text.clone(),
        // A check is described by what it runs, a goal by its condition.
        Value::Object(one) => match one.get("command").or(one.get("condition")).and_then(Value::as_str) {
            Some(words) => words.to_owned(),
            None => value.to_string(),
        },
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
