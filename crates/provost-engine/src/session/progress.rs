//! Measured progress: what is new and lasts. The agent's own statements don't count, and neither do numbers,
//! times, ids and temporary names: a loop whose output varies is still a loop.
//!
//! *Lasting* is a changed file, a changed result of the stop hooks, a completed step of the plan, or a new kind of
//! call with a new kind of result. *Passing* is only one of call and result, a change of a check's counts, or a
//! file read that wasn't read before. It counts too, but for a limited number of turns ([`PASSING_TURNS_MAX`]).

mod kind;
mod report;

use std::collections::VecDeque;

use provost_event::{
    CallFacts, HookReport, ItemKind, Outcome, PauseReason, Plan, PlanStatus, StopHookVerdict, ToolStatus,
};
use serde::{Deserialize, Serialize};

use super::fingerprint::fingerprint;
use super::{Deciding, SessionState};
use crate::session::segment;
use kind::{counts_of, kind_of_call, kind_of_check, kind_of_result};

pub use kind::kind_of_text;
pub use report::{ProgressReport, ProgressState};

/// How many fingerprints of each kind are kept; one that was evicted counts as new again.
const SEEN_MAX: usize = 1_000;
/// Turns in a row that may bring only passing progress before they count as none.
const PASSING_TURNS_MAX: u32 = 30;
/// Maximum number of counted edits of one file that differ from an earlier one only in numbers.
const NUMBER_EDITS_MAX: u8 = 10;
/// Files for which those edits are counted.
const EDITED_MAX: usize = 200;
/// Turns that count as progress for files that weren't there before, whatever their names.
const NEW_FILE_TURNS_MAX: u32 = 100;
/// Turns that a report covers.
const RECENT_MAX: usize = 10;

/// Fingerprints that were seen, the newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct SeenNumbers(VecDeque<u64>);

impl SeenNumbers {
    /// Adds a fingerprint; returns whether it is new.
    fn add(&mut self, number: u64) -> bool {
        if self.0.contains(&number) {
            return false;
        }
        if self.0.len() >= SEEN_MAX {
            self.0.pop_front();
        }
        self.0.push_back(number);
        true
    }
}

/// The progress of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct TurnProgress {
    files: bool,
    checks: bool,
    steps: bool,
    /// A new kind of call had a new kind of result.
    work: bool,
    calls: bool,
    results: bool,
    /// Results differed, even if only in numbers.
    varied: bool,
    /// It called a tool that did more than wait.
    acted: bool,
    /// It waited for, or looked at, work in the background.
    waited: bool,
}

impl TurnProgress {
    const fn is_lasting(self) -> bool {
        self.files || self.checks || self.steps || self.work
    }

    const fn is_passing(self) -> bool {
        self.calls || self.results
    }
}

/// A call as it is measured.
pub(super) struct MeasuredCall<'a> {
    pub(super) tool: &'a str,
    pub(super) input: &'a str,
    /// The file that it writes, if it does nothing else.
    pub(super) writes: &'a [String],
    /// It changes nothing.
    pub(super) reads: bool,
}

/// What was seen so far, and for how many turns nothing was new.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    /// Turns in a row without progress; those that only waited don't count.
    idle_turns: u32,
    /// The agent was notified that it makes no progress.
    is_told: bool,
    passing_turns: u32,
    turn: TurnProgress,
    recent: VecDeque<TurnProgress>,
    calls: SeenNumbers,
    results: SeenNumbers,
    /// Calls with their results, verbatim.
    exact: SeenNumbers,
    counts: SeenNumbers,
    files: SeenNumbers,
    /// Files with the number of edits that differed only in numbers.
    number_edits: VecDeque<(u64, u8)>,
    /// Turns that counted for new files alone or besides.
    new_file_turns: u32,
    ticked: SeenNumbers,
    stop_hooks: SeenNumbers,
    workspace: Option<u64>,
}

