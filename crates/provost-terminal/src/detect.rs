//! The detector: the state of the program at a terminal, and its questions.
//!
//! The inputs are bytes, own input, kernel samples and times. Only whole frames are interpreted, once the program
//! hasn't painted for a moment (`settle_ms` of the profile), or at intervals while it never stops painting.
//!
//! | file | what lives there |
//! |---|---|
//! | `frame.rs` | the screen, prepared for rules |
//! | `typed.rs` | typed input: an answer, or letters of one |
//! | `claim.rs` | what the program reports of itself |
//! | `read.rs` | derives a finding from a frame, a sample and a claim: the order of precedence |
//! | `lasting.rs` | how long a finding has to last |
//! | `unseen.rs` | work that the screen doesn't show |
//! | `finding.rs` | the result of a frame, and the state kept from earlier frames |
//! | `overstrike.rs` | rows whose text was written over |
//! | `paint.rs` | whether a line may have been painted over |
//! | `failure.rs` | failures that have become visible |
//! | `weigh.rs` | turns a finding into an event, once and only if it is new |

mod claim;
mod failure;
mod finding;
mod frame;
mod lasting;
mod overstrike;
mod paint;
mod read;
mod typed;
mod unseen;
mod weigh;

use std::sync::Arc;
use std::time::Duration;

use provost_event::{
    CompletionScope, EvidenceSource, Exit, TerminalAsk, TerminalEvent, TerminalEvidence, TerminalNoted,
    TerminalState, WindowSize,
};

use crate::kernel::KernelReading;
use crate::{Detected, KernelSample, Profile, Screen, Signal};
use claim::ActivityReport;
use failure::Failure;
use finding::{Answered, Candidate, ReportedState, Turn};
pub(crate) use frame::Frame;
use overstrike::Overstrike;
use paint::Paint;

/// An unfinished frame counts as finished after this long.
const PAINTING_MAX: Duration = Duration::from_millis(250);
/// The longest pause between two samples of the kernel.
const SAMPLE_PAUSE_MAX: Duration = Duration::from_secs(5);
/// The first pause.
const SAMPLE_PAUSE: Duration = Duration::from_millis(100);

/// Whether the detector uses what programs report of themselves (status, titles, notifications).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reports {
    /// They are used.
    #[default]
    Heard,
    /// Only the screen and the kernel are used.
    Ignored,
}

/// Observes one program's terminal. All times are since the program's start and never decrease.
pub struct Detector {
    screen: Screen,
    state: TerminalState,
    found: Vec<Detected>,
    profile: Arc<Profile>,
    clock: Clock,
    kernel: Option<(Duration, KernelSample)>,
    claim: Option<ActivityReport>,
    candidate: Option<Candidate>,
    standing: Option<ReportedState>,
    answered: Option<Answered>,
    turn: Turn,
    reports: Reports,
    /// The last kernel reading, and since when it has been the same.
    reading: (Duration, Option<KernelReading>),
    /// Whether it counts as working only because of typed input.
    is_assumed: bool,
    /// What was written since the last answer.
    paint: Paint,
    overstrike: Overstrike,
    /// The number of reported prompts; part of a fingerprint, so that a repeated question has another one.
    serial: u64,
}

#[derive(Default)]
struct Clock {
    output: Option<Duration>,
    resized: Option<Duration>,
    input: Option<Duration>,
    /// The first output since the last checked frame.
    dirty: Option<Duration>,
    /// Since when the program has been in a synchronized update.
    synchronized: Option<Duration>,
    due: Option<Duration>,
    sample: Option<Duration>,
    sample_pause: Duration,
}

impl Clock {
    /// The time of the last output or input.
    fn active(&self) -> Duration {
        self.output.max(self.input).unwrap_or_default()
    }

    /// Has the kernel sampled at `at`, and from then on at growing intervals.
    fn sample_soon(&mut self, at: Duration) {
        self.sample = Some(at);
        self.sample_pause = SAMPLE_PAUSE;
    }

