//! Playing recordings: what to show, and how long to wait before it. The caller does the waiting.

use std::io::BufRead;
use std::time::Duration;

use super::read::{CastError, CastReader, Happened};

/// The options of playing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayOptions {
    /// The speed factor; 1 if it isn't a number above 0.
    pub speed: f64,
    /// The longest wait in the recording's time, before the speed applies; `None`: unlimited.
    pub idle_max: Option<Duration>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayStep {
    /// The wait after the step before.
    pub delay: Duration,
    /// What to show.
    pub what: Happened,
}

/// The steps of a recording. Input isn't among them: it shows in the output.
pub struct Player<R> {
    reader: CastReader<R>,
    options: PlayOptions,
    shown_at: Duration,
}

impl<R: BufRead> Player<R> {
    /// Plays the rest of a recording; the first wait is from its start.
    #[must_use]
    pub const fn new(reader: CastReader<R>, options: PlayOptions) -> Self {
        Self { reader, options, shown_at: Duration::ZERO }
    }

    /// The reader, to ask whether the recording was cut off.
    #[must_use]
    pub const fn reader(&self) -> &CastReader<R> {
        &self.reader
    }

    fn delay(&self, waited: Duration) -> Duration {
        let waited = self.options.idle_max.map_or(waited, |max| waited.min(max));
        let speed = if self.options.speed > 0.0 { self.options.speed } else { 1.0 };
        Duration::try_from_secs_f64(waited.as_secs_f64() / speed).unwrap_or(Duration::MAX)
    }
}

impl<R: BufRead> Iterator for Player<R> {
    type Item = Result<PlayStep, CastError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let event = match self.reader.next()? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            if matches!(event.what, Happened::Input(_)) {
                continue;
            }
            let delay = self.delay(event.at.saturating_sub(self.shown_at));
            self.shown_at = self.shown_at.max(event.at);
            return Some(Ok(PlayStep { delay, what: event.what }));
        }
    }
}
