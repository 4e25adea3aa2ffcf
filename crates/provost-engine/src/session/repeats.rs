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

    /// The number of turns in a row without progress at which it is suspended; 0: never.
    pub(super) fn stuck_turns(&self) -> u32 {
        match self.bound_by() {
            Some((policy, _)) => policy.stuck_turns,
            // What an external program does internally isn't known.
            None if self.assignment.is_external() => 0,
            None => self.assignment.limits().stuck_turns,
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

    /// Suspends the session after too many turns without progress; notifies the model before. Returns whether it
    /// suspends it.
    pub(super) fn looks_at_progress(&mut self) -> bool {
        let (idle, most) = (self.state.progress.idle_turns, self.state.stuck_turns());
        if most == 0 {
            return false;
        }
        if idle >= most {
            self.finish_segment(Outcome::Paused { why: PauseReason::Stuck { turns: idle } });
            return true;
        }
        // Three fifths of them, and at least one.
        let told_at = most.saturating_mul(3).div_ceil(5).max(1);
        if idle >= told_at && !self.state.progress.is_told && !self.state.assignment.is_external() {
            let left = most.saturating_sub(idle);
            let turns =
                if left == 1 { "one more such turn".to_owned() } else { format!("{left} more such turns") };
            let body = format!(
                "Nothing measurable has moved the work on for {idle} turns: no changed file, no changed result of a \
                 check, no ticked step of the plan, no new kind of call or result. If you wait for something, wait longer in \
                 one call; otherwise change the approach, or say what keeps you from going on. After {turns} you are \
                 suspended."
            );
            self.say(ItemKind::NoProgressNotice, body);
        }
        false
    }
}
