//! Derives a finding from a frame, a kernel sample and a claim.
//!
//! Order of precedence: a claim of being blocked, a read of a secret, a rule for a blocked state, the program's
//! own working or idle state, a plain program's read of the terminal. Silence alone is never a finding.

use std::time::Duration;

use provost_event::{AskOption, EvidenceSource, TerminalEvidence};

use super::claim::{ActivityReport, ReportedActivity};
use super::finding::{Answered, Finding, Kind, Takes, Turn};
use super::{Clock, Detector, Frame};
use crate::kernel::KernelReading;
use crate::profile::{Gate, Match, ProgramKind, Region, Rule, RuleEvent};
use crate::{KernelSample, Profile, Screen};

/// How long a read of the terminal must last without other events to count by itself: with text at the cursor that
/// looks like a prompt, with other text, when sample and text disagree, with no text at the cursor, on a screen
/// without a known prompt. On a loaded machine output is seen later than a read.
const WORDS: Duration = Duration::from_millis(150);
const ODD_WORDS: Duration = Duration::from_millis(500);
const AT_ODDS: Duration = Duration::from_millis(200);
const NO_WORDS: Duration = Duration::from_millis(800);
const FULL_SCREEN: Duration = Duration::from_millis(400);
/// How long text has to stay where the kernel can't tell which process reads.
const NO_KERNEL: Duration = Duration::from_millis(400);
/// How long to wait for a kernel sample.
const SAMPLE_WAIT: Duration = Duration::from_millis(500);
/// The rows above a composer that must not change.
const TRANSCRIPT_ROWS: usize = 12;
/// How long a claim of working overrides a composer that looks ready.
const LEASE_HOLDS: Duration = Duration::from_secs(10);

/// The result of reading a frame.
pub(super) enum Read {
    /// A finding.
    Found(Box<Finding>),
    /// No evidence.
    Nothing,
    /// A kernel sample is needed first.
    Later,
}

/// What a frame is read with: the profile, and what is known of the program so far.
pub(super) struct FrameReader<'a> {
    pub(super) profile: &'a Profile,
    screen: &'a Screen,
    pub(super) clock: &'a Clock,
    pub(super) kernel: Option<(Duration, KernelSample)>,
    /// The last kernel reading.
    last_reading: Option<KernelReading>,
    claim: Option<&'a ActivityReport>,
    pub(super) answered: Option<&'a Answered>,
    pub(super) turn: &'a Turn,
}

impl Detector {
    pub(super) fn reader(&self) -> FrameReader<'_> {
        FrameReader {
            profile: &self.profile,
            screen: &self.screen,
            clock: &self.clock,
            kernel: self.kernel,
            last_reading: self.reading.1,
            claim: self.claim.as_ref(),
            answered: self.answered.as_ref(),
            turn: &self.turn,
        }
    }
}

impl<'a> FrameReader<'a> {
    pub(super) fn read(&self, at: Duration, frame: &Frame) -> Read {
        let Some(reading) = self.reading(at) else { return Read::Later };
        let found = match self.profile.kind {
            ProgramKind::Agent => self.read_agent(at, frame, reading),
            ProgramKind::Plain => self.read_plain(frame, reading),
        };
        found.map_or(Read::Nothing, |finding| Read::Found(Box::new(finding)))
    }

    /// The kernel reading since the last event. `None`: there is no sample yet.
    fn reading(&self, at: Duration) -> Option<KernelReading> {
        let active = self.clock.active();
        match self.kernel {
            Some((sampled, _)) if self.is_due_after_report(at, sampled) => None,
            Some((sampled, sample)) if sampled >= active => Some(KernelReading::of(sample)),
            Some(_) if self.profile.kind == ProgramKind::Plain && at < active + SAMPLE_WAIT => None,
            _ => Some(KernelReading::Unknown),
        }
    }

    /// Whether a program has just reported that it is done with its prompt, and the last sample is older: tools that
    /// still run would contradict it.
    fn is_due_after_report(&self, at: Duration, sampled: Duration) -> bool {
        let report = self.claim_of(ReportedActivity::Idle).filter(|_| self.turn.submitted);
        report.is_some_and(|report| sampled < report.at && at < report.at + SAMPLE_WAIT)
    }

