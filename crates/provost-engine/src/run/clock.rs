//! Time that is worked: it counts while an agent works, and may be limited. It is the run's elapsed time, which no process's
//! end and no setting of the wall clock changes.

use provost_event::{Dimension, Elapsed, Exhausted, TimeLeft};
use serde::{Deserialize, Serialize};

/// This part of a limit is kept for last words, and no more than so many milliseconds.
const LAST_WORDS_DIVISOR: u64 = 10;
const LAST_WORDS_MS_MAX: u64 = 60_000;

/// The time that a run or an agent was worked on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorkClock {
    /// Milliseconds that may be worked; unlimited if absent.
    pub(super) limit_ms: Option<u64>,
    /// Milliseconds worked before `since`.
    before_ms: u64,
    /// Milliseconds worked before the agent was last asked: its limits count from there.
    #[serde(default)]
    asked_at_ms: u64,
    /// Since when it runs; absent while nobody works.
    since: Option<Elapsed>,
    /// Those who work have been told that time is over; what is left of it is for their last words.
    pub(super) winds_down: bool,
}

impl WorkClock {
    pub(super) fn limited(limit_ms: Option<u64>) -> Self {
        Self { limit_ms, ..Self::default() }
    }

    /// Work begins or goes on; with a limit reached before, it winds down anew.
    pub(super) fn start(&mut self, at: Elapsed) {
        self.since = Some(at);
        self.winds_down = false;
    }

    /// Work stops.
    pub(super) fn stop(&mut self, at: Elapsed) {
        self.before_ms = self.used_ms(at);
        self.since = None;
    }

    /// Work goes on after a wait that doesn't count.
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

    /// The agent is asked again, while it doesn't work.
    pub(super) const fn asked_again(&mut self) {
        self.asked_at_ms = self.before_ms;
    }

    /// Milliseconds worked until `now` since the agent was last asked.
    pub(super) const fn used_since_asked_ms(&self, now: Elapsed) -> u64 {
        self.used_ms(now).saturating_sub(self.asked_at_ms)
    }

    /// When so much will have been worked since the agent was last asked, if nothing interrupts; absent while it doesn't work.
    pub(super) fn when(&self, worked_ms: u64) -> Option<Elapsed> {
        let worked_ms = worked_ms.saturating_add(self.asked_at_ms);
        Some(self.since?.plus_ms(worked_ms.saturating_sub(self.before_ms)))
    }

    /// When something is to be done about the limit: those who work are told, or all of it is used up.
    pub(super) fn due(&self) -> Option<Elapsed> {
        let limit_ms = self.limit_ms?;
        let end = self.when(limit_ms)?;
        if self.winds_down {
            return Some(end);
        }
        let kept_ms = (limit_ms / LAST_WORDS_DIVISOR).min(LAST_WORDS_MS_MAX);
        Some(Elapsed(end.0.saturating_sub(kept_ms)).max(self.since?))
    }

    /// What is left of the limit, if there is one and it runs.
    pub(super) fn left(&self, now: Elapsed) -> Option<TimeLeft> {
        let end = self.when(self.limit_ms?)?;
        Some(TimeLeft { work_ms: self.due()?.since_ms(now), limit_ms: end.since_ms(now) })
    }

    /// What is used of the limit, if there is one.
    pub(super) fn used(&self, now: Elapsed) -> Option<Exhausted> {
        let limit = self.limit_ms?;
        Some(Exhausted::new(Dimension::WallTime, self.used_since_asked_ms(now), limit))
    }

    /// The limit, once all of it is used up.
    pub(super) fn over(&self, now: Elapsed) -> Option<Exhausted> {
        self.used(now).filter(|exhausted| self.winds_down && exhausted.used >= exhausted.limit)
    }
}
