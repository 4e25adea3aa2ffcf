//! The detector: what the program at a terminal does, and what it asks.

use std::sync::Arc;
use std::time::Duration;

use provost_event::{Exit, TerminalNoted, TerminalState, WindowSize};

use crate::{KernelSample, Profile, Screen};

/// Something that was noticed, and when, since the program's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// When.
    pub at: Duration,
    /// What.
    pub noted: TerminalNoted,
}

/// Looks along at one program's terminal. All times are since the program's start and never go back.
pub struct Detector {
    screen: Screen,
    state: TerminalState,
    found: Vec<Detected>,
    profile: Arc<Profile>,
}

impl Detector {
    /// For a program that has just been started.
    #[must_use]
    pub fn new(profile: Arc<Profile>, size: WindowSize) -> Self {
        Self { screen: Screen::new(size), state: TerminalState::Starting, found: Vec::new(), profile }
    }

    /// The program wrote this.
    pub fn output(&mut self, at: Duration, bytes: &[u8]) {
        let _ = at;
        self.screen.feed(bytes);
    }

    /// Somebody typed this (never the answers to queries).
    pub fn input(&mut self, at: Duration, bytes: &[u8]) {
        let _ = (at, bytes);
    }

    /// The kernel was looked at.
    pub fn kernel(&mut self, at: Duration, sample: KernelSample) {
        let _ = (at, sample);
    }

    /// The window has another size.
    pub fn resize(&mut self, at: Duration, size: WindowSize) {
        let _ = at;
        self.screen.resize(size);
    }

    /// The program has ended.
    pub fn exited(&mut self, at: Duration, exit: Exit) {
        let _ = (at, exit);
    }

    /// Time has passed.
    pub fn tick(&mut self, at: Duration) {
        let _ = at;
    }

    /// When [`tick`](Self::tick) is worth calling if nothing else happens before; `None`: not at all.
    #[must_use]
    pub const fn next_tick(&self) -> Option<Duration> {
        None
    }

    /// Whether and by when another [`kernel`](Self::kernel) sample would help; `None`: it would tell nothing new.
    #[must_use]
    pub const fn next_sample(&self) -> Option<Duration> {
        None
    }

    /// What was noticed since the last call, in order.
    pub fn take(&mut self) -> Vec<Detected> {
        std::mem::take(&mut self.found)
    }

    /// What the program does.
    #[must_use]
    pub const fn state(&self) -> TerminalState {
        self.state
    }

    /// The screen.
    #[must_use]
    pub const fn screen(&self) -> &Screen {
        &self.screen
    }

    /// The screen, to take replies from it.
    pub const fn screen_mut(&mut self) -> &mut Screen {
        &mut self.screen
    }

    /// The profile it goes by.
    #[must_use]
    pub const fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }
}
