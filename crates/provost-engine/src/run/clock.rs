//! Worked time: it counts while an agent works, and may be limited. It is measured in the run's elapsed time,
//! which doesn't depend on the wall clock or on a single process.

use provost_event::{Dimension, Elapsed, Exhausted, TimeLeft};
use serde::{Deserialize, Serialize};

/// This fraction of a limit is kept for the final summary, up to the following number of milliseconds.
const FINAL_SUMMARY_DIVISOR: u64 = 10;
const FINAL_SUMMARY_MS_MAX: u64 = 60_000;

/// The time that a run or an agent was worked on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorkClock {
    /// The limit in milliseconds; absent if unlimited.
    pub(super) limit_ms: Option<u64>,
    /// Milliseconds worked before `since`.
    before_ms: u64,
    /// Milliseconds worked before the agent was last asked: its limits count from there.
    #[serde(default)]
    asked_at_ms: u64,
    /// When the present segment of work began; absent while there is none.
    since: Option<Elapsed>,
    /// The agents were notified that their working time is over; the rest is for their final summaries.
    pub(super) winds_down: bool,
}

impl WorkClock {
    pub(super) fn limited(limit_ms: Option<u64>) -> Self {
        Self { limit_ms, ..Self::default() }
    }

    /// Work begins or continues. If a limit was reached before, the final phase begins anew.
    pub(super) fn start(&mut self, at: Elapsed) {
        self.since = Some(at);
        self.winds_down = false;
    }

    /// Work stops.
    pub(super) fn stop(&mut self, at: Elapsed) {
        self.before_ms = self.used_ms(at);
        self.since = None;
    }

    /// Work continues after a wait that doesn't count.
    pub(super) const fn go_on(&mut self, at: Elapsed) {
        if self.since.is_none() {
            self.since = Some(at);
        }
    }

    /// Milliseconds worked until `now`.
    pub(super) const fn used_ms(&self, now: Elapsed) -> u64 {
        match self.since {
            Some(since) => self.before_ms.saturating_add(now.since_ms(since)),
            None => self.before_ms,
        }
    }

    /// The agent is asked again while it doesn't work.
    pub(super) const fn asked_again(&mut self) {
        self.asked_at_ms = self.before_ms;
    }

    /// Milliseconds worked until `now` since the agent was last asked.
    pub(super) const fn used_since_asked_ms(&self, now: Elapsed) -> u64 {
        self.used_ms(now).saturating_sub(self.asked_at_ms)
    }

    /// When this much will have been worked since the agent was last asked, without interruption; absent while it
    /// doesn't work.
    pub(super) fn when(&self, worked_ms: u64) -> Option<Elapsed> {
        let worked_ms = worked_ms.saturating_add(self.asked_at_ms);
        Some(self.since?.plus_ms(worked_ms.saturating_sub(self.before_ms)))
    }

    /// When the limit next requires an action: to notify the agents, or to stop them when it is used up.
    pub(super) fn due(&self) -> Option<Elapsed> {
        let limit_ms = self.limit_ms?;
        let end = self.when(limit_ms)?;
        if self.winds_down {
            return Some(end);
        }
        let kept_ms = (limit_ms / FINAL_SUMMARY_DIVISOR).min(FINAL_SUMMARY_MS_MAX);
        Some(Elapsed(end.0.saturating_sub(kept_ms)).max(self.since?))
    }

    /// The remaining time, if there is a limit and the clock runs.
    pub(super) fn left(&self, now: Elapsed) -> Option<TimeLeft> {
        let end = self.when(self.limit_ms?)?;
        Some(TimeLeft { work_ms: self.due()?.since_ms(now), limit_ms: end.since_ms(now) })
    }

    /// The use of the limit, if there is one.
    pub(super) fn used(&self, now: Elapsed) -> Option<Exhausted> {
        let limit = self.limit_ms?;
        Some(Exhausted::new(Dimension::WallTime, self.used_since_asked_ms(now), limit))
    }

    /// The limit, once it is used up.
    pub(super) fn over(&self, now: Elapsed) -> Option<Exhausted> {
        self.used(now).filter(|exhausted| self.winds_down && exhausted.used >= exhausted.limit)
    }
}
