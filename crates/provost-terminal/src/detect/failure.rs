//! Failures that have become visible: above the next prompt, in the status row of a full-screen program, as the last
//! words of a program.

use std::time::Duration;

use provost_event::{EvidenceSource, Exit, TerminalEvent};

use super::finding::Answered;
use super::{Detector, Frame, evidence};
use crate::Profile;
use crate::profile::{ProgramKind, Region, Rule};

/// How many rows above a prompt are searched.
const ROWS_MAX: usize = 40;
/// How many of the last rows a full-screen program uses for messages.
const STATUS_ROWS: usize = 2;
/// How many of the last rows of a failed program are searched for its reason.
const LAST_ROWS: usize = 4;

/// Blanks between a row's text and what stands at its right edge, and the longest time that stands there.
const GAP: &str = "   ";
const TIME_BYTES_MAX: usize = 8;

/// A visible failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    None,
    /// Of something that the program did.
    Other,
    /// Of the program itself: nothing that it has said follows.
    OfProgram,
}

impl Detector {
    pub(super) fn search<'a>(&'a self, frame: &'a Frame) -> FailureSearch<'a> {
        FailureSearch { frame, profile: &self.profile, answered: self.answered.as_ref() }
    }

    /// Reports a failure between the last answer and the next prompt, if there is one that wasn't reported.
    pub(super) fn report_failure(&mut self, at: Duration, frame: &Frame) -> Failure {
        if self.answered.is_none() {
            return Failure::None;
        }
        let search = self.search(frame);
        let found = search.above(frame.cursor_row).or_else(|| search.in_status());
        let Some(found) = found else { return Failure::None };
        let kind = found.kind;
        self.note_failure(at, found);
        kind
    }

    /// Reports why a program has ended with a failure, or what an agent showed last.
    pub(super) fn report_failure_at_end(&mut self, at: Duration, exit: Exit) -> Failure {
        let frame = Frame::of(&self.screen);
        let search = self.search(&frame);
        let end = frame.end + 1;
        let begin = match self.profile.kind {
            // What it showed last is below its prompt, also if that has scrolled off.
            ProgramKind::Agent => search.seen_answer(end).map_or(0, |row| row + 1),
            ProgramKind::Plain => search.answer_row(end),
        };
        let rows = frame.last_rows(LAST_ROWS).filter(|row| *row >= begin);
        let last = || search.within(rows, |rule| rule.region == Region::Last);
        let is_failure = matches!(exit, Exit::Code(code) if code != 0);
        let found = search.above(end).or_else(|| is_failure.then(last).flatten());
        let Some(found) = found else { return Failure::None };
        // Without an open prompt an old failure says nothing about the end.
        let kind = if self.turn.submitted { found.kind } else { Failure::Other };
        self.note_failure(at, found);
        kind
    }

    fn note_failure(&mut self, at: Duration, found: Found) {
        if let Some(answered) = &mut self.answered {
            if answered.failure.as_ref() == Some(&found.line) {
                return;
            }
            answered.failure = Some(found.line.clone());
        }
        let why = evidence(EvidenceSource::Screen, format!("rule {}", found.rule));
        self.note(at, TerminalEvent::Error { line: found.line }, found.confidence, why);
    }
}

/// Where on a frame failures are searched.
pub(super) struct FailureSearch<'a> {
    frame: &'a Frame,
    profile: &'a Profile,
    answered: Option<&'a Answered>,
}

