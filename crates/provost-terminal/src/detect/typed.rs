//! Typed input: an answer, or only letters of one.

use std::time::Duration;

use provost_event::{EvidenceSource, OptionMeaning, TerminalState};

use super::finding::{Answered, Kind, ReportedState, Takes};
use super::{Detector, evidence};
use crate::profile::bare;
use crate::{Profile, Screen};

/// Bytes kept of the input at a composer: its beginning shows whether it is a command, its end is searched in the
/// transcript.
const TYPED_BYTES_MAX: usize = 8192;
/// Characters of its end that are searched in the transcript.
const ECHO_CHARS: usize = 16;

/// The effect of input on a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typed {
    /// It ends a line, or is a key that interrupts.
    Line,
    /// It moves the selection, or shows help.
    Navigation,
    /// Letters.
    Letters,
}

/// Control characters that edit a line (Ctrl-A, -B, -E, -F, -H, Tab, line feed, -K, -L, -N, -P, -R, -T, -U, -V,
/// -W, -Y), and the beginning of longer keys; any other has an effect on the program.
const EDITING: [u8; 18] = [1, 2, 5, 6, 8, 9, 10, 11, 12, 14, 16, 18, 20, 21, 22, 23, 25, 27];

impl Typed {
    fn of(bytes: &[u8]) -> Self {
        let is_pasted = bytes.starts_with(b"\x1b[200~");
        let ends = |byte: &u8| *byte < 0x20 && !EDITING.contains(byte);
        if bytes == b"\x1b"
            || bytes == b"\n"
            || (!is_pasted && bytes.iter().any(ends))
            || bytes.last().is_some_and(ends)
        {
            Self::Line
        } else if bytes == b"\t" || (bytes.starts_with(b"\x1b") && !is_pasted) {
            Self::Navigation
        } else {
            Self::Letters
        }
    }
}

impl Detector {
    pub(super) fn typed(&mut self, at: Duration, bytes: &[u8]) {
        let typed = Typed::of(bytes);
        let takes = self.standing.as_ref().map_or(Takes::Lines, |standing| standing.takes);
        let is_answer = match takes {
            Takes::Lines => {
                typed == Typed::Line || (typed == Typed::Navigation && self.screen.modes().alternate)
            }
            Takes::Keys => typed != Typed::Navigation,
            Takes::EveryKey => true,
        };
        if is_answer {
            self.answered_with(at, bytes, typed);
        } else if let Some(standing) = &mut self.standing {
            standing.is_typed_at = true;
            if typed == Typed::Letters && self.turn.typed.len() < TYPED_BYTES_MAX {
                self.turn.typed.push_str(&String::from_utf8_lossy(bytes));
            }
        }
    }

    /// From here on the program counts as working, until there is other evidence.
    fn answered_with(&mut self, at: Duration, bytes: &[u8], typed: Typed) {
        let standing = self.standing.take();
        let was_idle = standing.as_ref().is_some_and(|standing| standing.kind == Kind::Idle);
        if was_idle && bytes.contains(&b'\r') {
            self.turn.submitted = true;
            self.turn.submitted_at = at;
            self.turn.has_failed = false;
            self.turn.has_shown_work = false;
            self.turn.calls_before = self.kernel.and_then(|(_, sample)| sample.model_calls);
            let typed = self.turn.typed.trim_start_matches("\u{1b}[200~");
            self.turn.is_command = typed.starts_with('/') || bytes.starts_with(b"/");
        }
        self.turn.is_stopped = stops(&self.profile, standing.as_ref(), bytes);
        self.paint = super::Paint::default();
        self.overstrike = super::Overstrike::default();
        self.turn.worked = false;
        self.turn.growths = 0;
        self.candidate = None;
        let line = cursor_row(&self.screen);
        self.answered = Some(Answered {
            at,
            typed: typed_words(&self.turn.typed, self.answered.as_ref()),
            has_letters: shows_typed(&self.turn.typed, &line),
            letters: standing
                .as_ref()
                .filter(|_| typed == Typed::Letters)
                .map(|standing| standing.words.clone()),
            key: standing.map(|standing| standing.key).unwrap_or_default(),
            line,
            row: usize::from(self.screen.cursor().row),
            has_vanished: false,
            status: super::failure::status_rows(&super::Frame::of(&self.screen)),
            failure: None,
        });
        let why = evidence(EvidenceSource::Input, "an answer was typed");
        self.set_state(at, TerminalState::Working, 90, why);
        self.is_assumed = true;
        self.turn.typed.clear();
    }
}

/// Whether the input refuses the question, or interrupts.
fn stops(profile: &Profile, standing: Option<&ReportedState>, bytes: &[u8]) -> bool {
    let keys = &profile.keys;
    let refusal = standing.and_then(|standing| standing.ask.as_ref());
    let refusal = refusal.and_then(|ask| ask.option(OptionMeaning::Deny)).map(|option| option.keys.as_str());
    let stops = [Some(keys.interrupt.as_str()), keys.deny.as_deref(), refusal];
    stops.into_iter().flatten().any(|keys| keys.as_bytes() == bytes) || bytes == b"\x1b" || bytes == b"\x03"
}

/// Whether the last typed word is left of the cursor, in `row`.
fn shows_typed(typed: &str, row: &str) -> bool {
    let mut words = typed.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.next_back().is_some_and(|word| row.ends_with(word))
}

/// The input, as it may be visible in one row; for a single key, the earlier input of this turn.
fn typed_words(typed: &str, earlier: Option<&Answered>) -> String {
    let words = typed.replace("\u{1b}[200~", "").replace("\u{1b}[201~", "");
    let last = words.trim().lines().last().unwrap_or_default();
    let last: String = last.chars().rev().take(ECHO_CHARS).collect();
    if last.chars().count() > 2 {
        return last.chars().rev().collect();
    }
    earlier.map(|answered| answered.typed.clone()).unwrap_or_default()
}

/// The text left of the cursor.
fn cursor_row(screen: &Screen) -> String {
    let cursor = screen.cursor();
    bare(&screen.row_text(cursor.row, 0, cursor.col)).to_owned()
}
