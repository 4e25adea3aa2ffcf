//! What a prompt has come to so far.

use provost_event::{CallId, TerminalAsk};
use provost_harness::Prompt;

/// Bytes of an answer that are kept; what comes after is left out.
const TEXT_BYTES_MAX: usize = 256 * 1024;

const CUT: &str = "\n[the rest is left out]";

/// Failures that are noted while it works on one prompt; of more only the last, when it ends by them.
const ERRORS_MAX: u32 = 20;

/// What the program is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// As it is told.
    pub(super) text: String,
    /// Where in the log it comes from; words of Provost's own come from nowhere.
    pub(super) prompt: Option<Prompt>,
}

/// A question that was handed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// As which call.
    pub(super) call: CallId,
    /// As the program asked it.
    pub(super) ask: TerminalAsk,
}

/// The prompt that the program works on, if it does.
#[derive(Debug, Default)]
pub(super) struct Turn {
    is_going: bool,
    /// Given to it; nothing shows yet that it was taken.
    pub(super) told: Option<Told>,
    /// The question that was handed on, and not answered yet.
    pub(super) asked: Option<Asked>,
    /// Why something was refused, if nothing was said since.
    pub(super) refusal: Option<String>,
    text: String,
    breaks: bool,
    errors: u32,
}

impl Turn {
    pub(super) fn begin(told: Told) -> Self {
        Self { is_going: true, told: Some(told), ..Self::default() }
    }

    pub(super) const fn is_going(&self) -> bool {
        self.is_going
    }

    pub(super) fn end(&mut self) {
        (self.is_going, self.asked) = (false, None);
    }

    /// The next piece of text belongs to another message.
    pub(super) fn break_text(&mut self) {
        self.breaks = true;
    }

    pub(super) fn add(&mut self, text: &str) {
        if text.trim().is_empty() && (self.breaks || self.text.is_empty()) {
            return;
        }
        self.refusal = None;
        if std::mem::take(&mut self.breaks) && !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        let room = TEXT_BYTES_MAX.saturating_sub(self.text.len());
        if text.len() <= room {
            self.text.push_str(text);
        } else if !self.text.ends_with(CUT) {
            self.text.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
            self.text.push_str(CUT);
        }
    }

    /// All that was said since this was called last.
    pub(super) fn take_text(&mut self) -> String {
        self.breaks = false;
        std::mem::take(&mut self.text).trim().to_owned()
    }

    /// Whether one more failure is noted.
    pub(super) fn notes_error(&mut self) -> bool {
        self.errors = self.errors.saturating_add(1);
        self.errors <= ERRORS_MAX
    }
}
