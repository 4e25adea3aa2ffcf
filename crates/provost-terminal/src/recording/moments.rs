//! The moments of a recording that a person is asked about: those at which the screen stood still.

use std::time::Duration;

use super::{Recording, RecordingStep};
use crate::{KernelSample, Screen};

/// A screen that doesn't change for this long stands still.
const STILL: Duration = Duration::from_millis(500);
/// Output this soon after a key is its echo.
const ECHO: Duration = Duration::from_millis(300);
/// More bytes than this after a key, where keys are read one by one, are no echo.
const ECHO_BYTES_MAX: usize = 40;

/// A moment at which the screen stood still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When the screen was complete.
    pub begin: Duration,
    /// When the program went on, or was answered.
    pub end: Duration,
    /// The rows' texts.
    pub rows: Vec<String>,
    /// The row of the cursor, from 0.
    pub cursor_row: u16,
    /// The person has marked it.
    pub is_marked: bool,
}

impl Recording {
    /// The moments at which the screen stood still, and those that were marked, in order. Typing an answer doesn't end a
    /// moment; sending it does, and output that no key has caused.
    #[must_use]
    pub fn moments(&self, marks: &[Duration]) -> Vec<Moment> {
        let (ended, _) = self.exit;
        let mut finder = Finder { screen: Screen::new(self.size), marks, open: None, found: Vec::new() };
        let mut quiet_since: Option<Duration> = None;
        let mut key: Option<(Duration, usize)> = None;
        for (at, step) in &self.steps {
            let still = quiet_since
                .filter(|since| at.saturating_sub(*since) >= STILL || finder.has_mark(*since, *at));
            if let Some(since) = still {
                finder.begin(since);
            }
            match step {
                RecordingStep::Output(bytes) => {
                    let is_echo = key.as_mut().is_some_and(|(pressed, count)| {
                        *count += bytes.len();
                        let is_small =
                            self.sample_at(*pressed).canonical != Some(false) || *count <= ECHO_BYTES_MAX;
                        at.saturating_sub(*pressed) <= ECHO && is_small
                    });
                    if !is_echo {
                        finder.end(*at);
                    }
                    finder.screen.feed(bytes);
                    quiet_since = Some(*at);
                }
                RecordingStep::Input(bytes) => {
                    if bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
                        finder.end(*at);
                        quiet_since = None;
                    }
                    key = Some((*at, 0));
                }
                RecordingStep::Resize(size) => finder.screen.resize(*size),
            }
        }
        if let Some(since) = quiet_since.filter(|since| ended.saturating_sub(*since) >= STILL) {
            finder.begin(since);
        }
        finder.end(ended);
        finder.found
    }

    /// What was known of the kernel at a time.
    fn sample_at(&self, at: Duration) -> KernelSample {
        let known = self.samples.iter().take_while(|(taken, _)| *taken <= at).last();
        known.map(|(_, sample)| *sample).unwrap_or_default()
    }
}

struct Finder<'a> {
    screen: Screen,
    marks: &'a [Duration],
    open: Option<Moment>,
    found: Vec<Moment>,
}

impl Finder<'_> {
    fn has_mark(&self, from: Duration, to: Duration) -> bool {
        self.marks.iter().any(|mark| (from..=to).contains(mark))
    }

    /// The screen stands still since `begin`; nothing changes if it is within an open moment.
    fn begin(&mut self, begin: Duration) {
        if self.open.is_none() {
            let rows = self.screen.rows();
            let cursor_row = self.screen.cursor().row;
            self.open = Some(Moment { begin, end: begin, rows, cursor_row, is_marked: false });
        }
    }

    fn end(&mut self, end: Duration) {
        if let Some(moment) = self.open.take() {
            let is_marked = self.has_mark(moment.begin, end);
            self.found.push(Moment { end, is_marked, ..moment });
        }
    }
}
