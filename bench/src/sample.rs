//! The result of one run of one case, and how a child reports it to its parent.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::gateway::GatewayNumbers;

/// One run of one case.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Turns, entries or sessions.
    pub(crate) count: usize,
    pub(crate) wall: Duration,
    /// User and system time of the process.
    pub(crate) cpu: Duration,
    /// The system's part of it, as finely as the system counts.
    pub(crate) system: Duration,
    /// Commits of the store, and the CPU time within them.
    pub(crate) commits: usize,
    pub(crate) commit_cpu: Duration,
    /// The most memory the process ever held.
    pub(crate) peak_kib: u64,
    /// Wall time of sending events to observers alone.
    pub(crate) telling: Duration,
    /// Events that observers didn't get.
    pub(crate) lost: u64,
    /// The growth of memory.
    pub(crate) grown_kib: u64,
    /// The maximum of agents that worked at once, and of the text in all their conversations.
    pub(crate) live: usize,
    pub(crate) message_kib: u64,
    /// Median and 99th percentile of the delays from an answer that starts agents to their first model calls.
    pub(crate) asked_us: [u64; 2],
    /// The same from an answer that ends an agent to the first model call of the agent that gets its slot.
    pub(crate) freed_us: [u64; 2],
    /// What the gateway and the direct way took.
    pub(crate) gateway: GatewayNumbers,
}

impl Sample {
    /// Microseconds of CPU time for each piece.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / count(self.count)
    }

    /// Pieces a second.
    pub(crate) fn per_second(&self) -> f64 {
        count(self.count) / self.wall.as_secs_f64()
    }

    /// What an agent takes of memory besides its messages.
    pub(crate) fn agent_kib(&self) -> f64 {
        mib(self.grown_kib.saturating_sub(self.message_kib)) * 1024.0 / count(self.live.max(1))
    }

    /// `part` for each piece.
    pub(crate) fn each(&self, part: f64) -> f64 {
        part / count(self.count)
    }
}

/// A count as a number to divide by.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) fn count(count: usize) -> f64 {
    count as f64
}

/// A number of KiB as MiB.
#[expect(clippy::cast_precision_loss, reason = "no machine has 2^52 KiB")]
pub(crate) fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// Runs `case` in a process of its own, whose memory and CPU time are then the case's alone.
pub(crate) fn in_child(case: &Case, dir: &Path) -> anyhow::Result<Sample> {
    let output = Command::new(std::env::current_exe()?)
        .arg("case")
        .arg(serde_json::to_string(case)?)
        .arg("--dir")
        .arg(dir)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("starting a child")?;
    ensure!(output.status.success(), "the case {case:?} failed");
    serde_json::from_slice(&output.stdout).context("reading the child's answer")
}

/// Runs `case` `runs` times.
pub(crate) fn repeated(case: &Case, dir: &Path, runs: usize) -> anyhow::Result<Vec<Sample>> {
    (0..runs).map(|_| in_child(case, dir)).collect()
}