    fn read_agent(&self, at: Duration, frame: &Frame, reading: KernelReading) -> Option<Finding> {
        if reading == KernelReading::Secret {
            return Some(self.secret(frame, None));
        }
        // In line mode an agent isn't at its screen: the screen shows what it has left.
        if !self.may_be_at_its_screen() {
            let asks = self.blocked(frame, reading, |rule| rule.region == Region::Cursor);
            return asks
                .or_else(|| (reading == KernelReading::Blocked).then(|| self.kernel_wait(frame, NO_WORDS)))
                .or_else(|| self.rule(frame, reading, |rule| rule.event == RuleEvent::Working))
                .or_else(|| self.works_away_from_composer());
        }
        self.blocked(frame, reading, |rule| !rule.is_inherited)
            .or_else(|| self.claims_blocked(frame))
            .or_else(|| (reading == KernelReading::Blocked).then(|| self.kernel_wait(frame, NO_WORDS)))
            .or_else(|| self.rule(frame, reading, |rule| rule.event == RuleEvent::Working))
            .or_else(|| self.works_unseen(frame))
            .or_else(|| self.ready(at, frame, reading))
            .or_else(|| self.blocked(frame, reading, |rule| rule.is_inherited))
    }

    fn read_plain(&self, frame: &Frame, reading: KernelReading) -> Option<Finding> {
        let rule = self.blocked(frame, reading, |_| true);
        let is_mark = rule.as_ref().is_none_or(|finding| finding.kind == Kind::Waiting);
        let above = if is_mark { self.asked_above(frame, reading) } else { None };
        let rule = above.or(rule);
        match reading {
            KernelReading::Secret => Some(self.secret(frame, rule)),
            KernelReading::Blocked => Some(rule.unwrap_or_else(|| self.kernel_wait(frame, by_words(frame)))),
            KernelReading::Keys => {
                rule.or_else(|| self.claims_blocked(frame)).or_else(|| self.keys_wait(frame))
            }
            KernelReading::Nothing => None,
            // A process that polls while the terminal is in line mode seldom waits for a person: only a prompt
            // that a program shows when it is idle counts.
            KernelReading::Unknown
                if !self.is_raw() && rule.as_ref().is_some_and(|finding| finding.kind != Kind::Waiting) =>
            {
                None
            }
            KernelReading::Unknown => rule.map(|mut finding| {
                finding.stable = finding.stable.max(NO_KERNEL);
                finding.confidence = finding.confidence.saturating_sub(25);
                finding
            }),
        }
    }

    /// A question for consent in the row above, while a line is read.
    fn asked_above(&self, frame: &Frame, reading: KernelReading) -> Option<Finding> {
        if reading != KernelReading::Blocked || self.is_raw() {
            return None;
        }
        let above = frame.with_line_above()?;
        self.rule(&above, reading, |rule| {
            rule.event == RuleEvent::Approval && rule.region == Region::Cursor && rule.subject.is_none()
        })
    }

    /// The first rule of the profile that matches and needs a person.
    fn blocked(
        &self,
        frame: &Frame,
        reading: KernelReading,
        is_wanted: impl Fn(&Rule) -> bool,
    ) -> Option<Finding> {
        self.rule(frame, reading, |rule| {
            !matches!(rule.event, RuleEvent::Working | RuleEvent::Idle | RuleEvent::Error) && is_wanted(rule)
        })
    }

    fn rule(
        &self,
        frame: &Frame,
        reading: KernelReading,
        is_wanted: impl Fn(&Rule) -> bool,
    ) -> Option<Finding> {
        let mut rules = self.profile.rules.iter().filter(|rule| is_wanted(rule));
        rules.find_map(|rule| {
            let is_shown = rule.event == RuleEvent::Password && self.echoes_lines();
            (!is_shown && self.passes(rule, reading)).then_some(())?;
            // A line editor shows its cursor; a hidden one belongs to a progress display.
            let is_hidden =
                rule.region == Region::Cursor && !frame.is_cursor_shown && rule.event == RuleEvent::Waiting;
            (!is_hidden || reading == KernelReading::Blocked).then_some(())?;
            let found = rule.find(frame)?;
            // A dialog that was left on the screen, with the cursor below it; a form whose cursor is in a field
            // above the one for a secret.
            let is_plain = self.profile.kind == ProgramKind::Plain && rule.region == Region::End;
            let is_left = frame.is_cursor_shown && frame.cursor_row > found.last && !frame.line.is_empty();
            let is_elsewhere = rule.event == RuleEvent::Password && frame.cursor_row < found.first;
            (!is_plain || !(is_left || is_elsewhere)).then(|| self.finding(rule, frame, found))
        })
    }