    fn call(&mut self, at: Duration) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Detector {
    /// A detector of a program that has just been started.
    #[must_use]
    pub fn new(profile: Arc<Profile>, size: WindowSize) -> Self {
        let sample = Some(Duration::from_millis(profile.settle_ms));
        Self {
            screen: Screen::new(size),
            state: TerminalState::Starting,
            found: Vec::new(),
            profile,
            clock: Clock { sample, sample_pause: SAMPLE_PAUSE, ..Clock::default() },
            kernel: None,
            claim: None,
            candidate: None,
            standing: None,
            answered: None,
            turn: Turn::default(),
            reports: Reports::Heard,
            reading: (Duration::ZERO, None),
            is_assumed: false,
            paint: Paint::default(),
            overstrike: Overstrike::default(),
            serial: 0,
        }
    }

    /// The same, with or without the program's own reports.
    #[must_use]
    pub fn with_reports(self, reports: Reports) -> Self {
        Self { reports, ..self }
    }

    /// The same with a screen that keeps what scrolls off: for a detector that has seen no output yet.
    #[must_use]
    pub fn with_history(self) -> Self {
        Self { screen: Screen::with_history(self.screen.size()), ..self }
    }

    /// Handles output of the program.
    pub fn output(&mut self, at: Duration, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // The previous screen is checked before it is painted over.
        self.tick(at);
        self.paint.see(bytes);
        self.overstrike.feed(&mut self.screen, bytes);
        for signal in self.screen.take_signals() {
            self.hear(at, signal);
        }
        self.clock.output = Some(at);
        let dirty = *self.clock.dirty.get_or_insert(at);
        self.clock.synchronized =
            self.screen.modes().synchronized.then(|| self.clock.synchronized.unwrap_or(at));
        self.clock.due = Some((at + self.settle()).min(dirty + PAINTING_MAX));
        self.clock.sample_soon(at + self.settle());
    }

    /// Handles typed input (never replies to queries).
    pub fn input(&mut self, at: Duration, bytes: &[u8]) {
        self.tick(at);
        self.clock.input = Some(at);
        self.typed(at, bytes);
        self.clock.call(at + self.settle());
        self.clock.sample_soon(at + self.settle());
    }

    /// Handles a kernel sample.
    pub fn kernel(&mut self, at: Duration, sample: KernelSample) {
        self.tick(at);
        let is_new = self.kernel.is_none_or(|(_, last)| last != sample);
        self.clock.sample_pause =
            if is_new { SAMPLE_PAUSE } else { (self.clock.sample_pause * 2).min(SAMPLE_PAUSE_MAX) };
        self.clock.sample = Some(at + self.clock.sample_pause);
        self.kernel = Some((at, sample));
        if self.reading.1 != Some(KernelReading::of(sample)) {
            self.reading = (at, Some(KernelReading::of(sample)));
        }
        if self.clock.dirty.is_none() {
            self.look(at);
        }
    }

    /// Handles a new window size.
    pub fn resize(&mut self, at: Duration, size: WindowSize) {
        self.tick(at);
        self.screen.resize(size);
        self.clock.resized = Some(at);
        self.clock.dirty.get_or_insert(at);
        self.clock.call(at + PAINTING_MAX);
    }

    /// Handles the program's end: reports its completion and its end.
    pub fn exited(&mut self, at: Duration, exit: Exit) {
        self.tick(at);
        let has_failed = self.report_failure_at_end(at, exit) == Failure::OfProgram || self.turn.has_failed;
        let why = || evidence(EvidenceSource::Exit, exit.to_string());
        self.set_state(at, TerminalState::Exited, 100, why());
        let succeeded = Some(exit.is_success() && !has_failed);
        self.note(at, TerminalEvent::Completion { scope: CompletionScope::Process, succeeded }, 100, why());
        self.note(at, TerminalEvent::Exited { exit }, 100, why());
        self.clock = Clock::default();
    }

    /// Handles the passing of time.
    pub fn tick(&mut self, at: Duration) {
        if self.clock.due.is_some_and(|due| due <= at) {
            self.look(at);
        }
    }

    /// When the next [`tick`](Self::tick) is due if nothing else happens before; `None`: never.
    #[must_use]
    pub const fn next_tick(&self) -> Option<Duration> {
        self.clock.due
    }

    /// When another [`kernel`](Self::kernel) sample would help; `None`: it would add nothing. Soon after output or
    /// input, then at growing intervals, at most every five seconds.
    #[must_use]
    pub const fn next_sample(&self) -> Option<Duration> {
        self.clock.sample
    }

    /// Takes the events since the last call, in order.
    pub fn take(&mut self) -> Vec<Detected> {
        std::mem::take(&mut self.found)
    }

    /// The program's state.
    #[must_use]
    pub const fn state(&self) -> TerminalState {
        self.state
    }

    /// The open question for consent; `None` once it is gone or an answer was typed.
    #[must_use]
    pub fn ask(&self) -> Option<&TerminalAsk> {
        self.standing.as_ref().and_then(|standing| standing.ask.as_ref())
    }

    /// Whether what the program waits for is text, as far as there is evidence.
    #[must_use]
    pub fn takes_text(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.takes_text)
    }

