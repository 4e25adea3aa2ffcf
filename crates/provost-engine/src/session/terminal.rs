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

/// The state of a session's terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TerminalTrack {
    /// A program was started, and its end isn't recorded.
    is_open: bool,
    /// Its state as last recorded.
    state: TerminalState,
    /// The entry that requested its end.
    ending: Option<Seq>,
}

impl Deciding<'_> {
    pub(super) fn terminal_noted(&mut self, noted: TerminalNoted) {
        let is_last = noted.event == TerminalEvent::State(TerminalState::Exited);
        if self.state.is_external() && self.state.outcome.is_none() && !is_last {
            self.commit(noted);
        }
    }

    /// The program withdrew its question: it was answered at the terminal.
    pub(super) fn ask_withdrawn(&mut self, call: &CallId) {
        let asked = self.state.approvals.values().find(|open| &open.call == call).map(|open| open.asked);
        if let Some(asked) = asked {
            let reason = "it was answered at the terminal".to_owned();
            self.resolve(asked, ApprovalAnswer::Deny { reason }, BY_TERMINAL.to_owned());
        }
    }

    /// Ends the program before the session stops with `outcome`, if one is running. Returns whether to wait for
    /// that.
    pub(super) fn closes_terminal(&mut self, outcome: &Outcome) -> bool {
        let is_open = self.state.terminal.as_ref().is_some_and(|terminal| terminal.is_open);
        if !is_open {
            return false;
        }
        if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = self.state.phase {
            self.step.close(timer);
        }
        self.commit(TerminalEnding { outcome: outcome.clone() });
        self.open(self.closing_of_terminal());
        true
    }

    /// Repeats the request to end the program, under the same id.
    pub(super) fn close_terminal_again(&mut self) {
        if let Some(seq) = self.state.terminal_question() {
            self.step.close(seq);
            self.step.effect(seq, self.closing_of_terminal());
        }
    }

    fn closing_of_terminal(&self) -> Effect {
        Effect::CloseTerminal { session: self.state.session, limit_ms: self.limit_left_ms() }
    }

    pub(super) fn terminal_closed(&mut self, seq: Seq, exit: Option<Exit>) {
        if self.state.terminal_question() != Some(seq) || self.state.outcome.is_some() {
            return;
        }
        self.step.close(seq);
        if self.state.terminal.as_ref().is_some_and(|terminal| terminal.is_open) {
            let exit = exit.unwrap_or(Exit::Unseen);
            self.commit(TerminalNoted::certain(TerminalEvent::Exited { exit }));
        }
        // The last record: no process is left.
        self.commit(TerminalNoted::certain(TerminalEvent::State(TerminalState::Exited)));
        if let Some(outcome) = self.state.stopping.clone() {
            self.close_segment(outcome);
        }
    }
}

impl SessionState {
    /// The state of the program at the terminal, as last recorded; absent if no program was started.
    #[must_use]
    pub fn terminal(&self) -> Option<TerminalState> {
        self.terminal.as_ref().map(|terminal| terminal.state)
    }

    /// Whether the agent is an external program.
    pub(super) fn is_external(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.external.is_some())
    }

    /// Whether a person works at its terminal, and the program hasn't ended.
    pub(super) fn works_for_a_person(&self) -> bool {
        let external = self.policy.as_ref().and_then(|policy| policy.external.as_ref());
        external.is_some_and(|external| external.attended)
            && self.terminal.as_ref().is_some_and(|terminal| terminal.is_open)
    }

    /// The entry that requested the end of the program, while that is pending.
    pub(super) fn terminal_question(&self) -> Option<Seq> {
        self.terminal.as_ref()?.ending
    }

    pub(super) fn noted(&mut self, noted: &TerminalNoted) {
        if let TerminalEvent::Submitted { through, .. } = noted.event
            && through >= self.last_said
        {
            self.unheard = false;
        }
        let terminal = self.terminal.get_or_insert_default();
        match noted.event {
            TerminalEvent::Started { .. } => {
                (terminal.is_open, terminal.state) = (true, TerminalState::Starting);
            }
            TerminalEvent::State(TerminalState::Exited) => terminal.ending = None,
            TerminalEvent::State(state) => terminal.state = state,
            TerminalEvent::Exited { .. } => {
                (terminal.is_open, terminal.state) = (false, TerminalState::Exited);
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

    pub(super) fn terminal_ends(&mut self, ending: &TerminalEnding) {
        self.stopping = Some(ending.outcome.clone());
        self.terminal.get_or_insert_default().ending = Some(self.head);
    }
}