impl Progress {
    /// Measures a call with its result.
    pub(super) fn called(
        &mut self,
        call: &MeasuredCall<'_>,
        status: ToolStatus,
        output: &str,
        facts: &CallFacts,
    ) {
        self.turn.waited |= facts.waited;
        self.turn.acted |= !facts.waited;
        for file in &facts.changed_files {
            self.turn.files |= self.files.add(*file);
        }
        // A chapter or a page a turn is work, though their names differ only in numbers; a loop can do that, too.
        if facts.new_files > 0 && self.new_file_turns < NEW_FILE_TURNS_MAX {
            self.turn.files = true;
            self.new_file_turns = self.new_file_turns.saturating_add(1);
        }
        if !matches!(status, ToolStatus::Ok | ToolStatus::Error | ToolStatus::TimedOut) {
            return;
        }
        let is_ok = status == ToolStatus::Ok;
        let call_kind = kind_of_call(call.tool, call.input);
        let result_kind = fingerprint([call.tool]) ^ kind_of_result(call.input, output);
        let is_new_call = self.calls.add(call_kind);
        let is_new_result = self.results.add(result_kind);
        let is_new_input = self.exact.add(fingerprint([call.tool, call.input]));
        let varies = self.exact.add(fingerprint([call.tool, call.input, output]));
        let counted = counts_of(output).is_some_and(|counts| self.counts.add(call_kind ^ counts));
        // A failed tool's error text varies with the request: it counts only with an exit status.
        let did_work = is_ok || facts.exit_status.is_some();
        self.turn.work |= is_new_call && is_new_result && did_work;
        self.turn.calls |= is_new_call;
        self.turn.results |= is_new_result || counted || (call.reads && is_ok && is_new_input && varies);
        self.turn.varied |= varies;
        if is_ok {
            call.writes.iter().for_each(|path| self.wrote(path, call_kind, is_new_input));
        }
    }

    /// Measures a file that was written by a call of this kind.
    fn wrote(&mut self, path: &str, call_kind: u64, is_new_input: bool) {
        let file = fingerprint([path]);
        let is_new = self.files.add(file);
        let is_changed = self.files.add(file ^ call_kind);
        if is_new || is_changed {
            self.turn.files = true;
        } else if is_new_input {
            self.turn.files |= self.counts_number_edit(file);
        }
    }

    fn counts_number_edit(&mut self, file: u64) -> bool {
        if let Some((_, times)) = self.number_edits.iter_mut().find(|(known, _)| *known == file) {
            *times = times.saturating_add(1);
            return *times <= NUMBER_EDITS_MAX;
        }
        if self.number_edits.len() >= EDITED_MAX {
            self.number_edits.pop_front();
        }
        self.number_edits.push_back((file, 1));
        true
    }

    /// Measures the agent's current plan: only completed steps count.
    pub(super) fn planned(&mut self, plan: &Plan) {
        self.turn.acted = true;
        for step in plan.items.iter().filter(|step| step.status == PlanStatus::Done) {
            self.turn.steps |= self.ticked.add(fingerprint([step.text.trim()]));
        }
    }

    pub(super) fn stop_hooks_said(&mut self, reports: &[HookReport]) {
        let said = reports.iter().fold(0_u64, |said, report| {
            let (verdict, reason) = match report.stop_verdict() {
                StopHookVerdict::Allow => ("allow", String::new()),
                StopHookVerdict::Block(reason) => ("block", reason),
                StopHookVerdict::Halt(reason) => ("halt", reason),
                StopHookVerdict::Error(reason) => ("error", reason),
                StopHookVerdict::Broken(reason) => ("broken", reason),
                StopHookVerdict::TimedOut(_) => ("timed out", String::new()),
            };
            said.rotate_left(7) ^ fingerprint([report.hook.as_str(), verdict]) ^ kind_of_check(&reason)
        });
        let is_first = self.stop_hooks == SeenNumbers::default();
        self.turn.checks |= self.stop_hooks.add(said) && !is_first;
    }

    /// Measures the state of the workspace.
    pub(super) fn saw_workspace(&mut self, seen: &str) {
        if seen.is_empty() {
            return;
        }
        let seen = fingerprint([seen]);
        self.turn.files |= self.workspace.is_some_and(|before| before != seen);
        self.workspace = Some(seen);
    }

