//! What a frame comes to, and what is remembered of what came before.

use std::time::Duration;

use provost_event::{AskKind, AskOption, Blocker, TerminalAsk, TerminalEvidence, TerminalState};

use crate::profile::RuleEvent;

/// How many letters of a question are its beginning; a narrow window shows no more of it in a row.
const BEGINNING_CHARS: usize = 12;

/// What a frame says.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub(super) kind: Kind,
    /// Whether it is the same as another one.
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
    /// Whether it goes by the kernel alone: no rule knows these words.
    pub(super) is_weak: bool,
    /// What the rows but the cursor's say.
    pub(super) gist: u64,
    /// Whether it is a prompt at the cursor that is painted anew each time, not a composer that is always there.
    pub(super) is_prompt: bool,
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

/// What counts as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Whole lines.
    Lines,
    /// A key, but for those that only move the choice.
    Keys,
    /// Any key.
    EveryKey,
}

/// A finding that has yet to stand long enough.
pub(super) struct Candidate {
    pub(super) key: String,
    pub(super) since: Duration,
}

/// What was reported last and still stands.
pub(super) struct Standing {
    pub(super) kind: Kind,
    pub(super) key: String,
    pub(super) words: String,
    pub(super) takes: Takes,
    /// Whether letters were typed at it.
    pub(super) is_typed_at: bool,
    /// What the rest of the screen said.
    pub(super) gist: u64,
    pub(super) ask: Option<TerminalAsk>,
}

impl Standing {
    /// Whether it is the same question in other rows, as a new size of the window makes them: found by the same rule, begun
    /// with the same words, and about the same thing as far as both say about what.
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
    /// The line that was typed at, and its row.
    pub(super) line: String,
    pub(super) row: usize,
    /// The end of what was typed in this turn, on one line.
    pub(super) typed: String,
    /// Whether letters had been typed before it.
    pub(super) has_letters: bool,
    /// The prompt's words, if it was only letters.
    pub(super) letters: Option<String>,
    /// Whether a frame without the question was seen since.
    pub(super) has_vanished: bool,
}

/// How far an agent is with what it was asked for.
#[derive(Default)]
pub(super) struct Turn {
    /// A prompt was submitted, and its turn hasn't ended.
    pub(super) submitted: bool,
    /// Work was seen since the last answer.
    pub(super) worked: bool,
    /// How many transcripts were seen above a composer that looks ready since the last answer.
    pub(super) growths: u32,
    /// What was submitted began with a slash: a command of the program's own.
    pub(super) is_command: bool,
    /// The last answer refused or stopped something: the turn may end without any work.
    pub(super) is_stopped: bool,
    /// The first letters typed since the composer was ready.
    pub(super) typed: String,
}
