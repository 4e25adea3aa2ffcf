//! Progress, as it can be measured: new calls, changed results, changed files, ticked steps of the plan. Nothing is read
//! from what the agent says of itself.

use std::collections::VecDeque;

use provost_event::{Plan, PlanStatus, StopHookVerdict, StopReport};
use serde::{Deserialize, Serialize};

use crate::session::fold::fingerprint;

/// Calls that are remembered; one that comes again after so many others counts as new.
const CALLS_MAX: usize = 1_000;
/// Steps of plans that are remembered as done.
const STEPS_MAX: usize = 200;

/// What was seen so far, and for how long nothing new was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct Progress {
    /// Turns in a row in which nothing moved.
    pub(in crate::session) idle_turns: u32,
    moved: bool,
    /// Each call with its last result.
    calls: VecDeque<(u64, u64)>,
    ticked: VecDeque<u64>,
    stop_hooks: Option<u64>,
    workspace: Option<u64>,
}

impl Progress {
    /// A call that was made, with what came of it.
    pub(in crate::session) fn called(&mut self, tool: &str, input: &str, output: &str) {
        let (call, result) = (fingerprint([tool, input]), fingerprint(steady(output)));
        match self.calls.iter_mut().find(|(known, _)| *known == call) {
            Some((_, last)) if *last == result => return,
            Some((_, last)) => *last = result,
            None => remember(&mut self.calls, (call, result), CALLS_MAX),
        }
        self.moved = true;
    }

    /// The agent's plan, as it is now: only what is ticked counts.
    pub(in crate::session) fn planned(&mut self, plan: &Plan) {
        for step in plan.items.iter().filter(|step| step.status == PlanStatus::Done) {
            let step = fingerprint([step.text.trim()]);
            if !self.ticked.contains(&step) {
                remember(&mut self.ticked, step, STEPS_MAX);
                self.moved = true;
            }
        }
    }

    pub(in crate::session) fn stop_hooks_said(&mut self, reports: &[StopReport]) {
        let said = reports.iter().flat_map(|report| match &report.verdict {
            StopHookVerdict::Allow => [report.name.as_str(), "allow", ""],
            StopHookVerdict::Block(reason) => [report.name.as_str(), "block", reason],
            StopHookVerdict::Halt(reason) => [report.name.as_str(), "halt", reason],
            StopHookVerdict::Error(reason) => [report.name.as_str(), "error", reason],
            StopHookVerdict::Broken(reason) => [report.name.as_str(), "broken", reason],
            StopHookVerdict::TimedOut(_) => [report.name.as_str(), "timed out", ""],
        });
        let said = fingerprint(said.flat_map(steady));
        self.moved |= self.stop_hooks.is_some_and(|before| before != said);
        self.stop_hooks = Some(said);
    }

    /// The workspace looks like this.
    pub(in crate::session) fn saw_workspace(&mut self, seen: &str) {
        if seen.is_empty() {
            return;
        }
        let seen = fingerprint([seen]);
        self.moved |= self.workspace.is_some_and(|before| before != seen);
        self.workspace = Some(seen);
    }

    pub(in crate::session) const fn turn_ended(&mut self) {
        self.idle_turns = if self.moved { 0 } else { self.idle_turns.saturating_add(1) };
        self.moved = false;
    }

    /// Somebody has the agent go on.
    pub(in crate::session) const fn begin_anew(&mut self) {
        self.idle_turns = 0;
    }
}

fn remember<T>(known: &mut VecDeque<T>, new: T, most: usize) {
    if known.len() >= most {
        known.pop_front();
    }
    known.push_back(new);
}

/// The words of a result without the times that it took, which differ each time and say nothing.
fn steady(output: &str) -> impl Iterator<Item = &str> {
    output.split_whitespace().filter(|word| !is_duration(word))
}

/// `0.32s`, `12ms`, `1.5µs`, with what stands around it.
fn is_duration(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let number = bare.trim_end_matches(char::is_alphabetic);
    let unit = bare.get(number.len()..).unwrap_or_default();
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
    is_number && matches!(unit, "s" | "ms" | "us" | "µs" | "μs" | "ns" | "sec" | "secs" | "seconds")
}

#[cfg(test)]
mod tests {
    use super::{Progress, is_duration};

    fn after(mut progress: Progress, calls: &[(&str, &str)]) -> (Progress, u32) {
        for (input, output) in calls {
            progress.called("shell", input, output);
        }
        progress.turn_ended();
        let idle = progress.idle_turns;
        (progress, idle)
    }

    #[test]
    fn a_new_call_or_a_changed_result_is_progress_and_the_time_it_took_is_not() {
        let (progress, idle) = after(Progress::default(), &[("cargo test", "1 failed in 0.32s")]);
        assert_eq!(idle, 0);
        let (progress, idle) = after(progress, &[("cargo test", "1 failed in 0.51s")]);
        assert_eq!(idle, 1);
        let (progress, idle) = after(progress, &[("cargo test", "0 failed in 0.51s")]);
        assert_eq!(idle, 0);
        let (_, idle) = after(progress, &[]);
        assert_eq!(idle, 1);
    }

    #[test]
    fn times_are_told_from_other_numbers() {
        for word in ["0.32s", "(12ms)", "1,5s;", "3seconds"] {
            assert!(is_duration(word), "{word}");
        }
        for word in ["12", "tests", "3passed", "v1.5", "s", "2x"] {
            assert!(!is_duration(word), "{word}");
        }
    }
}
