//! The two clocks of a stage: its own, which only advances, and the wall clock, which may be set.

use provost_engine::{Effect, Now};
use provost_event::{ActorKey, Elapsed, Entry, Record, Seq, Timestamp};

/// When stages begin.
pub(crate) const BEGIN: Timestamp = Timestamp(100_000_000);

/// How the wall clock, and the run's elapsed time, differ from a stage's own time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clocks {
    /// Milliseconds by which the wall clock was set.
    pub(crate) wall_set_ms: i64,
    /// Milliseconds in which no process held the run, or the machine was suspended.
    pub(crate) away_ms: u64,
}

impl Clocks {
    pub(crate) fn wall(self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.checked_add_signed(self.wall_set_ms).expect("after 1970"))
    }

    pub(crate) fn elapsed(self, now: Timestamp) -> Elapsed {
        Elapsed(now.since_ms(BEGIN) - self.away_ms)
    }

    pub(crate) fn now(self, now: Timestamp, entropy: u64) -> Now {
        Now { at: self.wall(now), elapsed: self.elapsed(now), entropy }
    }

    pub(crate) fn record(self, now: Timestamp, actor: ActorKey, seq: Seq, entry: Entry) -> Record {
        Record { actor, seq, at: self.wall(now), elapsed: self.elapsed(now), entry }
    }

    /// The effect with a timer's end by the stage's own time, as the process that set the timer has it.
    pub(crate) fn begun(self, now: Timestamp, effect: Effect) -> Effect {
        let Effect::Timer { due, remaining_ms } = effect else { return effect };
        assert_eq!(
            due,
            self.wall(now).plus_ms(remaining_ms),
            "both clocks say the same of a wait that begins"
        );
        Effect::Timer { due: now.plus_ms(remaining_ms), remaining_ms }
    }
}
