//! Reports of an agent's progress.

use std::fmt;

use serde::Serialize;

use super::{Progress, RECENT_MAX, TurnProgress};

/// Number of turns within which lasting progress counts as converging.
const CONVERGING_WITHIN: usize = 5;

/// The state of an agent's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressState {
    /// There was lasting progress in the last five turns.
    Converging,
    /// Calls and results differ, or it waits; nothing lasts.
    Busy,
    /// Nothing changes.
    Idle,
}

/// Returns whether a turn had one kind of progress.
type Brought = fn(&TurnProgress) -> bool;

impl fmt::Display for ProgressState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converging => "converging",
            Self::Busy => "busy",
            Self::Idle => "idle",
        })
    }
}

/// An agent's measured progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgressReport {
    /// The state.
    pub state: ProgressState,
    /// The reasons, the most important first: the progress of the last ten turns.
    pub reasons: Vec<String>,
    /// Turns in a row without measurable progress; those that only waited don't count.
    pub idle_turns: u32,
    /// The number of turns without progress at which it is suspended; 0: never.
    pub stuck_turns: u32,
    /// Whether each of the last ten turns had lasting progress (files, results of checks, steps of the plan, a new kind of
    /// call and result), the oldest first.
    pub moved: Vec<bool>,
}

impl Progress {
    /// The report; `None` before a turn has ended.
    pub(in crate::session) fn report(&self, stuck_turns: u32) -> Option<ProgressReport> {
        if self.recent.is_empty() {
            return None;
        }
        let mut latest = self.recent.iter().rev().take(CONVERGING_WITHIN);
        let mut last_ones = latest.clone();
        let state = if latest.any(|turn| turn.is_lasting()) {
            ProgressState::Converging
        } else if last_ones.any(|turn| turn.is_passing() || turn.varied || turn.waited) {
            ProgressState::Busy
        } else {
            ProgressState::Idle
        };
        Some(ProgressReport {
            state,
            reasons: self.reasons(),
            idle_turns: self.idle_turns,
            stuck_turns,
            moved: self.recent.iter().map(|turn| turn.is_lasting()).collect(),
        })
    }

    fn reasons(&self) -> Vec<String> {
        let all = self.recent.len();
        let brought: [(Brought, &str); 9] = [
            (|turn| turn.files, "changed files"),
            (|turn| turn.checks, "changed a check's result"),
            (|turn| turn.steps, "ticked steps of the plan"),
            (|turn| turn.work, "brought a new kind of call and result"),
            (|turn| !turn.work && turn.results, "brought only a new result"),
            (|turn| !turn.work && !turn.results && turn.calls, "brought only a new kind of call"),
            (|turn| turn.waited, "waited for work that goes on"),
            (
                |turn| !turn.is_lasting() && !turn.is_passing() && !turn.waited && turn.varied,
                "brought nothing new but numbers, times or ids",
            ),
            (
                |turn| !turn.is_lasting() && !turn.is_passing() && !turn.waited && !turn.varied,
                "repeated what was there, or did nothing",
            ),
        ];
        let counted = brought
            .into_iter()
            .map(|(is_one, words)| (self.recent.iter().filter(|turn| is_one(turn)).count(), words));
        let of_all = match all {
            1 => String::new(),
            all if all < RECENT_MAX => format!("{all} turns"),
            all => format!("the last {all} turns"),
        };
        counted
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| match all {
                1 => format!("its only turn {words}"),
                _ => format!("{count} of {of_all} {words}"),
            })
            .collect()
    }
}