    fn passes(&self, rule: &Rule, reading: KernelReading) -> bool {
        let reads = matches!(reading, KernelReading::Blocked | KernelReading::Secret);
        let may_read = reads || matches!(reading, KernelReading::Keys | KernelReading::Unknown);
        match rule.gate {
            Gate::None => !self.is_left_over(rule),
            Gate::Keys => may_read || self.profile.kind == ProgramKind::Agent,
            Gate::Read => reads,
            Gate::Raw => (reads || reading == KernelReading::Keys || self.kernel.is_none()) && self.is_raw(),
            Gate::Drawn => may_read && self.is_raw(),
            Gate::Hidden => may_read && self.kernel.is_some_and(|(_, sample)| sample.echo == Some(false)),
        }
    }

    /// An agent draws its dialogs and its composer while it reads single keys: in line mode they are leftovers
    /// from before a restart or the end.
    fn is_left_over(&self, rule: &Rule) -> bool {
        let is_drawn = self.profile.kind == ProgramKind::Agent && rule.region != Region::Cursor;
        is_drawn && rule.event != RuleEvent::Working && !self.may_be_at_its_screen()
    }

    /// Whether the terminal's modes allow that an agent reads keys at its screen.
    fn may_be_at_its_screen(&self) -> bool {
        self.is_raw() || self.profile.may_be_in_line_mode
    }

    fn settle(&self) -> Duration {
        Duration::from_millis(self.profile.settle_ms)
    }

