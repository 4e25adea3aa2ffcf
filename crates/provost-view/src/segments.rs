//! The segments of a run: from a start or a resume to the outcome that ends it, and what was spent in each.

use provost_event::{
    BudgetEntry, Entry, LifecycleEntry, MicroDollars, Outcome, PolicyDifference, Record, RunId, Seq,
    Timestamp,
};
use provost_harness::{Backend, BackendError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::READ_MAX;

/// Counts the segments of one run as its log is read from the first entry on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentCounter {
    number: u32,
    is_over: bool,
}

impl Default for SegmentCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl SegmentCounter {
    /// Before the log's first entry: the first segment.
    #[must_use]
    pub const fn new() -> Self {
        Self { number: 1, is_over: false }
    }

    /// Takes in the next entry of the run's log. Returns whether it begins another segment; going on after an
    /// interruption doesn't.
    pub const fn see(&mut self, entry: &Entry) -> bool {
        match entry {
            Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) => {
                self.is_over = true;
                false
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) if self.is_over => {
                self.is_over = false;
                self.number = self.number.saturating_add(1);
                true
            }
            _ => false,
        }
    }

    /// The present one, from 1.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// From 1.
    pub segment: u32,
    /// When it began.
    pub began_ms: Timestamp,
    /// What ended it; null while it goes on, or where it was interrupted.
    pub outcome: Option<Outcome>,
    /// Model calls that were charged.
    pub calls: u64,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Money, as far as prices are known.
    pub cost_micro_usd: MicroDollars,
    /// What replaced the settings or the goal before it began; absent if nothing did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<SettingsChange>,
}

/// Settings or a goal in place of those that bound a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsChange {
    /// When.
    pub at_ms: Timestamp,
    /// By whom, or by what command.
    pub by: String,
    /// The goal that was given; absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What is different.
    pub differences: Vec<PolicyDifference>,
}

impl SettingsChange {
    fn of(record: &Record) -> Option<Self> {
        let Entry::Lifecycle(LifecycleEntry::RunPolicyChanged(changed)) = &record.entry else { return None };
        Some(Self {
            at_ms: record.at,
            by: changed.by.clone(),
            goal: changed.goal.clone(),
            differences: changed.differences.clone(),
        })
    }
}

impl Segment {
    const fn new(segment: u32, began_ms: Timestamp) -> Self {
        Self {
            segment,
            began_ms,
            outcome: None,
            calls: 0,
            tokens: 0,
            cost_micro_usd: MicroDollars(0),
            changes: Vec::new(),
        }
    }

    fn take_in(&mut self, entry: &Entry) {
        match entry {
            Entry::Budget(BudgetEntry::Charged(charged)) => {
                self.calls = self.calls.saturating_add(1);
                self.tokens = self.tokens.saturating_add(charged.usage.total());
                self.cost_micro_usd += charged.cost.unwrap_or_default();
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => self.outcome = Some(paused.outcome.clone()),
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.outcome = Some(ended.outcome.clone()),
            _ => {}
        }
    }
}

/// The segments of `run`, in order.
///
/// # Errors
/// When its log can't be read.
pub async fn segments_of(backend: &dyn Backend, run: RunId) -> Result<Vec<Segment>, BackendError> {
    let (mut segments, mut counter, mut changes) = (Vec::<Segment>::new(), SegmentCounter::new(), Vec::new());
    let mut after = Seq::START;
    loop {
        let records = backend.read(run.into(), after, READ_MAX).await?;
        let Some(last) = records.last() else {
            if let Some(segment) = segments.last_mut() {
                segment.changes.append(&mut changes);
            }
            return Ok(segments);
        };
        after = last.seq;
        for record in &records {
            take_in(&mut segments, &mut counter, record);
            changes.extend(SettingsChange::of(record));
            // One without a segment behind it is listed with the last.
            if let Some(segment) = segments.last_mut().filter(|segment| segment.outcome.is_none()) {
                segment.changes.append(&mut changes);
            }
        }
    }
}

fn take_in(segments: &mut Vec<Segment>, counter: &mut SegmentCounter, record: &Record) {
    let begins = counter.see(&record.entry);
    if begins || segments.is_empty() {
        segments.push(Segment::new(counter.number(), record.at));
    }
    if let Some(segment) = segments.last_mut() {
        segment.take_in(&record.entry);
    }
}
