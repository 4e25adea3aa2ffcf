//! How observers fared: they write no log entries, so the process that holds a run keeps this beside the store.

use provost_harness::RunStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::say::RuleUse;

/// An observer, and how it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObserverExplanation {
    /// Its name.
    pub name: String,
    /// Segments of work, from a start or a resumption to the next suspension or end, that it observed.
    pub segments: u64,
    /// Events that were delivered to it.
    pub delivered: u64,
    /// Events that were not delivered.
    pub lost: u64,
    /// Calls of it that returned an error.
    pub failed: u64,
    /// Calls of it that panicked.
    pub panicked: u64,
    /// Calls of it that didn't return in time.
    pub hung: u64,
    /// Whether it took effect.
    #[serde(flatten)]
    pub standing: RuleUse,
}

/// What one observer got in one segment of work, as the process that held the run noted it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ObserverSegment {
    /// Its name.
    pub observer: String,
    /// Events that were delivered to it.
    pub delivered: u64,
    /// Events that didn't fit in its queue.
    pub lost: u64,
    /// Events that were still in its queue at the end.
    #[serde(default)]
    pub waiting: u64,
    /// Calls of it that returned an error.
    pub failed: u64,
    /// Calls of it that panicked.
    pub panicked: u64,
    /// Calls of it that didn't return in time.
    pub hung: u64,
}

/// The observers called `names`, by what was kept of their segments of work.
pub(super) fn observers(
    names: &[String],
    kept: &[ObserverSegment],
    status: &RunStatus,
) -> Vec<ObserverExplanation> {
    let observer = |name: &String| {
        let mut observer = ObserverExplanation::new(name);
        kept.iter().filter(|segment| segment.observer == *name).for_each(|segment| observer.add(segment));
        ObserverExplanation { standing: observer.stands(status), ..observer }
    };
    names.iter().map(observer).collect()
}

impl ObserverExplanation {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            segments: 0,
            delivered: 0,
            lost: 0,
            failed: 0,
            panicked: 0,
            hung: 0,
            standing: RuleUse::NOT_SET,
        }
    }

    const fn add(&mut self, segment: &ObserverSegment) {
        self.segments += 1;
        self.delivered = self.delivered.saturating_add(segment.delivered);
        self.lost = self.lost.saturating_add(segment.lost).saturating_add(segment.waiting);
        self.failed = self.failed.saturating_add(segment.failed);
        self.panicked = self.panicked.saturating_add(segment.panicked);
        self.hung = self.hung.saturating_add(segment.hung);
    }

    fn stands(&self, status: &RunStatus) -> RuleUse {
        match (self.segments, status) {
            (0, RunStatus::Running) => RuleUse::not_reported("the run is being worked on"),
            (0, RunStatus::Interrupted) => {
                RuleUse::not_reported("the process that held the run is gone, or was on another machine")
            }
            (0, RunStatus::Stopped(_)) => {
                RuleUse::not_reported("the process was killed, or worked on another machine")
            }
            _ => RuleUse::of(self.delivered, || "no event reached it".to_owned()),
        }
    }
}