    /// The claim of this state since the last answer, if any.
    pub(super) fn claim_of(&self, state: ReportedActivity) -> Option<&'a ActivityReport> {
        let since = self.answered.map_or(Duration::ZERO, |answered| answered.at);
        self.claim.filter(|claim| claim.state == state && claim.at >= since)
    }

    fn is_raw(&self) -> bool {
        self.kernel.is_none_or(|(_, sample)| sample.canonical != Some(true))
    }

    fn finding(&self, rule: &Rule, frame: &Frame, mut found: Match) -> Finding {
        // A program that reads a single key would take the return as an answer to its next question.
        if self.is_raw() && self.last_reading == Some(KernelReading::Blocked) && rule.region == Region::Cursor
        {
            found.options.iter_mut().for_each(bare_key);
        }
        let kind = Kind::of(rule.event);
        let words = if rule.region == Region::Cursor { frame.line.clone() } else { found.question.clone() };
        let labels: Vec<&str> = found.options.iter().map(|option| option.label.as_str()).collect();
        let key = match kind {
            // A composer isn't ready while the transcript above it grows.
            Kind::Idle => format!("{} {:x}", rule.id, frame.gist(frame.above(found.first, TRANSCRIPT_ROWS))),
            Kind::Working => rule.id.clone(),
            _ => format!(
                "{}\n{}\n{}\n{}",
                rule.id,
                words,
                found.subject.as_deref().unwrap_or(""),
                labels.join("\n")
            ),
        };
        Finding {
            kind,
            key,
            takes: self.takes(rule, kind),
            words,
            ask: rule.ask,
            subject: found.subject,
            options: found.options,
            default: found.default,
            stable: Duration::from_millis(rule.stable_ms).max(self.settle()),
            confidence: rule.confidence,
            evidence: self.with_kernel(EvidenceSource::Screen, format!("rule {}", rule.id)),
            is_weak: false,
            gist: 0,
            is_prompt: rule.region == Region::Cursor,
            takes_text: self.reads_text(rule, kind),
        }
    }

    fn secret(&self, frame: &Frame, rule: Option<Finding>) -> Finding {
        // The text doesn't ask for a secret: sample or screen may be outdated.
        let says_so = rule.as_ref().is_some_and(|finding| finding.kind == Kind::Password);
        let stable = match rule {
            Some(_) if says_so => self.settle(),
            Some(_) => AT_ODDS,
            None if is_prompt(frame) => self.settle(),
            None => by_words(frame),
        };
        Finding {
            stable,
            is_weak: !says_so && !is_prompt(frame),
            confidence: if says_so { 99 } else { 95 },
            evidence: self.by_kernel(),
            ..Finding::plain(Kind::Password, frame.line.clone())
        }
    }

    fn kernel_wait(&self, frame: &Frame, stable: Duration) -> Finding {
        let finding = Finding::plain(Kind::Waiting, frame.line.clone());
        let takes = if self.is_raw() { Takes::EveryKey } else { Takes::Lines };
        let is_edited = is_prompt(frame) || self.screen.modes().bracketed_paste;
        let is_line = is_edited && frame.is_line_end && frame.is_cursor_shown && !self.shows_menu(frame);
        let takes_text = !self.is_raw() || is_line;
        Finding { stable, takes, confidence: 85, evidence: self.by_kernel(), takes_text, ..finding }
    }

    /// The program reads single keys and sleeps: it may wait for one. Text that looks like a prompt, or the
    /// alternate screen, makes it likely.
    fn keys_wait(&self, frame: &Frame) -> Option<Finding> {
        let is_relayed =
            frame.last_rows(1).any(|row| self.profile.relays.iter().any(|bar| bar.is_match(frame.row(row))));
        if self.claim_of(ReportedActivity::Working).is_some() {
            return None;
        }
        if frame.is_alternate && !is_relayed {
            let finding = Finding::plain(Kind::Waiting, frame.line.clone());
            let takes = Takes::EveryKey;
            let (stable, evidence) = (FULL_SCREEN, self.by_kernel());
            return Some(Finding {
                stable,
                takes,
                confidence: 65,
                key: "screen".to_owned(),
                evidence,
                ..finding
            });
        }
        let lines = |stable, confidence| Finding {
            takes: Takes::Lines,
            takes_text: frame.is_cursor_shown && !self.shows_menu(frame),
            confidence,
            ..self.kernel_wait(frame, stable)
        };
        if is_prompt(frame) {
            return Some(lines(AT_ODDS, 70));
        }
        // A line editor with any prompt: it keeps bracketed paste on while it reads.
        let is_edited = frame.is_line_end && self.screen.modes().bracketed_paste;
        (is_edited && !is_relayed).then(|| lines(AT_ODDS, 75))
    }

    /// The program claims to be blocked, and the screen doesn't contradict.
    fn claims_blocked(&self, frame: &Frame) -> Option<Finding> {
        let claim = self.claim_of(ReportedActivity::Blocked)?;
        let is_contradicted =
            self.rule(frame, KernelReading::Unknown, |rule| rule.event == RuleEvent::Idle).is_some();
        let question = frame.last_rows(1).next().map(|row| frame.row(row).to_owned()).unwrap_or_default();
        (!is_contradicted && !frame.is_blank()).then(|| Finding {
            stable: NO_WORDS,
            confidence: 70,
            takes: Takes::Keys,
            evidence: self.with_kernel(EvidenceSource::Signal, claim.words.clone()),
            key: claim.words.clone(),
            ..Finding::plain(Kind::Approval, question)
        })
    }

    /// The composer is ready, unless the program claims to work.
    fn ready(&self, at: Duration, frame: &Frame, reading: KernelReading) -> Option<Finding> {
        if self.holds_prompt(frame) {
            return None;
        }
        let mut finding = self.rule(frame, reading, |rule| rule.event == RuleEvent::Idle)?;
        if let Some(claim) = self.claim_of(ReportedActivity::Working)
            && at < claim.at + LEASE_HOLDS
        {
            let evidence =
                vec![TerminalEvidence { source: EvidenceSource::Signal, what: claim.words.clone() }];
            return Some(Finding {
                evidence,
                confidence: 75,
                ..Finding::plain(Kind::Working, String::new())
            });
        }
        if let Some(claim) = self.claim_of(ReportedActivity::Idle) {
            finding.stable = self.settle();
            finding.confidence = finding.confidence.saturating_add(8).min(97);
            finding
                .evidence
                .push(TerminalEvidence { source: EvidenceSource::Signal, what: claim.words.clone() });
        }
        Some(finding)
    }

    /// A blocked read of single keys takes any key; a program that polls edits lines by itself, unless the rule
    /// says otherwise.
    fn takes(&self, rule: &Rule, kind: Kind) -> Takes {
        let is_key = rule.id.contains("pager") || rule.id.contains("any-key");
        let reads_keys = self.is_raw() && self.last_reading == Some(KernelReading::Blocked);
        match (kind, rule.region) {
            (Kind::Idle, _) => Takes::Lines,
            (_, Region::Cursor) if is_key || reads_keys => Takes::EveryKey,
            (_, Region::Cursor) => Takes::Lines,
            _ => Takes::Keys,
        }
    }

    /// Whether the terminal shows what is typed, in line mode: whatever the prompt says, no secret is read there.
    fn echoes_lines(&self) -> bool {
        self.kernel.is_some_and(|(_, sample)| sample.canonical == Some(true) && sample.echo == Some(true))
    }

    /// Whether the prompt asks for a secret that the terminal shows as it is typed.
    pub(super) fn exposes_secret(&self, finding: &Finding, frame: &Frame) -> bool {
        let asks_secret = |rule: &Rule| {
            rule.event == RuleEvent::Password && rule.region == Region::Cursor && rule.is_at_line(frame)
        };
        finding.kind == Kind::Waiting && self.echoes_lines() && self.profile.rules.iter().any(asks_secret)
    }

    /// Whether a menu or a dialog is on the screen, wherever the cursor is.
    fn shows_menu(&self, frame: &Frame) -> bool {
        let is_dialog = |rule: &&Rule| {
            rule.region == Region::End && matches!(rule.event, RuleEvent::Question | RuleEvent::Approval)
        };
        self.profile.rules.iter().filter(is_dialog).any(|rule| rule.find(frame).is_some())
    }

    /// Whether text is read there, not a key or a choice.
    fn reads_text(&self, rule: &Rule, kind: Kind) -> bool {
        matches!(kind, Kind::Waiting | Kind::Idle)
            && rule.reads_text
            && self.takes(rule, kind) == Takes::Lines
    }

    /// Whether the composer still holds the submitted text.
    pub(super) fn holds_prompt(&self, frame: &Frame) -> bool {
        let typed = self.answered.filter(|_| self.turn.submitted && !self.turn.worked);
        typed.is_some_and(|answered| answered.has_letters && answered.line == frame.line)
    }

    fn by_kernel(&self) -> Vec<TerminalEvidence> {
        let what = self.kernel.map_or("no sample", |(_, sample)| KernelReading::of(sample).words());
        vec![TerminalEvidence { source: EvidenceSource::Kernel, what: what.to_owned() }]
    }

    fn with_kernel(&self, source: EvidenceSource, what: String) -> Vec<TerminalEvidence> {
        let mut evidence = vec![TerminalEvidence { source, what }];
        if self.profile.kind == ProgramKind::Plain && self.kernel.is_some() {
            evidence.extend(self.by_kernel());
        }
        evidence
    }
}

fn bare_key(option: &mut AskOption) {
    if option.keys.chars().count() == 2 && option.keys.ends_with('\r') {
        option.keys.pop();
    }
}

/// Whether the text at the cursor ends like a prompt.
fn is_prompt(frame: &Frame) -> bool {
    const ENDS: [char; 15] = [':', '?', '>', '$', '#', '%', '：', '？', ']', ')', '»', '❯', '›', '=', '*'];
    frame.is_line_end && frame.line.ends_with(ENDS)
}

fn by_words(frame: &Frame) -> Duration {
    match frame.line.is_empty() {
        true => NO_WORDS,
        false if is_prompt(frame) => WORDS,
        false => ODD_WORDS,
    }
}
