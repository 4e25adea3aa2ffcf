//! A value for each of the newest runs.

use std::collections::{HashMap, VecDeque};

use provost_event::RunId;

/// A `T` for each of the latest runs.
#[derive(Debug)]
pub(super) struct PerRun<T> {
    of: HashMap<RunId, T>,
    order: VecDeque<RunId>,
    runs_max: usize,
}

impl<T: Default> PerRun<T> {
    pub(super) fn new(runs_max: usize) -> Self {
        Self { of: HashMap::new(), order: VecDeque::new(), runs_max: runs_max.max(1) }
    }

    /// The value of `run`; if it has none, a new one, replacing the oldest if there are too many.
    pub(super) fn entry(&mut self, run: RunId) -> &mut T {
        if !self.of.contains_key(&run) {
            if self.order.len() >= self.runs_max
                && let Some(oldest) = self.order.pop_front()
            {
                self.of.remove(&oldest);
            }
            self.order.push_back(run);
        }
        self.of.entry(run).or_default()
    }

    pub(super) fn get(&self, run: RunId) -> Option<&T> {
        self.of.get(&run)
    }

    /// All values, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RunId, &T)> {
        self.order.iter().filter_map(|run| Some((*run, self.of.get(run)?)))
    }
}
