//! A session whose agent is an external program: the recorded state of its terminal, and that the program is ended
//! before the session stops.

use provost_event::{
    ApprovalAnswer, CallId, Exit, Outcome, Seq, TerminalEnding, TerminalEvent, TerminalNoted, TerminalState,
};
use serde::{Deserialize, Serialize};

use super::{Deciding, Phase, SessionState};
use crate::Effect;

/// The author of an answer that was given at the terminal itself.
const BY_TERMINAL: &str = "a person at the terminal";

/// The terminal of an external agent, as far as it is recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Terminal {
    /// The program's state as last recorded; absent if none was started.
    state: Option<TerminalState>,
    /// A program was started, and its end isn't recorded.
    is_open: bool,
    /// The entry that requested its end, while that is pending.
    ending: Option<Seq>,
}

impl Terminal {
    pub(super) fn noted(&mut self, noted: &TerminalNoted) {
        let state = self.state.get_or_insert_default();
        match noted.event {
            TerminalEvent::Started { .. } => {
                self.is_open = true;
                *state = TerminalState::Starting;
            }
            TerminalEvent::State(TerminalState::Exited) => self.ending = None,
            TerminalEvent::State(noted) => *state = noted,
            TerminalEvent::Exited { .. } => {
                self.is_open = false;
                *state = TerminalState::Exited;
            }
            TerminalEvent::ApprovalRequest(_)
            | TerminalEvent::WaitingForInput { .. }
            | TerminalEvent::PasswordPrompt { .. }
            | TerminalEvent::Error { .. }
            | TerminalEvent::Completion { .. }
            | TerminalEvent::Idle
            | TerminalEvent::Notification { .. }
            | TerminalEvent::Submitted { .. }
            | TerminalEvent::Answered { .. }
            | TerminalEvent::Attached { .. }
            | TerminalEvent::Detached { .. } => {}
        }
    }

    /// The entry `head` requests the program's end.
    pub(super) const fn ending(&mut self, head: Seq) {
        self.ending = Some(head);
    }

    /// The program's state as last recorded; absent if none was started.
    pub(super) const fn state(&self) -> Option<TerminalState> {
        self.state
    }

    /// Whether a program is running.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// The entry that requested the program's end, while that is pending.
    pub(super) const fn question(&self) -> Option<Seq> {
        self.ending
    }
}

impl Deciding<'_> {
    pub(super) fn terminal_noted(&mut self, noted: TerminalNoted) {
        let is_last = noted.event == TerminalEvent::State(TerminalState::Exited);
        if self.state.assignment.is_external() && self.state.lifecycle.is_live() && !is_last {
            self.commit(noted);
        }
    }

    /// The program withdrew its question: it was answered at the terminal.
    pub(super) fn ask_withdrawn(&mut self, call: &CallId) {
        let asked = self.state.calls.approval_of(call);
        if let Some(asked) = asked {
            let reason = "it was answered at the terminal".to_owned();
            self.resolve(asked, ApprovalAnswer::Deny { reason }, BY_TERMINAL.to_owned());
        }
    }

    /// Ends the program before the session stops with `outcome`, if one is running. Returns whether to wait for
    /// that.
    pub(super) fn closes_terminal(&mut self, outcome: &Outcome) -> bool {
        if !self.state.terminal.is_open() {
            return false;
        }
        if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = self.state.lifecycle.phase() {
            self.step.close(timer);
        }
        self.commit(TerminalEnding { outcome: outcome.clone() });
        self.open(self.closing_of_terminal());
        true
    }

    /// Repeats the request to end the program, under the same id.
    pub(super) fn close_terminal_again(&mut self) {
        if let Some(seq) = self.state.terminal.question() {
            self.step.close(seq);
            self.step.effect(seq, self.closing_of_terminal());
        }
    }

    fn closing_of_terminal(&self) -> Effect {
        Effect::CloseTerminal { session: self.state.session, limit_ms: self.limit_left_ms() }
    }

    pub(super) fn terminal_closed(&mut self, seq: Seq, exit: Option<Exit>) {
        if self.state.terminal.question() != Some(seq) || self.state.lifecycle.outcome().is_some() {
            return;
        }
        self.step.close(seq);
        if self.state.terminal.is_open() {
            let exit = exit.unwrap_or(Exit::Unseen);
            self.commit(TerminalNoted::certain(TerminalEvent::Exited { exit }));
        }
        // The last record: no process is left.
        self.commit(TerminalNoted::certain(TerminalEvent::State(TerminalState::Exited)));
        if let Some(outcome) = self.state.lifecycle.stopping().cloned() {
            self.close_segment(outcome);
        }
    }
}

impl SessionState {
    /// The state of the program at the terminal, as last recorded; absent if no program was started.
    #[must_use]
    pub const fn terminal(&self) -> Option<TerminalState> {
        self.terminal.state()
    }
}
