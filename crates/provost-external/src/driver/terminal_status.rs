//! The status of a terminal: the fold of its events.

use provost_event::{
    Blocker, CompletionScope, EvidenceSource, Exit, TerminalAsk, TerminalEvent, TerminalNoted, TerminalState,
};
use tokio::time::Instant;

/// The status, as far as it is in the log.
#[derive(Debug, Clone)]
pub(crate) struct TerminalStatus {
    /// What the program does, and since when.
    pub(crate) state: TerminalState,
    pub(crate) since: Instant,
    /// The question for consent that waits for an answer.
    pub(crate) ask: Option<TerminalAsk>,
    /// The prompt of the input that a person is to type.
    pub(crate) prompt: String,
    /// How many turns an agent has completed.
    pub(crate) turns: u64,
    /// When it has completed the last of them.
    pub(crate) turn_ended: Option<Instant>,
    /// The last failure that has become visible since the last prompt was given.
    pub(crate) error: Option<String>,
    /// The failure by which the last completed turn has ended.
    pub(crate) turn_failure: Option<String>,
    /// How many signs of work there were, apart from typing.
    pub(crate) works: u64,
    /// How many of them the program itself gave, on its screen or by its signals: a process that it starts may be one of
    /// its own start.
    pub(crate) shown_works: u64,
    /// The number of events other than states.
    pub(crate) happened: u64,
    /// The number of all events.
    pub(crate) changes: u64,
    /// How the program ended.
    pub(crate) exit: Option<Exit>,
    /// Why nothing can be recorded any more.
    pub(crate) failure: Option<String>,
}

impl TerminalStatus {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            state: TerminalState::Starting,
            since: now,
            ask: None,
            prompt: String::new(),
            turns: 0,
            turn_ended: None,
            error: None,
            turn_failure: None,
            works: 0,
            shown_works: 0,
            happened: 0,
            changes: 0,
            exit: None,
            failure: None,
        }
    }

    /// Applies an event.
    pub(crate) fn fold(&mut self, noted: &TerminalNoted, now: Instant) {
        self.changes += 1;
        match &noted.event {
            TerminalEvent::State(state) => self.becomes(*state, now),
            TerminalEvent::ApprovalRequest(ask) => {
                self.ask = Some(ask.clone());
                self.becomes(TerminalState::Blocked(Blocker::Approval), now);
            }
            TerminalEvent::WaitingForInput { prompt } | TerminalEvent::PasswordPrompt { prompt } => {
                self.prompt.clone_from(prompt);
                self.since = now;
            }
            TerminalEvent::Completion { scope: CompletionScope::Turn, succeeded } => {
                self.turns += 1;
                self.turn_ended = Some(now);
                let unnamed = || "it reports a failure and doesn't name it".to_owned();
                self.turn_failure =
                    (*succeeded == Some(false)).then(|| self.error.clone().unwrap_or_else(unnamed));
            }
            TerminalEvent::Completion { scope: CompletionScope::Process, succeeded: Some(false) } => {
                self.turn_failure = self.turn_failure.take().or_else(|| self.error.clone());
            }
            TerminalEvent::Error { line } => self.error = Some(line.clone()),
            TerminalEvent::Submitted { .. } => (self.error, self.turn_failure) = (None, None),
            TerminalEvent::Exited { exit } => self.exit = Some(*exit),
            TerminalEvent::Started { .. }
            | TerminalEvent::Completion { scope: CompletionScope::Process, .. }
            | TerminalEvent::Idle
            | TerminalEvent::Notification { .. }
            | TerminalEvent::Answered { .. }
            | TerminalEvent::Attached { .. }
            | TerminalEvent::Activity(_)
            | TerminalEvent::Detached { .. } => {}
        }
        if !matches!(noted.event, TerminalEvent::State(_)) {
            self.happened += 1;
        }
    }

    fn becomes(&mut self, state: TerminalState, now: Instant) {
        if self.state != state {
            (self.state, self.since) = (state, now);
        }
        if state != TerminalState::Blocked(Blocker::Approval) {
            self.ask = None;
        }
    }

    /// Whether it asks for consent with this fingerprint.
    pub(crate) fn asks(&self, fingerprint: &str) -> bool {
        self.ask.as_ref().is_some_and(|ask| ask.fingerprint == fingerprint)
    }

    /// Counts an event that shows that the program works, apart from echoing what was typed.
    pub(crate) fn count_work(&mut self, noted: &TerminalNoted) {
        let source = noted.evidence.first().map(|reason| reason.source);
        let is_sign = source.is_some_and(|source| source != EvidenceSource::Input);
        if noted.event == TerminalEvent::State(TerminalState::Working) && is_sign {
            self.works += 1;
            self.shown_works += u64::from(source != Some(EvidenceSource::Kernel));
        }
    }
}
