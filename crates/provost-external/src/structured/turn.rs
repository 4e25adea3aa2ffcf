//! The present prompt and its results so far.

use provost_event::{CallId, TerminalAsk};
use provost_harness::Prompt;

/// Bytes of an answer that are kept; the rest is dropped.
const TEXT_BYTES_MAX: usize = 256 * 1024;

const CUT: &str = "\n[the rest is left out]";

/// Failures and remarks that are recorded per prompt; beyond that only the last one, if the prompt ends by it.
const ERRORS_MAX: u32 = 20;

/// Reports of the program's work that are recorded per prompt.
const ACTIVITIES_MAX: u32 = 2_000;

/// Reasons of refusals that are kept for the next prompt.
const UNTOLD_MAX: usize = 16;

/// A prompt as the program gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramPrompt {
    /// Its text.
    pub(super) text: String,
    /// Its origin in the log; text from Provost itself has none.
    pub(super) prompt: Option<Prompt>,
}

/// A question that was passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForwardedQuestion {
    /// The call that stands for it.
    pub(super) call: CallId,
    /// As the program asked it.
    pub(super) ask: TerminalAsk,
}

/// The prompt that the program works on, if any.
#[derive(Debug, Default)]
pub(super) struct Turn {
    is_going: bool,
    /// Given to the program, without a sign yet that it was taken.
    pub(super) told: Option<ProgramPrompt>,
    /// The question that was passed on and isn't answered yet.
    pub(super) asked: Option<ForwardedQuestion>,
    /// Why questions were refused, where the program's model wasn't given the reason.
    untold: Vec<String>,
    text: String,
    breaks: bool,
    errors: u32,
    activities: u32,
}

impl Turn {
    pub(super) fn begin(told: ProgramPrompt) -> Self {
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

    /// Takes the text since the last call.
    pub(super) fn take_text(&mut self) -> String {
        self.breaks = false;
        std::mem::take(&mut self.text).trim().to_owned()
    }

    /// Keeps the reason of a refusal that the program's model wasn't given.
    pub(super) fn keep_reason(&mut self, reason: String) {
        if self.untold.len() < UNTOLD_MAX && !self.untold.contains(&reason) {
            self.untold.push(reason);
        }
    }

    /// The reasons of refusals that the program's model wasn't given, as the next prompt.
    pub(super) fn take_reasons(&mut self) -> Option<String> {
        let reasons = std::mem::take(&mut self.untold);
        (!reasons.is_empty()).then(|| reasons.join("\n\n"))
    }

    /// Whether one more report of the program's work is recorded.
    pub(super) fn notes_activity(&mut self) -> bool {
        self.activities = self.activities.saturating_add(1);
        self.activities <= ACTIVITIES_MAX
    }

    /// Whether one more failure is recorded.
    pub(super) fn notes_error(&mut self) -> bool {
        self.errors = self.errors.saturating_add(1);
        self.errors <= ERRORS_MAX
    }
}
