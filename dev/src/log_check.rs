//! What must hold of an exported run, seen from outside.
#![expect(clippy::indexing_slicing, reason = "a JSON value indexed by a missing name is null")]

use std::collections::{HashMap, HashSet};

use anyhow::{Result, ensure};
use serde_json::Value;

/// The summary of a run's logs.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    /// Calls that the model has made.
    pub(crate) calls: usize,
    /// Calls that the log has as interrupted with unknown effect.
    pub(crate) unknown: usize,
}

/// Reads an export, and checks that no entry is missing or duplicated, that each call has one result, and that
/// each log ends with one outcome, after which only a new segment follows.
///
/// # Errors
/// What doesn't hold.
pub(crate) fn check(lines: &[String]) -> Result<Logs> {
    let mut logs = Logs::default();
    let mut heads: HashMap<String, u64> = HashMap::new();
    let mut ended = HashSet::new();
    let mut asked = Vec::new();
    let mut finished = HashMap::<(String, String), u32>::new();
    for line in lines {
        let record: Value = serde_json::from_str(line)?;
        let Some(actor) = record["actor"].as_str() else { continue };
        let kind = record["type"].as_str().unwrap_or_default();
        ensure!(!ended.contains(actor) || kind == "resumed", "an entry after the end: {line}");
        let head = heads.entry(actor.to_owned()).or_default();
        ensure!(record["seq"] == *head + 1, "a gap or a repeat before {line}");
        *head += 1;
        match kind {
            "assistant_message" => asked.extend(call_ids(&record).map(|call| (actor.to_owned(), call))),
            "tool_finished" => {
                logs.unknown += usize::from(record["status"] == "unknown");
                let call = record["call"].as_str().unwrap_or_default().to_owned();
                *finished.entry((actor.to_owned(), call)).or_default() += 1;
            }
            "resumed" => _ = ended.remove(actor),
            "ended" => _ = ended.insert(actor.to_owned()),
            _ => {}
        }
    }
    ensure!(ended.len() == heads.len(), "{} of {} logs have ended", ended.len(), heads.len());
    for call in &asked {
        ensure!(finished.get(call) == Some(&1), "call {call:?} has {:?} results", finished.get(call));
    }
    logs.calls = asked.len();
    Ok(logs)
}

fn call_ids(record: &Value) -> impl Iterator<Item = String> {
    let blocks = record["content"].as_array().cloned().unwrap_or_default();
    blocks.into_iter().filter_map(|block| block["tool_call"]["id"].as_str().map(str::to_owned))
}
