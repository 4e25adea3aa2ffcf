//! The detector as the reader of a terminal's screen.

use std::sync::Arc;
use std::time::Duration;

use provost_event::{Exit, WindowSize};
use provost_process::{NewScreenReader, ScreenReader, TerminalView};

use crate::{Detected, Detector, KernelSample, Profile};

impl Detector {
    /// Makes a terminal read its screen with a detector of this profile.
    #[must_use]
    pub fn of_terminal(profile: Arc<Profile>) -> NewScreenReader {
        Box::new(|size| Box::new(Self::new(profile, size).with_history()))
    }
}

impl ScreenReader for Detector {
    fn output(&mut self, at: Duration, bytes: &[u8]) -> Vec<u8> {
        self.output(at, bytes);
        self.screen_mut().take_replies()
    }

    fn input(&mut self, at: Duration, bytes: &[u8]) {
        self.input(at, bytes);
    }

    fn resize(&mut self, at: Duration, size: WindowSize) {
        self.resize(at, size);
    }

    fn kernel(&mut self, at: Duration, sample: KernelSample) {
        self.kernel(at, sample);
    }

    fn tick(&mut self, at: Duration) {
        self.tick(at);
    }

    fn exited(&mut self, at: Duration, exit: Exit) {
        self.exited(at, exit);
    }

    fn next_tick(&self) -> Option<Duration> {
        self.next_tick()
    }

    fn next_sample(&self) -> Option<Duration> {
        self.next_sample()
    }

    fn exposes_secret(&self) -> bool {
        self.exposes_secret()
    }

    fn wants_connections(&self) -> bool {
        self.has_open_turn()
    }

    fn take(&mut self) -> Vec<Detected> {
        self.take()
    }

    fn asks(&self) -> bool {
        self.ask().is_some()
    }

    fn view(&self, size: WindowSize, at: Duration) -> TerminalView {
        let screen = self.screen();
        TerminalView {
            rows: screen.rows(),
            cursor: screen.cursor(),
            modes: screen.modes(),
            title: screen.title().to_owned(),
            state: self.state(),
            ask: self.ask().cloned(),
            takes_text: self.takes_text(),
            exposes_secret: self.exposes_secret(),
            reads_lines: false,
            paints: screen.paints_frames(),
            size,
            fingerprint: screen.fingerprint(),
            at,
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        self.screen().snapshot()
    }

    fn scrollback(&self) -> Vec<u8> {
        self.screen().scrollback()
    }
}
