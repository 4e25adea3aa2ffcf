//! Turns a finding into an event: once, and only if it is new.

use std::time::Duration;

use provost_event::{
    CompletionScope, EvidenceSource, TerminalAsk, TerminalEvent, TerminalEvidence, TerminalState,
};

use super::failure::Failure;
use super::finding::{Candidate, Finding, Kind, ReportedState, Takes};
use super::read::Read;
use super::{Detector, Frame, evidence};
use crate::kernel::KernelReading;
use crate::profile::ProgramKind;

/// An agent whose screen matches no rule for this long is in an unknown state.
const UNKNOWN_AFTER: Duration = Duration::from_millis(1500);
/// How long a program may take to repaint its screen after a resize.
const RESIZE_TAKES: Duration = Duration::from_millis(1500);
/// The failure of a program that is at its composer again without a call of its model.
const CALLED_NO_MODEL: &str = "it has called no model since it was told that";

impl Detector {
    pub(super) fn weigh(&mut self, at: Duration, is_quiet: bool, frame: &Frame) {
        if self.is_being_typed(frame) {
            return;
        }
        match self.reader().read(at, frame) {
            Read::Found(finding) => {
                let gist = if finding.takes == Takes::Lines && frame.is_alternate { frame.rest() } else { 0 };
                self.try_on(at, is_quiet, Finding { gist, ..*finding }, frame);
            }
            Read::Nothing => self.found_nothing(at),
            // A sample was requested when something happened; it is due by now.
            Read::Later => self.clock.call(at + super::SAMPLE_PAUSE),
        }
    }

    /// Waits until the finding has lasted long enough.
    fn try_on(&mut self, at: Duration, is_quiet: bool, finding: Finding, frame: &Frame) {
        if let Some(answered) = &mut self.answered
            && answered.key != finding.key
        {
            answered.has_vanished = true;
        }
        let is_repainted = self.candidate.as_ref().is_none_or(|candidate| candidate.key != finding.key);
        if finding.kind == Kind::Idle && is_repainted {
            self.turn.growths += 1;
        }
        let since = match &self.candidate {
            Some(candidate) if candidate.key == finding.key => candidate.since,
            _ if is_quiet && finding.is_weak => self.clock.active().max(self.reading.0).min(at),
            _ if is_quiet => self.clock.active().min(at),
            _ => at,
        };
        self.candidate = Some(Candidate { key: finding.key.clone(), since });
        let until = (since + self.reader().must_stand(&finding)).max(self.reader().not_before(&finding));
        if at < until {
            return self.clock.call(until);
        }
        self.adopt(at, finding, frame);
    }

    fn adopt(&mut self, at: Duration, finding: Finding, frame: &Frame) {
        match finding.kind {
            Kind::Working => self.works(at, &finding),
            _ if self.stands(at, &finding) => {}
            Kind::Idle => self.is_ready(at, finding, frame),
            _ => self.asks(at, finding, frame),
        }
    }

    /// Whether letters follow the prompt's text: the prompt is the same, whatever the line looks like now.
    fn is_being_typed(&self, frame: &Frame) -> bool {
        let Some(standing) = &self.standing else { return false };
        let reads = self.kernel.is_none_or(|(_, sample)| KernelReading::of(sample) != KernelReading::Nothing);
        let is_longer =
            standing.words.len() < frame.line.len() && frame.line.starts_with(standing.words.as_str());
        standing.is_typed_at
            && standing.takes == Takes::Lines
            && standing.kind != Kind::Idle
            && reads
            && is_longer
    }

    /// Whether it was reported already: the same finding, a kernel-only finding while a better one holds, or the
    /// same finding followed by letters.
    fn stands(&mut self, at: Duration, finding: &Finding) -> bool {
        let letters = self.answered.as_ref().and_then(|answered| answered.letters.as_deref());
        let goes_on = |words: &str| {
            !words.is_empty() && finding.words.len() > words.len() && finding.words.starts_with(words)
        };
        if letters.is_some_and(goes_on) {
            self.standing = Some(ReportedState::of(finding, None));
            return true;
        }
        let is_resized = self.clock.resized.is_some_and(|resized| at < resized + RESIZE_TAKES);
        let Some(standing) = &mut self.standing else { return false };
        if is_resized && standing.is_like(finding) {
            standing.key.clone_from(&finding.key);
            return true;
        }
        if finding.kind == Kind::Idle {
            return standing.kind == Kind::Idle;
        }
        // A key that changed the rest of the screen was an answer, though the prompt looks the same (a pager's
        // next page).
        let is_turned = standing.is_typed_at && standing.gist != finding.gist;
        let is_echo = standing.is_typed_at && finding.takes == Takes::Lines;
        let is_message = !standing.is_typed_at && finding.words.is_empty();
        let is_less = finding.is_weak && finding.kind == Kind::Waiting && (is_echo || is_message);
        (standing.key == finding.key && !is_turned) || is_less
    }

