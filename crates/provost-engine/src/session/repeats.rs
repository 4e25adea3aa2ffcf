//! Repeated calls and failing calls: counted by turn, so that parallel calls of one answer count once.

use provost_event::{ItemKind, Outcome, PauseReason, ToolFinished, ToolStatus};
use serde::{Deserialize, Serialize};

use super::{Deciding, SessionState};

/// The last call with its result, and in how many turns in a row it was the only one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Repeats {
    fingerprint: u64,
    pub(super) times: u32,
}

/// The calls of the current turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallsOfTurn {
    /// A fingerprint of all its calls, each counted once.
    fingerprint: u64,
    last: u64,
    /// Calls that were made, and those that were rejected, denied or failed as a tool.
    made: u32,
    failed: u32,
    /// One of them only waited for, or looked at, work in the background.
    waited: bool,
}

impl CallsOfTurn {
    pub(super) fn add(&mut self, fingerprint: u64, finished: &ToolFinished) {
        if self.last != fingerprint {
            self.fingerprint = self.fingerprint.rotate_left(9) ^ fingerprint;
            self.last = fingerprint;
        }
        self.waited |= finished.facts.waited;
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

impl SessionState {
    /// In how many turns in a row the same calls were made, including the current one. A turn without calls
    /// changes nothing; a turn that waits resets the count.
    pub(super) const fn repeats_with_turn(&self) -> Repeats {
        let (turn, last) = (self.calls_of_turn, self.repeats);
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
    pub(super) const fn failed_turns_with_turn(&self) -> u32 {
        let turn = self.calls_of_turn;
        if turn.is_empty() {
            self.counters.failed_turns
        } else if turn.made > 0 {
            0
        } else {
            self.counters.failed_turns.saturating_add(1)
        }
    }
}

impl Deciding<'_> {
    /// Notifies the model of repeated calls and of turns in which all calls fail, before the turn ends.
    pub(super) fn notices_of_calls(&mut self) {
        let limits = self.state.assignment.limits();
        let times = self.state.repeats_with_turn().times;
        if times >= limits.repeated_call_notice_at && times < limits.repeated_call_max {
            let tool = self.state.calls.last().map(|call| call.tool.clone()).unwrap_or_default();
            let body = format!(
                "You have made the same `{tool}` call {times} times in a row, with the same result each time. If you \
                 wait for something, wait longer in one call; otherwise change the approach."
            );
            self.say(ItemKind::RepeatedCallNotice, body);
        }
        let turns = self.state.failed_turns_with_turn();
        let is_new = turns > self.state.counters.failed_turns;
        if is_new && turns == limits.failed_turns_notice_at && turns < limits.failed_turns_max {
            let body = format!(
                "In the last {turns} turns no tool call succeeded: each was rejected, denied or failed. Read what the \
                 results say, and call a tool that is offered, with arguments that fit it. After {} such turns in a row \
                 you are suspended.",
                limits.failed_turns_max
            );
            self.say(ItemKind::FailedCallsNotice, body);
        }
    }

    /// Why the session is suspended for its calls, if it is.
    pub(super) fn suspended_for_calls(&self, tool: String) -> Option<Outcome> {
        let limits = self.state.assignment.limits();
        let (times, turns) = (self.state.repeats.times, self.state.counters.failed_turns);
        let why = if times >= limits.repeated_call_max {
            PauseReason::RepeatedCall { tool, times }
        } else if turns >= limits.failed_turns_max {
            PauseReason::ToolFailures { turns }
        } else {
            return None;
        };
        Some(Outcome::Paused { why })
    }
}
