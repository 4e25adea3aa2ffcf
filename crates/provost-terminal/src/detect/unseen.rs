//! Work that the screen doesn't show: a composer that looks ready is no end of a turn while a tool of the turn runs,
//! a request has no answer, or the program isn't at its composer at all.

use std::time::Duration;

use provost_event::{EvidenceSource, TerminalEvidence};

use super::Frame;
use super::claim::ReportedActivity;
use super::finding::{Finding, Kind};
use super::read::FrameReader;
use crate::KernelSample;

/// How much earlier than the return a tool's start may appear: the kernel counts in ticks.
const TICKS: Duration = Duration::from_millis(50);

impl FrameReader<'_> {
    /// What the kernel shows of an agent's work on its prompt.
    pub(super) fn works_unseen(&self, frame: &Frame) -> Option<Finding> {
        // With the prompt still in its composer it does something else.
        let has_taken = self.turn.submitted && !self.holds_prompt(frame);
        if !has_taken {
            return None;
        }
        let (_, sample) = self.kernel?;
        // Also of a program that reports to be idle: its own background terminals are work of the turn.
        if self.runs_tool(sample) {
            return Some(works("a tool that it started runs"));
        }
        let is_said = self.claim_of(ReportedActivity::Idle).is_some();
        (!is_said && sample.awaits_answer == Some(true)).then(|| works("its request has no answer yet"))
    }

    /// Whether a tool runs that was started after the prompt was given.
    fn runs_tool(&self, sample: KernelSample) -> bool {
        sample.tool_started.is_some_and(|started| started + TICKS >= self.turn.submitted_at)
    }

    /// An agent in line mode that was given a prompt: its composer reads single keys, so it isn't there.
    pub(super) fn works_away_from_composer(&self) -> Option<Finding> {
        self.turn.submitted.then(|| works("line mode, nothing is read"))
    }
}

fn works(what: &str) -> Finding {
    let evidence = vec![TerminalEvidence { source: EvidenceSource::Kernel, what: what.to_owned() }];
    Finding { evidence, confidence: 80, ..Finding::plain(Kind::Working, what.to_owned()) }
}
