//! `MemoryTrace`: the newest events of a trace, for tests and for programs that display them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_event::RunId;

use crate::{TraceError, TraceEvent, TraceSink};

/// Default maximum of kept events.
const EVENTS_MAX: usize = 10_000;

/// Keeps the newest trace events of all its runs. Clones share them, and they can be read at any time.
#[derive(Debug, Clone)]
pub struct MemoryTrace {
    events: Arc<Mutex<VecDeque<TraceEvent>>>,
    events_max: usize,
}

impl Default for MemoryTrace {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryTrace {
    /// Keeps 10,000 events.
    #[must_use]
    pub fn new() -> Self {
        Self { events: Arc::default(), events_max: EVENTS_MAX }
    }

    /// Sets the maximum of kept events; 0 counts as 1.
    #[must_use]
    pub fn events_max(mut self, events_max: usize) -> Self {
        self.events_max = events_max.max(1);
        self
    }

    /// Creates the sink of a run, for [`Observers::with_trace`](crate::Observers::with_trace).
    pub fn sink(&self) -> impl Fn(RunId) -> Box<dyn TraceSink> + Send + Sync + use<> {
        let trace = self.clone();
        move |_| Box::new(trace.clone())
    }

    /// The kept events, the oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<TraceEvent> {
        self.kept().iter().cloned().collect()
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<TraceEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceSink for MemoryTrace {
    fn event(&mut self, event: &TraceEvent) -> Result<(), TraceError> {
        let mut kept = self.kept();
        while kept.len() >= self.events_max {
            kept.pop_front();
        }
        kept.push_back(event.clone());
        Ok(())
    }
}
