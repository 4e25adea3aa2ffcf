//! A session whose agent is an external program: the recorded state of its terminal, and that the program is ended
//! before the session stops.

use provost_event::{
    ApprovalAnswer, CallId, Exit, Outcome, Seq, TerminalEnding, TerminalEvent, TerminalNoted, TerminalState,
};
use serde::{Deserialize, Serialize};

use super::{Deciding, Phase, SessionState};
use crate::Effect;
use crate::session::{calls::approve, segment};

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
            | TerminalEvent::Activity(_)
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

pub(in crate::session) fn noted(deciding: &mut Deciding<'_>, noted: TerminalNoted) {
    let is_last = noted.event == TerminalEvent::State(TerminalState::Exited);
    if deciding.state.assignment.is_external() && deciding.state.lifecycle.is_live() && !is_last {
        deciding.commit(noted);
    }
}

/// The program withdrew its question: it was answered at the terminal.
pub(in crate::session) fn ask_withdrawn(deciding: &mut Deciding<'_>, call: &CallId) {
    let asked = deciding.state.calls.approval_of(call);
    if let Some(asked) = asked {
        let reason = "it was answered at the terminal".to_owned();
        approve::resolve(deciding, asked, ApprovalAnswer::Deny { reason }, BY_TERMINAL.to_owned());
    }
}

/// Ends the program before the session stops with `outcome`, if one is running. Returns whether to wait for
/// that.
pub(in crate::session) fn closes_terminal(deciding: &mut Deciding<'_>, outcome: &Outcome) -> bool {
    if !deciding.state.terminal.is_open() {
        return false;
    }
    if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = deciding.state.lifecycle.phase() {
        deciding.step.close(timer);
    }
    deciding.commit(TerminalEnding { outcome: outcome.clone() });
    deciding.open(closing_of_terminal(deciding));
    true
}

/// Repeats the request to end the program, under the same id.
pub(in crate::session) fn close_terminal_again(deciding: &mut Deciding<'_>) {
    if let Some(seq) = deciding.state.terminal.question() {
        deciding.step.close(seq);
        deciding.step.effect(seq, closing_of_terminal(deciding));
    }
}

fn closing_of_terminal(deciding: &Deciding<'_>) -> Effect {
    Effect::CloseTerminal { session: deciding.state.session, limit_ms: deciding.limit_left_ms() }
}

pub(in crate::session) fn closed(deciding: &mut Deciding<'_>, seq: Seq, exit: Option<Exit>) {
    if deciding.state.terminal.question() != Some(seq) || deciding.state.lifecycle.outcome().is_some() {
        return;
    }
    deciding.step.close(seq);
    if deciding.state.terminal.is_open() {
        let exit = exit.unwrap_or(Exit::Unseen);
        deciding.commit(TerminalNoted::certain(TerminalEvent::Exited { exit }));
    }
    // The last record: no process is left.
    deciding.commit(TerminalNoted::certain(TerminalEvent::State(TerminalState::Exited)));
    if let Some(outcome) = deciding.state.lifecycle.stopping().cloned() {
        segment::close(deciding, outcome);
    }
}

impl SessionState {
    /// The state of the program at the terminal, as last recorded; absent if no program was started.
    #[must_use]
    pub const fn terminal(&self) -> Option<TerminalState> {
        self.terminal.state()
    }
}
