//! The result of a frame, and the state kept from earlier frames.

use std::time::Duration;

use provost_event::{AskKind, AskOption, Blocker, TerminalAsk, TerminalEvidence, TerminalState};

use crate::profile::RuleEvent;

/// The letters that count as a question's beginning; a narrow window shows no more of it in a row.
const BEGINNING_CHARS: usize = 12;

/// The result of a frame.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) kind: Kind,
    /// Identifies equal findings.
    pub(super) key: String,
    /// The line or the question.
    pub(super) words: String,
    pub(super) takes: Takes,
    pub(super) ask: AskKind,
    pub(super) subject: Option<String>,
    pub(super) options: Vec<AskOption>,
    pub(super) default: Option<usize>,
    pub(super) stable: Duration,
    pub(super) confidence: u8,
    pub(super) evidence: Vec<TerminalEvidence>,
    /// Whether only the kernel supports it: no rule matches the text.
    pub(super) is_weak: bool,
    /// A digest of the rows other than the cursor's.
    pub(super) gist: u64,
    /// Whether it is a prompt that is painted at the cursor each time, not a permanent composer.
    pub(super) is_prompt: bool,
    /// Whether text is read, as far as that is known.
    pub(super) takes_text: bool,
}

impl Finding {
    pub(super) fn plain(kind: Kind, words: String) -> Self {
        Self {
            kind,
            key: format!("{kind:?}\n{words}"),
            words,
            takes: Takes::Lines,
            ask: AskKind::Other,
            subject: None,
            options: Vec::new(),
            default: None,
            stable: Duration::ZERO,
            confidence: 80,
            evidence: Vec::new(),
            is_weak: true,
            gist: 0,
            is_prompt: false,
            takes_text: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Approval,
    Question,
    Auth,
    Waiting,
    Password,
    Working,
    Idle,
}

impl Kind {
    pub(super) const fn of(event: RuleEvent) -> Self {
        match event {
            RuleEvent::Approval => Self::Approval,
            RuleEvent::Question => Self::Question,
            RuleEvent::Auth => Self::Auth,
            RuleEvent::Waiting | RuleEvent::Error => Self::Waiting,
            RuleEvent::Password => Self::Password,
            RuleEvent::Working => Self::Working,
            RuleEvent::Idle => Self::Idle,
        }
    }

    pub(super) const fn state(self) -> TerminalState {
        match self {
            Self::Approval => TerminalState::Blocked(Blocker::Approval),
            Self::Question => TerminalState::Blocked(Blocker::Question),
            Self::Auth => TerminalState::Blocked(Blocker::Auth),
            Self::Waiting => TerminalState::WaitingForInput,
            Self::Password => TerminalState::Password,
            Self::Working => TerminalState::Working,
            Self::Idle => TerminalState::Idle,
        }
    }
}

/// The input that counts as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Whole lines.
    Lines,
    /// A key, except those that only move the selection.
    Keys,
    /// Any key.
    EveryKey,
}

/// A finding that hasn't lasted long enough yet.
pub(super) struct Candidate {
    pub(super) key: String,
    pub(super) since: Duration,
}

/// The last reported finding that still holds.
pub(super) struct ReportedState {
    pub(super) kind: Kind,
    pub(super) key: String,
    pub(super) words: String,
    pub(super) takes: Takes,
    /// Whether letters were typed since it was reported.
    pub(super) is_typed_at: bool,
    /// A digest of the rest of the screen.
    pub(super) gist: u64,
    /// Whether it reads text.
    pub(super) takes_text: bool,
    /// Whether a secret is asked for that the terminal shows as it is typed.
    pub(super) exposes_secret: bool,
    pub(super) ask: Option<TerminalAsk>,
}

impl ReportedState {
    /// That of a finding which is reported now.
    pub(super) fn of(finding: &Finding, ask: Option<TerminalAsk>) -> Self {
        Self {
            kind: finding.kind,
            key: finding.key.clone(),
            words: finding.words.clone(),
            takes: finding.takes,
            is_typed_at: false,
            gist: finding.gist,
            takes_text: finding.takes_text,
            exposes_secret: false,
            ask,
        }
    }

    /// Whether it is the same question wrapped differently after a resize: found by the same rule, with the same
    /// first words, and with the same subject if both have one.
    pub(super) fn is_like(&self, finding: &Finding) -> bool {
        let is_rule = self.kind == finding.kind && self.key.lines().next() == finding.key.lines().next();
        let subject = self.ask.as_ref().and_then(|ask| ask.subject.as_ref());
        let is_subject = subject.zip(finding.subject.as_ref()).is_none_or(|(old, new)| old == new);
        is_rule && is_subject && beginning(&self.words) == beginning(&finding.words)
    }
}

fn beginning(words: &str) -> String {
    words.chars().filter(|c| c.is_alphanumeric()).take(BEGINNING_CHARS).collect()
}

/// The last answer.
pub(super) struct Answered {
    pub(super) at: Duration,
    pub(super) key: String,
    /// The line at the cursor when it was typed, and its row.
    pub(super) line: String,
    pub(super) row: usize,
    /// The end of the input of this turn, on one line.
    pub(super) typed: String,
    /// Whether letters had been typed before.
    pub(super) has_letters: bool,
    /// The prompt's text, if only letters were typed.
    pub(super) letters: Option<String>,
    /// Whether a frame without the question was seen since.
    pub(super) has_vanished: bool,
    /// The last rows when it was typed.
    pub(super) status: Vec<String>,
    /// The failure that was reported since.
    pub(super) failure: Option<String>,
}

/// The progress of an agent's turn.
#[derive(Default)]
pub(super) struct Turn {
    /// A prompt was submitted, and its turn hasn't ended.
    pub(super) submitted: bool,
    /// When that was.
    pub(super) submitted_at: Duration,
    /// Signs of work were seen since the last answer.
    pub(super) worked: bool,
    /// The program itself has shown that it works on the prompt.
    pub(super) has_shown_work: bool,
    /// The requests to models that had begun when the prompt was submitted, where they are counted.
    pub(super) calls_before: Option<u64>,
    /// The number of changed transcripts above a composer that looks ready, since the last answer.
    pub(super) growths: u32,
    /// The submitted text began with a slash: a command of the program itself.
    pub(super) is_command: bool,
    /// The last answer refused or interrupted: the turn may end without any work.
    pub(super) is_stopped: bool,
    /// The program reports that it has failed.
    pub(super) has_failed: bool,
    /// The first letters typed since the composer was ready.
    pub(super) typed: String,
}