    pub(super) fn turn_ended(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        if turn.is_lasting() {
            self.idle_turns = 0;
            self.passing_turns = 0;
        } else if turn.is_passing() && self.passing_turns < PASSING_TURNS_MAX {
            self.idle_turns = 0;
            self.passing_turns = self.passing_turns.saturating_add(1);
        } else if !self.is_wait(turn) {
            self.idle_turns = self.idle_turns.saturating_add(1);
        }
        self.is_told &= self.idle_turns > 0;
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(turn);
    }

    /// Whether a turn waited, or looked at what the previous one had waited for.
    fn is_wait(&self, turn: TurnProgress) -> bool {
        let has_waited = self.recent.back().is_some_and(|last| last.waited);
        turn.waited || (turn.acted && has_waited)
    }

    /// The agent was resumed, or got a message.
    pub(super) const fn begin_anew(&mut self) {
        self.idle_turns = 0;
        self.passing_turns = 0;
        self.is_told = false;
    }

    /// The agent was notified that it makes no progress.
    pub(super) const fn told(&mut self) {
        self.is_told = true;
    }

    /// Turns in a row without progress; those that only waited don't count.
    pub(super) const fn idle_turns(&self) -> u32 {
        self.idle_turns
    }

    /// Whether to look at the workspace after the next call, where `stuck_turns` turns without progress are too
    /// many.
    pub(super) const fn looks_at_workspace(&self, stuck_turns: u32) -> bool {
        stuck_turns > 0 && self.idle_turns > 0 && self.idle_turns >= stuck_turns / 5
    }

    /// What follows the end of a turn, where `stuck_turns` turns without progress are too many; 0: never.
    fn after_turn(&self, stuck_turns: u32) -> AfterTurn {
        // Three fifths of them, and at least one.
        let told_at = stuck_turns.saturating_mul(3).div_ceil(5).max(1);
        if stuck_turns == 0 || self.idle_turns < told_at {
            AfterTurn::GoOn
        } else if self.idle_turns >= stuck_turns {
            AfterTurn::Suspend { turns: self.idle_turns }
        } else if self.is_told {
            AfterTurn::GoOn
        } else {
            AfterTurn::Notify { turns: self.idle_turns, left: stuck_turns.saturating_sub(self.idle_turns) }
        }
    }
}

/// What follows the end of a turn.
enum AfterTurn {
    GoOn,
    /// The agent is notified: after this many turns without progress, and this many before it is suspended.
    Notify {
        turns: u32,
        left: u32,
    },
    Suspend {
        turns: u32,
    },
}

/// Suspends the session after too many turns without progress; notifies the model before. Returns whether it
/// suspends it.
pub(in crate::session) fn looks_at_progress(deciding: &mut Deciding<'_>) -> bool {
    match deciding.state.progress.after_turn(stuck_turns(deciding.state)) {
        AfterTurn::GoOn => false,
        AfterTurn::Suspend { turns } => {
            segment::finish(deciding, Outcome::Paused { why: PauseReason::Stuck { turns } });
            true
        }
        AfterTurn::Notify { .. } if deciding.state.assignment.is_external() => false,
        AfterTurn::Notify { turns: idle, left } => {
            let turns = match left {
                1 => "one more such turn".to_owned(),
                left => format!("{left} more such turns"),
            };
            let body = format!(
                "Nothing measurable has moved the work on for {idle} turns: no changed file, no changed result of a \
                 check, no ticked step of the plan, no new kind of call or result. If you wait for something, wait longer in \
                 one call; otherwise change the approach, or say what keeps you from going on. After {turns} you are \
                 suspended."
            );
            deciding.say(ItemKind::NoProgressNotice, body);
            false
        }
    }
}

/// The number of turns in a row without progress at which it is suspended; 0: never.
pub(in crate::session) fn stuck_turns(state: &SessionState) -> u32 {
    match state.goal.in_force(&state.assignment) {
        Some(goal) => goal.stuck_turns,
        // What an external program does internally isn't known.
        None if state.assignment.is_external() => 0,
        None => state.assignment.limits().stuck_turns,
    }
}
