//! Questions for approval, and their answers.

use std::collections::BTreeMap;

use provost_event::{
    ApprovalAnswer, ApprovalResolved, ApprovalScope, Entry, GateEntry, LifecycleEntry, Outcome, PauseReason,
    Seq, Timestamp,
};
use serde::Serialize;

use super::say::Times;

/// Approvers that are listed one by one; the others are summed up.
const ANSWERERS_MAX: usize = 20;
const OTHERS: &str = "others";

/// The sums of a session's log.
#[derive(Default, Serialize)]
pub(super) struct ApprovalSums {
    pub(super) asked: u64,
    pub(super) allowed_once: u64,
    pub(super) allowed_for_run: u64,
    pub(super) allowed_always: u64,
    /// Of those allowed, the ones that the answer to another question covered.
    pub(super) allowed_with_another: u64,
    pub(super) denied: u64,
    pub(super) timed_out: u64,
    /// Questions that were withdrawn by the agent's end.
    pub(super) withdrawn: u64,
    /// Suspensions because no answer came in time.
    pub(super) suspended: u64,
    /// Questions without an answer so far.
    pub(super) open: u64,
    /// From the question to the approver's answer, suspensions between included.
    #[serde(flatten)]
    pub(super) waited: Times,
    /// Answers by approver.
    pub(super) by: BTreeMap<String, u64>,
    #[serde(skip)]
    since: BTreeMap<Seq, Timestamp>,
}

impl ApprovalSums {
    pub(super) fn add(&mut self, (seq, at): (Seq, Timestamp), entry: &Entry) {
        match entry {
            Entry::Gate(GateEntry::ApprovalRequested(_)) => {
                self.asked += 1;
                self.open += 1;
                self.since.insert(seq, at);
            }
            Entry::Gate(GateEntry::ApprovalResolved(resolved)) => self.resolved(at, resolved),
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                let is_late = matches!(paused.outcome, Outcome::Paused { why: PauseReason::Approval { .. } });
                self.suspended += u64::from(is_late);
            }
            _ => {}
        }
    }

    fn resolved(&mut self, at: Timestamp, resolved: &ApprovalResolved) {
        self.open = self.open.saturating_sub(1);
        let since = self.since.remove(&resolved.asked).unwrap_or(at);
        match resolved.by.as_str() {
            ApprovalResolved::BY_TIMEOUT => return self.timed_out += 1,
            ApprovalResolved::BY_PROVOST => return self.withdrawn += 1,
            _ => self.waited.add_ms(at.since_ms(since)),
        }
        match &resolved.answer {
            ApprovalAnswer::Allow { scope: ApprovalScope::Once, .. } => self.allowed_once += 1,
            ApprovalAnswer::Allow { scope: ApprovalScope::Run, .. } => self.allowed_for_run += 1,
            ApprovalAnswer::Allow { scope: ApprovalScope::Always, .. } => self.allowed_always += 1,
            ApprovalAnswer::Deny { .. } => self.denied += 1,
        }
        let (by, with_another) = match resolved.by.split_once(" (with #") {
            Some((by, _)) => (by, true),
            None => (resolved.by.as_str(), false),
        };
        self.allowed_with_another += u64::from(with_another);
        let is_known = self.by.contains_key(by) || self.by.len() < ANSWERERS_MAX;
        *self.by.entry(if is_known { by } else { OTHERS }.to_owned()).or_default() += 1;
    }

    pub(super) const fn allowed(&self) -> u64 {
        self.allowed_once + self.allowed_for_run + self.allowed_always
    }
}