    /// Whether a secret is asked for that the terminal shows as it is typed.
    #[must_use]
    pub fn exposes_secret(&self) -> bool {
        self.standing.as_ref().is_some_and(|standing| standing.exposes_secret)
    }

    /// Whether an agent works on a prompt that it was given.
    pub(crate) const fn has_open_turn(&self) -> bool {
        self.turn.submitted
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

    /// The detector's profile.
    #[must_use]
    pub const fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    fn settle(&self) -> Duration {
        Duration::from_millis(self.profile.settle_ms)
    }

    fn hear(&mut self, at: Duration, signal: Signal) {
        if self.reports == Reports::Ignored {
            return;
        }
        match signal {
            Signal::Status(fields) => self.claimed(at, &fields),
            Signal::Notification(text) => {
                let why = evidence(EvidenceSource::Signal, "notification");
                self.note(at, TerminalEvent::Notification { text }, 60, why);
            }
            Signal::Title(_) | Signal::Mark(..) | Signal::Progress(..) | Signal::Bell => {}
        }
    }

    /// Checks the frame, if it is complete, and weighs its finding.
    fn look(&mut self, at: Duration) {
        self.clock.due = None;
        if let Some(since) = self.clock.synchronized {
            let until = since + PAINTING_MAX;
            if at < until {
                return self.clock.call(until);
            }
        }
        let is_quiet = at >= self.clock.output.unwrap_or_default() + self.settle();
        self.clock.dirty = None;
        let mut frame = Frame::of(&self.screen);
        frame.fresh = self.search(&frame).fresh_row();
        frame.is_painted_over = self.paint.moves_back;
        frame.is_reordered = self.paint.reorders;
        frame.struck = self.overstrike.rows(&self.screen);
        self.weigh(at, is_quiet, &frame);
    }

    fn set_state(&mut self, at: Duration, state: TerminalState, confidence: u8, why: Vec<TerminalEvidence>) {
        let is_certain =
            self.is_assumed && why.first().is_some_and(|first| first.source != EvidenceSource::Input);
        if self.state != state || is_certain {
            self.state = state;
            self.is_assumed = false;
            self.note(at, TerminalEvent::State(state), confidence, why);
        }
    }

    fn note(&mut self, at: Duration, event: TerminalEvent, confidence: u8, evidence: Vec<TerminalEvidence>) {
        self.found.push(Detected { at, noted: TerminalNoted { event, confidence, evidence } });
    }
}

fn evidence(source: EvidenceSource, what: impl Into<String>) -> Vec<TerminalEvidence> {
    vec![TerminalEvidence { source, what: what.into() }]
}