impl FailureSearch<'_> {
    /// The last failure in the rows above `end`, down from the last answer.
    fn above(&self, end: usize) -> Option<Found> {
        let rows = (self.answer_row(end)..end).rev();
        let mut found = self.within(rows, |rule| rule.region == Region::Above)?;
        if found.kind == Failure::OfProgram {
            let marks = || [&self.profile.message, &self.profile.message_end].into_iter().flatten();
            let mut after = (found.row + 1..end).map(|row| self.frame.row(row));
            let goes_on = after.any(|row| marks().any(|mark| mark.is_match(row)));
            found.kind = if goes_on { Failure::Other } else { Failure::OfProgram };
        }
        Some(found)
    }

    /// The row below the last answer.
    fn answer_row(&self, end: usize) -> usize {
        let Some(answered) = self.answered else { return end.saturating_sub(ROWS_MAX) };
        let unseen = if self.profile.kind == ProgramKind::Agent { end } else { answered.row };
        self.seen_answer(end).unwrap_or(unseen) + 1
    }

    /// The row of the last answer, if it is on the screen.
    fn seen_answer(&self, end: usize) -> Option<usize> {
        let answered = self.answered?;
        let is_line = |row: &str| !answered.line.is_empty() && row.starts_with(answered.line.as_str());
        // An agent's transcript repeats the prompt; its cursor may be anywhere.
        let is_error = |row: &str| {
            let mut rules = self.profile.rules.iter();
            rules.any(|rule| rule.region == Region::Above && !rule.is_inherited && rule.is_said(row))
        };
        let ends_with_it = |row: &str| row.ends_with(answered.typed.as_str());
        let is_echo = |row: &str| {
            // Some put the time at the right edge.
            let before_time = row.rsplit_once(GAP).filter(|(_, time)| time.len() <= TIME_BYTES_MAX);
            let shows = ends_with_it(row) || before_time.is_some_and(|(row, _)| ends_with_it(row.trim_end()));
            answered.typed.len() > 2 && shows && !is_error(row)
        };
        let is_agent = self.profile.kind == ProgramKind::Agent;
        let is_old = |row: &usize| {
            let row = self.frame.row(*row);
            if is_agent { is_echo(row) } else { is_line(row) }
        };
        (end.saturating_sub(ROWS_MAX)..end).rev().find(is_old)
    }

    /// The first row below the last answer; 0 if there was none, or it can't be seen any more.
    pub(super) fn fresh_row(&self) -> usize {
        let Some(answered) = self.answered.filter(|answered| !answered.line.is_empty()) else {
            return 0;
        };
        let is_line = |row: &usize| self.frame.row(*row).starts_with(answered.line.as_str());
        (0..self.frame.cursor_row).rev().find(is_line).map_or(0, |row| row + 1)
    }

    /// A new message in the status row of a full-screen program.
    fn in_status(&self) -> Option<Found> {
        let frame = self.frame;
        let before = &self.answered?.status;
        let rows =
            frame.last_rows(STATUS_ROWS).filter(|row| !before.iter().any(|old| old == frame.row(*row)));
        frame.is_alternate.then(|| self.within(rows, |rule| rule.region == Region::Status))?
    }

    fn within(
        &self,
        mut rows: impl Iterator<Item = usize>,
        is_wanted: impl Fn(&Rule) -> bool,
    ) -> Option<Found> {
        let frame = self.frame;
        rows.find_map(|row| {
            let mut rules = self.profile.rules.iter().filter(|rule| is_wanted(rule));
            let rule = rules.find(|rule| rule.is_said(frame.row(row)))?;
            // With a row above, that one names the failure, and the last one only tells that there is one.
            let is_named = |named: &usize| {
                let row = frame.row(*named);
                !row.is_empty() && rule.above.last().is_none_or(|pattern| pattern.is_match(row))
            };
            let named = if rule.above.is_empty() { row } else { (0..row).rev().find(is_named)? };
            // Nor may an excluded row stand directly above it: the words are those of something else then.
            let filled = |row: &usize| !frame.row(*row).is_empty();
            let mut words = (0..=named).rev().take_while(filled).map(|row| frame.row(row));
            if !rule.above.is_empty() && words.any(|words| rule.is_excluded(words)) {
                return None;
            }
            let is_own = self.profile.kind == ProgramKind::Agent && !rule.is_inherited;
            Some(Found {
                row,
                line: frame.row(named).to_owned(),
                rule: rule.id.clone(),
                confidence: rule.confidence,
                kind: if is_own { Failure::OfProgram } else { Failure::Other },
            })
        })
    }
}

/// A row with a failure.
struct Found {
    row: usize,
    line: String,
    rule: String,
    confidence: u8,
    kind: Failure,
}

/// The rows in which a full-screen program shows messages.
pub(super) fn status_rows(frame: &Frame) -> Vec<String> {
    frame.last_rows(STATUS_ROWS).map(|row| frame.row(row).to_owned()).collect()
}
