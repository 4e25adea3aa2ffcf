//! Runs the detector over a recording as a supervisor would have run it at the time.

use std::sync::Arc;
use std::time::Duration;

use super::{Recording, RecordingStep};
use crate::{Detected, Detector, KernelSample, Profile, Reports};

/// How a recording is replayed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplayOptions {
    /// Whether the detector uses the program's own reports.
    pub reports: Reports,
}

/// The detector's events for a recording.
#[must_use]
pub fn replay(recording: &Recording, profile: Arc<Profile>, options: ReplayOptions) -> Vec<Detected> {
    let detector = Detector::new(profile, recording.size).with_reports(options.reports);
    let mut player = Player { detector, samples: &recording.samples, known: KernelSample::default() };
    let (ended, exit) = recording.exit;
    for (at, step) in recording.steps.iter().filter(|(at, _)| *at <= ended) {
        player.pass(*at);
        match step {
            RecordingStep::Output(bytes) => player.detector.output(*at, bytes),
            RecordingStep::Input(bytes) => player.detector.input(*at, bytes),
            RecordingStep::Resize(size) => player.detector.resize(*at, *size),
        }
    }
    player.pass(ended);
    player.detector.exited(ended, exit);
    player.detector.take()
}

struct Player<'a> {
    detector: Detector,
    /// The samples that are left.
    samples: &'a [(Duration, KernelSample)],
    known: KernelSample,
}

impl Player<'_> {
    /// Advances the time to the next step: ticks, changes in the recording's samples, and the samples that the
    /// detector requests, with the data known at that time.
    fn pass(&mut self, until: Duration) {
        loop {
            let tick = self.detector.next_tick();
            let wish = self.detector.next_sample();
            let change = self.samples.first().map(|(at, _)| *at);
            let Some(at) = [tick, wish, change].into_iter().flatten().min().filter(|at| *at <= until) else {
                return;
            };
            if change == Some(at) {
                if let Some(((_, sample), rest)) = self.samples.split_first() {
                    (self.known, self.samples) = (*sample, rest);
                }
                self.detector.kernel(at, self.known);
            } else if wish == Some(at) {
                self.detector.kernel(at, self.known);
            } else {
                self.detector.tick(at);
            }
        }
    }
}
