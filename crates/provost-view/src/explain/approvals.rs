//! Questions for approval, and their answers.

use std::collections::BTreeMap;

use provost_event::{
    ApprovalAnswer, ApprovalResolved, ApprovalScope, Entry, GateEntry, Json, LifecycleEntry, Outcome,
    PauseReason, Seq, Timestamp, ToolEntry,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::say::Durations;

/// Approvers that are listed one by one; the others are summed up.
const ANSWERERS_MAX: usize = 20;
const OTHERS: &str = "others";
/// Calls outside of the sandbox that are listed.
const OUTSIDE_MAX: usize = 50;

/// Questions for approval, and their answers.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalCounts {
    /// Questions.
    pub asked: u64,
    /// Calls that were allowed once.
    pub allowed_once: u64,
    /// Calls that were allowed for the rest of the run.
    pub allowed_for_run: u64,
    /// Calls that were allowed for all runs.
    pub allowed_always: u64,
    /// Of those allowed, the ones that the answer to another question covered.
    pub allowed_with_another: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Questions without an answer in time.
    pub timed_out: u64,
    /// Questions that were withdrawn by the agent's end.
    pub withdrawn: u64,
    /// Suspensions because no answer came in time.
    pub suspended: u64,
    /// Questions without an answer so far.
    pub open: u64,
    /// From the question to the approver's answer, suspensions between included.
    #[serde(flatten)]
    pub waited: Durations,
    /// Answers by approver.
    pub by: BTreeMap<String, u64>,
    /// The first calls that ran outside of the sandbox. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsideCall>,
}

/// A call that ran outside of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutsideCall {
    /// The entry that started it.
    pub seq: Seq,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: Json,
}

/// The sums of a session's log.
#[derive(Default)]
pub(super) struct ApprovalSums {
    counts: ApprovalCounts,
    since: BTreeMap<Seq, Timestamp>,
}

impl ApprovalSums {
    pub(super) fn counts(&self) -> ApprovalCounts {
        self.counts.clone()
    }

    pub(super) fn add(&mut self, (seq, at): (Seq, Timestamp), entry: &Entry) {
        match entry {
            Entry::Gate(GateEntry::ApprovalRequested(_)) => {
                self.counts.asked += 1;
                self.counts.open += 1;
                self.since.insert(seq, at);
            }
            Entry::Tool(ToolEntry::Started(started))
                if started.outside && self.counts.outside.len() < OUTSIDE_MAX =>
            {
                self.counts.outside.push(OutsideCall {
                    seq,
                    tool: started.tool.clone(),
                    input: started.input.clone(),
                });
            }
            Entry::Gate(GateEntry::ApprovalResolved(resolved)) => self.resolved(at, resolved),
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                let is_late = matches!(paused.outcome, Outcome::Paused { why: PauseReason::Approval { .. } });
                self.counts.suspended += u64::from(is_late);
            }
            _ => {}
        }
    }

    fn resolved(&mut self, at: Timestamp, resolved: &ApprovalResolved) {
        self.counts.open = self.counts.open.saturating_sub(1);
        let since = self.since.remove(&resolved.asked).unwrap_or(at);
        match resolved.by.as_str() {
            ApprovalResolved::BY_TIMEOUT => return self.counts.timed_out += 1,
            ApprovalResolved::BY_PROVOST => return self.counts.withdrawn += 1,
            _ => self.counts.waited.add_ms(at.since_ms(since)),
        }
        match &resolved.answer {
            ApprovalAnswer::Allow { scope: ApprovalScope::Once, .. } | ApprovalAnswer::Answered { .. } => {
                self.counts.allowed_once += 1;
            }
            ApprovalAnswer::Allow { scope: ApprovalScope::Run, .. } => self.counts.allowed_for_run += 1,
            ApprovalAnswer::Allow { scope: ApprovalScope::Always, .. } => self.counts.allowed_always += 1,
            ApprovalAnswer::Deny { .. } => self.counts.denied += 1,
        }
        let (by, with_another) = match resolved.by.split_once(" (with #") {
            Some((by, _)) => (by, true),
            None => (resolved.by.as_str(), false),
        };
        self.counts.allowed_with_another += u64::from(with_another);
        let is_known = self.counts.by.contains_key(by) || self.counts.by.len() < ANSWERERS_MAX;
        *self.counts.by.entry(if is_known { by } else { OTHERS }.to_owned()).or_default() += 1;
    }
}

impl ApprovalCounts {
    /// Calls that were allowed.
    #[must_use]
    pub const fn allowed(&self) -> u64 {
        self.allowed_once + self.allowed_for_run + self.allowed_always
    }
}
