//! What must hold of a run that has ended.
#![expect(clippy::indexing_slicing, reason = "a JSON value indexed by a missing name is null")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::fleet::{AGENTS_MAX, STEPS, SUB_AGENTS, TOKENS_MAX};
use crate::log_check;

/// The counts of runs that were checked.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) runs: usize,
    pub(super) agents: usize,
    pub(super) entries: usize,
    /// Calls that the log has as interrupted with unknown effect.
    pub(super) unknown: usize,
}

impl Checked {
    pub(super) fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.agents += other.agents;
        self.entries += other.entries;
        self.unknown += other.unknown;
    }
}

/// Checks the entries of a run, a line of JSON each, and what it did in its folder.
pub(super) fn check(lines: &str, folder: &Path) -> Result<Checked> {
    let lines = lines.lines().map(str::to_owned).collect::<Vec<_>>();
    let logs = log_check::check(&lines)?;
    let agents = headcount(&lines)?;
    ensure!(agents == SUB_AGENTS, "{agents} sub-agents were started");
    ensure!(logs.calls == SUB_AGENTS + (SUB_AGENTS + 1) * STEPS * 2, "{} calls", logs.calls);
    budget(&lines)?;
    effects(folder, logs.unknown)?;
    Ok(Checked { runs: 1, agents: agents + 1, entries: lines.len(), unknown: logs.unknown })
}

/// The number of sub-agents; those at work at a time never were more than allowed.
fn headcount(lines: &[String]) -> Result<usize> {
    let mut working = HashSet::new();
    let mut all = HashSet::new();
    for line in lines {
        let record: Value = serde_json::from_str(line)?;
        let agent = record["child"].as_str().map(str::to_owned);
        match (record["type"].as_str(), agent) {
            (Some("agent_started"), Some(agent)) => {
                working.insert(agent.clone());
                all.insert(agent);
                // The first one holds a slot too, unless it waits for them.
                ensure!(working.len() <= AGENTS_MAX, "{} agents work at a time: {line}", working.len());
            }
            (Some("agent_finished" | "agent_suspended"), Some(agent)) => _ = working.remove(&agent),
            _ => {}
        }
    }
    Ok(all.len())
}

/// What the run took is within its limit.
fn budget(lines: &[String]) -> Result<()> {
    let mut tokens = 0;
    for line in lines {
        let record: Value = serde_json::from_str(line)?;
        if record["type"] == "settled" {
            let usage = &record["usage"];
            let parts = ["input", "output", "cache_read", "cache_write"];
            tokens += parts.iter().filter_map(|part| usage[*part].as_u64()).sum::<u64>();
        }
    }
    ensure!(tokens <= TOKENS_MAX, "{tokens} tokens were taken");
    Ok(())
}

/// Each effect happened once; one that is unknown in the log may not have happened.
fn effects(folder: &Path, unknown: usize) -> Result<()> {
    let text = fs::read_to_string(folder.join("effects.txt")).unwrap_or_default();
    let writers = (0..SUB_AGENTS).map(|number| format!("writer-{number}")).chain(["root".to_owned()]);
    let mut missing = 0;
    for writer in writers {
        for step in 0..STEPS {
            let effect = format!("{writer}-{step}");
            let times = text.lines().filter(|line| *line == effect).count();
            ensure!(times <= 1, "{effect} happened {times} times:\n{text}");
            missing += 1 - times;
        }
    }
    ensure!(missing <= unknown, "{missing} effects are missing, {unknown} are said to be unknown:\n{text}");
    Ok(())
}
