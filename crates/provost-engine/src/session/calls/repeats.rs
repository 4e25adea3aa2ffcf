//! Repeated calls and failing calls: counted by turn, so that parallel calls of one answer count once.

use provost_event::{ItemKind, Limits, Outcome, PauseReason, ToolFinished, ToolStatus};
use serde::{Deserialize, Serialize};

use super::Calls;
use crate::session::Deciding;
use crate::session::assignment::Assignment;

/// The last call with its result, and in how many turns in a row it was the only one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Repeats {
    fingerprint: u64,
    times: u32,
}

/// The calls of the current turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CallsOfTurn {
    /// A fingerprint of all its calls, each counted once.
    fingerprint: u64,
    last: u64,
    /// Calls that were made, and those that were rejected, denied or failed as a tool.
    made: u32,
    failed: u32,
    /// One of them only waited for, or looked at, work in the background.
    waited: bool,
    /// One of them found that the workspace is gone.
    workspace_gone: bool,
}

impl CallsOfTurn {
    fn add(&mut self, fingerprint: u64, finished: &ToolFinished) {
        if self.last != fingerprint {
            self.fingerprint = self.fingerprint.rotate_left(9) ^ fingerprint;
            self.last = fingerprint;
        }
        self.waited |= finished.facts.waited;
        self.workspace_gone |= finished.facts.workspace_gone;
        // The exit status of a command is output.
        let is_output = finished.facts.exit_status.is_some();
        match finished.status {
            ToolStatus::Cancelled | ToolStatus::Unknown => {}
            ToolStatus::Error | ToolStatus::Rejected | ToolStatus::Denied | ToolStatus::TimedOut
                if !is_output =>
            {
                self.failed = self.failed.saturating_add(1);
            }
            ToolStatus::Ok
            | ToolStatus::Error
            | ToolStatus::Rejected
            | ToolStatus::Denied
            | ToolStatus::TimedOut => self.made = self.made.saturating_add(1),
        }
    }

    const fn is_empty(self) -> bool {
        self.made == 0 && self.failed == 0
    }
}

/// The calls of earlier turns and of this one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallHistory {
    /// Calls so far.
    made: u32,
    /// How many of them were made when a turn last ended without any.
    made_at_stop: u32,
    repeats: Repeats,
    of_turn: CallsOfTurn,
    /// Turns in a row in which no call succeeded.
    failed_turns: u32,
    /// A call of the last turn found that the workspace is gone.
    workspace_gone: bool,
}

impl CallHistory {
    pub(super) fn finished(&mut self, fingerprint: u64, finished: &ToolFinished) {
        self.made = self.made.saturating_add(1);
        self.of_turn.add(fingerprint, finished);
    }

    pub(super) fn turn_ended(&mut self, is_without_calls: bool) {
        if is_without_calls {
            self.made_at_stop = self.made;
        }
        self.repeats = self.repeats_with_turn();
        self.failed_turns = self.failed_turns_with_turn();
        self.workspace_gone = self.of_turn.workspace_gone;
        self.of_turn = CallsOfTurn::default();
    }

    /// The session was resumed by a request.
    pub(super) fn resumed(&mut self) {
        self.failed_turns = 0;
        self.repeats = Repeats::default();
    }

    pub(super) const fn made(&self) -> u32 {
        self.made
    }

    /// Tools called since the agent last ended a turn without a call, or since it began.
    pub(super) const fn made_since_stop(&self) -> u32 {
        self.made.saturating_sub(self.made_at_stop)
    }

    /// In how many turns in a row the same calls were made, including the current one. A turn without calls
    /// changes nothing; a turn that waits resets the count.
    const fn repeats_with_turn(&self) -> Repeats {
        let turn = self.of_turn;
        let last = self.repeats;
        if turn.is_empty() {
            last
        } else if turn.waited {
            Repeats { fingerprint: 0, times: 0 }
        } else if last.times > 0 && last.fingerprint == turn.fingerprint {
            Repeats { times: last.times.saturating_add(1), ..last }
        } else {
            Repeats { fingerprint: turn.fingerprint, times: 1 }
        }
    }

    /// In how many turns in a row no call succeeded, including the current one.
    const fn failed_turns_with_turn(&self) -> u32 {
        let turn = self.of_turn;
        if turn.is_empty() {
            self.failed_turns
        } else if turn.made > 0 {
            0
        } else {
            self.failed_turns.saturating_add(1)
        }
    }

    /// What the model is notified of before the turn ends: calls that repeat, whose last is of `tool`, and turns in
    /// which all calls fail.
    fn notices(&self, tool: &str, limits: Limits) -> Vec<CallNotice> {
        let mut notices = Vec::new();
        let times = self.repeats_with_turn().times;
        if times >= limits.repeated_call_notice_at && times < limits.repeated_call_max {
            let body = format!(
                "You have made the same `{tool}` call {times} times in a row, with the same result each time. If you \
                 wait for something, wait longer in one call; otherwise change the approach."
            );
            notices.push(CallNotice { item: ItemKind::RepeatedCallNotice, body });
        }
        let turns = self.failed_turns_with_turn();
        let is_new = turns > self.failed_turns;
        if is_new && turns == limits.failed_turns_notice_at && turns < limits.failed_turns_max {
            let body = format!(
                "In the last {turns} turns no tool call succeeded: each was rejected, denied or failed. Read what the \
                 results say, and call a tool that is offered, with arguments that fit it. After {} such turns in a row \
                 you are suspended.",
                limits.failed_turns_max
            );
            notices.push(CallNotice { item: ItemKind::FailedCallsNotice, body });
        }
        notices
    }

    /// Why the session is suspended for its calls, the last of `tool`, after a turn; if it is.
    fn suspends(&self, tool: String, assignment: &Assignment) -> Option<Outcome> {
        let limits = assignment.limits();
        let times = self.repeats.times;
        let turns = self.failed_turns;
        let why = if let Some(policy) = assignment.policy().filter(|_| self.workspace_gone) {
            PauseReason::WorkspaceGone { path: policy.workspace.clone() }
        } else if times >= limits.repeated_call_max {
            PauseReason::RepeatedCall { tool, times }
        } else if turns >= limits.failed_turns_max {
            PauseReason::ToolFailures { turns }
        } else {
            return None;
        };
        Some(Outcome::Paused { why })
    }
}

/// A notice to the model about its calls.
struct CallNotice {
    item: ItemKind,
    body: String,
}

impl Calls {
    /// What the model is notified of before the turn ends.
    fn notices(&self, limits: Limits) -> Vec<CallNotice> {
        self.history.notices(self.of_answer.last_tool(), limits)
    }

    /// Why the session is suspended for its calls after a turn whose last call was of `tool`; if it is.
    pub(super) fn suspends(&self, tool: String, assignment: &Assignment) -> Option<Outcome> {
        self.history.suspends(tool, assignment)
    }
}

/// Notifies the model of repeated calls and of turns in which all calls fail, before the turn ends.
pub(in crate::session) fn notices_of_calls(deciding: &mut Deciding<'_>) {
    for notice in deciding.state.calls.notices(deciding.state.assignment.limits()) {
        deciding.say(notice.item, notice.body);
    }
}
