//! Which run a run was forked from, and which runs were forked from its agents.

use provost_event::{Entry, Forked, LifecycleEntry, RunId};
use serde::{Deserialize, Serialize};

/// The forks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lineage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_from: Option<Forked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forks: Vec<Forked>,
}

impl Lineage {
    /// The source, if it is a fork.
    pub(super) const fn forked_from(&self) -> Option<&Forked> {
        self.forked_from.as_ref()
    }

    /// The runs that were forked from its agents, in order.
    pub(super) fn forks(&self) -> &[Forked] {
        &self.forks
    }

    /// Applies an entry of the log of `run`.
    pub(super) fn apply(&mut self, entry: &Entry, run: RunId) {
        let Entry::Lifecycle(LifecycleEntry::Forked(forked)) = entry else { return };
        if forked.to == run {
            self.forked_from = Some(forked.clone());
        } else {
            self.forks.push(forked.clone());
        }
    }
}