    fn works(&mut self, at: Duration, finding: &Finding) {
        self.turn.worked = true;
        let by_kernel = |evidence: &TerminalEvidence| evidence.source == EvidenceSource::Kernel;
        self.turn.has_shown_work |= !finding.evidence.iter().all(by_kernel);
        self.standing = None;
        let still = self.clock.output.unwrap_or_default() + Duration::from_millis(self.profile.stalled_ms);
        if at >= still {
            let mut why = evidence(EvidenceSource::Quiet, "nothing was painted for long");
            why.extend(finding.evidence.iter().cloned());
            return self.set_state(at, TerminalState::Stalled, 60, why);
        }
        self.clock.call(still);
        self.set_state(at, TerminalState::Working, finding.confidence, finding.evidence.clone());
    }

    fn is_ready(&mut self, at: Duration, finding: Finding, frame: &Frame) {
        let evidence = finding.evidence.clone();
        let did_nothing = self.reader().has_called_no_model();
        self.standing = Some(ReportedState::of(&finding, None));
        self.set_state(at, TerminalState::Idle, finding.confidence, evidence.clone());
        self.turn.typed.clear();
        if std::mem::take(&mut self.turn.submitted) {
            let mut has_failed = self.report_failure(at, frame) == Failure::OfProgram;
            if did_nothing && !has_failed {
                let why = super::evidence(EvidenceSource::Kernel, "no model was called");
                self.note(at, TerminalEvent::Error { line: CALLED_NO_MODEL.to_owned() }, 75, why);
                has_failed = true;
            }
            let succeeded = (has_failed || self.turn.has_failed).then_some(false);
            self.turn.has_failed = false;
            let event = TerminalEvent::Completion { scope: CompletionScope::Turn, succeeded };
            self.note(at, event, finding.confidence, evidence.clone());
        }
        self.note(at, TerminalEvent::Idle, finding.confidence, evidence);
    }

    fn asks(&mut self, at: Duration, mut finding: Finding, frame: &Frame) {
        let ask = (finding.kind == Kind::Approval).then(|| self.ask_of(&finding));
        self.standing = Some(ReportedState::of(&finding, ask.clone()));
        if self.reader().exposes_secret(&finding, frame) {
            let shown = "echo is on: the terminal shows what is typed";
            finding.evidence.extend(evidence(EvidenceSource::Kernel, shown));
            if let Some(standing) = &mut self.standing {
                (standing.takes_text, standing.exposes_secret) = (false, true);
            }
        }
        self.report_failure(at, frame);
        self.set_state(at, finding.kind.state(), finding.confidence, finding.evidence.clone());
        let prompt = finding.words.clone();
        let event = match (ask, finding.kind) {
            (Some(ask), _) => TerminalEvent::ApprovalRequest(ask),
            (None, Kind::Password) => TerminalEvent::PasswordPrompt { prompt },
            _ => TerminalEvent::WaitingForInput { prompt },
        };
        self.note(at, event, finding.confidence, finding.evidence);
    }

    fn ask_of(&mut self, finding: &Finding) -> TerminalAsk {
        self.serial += 1;
        let hash = blake3::hash(format!("{}\n{}", self.serial, finding.key).as_bytes());
        TerminalAsk {
            fingerprint: hash.to_hex().chars().take(16).collect(),
            kind: finding.ask,
            question: finding.words.clone(),
            subject: finding.subject.clone(),
            options: finding.options.clone(),
            default: finding.default,
        }
    }

    fn found_nothing(&mut self, at: Duration) {
        self.candidate = None;
        if let Some(answered) = &mut self.answered {
            answered.has_vanished = true;
        }
        if self.kernel_says_busy() {
            self.standing = None;
            if self.clock.output.is_some() {
                let why = evidence(EvidenceSource::Kernel, "nothing reads the terminal");
                self.set_state(at, TerminalState::Working, 70, why);
            }
            return;
        }
        if self.standing.take().is_none() && self.state != TerminalState::Working {
            return;
        }
        // The program is still taking the submitted prompt; a loaded machine shows that late.
        let is_taken = self.turn.submitted && !self.turn.worked;
        let taken =
            self.answered.as_ref().filter(|_| is_taken).map_or(Duration::ZERO, |answered| {
                answered.at + Duration::from_millis(self.profile.submit_ms)
            });
        let until = (self.clock.active() + UNKNOWN_AFTER).max(taken);
        if at < until {
            return self.clock.call(until);
        }
        let why = evidence(EvidenceSource::Screen, "no rule fits");
        self.set_state(at, TerminalState::Unknown, 50, why);
    }

    fn kernel_says_busy(&self) -> bool {
        let is_plain = self.profile.kind == ProgramKind::Plain;
        is_plain && self.kernel.is_some_and(|(_, sample)| KernelReading::of(sample) == KernelReading::Nothing)
    }
}
