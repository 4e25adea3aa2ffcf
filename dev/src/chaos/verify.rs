//! What must hold of a run that has ended.
#![expect(clippy::indexing_slicing, reason = "a JSON value indexed by a missing name is null")]

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::fleet::{Agents, STEPS, TOKENS_MAX};
use crate::log_check;

/// The counts of runs that were checked.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) runs: usize,
    pub(super) agents: usize,
    pub(super) entries: usize,
    /// Calls that the log has as interrupted with unknown effect.
    pub(super) unknown: usize,
    /// When agents began and ended, by the wall clock in milliseconds.
    changes: Vec<HeadcountChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HeadcountChange {
    at_ms: u64,
    by: i64,
}

/// The agents of all runs at a time that had begun and hadn't ended.
pub(super) struct Crowd {
    pub(super) most: i64,
    /// From the first to the last.
    pub(super) average: i64,
}

impl Checked {
    pub(super) fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.agents += other.agents;
        self.entries += other.entries;
        self.unknown += other.unknown;
        self.changes.extend(other.changes);
    }

    pub(super) fn crowd(&self) -> Crowd {
        let mut changes = self.changes.clone();
        changes.sort_unstable();
        let first = changes.first().map_or(0, |change| change.at_ms);
        let mut crowd = Crowd { most: 0, average: 0 };
        let mut agents = 0;
        let mut last = first;
        let mut area = 0;
        for change in changes {
            area += agents * i64::try_from(change.at_ms - last).unwrap_or(i64::MAX);
            last = change.at_ms;
            agents += change.by;
            crowd.most = crowd.most.max(agents);
        }
        crowd.average = area / i64::try_from(last - first).unwrap_or(i64::MAX).max(1);
        crowd
    }
}

/// Checks the entries of a run, a line of JSON each, and what it did in its folder.
pub(super) fn check(lines: &str, folder: &Path, agents: Agents) -> Result<Checked> {
    let lines = lines.lines().map(str::to_owned).collect::<Vec<_>>();
    let logs = log_check::check(&lines)?;
    let mut changes = Vec::new();
    let started = headcount(&lines, agents, &mut changes)?;
    ensure!(started == agents.subs, "{started} sub-agents were started");
    ensure!(logs.calls == agents.subs + (agents.subs + 1) * STEPS * 2, "{} calls", logs.calls);
    budget(&lines)?;
    effects(folder, agents, logs.unknown)?;
    Ok(Checked { runs: 1, agents: started + 1, entries: lines.len(), unknown: logs.unknown, changes })
}

/// The number of sub-agents; those at work at a time never were more than allowed.
fn headcount(lines: &[String], agents: Agents, changes: &mut Vec<HeadcountChange>) -> Result<usize> {
    let mut working = HashSet::new();
    let mut all = HashSet::new();
    let mut times = Vec::new();
    for line in lines {
        let record: Value = serde_json::from_str(line)?;
        let at_ms = record["at_ms"].as_u64().context("at_ms")?;
        times.push(at_ms);
        let before = working.len();
        let agent = record["child"].as_str().map(str::to_owned);
        match (record["type"].as_str(), agent) {
            (Some("agent_started"), Some(agent)) => {
                working.insert(agent.clone());
                all.insert(agent);
                // The first one holds a slot too, unless it waits for them.
                ensure!(
                    working.len() <= agents.at_a_time(),
                    "{} agents work at a time: {line}",
                    working.len()
                );
            }
            (Some("agent_finished" | "agent_suspended"), Some(agent)) => _ = working.remove(&agent),
            _ => {}
        }
        match working.len().cmp(&before) {
            Ordering::Greater => changes.push(HeadcountChange { at_ms, by: 1 }),
            Ordering::Less => changes.push(HeadcountChange { at_ms, by: -1 }),
            Ordering::Equal => {}
        }
    }
    // The first agent, which waits for the others for a while.
    changes.extend(times.iter().min().map(|at_ms| HeadcountChange { at_ms: *at_ms, by: 1 }));
    changes.extend(times.iter().max().map(|at_ms| HeadcountChange { at_ms: *at_ms, by: -1 }));
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
fn effects(folder: &Path, agents: Agents, unknown: usize) -> Result<()> {
    let text = fs::read_to_string(folder.join("effects.txt")).unwrap_or_default();
    let writers = (0..agents.subs).map(|number| format!("writer-{number}")).chain(["root".to_owned()]);
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
