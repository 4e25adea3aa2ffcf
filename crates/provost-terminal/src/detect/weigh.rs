//! Turns a finding into an event: once, and only if it is new.

use std::time::Duration;

use provost_event::{CompletionScope, EvidenceSource, TerminalAsk, TerminalEvent, TerminalState};

use super::claim::ReportedActivity;
use super::finding::{Candidate, Finding, Kind, ReportedState, Takes};
use super::read::Read;
use super::{Detector, Frame, evidence};
use crate::kernel::KernelReading;
use crate::profile::{ProgramKind, Region};

/// A question that stays on the screen after its answer counts as repeated only after this long: an agent takes a
/// while to remove it.
const ANSWERED_STAYS: Duration = Duration::from_millis(1200);
/// The same for prompts that take single keys, without output since: not every key is echoed.
const ANSWERED_SILENT: Duration = Duration::from_millis(400);
/// The same for all other prompts without output since: the program may not have read the answer yet.
const ANSWERED_UNSEEN: Duration = Duration::from_millis(2500);
/// After a command of the program itself (`/help`) a composer counts as ready again after this long; after a
/// prompt once signs of work were seen, or after `submit_ms` of the profile.
const COMMAND_TAKES: Duration = Duration::from_millis(1000);
/// How long a composer has to last then, without signs of work.
const SUBMIT_SILENT: Duration = Duration::from_millis(1500);
/// How long a composer has to last after an answer outside of a turn (a trust dialog at the start).
const ANSWER_TAKES: Duration = Duration::from_millis(500);
/// How long an agent's first screen has to last: dialogs may follow it.
const START_TAKES: Duration = Duration::from_millis(1000);
/// How many transcript changes end that wait.
const TURN_GROWTHS: u32 = 2;
/// An agent whose screen matches no rule for this long is in an unknown state.
const UNKNOWN_AFTER: Duration = Duration::from_millis(1500);
/// How long a program may take to repaint its screen after a resize.
const RESIZE_TAKES: Duration = Duration::from_millis(1500);
/// How many rows above a prompt are searched for a failure.
const ERROR_ROWS_MAX: usize = 40;

impl Detector {
    pub(super) fn weigh(&mut self, at: Duration, is_quiet: bool, frame: &Frame) {
        if self.is_being_typed(frame) {
            return;
        }
        match self.read(at, frame) {
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
        let until = (since + self.must_stand(&finding)).max(self.not_before(&finding));
        if at < until {
            return self.clock.call(until);
        }
        self.adopt(at, finding, frame);
    }

    /// How long a finding has to last.
    fn must_stand(&self, finding: &Finding) -> Duration {
        let is_said = self.claim_of(ReportedActivity::Idle).is_some();
        if finding.kind != Kind::Idle || finding.is_prompt || is_said || self.turn.worked {
            return finding.stable;
        }
        let least = match (self.turn.submitted, &self.answered) {
            (true, _) if self.turn.is_stopped => ANSWER_TAKES,
            (true, _) if self.turn.is_command => COMMAND_TAKES,
            (true, _) => SUBMIT_SILENT,
            (false, Some(_)) => ANSWER_TAKES,
            (false, None) => START_TAKES,
        };
        finding.stable.max(least)
    }

    /// When a finding that looks like the one just answered counts as new.
    fn not_before(&self, finding: &Finding) -> Duration {
        let Some(answered) = &self.answered else { return Duration::ZERO };
        let is_same = answered.key == finding.key && !answered.has_vanished;
        let is_silent = self.clock.output.is_none_or(|output| output < answered.at);
        match (finding.kind, self.profile.kind) {
            (Kind::Working, _) => Duration::ZERO,
            (Kind::Idle, _) if finding.is_prompt => Duration::ZERO,
            (Kind::Idle, _) if self.turn.worked || self.claim_of(ReportedActivity::Idle).is_some() => {
                Duration::ZERO
            }
            // The prompt's echo and more text: the turn has begun, though no rule shows that.
            (Kind::Idle, _) if self.turn.growths >= TURN_GROWTHS => Duration::ZERO,
            (Kind::Idle, _) if self.turn.submitted && !self.turn.is_stopped && !self.turn.is_command => {
                answered.at + Duration::from_millis(self.profile.submit_ms)
            }
            (Kind::Idle, _) => Duration::ZERO,
            (_, ProgramKind::Agent) if is_same => answered.at + ANSWERED_STAYS,
            (_, ProgramKind::Plain) if is_silent && finding.takes == Takes::EveryKey => {
                answered.at + ANSWERED_SILENT
            }
            (_, ProgramKind::Plain) if is_silent => answered.at + ANSWERED_UNSEEN,
            (_, ProgramKind::Plain) if is_same && finding.takes == Takes::Keys => {
                answered.at + ANSWERED_STAYS
            }
            _ => Duration::ZERO,
        }
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
            self.stand(finding, None);
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
        self.stand(&finding, None);
        self.set_state(at, TerminalState::Idle, finding.confidence, evidence.clone());
        self.turn.typed.clear();
        if std::mem::take(&mut self.turn.submitted) {
            let succeeded = self.report_failure(at, frame).then_some(false);
            let event = TerminalEvent::Completion { scope: CompletionScope::Turn, succeeded };
            self.note(at, event, finding.confidence, evidence.clone());
        }
        self.note(at, TerminalEvent::Idle, finding.confidence, evidence);
    }

    fn asks(&mut self, at: Duration, finding: Finding, frame: &Frame) {
        let ask = (finding.kind == Kind::Approval).then(|| self.ask_of(&finding));
        self.stand(&finding, ask.clone());
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

    fn stand(&mut self, finding: &Finding, ask: Option<TerminalAsk>) {
        self.standing = Some(ReportedState {
            kind: finding.kind,
            key: finding.key.clone(),
            words: finding.words.clone(),
            takes: finding.takes,
            is_typed_at: false,
            gist: finding.gist,
            ask,
        });
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

    /// Reports a failure between the last answer and the next prompt, if there is one.
    fn report_failure(&mut self, at: Duration, frame: &Frame) -> bool {
        let Some(answered) = &self.answered else { return false };
        let top = frame.cursor_row.saturating_sub(ERROR_ROWS_MAX);
        let is_line = |row: &str| !answered.line.is_empty() && row.starts_with(answered.line.as_str());
        // An agent's transcript repeats the prompt; its cursor may be anywhere.
        let is_echo = |row: &str| answered.typed.len() > 2 && row.ends_with(answered.typed.as_str());
        let is_agent = self.profile.kind == ProgramKind::Agent;
        let is_old = |row: &usize| {
            let row = frame.row(*row);
            if is_agent { is_echo(row) } else { is_line(row) }
        };
        let unseen = if is_agent { frame.cursor_row } else { answered.row };
        let old = (top..frame.cursor_row).rev().find(is_old).unwrap_or(unseen);
        let rows = (old + 1..frame.cursor_row).rev().map(|row| frame.row(row));
        let rules = || self.profile.rules.iter().filter(|rule| rule.region == Region::Above);
        let found =
            rows.filter_map(|row| rules().find(|rule| rule.is_said(row)).map(|rule| (row, rule))).next();
        let Some((row, rule)) = found else { return false };
        let why = evidence(EvidenceSource::Screen, format!("rule {}", rule.id));
        let (line, confidence) = (row.to_owned(), rule.confidence);
        self.note(at, TerminalEvent::Error { line }, confidence, why);
        true
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
