//! How hooks fared.

use std::collections::BTreeMap;

use provost_event::{
    AgentPolicy, Entry, GateEntry, HookContract, HookDecision, HookPoint, HookPolicy, HookReport,
    HookTrigger, HooksDecided, LifecycleEntry, OnFailure, ResumeCause, Seq, ToolEntry,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::say::Durations;

/// The answers of one hook, and how often it wasn't asked at its hook point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookCounts {
    /// Questions that it was asked.
    pub consulted: u64,
    /// Answers that decided nothing.
    pub continued: u64,
    /// Answers that allowed a call.
    pub allowed: u64,
    /// Answers that required approval.
    pub asked: u64,
    /// Answers that denied.
    pub denied: u64,
    /// Answers that paused the run.
    pub paused: u64,
    /// Answers that ended the run.
    pub aborted: u64,
    /// Questions that it gave no answer to.
    pub failed: u64,
    /// Calls that were made with the arguments that it proposed.
    pub replaced: u64,
    /// Reminders that it gave to the model.
    pub reminders: u64,
    /// Questions at its hook point for which it wasn't asked, since its matcher or `if` didn't match.
    pub not_meant: u64,
    /// Those that an earlier hook had decided.
    pub decided_before: u64,
    /// Those that were dropped, since the run had been interrupted and was to stop.
    pub dropped: u64,
    /// How long its answers took.
    #[serde(flatten)]
    pub times: Durations,
}

impl HookCounts {
    fn add(&mut self, report: &HookReport) {
        self.consulted += 1;
        match report.decision {
            HookDecision::Continue => self.continued += 1,
            HookDecision::Allow => self.allowed += 1,
            HookDecision::Ask(_) => self.asked += 1,
            HookDecision::Deny(_) => self.denied += 1,
            HookDecision::Pause(_) => self.paused += 1,
            HookDecision::Abort(_) => self.aborted += 1,
            HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_) => self.failed += 1,
        }
        self.reminders =
            self.reminders.saturating_add(u64::try_from(report.reminders.len()).unwrap_or(u64::MAX));
        self.times.add_us(report.duration_us);
    }

    /// Questions at its hook point for which it wasn't asked.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.not_meant + self.decided_before + self.dropped
    }

    /// Questions at its hook point.
    pub(super) const fn questions(&self) -> u64 {
        self.consulted + self.skipped()
    }
}

/// The sums of a session's log.
#[derive(Default)]
pub(super) struct HookSums {
    counts: Vec<HookCounts>,
    /// The hook points of open questions, and whether the answer is awaited even when the session stops.
    open: BTreeMap<Seq, (&'static [HookPoint], bool)>,
    /// The session has been interrupted, and its questions are being taken up again.
    recovers: bool,
    is_stopping: bool,
    /// Answers of hooks that the policy doesn't name.
    strangers: u64,
}

impl HookSums {
    pub(super) fn new(policy: &AgentPolicy) -> Self {
        Self { counts: vec![HookCounts::default(); policy.hooks.len()], ..Self::default() }
    }

    pub(super) fn add(&mut self, seq: Seq, entry: &Entry, hooks: &[HookPolicy]) {
        match entry {
            Entry::Gate(GateEntry::HooksAsked(asked)) => {
                let waits = matches!(asked.about, HookTrigger::Closing { .. } | HookTrigger::Prompt { .. });
                self.open.insert(seq, (asked.about.points(), waits));
            }
            Entry::Gate(GateEntry::HooksDecided(decided)) => return self.decided(decided, hooks),
            Entry::Tool(ToolEntry::Started(started)) if !started.again => {
                let by = started.replaced_by.as_ref();
                let its = hooks.iter().zip(&mut self.counts).find(|(hook, _)| Some(&hook.name) == by);
                its.into_iter().for_each(|(_, counts)| counts.replaced += 1);
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => {
                self.recovers = resumed.cause == ResumeCause::Interrupted;
                return;
            }
            Entry::Lifecycle(LifecycleEntry::StopRequested(_)) => {
                self.is_stopping = true;
                return;
            }
            Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) => {
                self.is_stopping = false
            }
            _ => {}
        }
        self.recovers = false;
    }

    fn decided(&mut self, decided: &HooksDecided, hooks: &[HookPolicy]) {
        let Some((points, waits)) = self.open.remove(&decided.asked) else { return };
        let is_dropped = self.recovers && self.is_stopping && !waits && decided.reports.is_empty();
        let meant = |hook: &HookPolicy| points.contains(&hook.point);
        let turn = Turn::of(hooks, points);
        let stopped_at = decided.reports.iter().filter_map(|report| turn.stops(report)).min();
        for (place, (hook, counts)) in hooks.iter().zip(&mut self.counts).enumerate() {
            if !meant(hook) {
                continue;
            }
            match decided.reports.iter().find(|report| is_of(report, hook)) {
                Some(report) => counts.add(report),
                None if is_dropped => counts.dropped += 1,
                None if stopped_at.is_some_and(|at| at < turn.of_hook(place, hook)) => {
                    counts.decided_before += 1
                }
                None => counts.not_meant += 1,
            }
        }
        let known = |report: &&HookReport| hooks.iter().any(|hook| is_of(report, hook));
        let strangers = decided.reports.iter().filter(|report| !known(report)).count();
        self.strangers = self.strangers.saturating_add(u64::try_from(strangers).unwrap_or(u64::MAX));
    }

    pub(super) fn counts(&self) -> &[HookCounts] {
        &self.counts
    }

    pub(super) const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Whether hooks of this hook point are being asked.
    pub(super) fn is_asking(&self, point: HookPoint) -> bool {
        self.open.values().any(|(points, _)| points.contains(&point))
    }
}

fn is_of(report: &HookReport, hook: &HookPolicy) -> bool {
    report.hook == hook.name && report.point == hook.point
}

/// When each hook is asked in a question: in its place, except hooks with Claude Code's contract, which are all
/// asked together with the first of them.
struct Turn<'a> {
    hooks: &'a [HookPolicy],
    claude: Option<usize>,
}

impl<'a> Turn<'a> {
    fn of(hooks: &'a [HookPolicy], points: &[HookPoint]) -> Self {
        let is_first = |hook: &HookPolicy| hook.contract.is_foreign() && points.contains(&hook.point);
        Self { hooks, claude: hooks.iter().position(is_first) }
    }

    fn of_hook(&self, place: usize, hook: &HookPolicy) -> usize {
        match hook.contract {
            HookContract::Provost => place,
            HookContract::Claude | HookContract::Codex => self.claude.unwrap_or(place),
        }
    }

    /// The turn after which no hook is asked, if this report ends the question.
    fn stops(&self, report: &HookReport) -> Option<usize> {
        let (place, hook) = self.hooks.iter().enumerate().find(|(_, hook)| is_of(report, hook))?;
        let stops = match report.decision {
            HookDecision::Continue | HookDecision::Allow | HookDecision::Ask(_) => false,
            HookDecision::Deny(_) | HookDecision::Pause(_) | HookDecision::Abort(_) => true,
            HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_) => {
                hook.on_failure == OnFailure::Deny
            }
        };
        stops.then(|| self.of_hook(place, hook))
    }
}
