//! How stop hooks fared: those that can only be stop hooks, and hooks of that point.

use provost_event::{AgentPolicy, HookPoint, HookReport, StopHookPolicy, StopHookVerdict, StopVerdicts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::say::{Durations, RuleUse};

/// A hook's answers when the agent tried to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopHookCounts {
    /// It may stop.
    pub allowed: u64,
    /// It may not stop yet.
    pub blocked: u64,
    /// The run ends.
    pub halted: u64,
    /// Ran, and gave no valid answer.
    pub errors: u64,
    /// Couldn't be run.
    pub broken: u64,
    /// Gave no answer in time.
    pub timed_out: u64,
    /// How long its answers took.
    #[serde(flatten)]
    pub times: Durations,
}

impl StopHookCounts {
    pub(super) const fn asked(&self) -> u64 {
        self.allowed + self.blocked + self.halted + self.unanswered()
    }

    /// Gave no answer, for whatever reason.
    pub(super) const fn unanswered(&self) -> u64 {
        self.errors + self.broken + self.timed_out
    }

    fn add(&mut self, report: &HookReport) {
        match report.stop_verdict() {
            StopHookVerdict::Allow => self.allowed += 1,
            StopHookVerdict::Block(_) => self.blocked += 1,
            StopHookVerdict::Halt(_) => self.halted += 1,
            StopHookVerdict::Error(_) => self.errors += 1,
            StopHookVerdict::Broken(_) => self.broken += 1,
            StopHookVerdict::TimedOut(_) => self.timed_out += 1,
        }
        self.times.add_us(report.duration_us);
    }
}

/// The sums of a session's log.
pub(super) struct StopHookSums {
    names: Vec<String>,
    verdicts: Vec<StopHookCounts>,
    /// Attempts to stop that were answered.
    answered: u64,
    /// Answers of hooks that the policy doesn't name.
    strangers: u64,
}

/// A stop hook, and how it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopHookExplanation {
    /// Its name.
    pub name: String,
    /// How often it was asked.
    pub consulted: u64,
    /// Its answers.
    #[serde(flatten)]
    pub verdicts: StopHookCounts,
    /// Whether it took effect.
    #[serde(flatten)]
    pub standing: RuleUse,
}

impl StopHookSums {
    /// Of an agent whose hooks of `point` are asked before it stops.
    pub(super) fn new(policy: &AgentPolicy, point: HookPoint) -> Self {
        let own = policy.stop_hooks.iter().map(|hook| hook.name.clone());
        let of_moment = policy.hooks.iter().filter(|hook| hook.point == point);
        let names = own.chain(of_moment.map(|hook| hook.name.clone())).collect::<Vec<_>>();
        Self { verdicts: vec![StopHookCounts::default(); names.len()], names, answered: 0, strangers: 0 }
    }

    pub(super) fn add(&mut self, verdicts: &StopVerdicts) {
        self.answered += 1;
        let mut from = 0;
        for report in &verdicts.reports {
            // Reports come in the policy's order, and one name may be that of a stop hook and of a hook.
            let found = self.names.iter().skip(from).position(|name| *name == report.hook);
            match found.and_then(|at| self.verdicts.get_mut(from + at)) {
                Some(sums) => {
                    sums.add(report);
                    from += found.map_or(0, |at| at + 1);
                }
                None => self.strangers += 1,
            }
        }
    }

    pub(super) const fn answered(&self) -> u64 {
        self.answered
    }

    pub(super) const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// The answers of the hook at this place among the hooks of its point.
    pub(super) fn of_hook(&self, place: usize, policy: &AgentPolicy) -> StopHookCounts {
        self.verdicts.get(policy.stop_hooks.len() + place).copied().unwrap_or_default()
    }

    pub(super) fn hooks(&self, policy: &AgentPolicy, stop_requests: u64) -> Vec<StopHookExplanation> {
        let hook = |(hook, verdicts): (&StopHookPolicy, &StopHookCounts)| StopHookExplanation {
            name: hook.name.clone(),
            consulted: verdicts.asked(),
            verdicts: *verdicts,
            standing: RuleUse::of(verdicts.asked(), || no_stop_request(stop_requests)),
        };
        policy.stop_hooks.iter().zip(&self.verdicts).map(hook).collect()
    }
}

/// Why no hook was asked whether the agent may stop.
pub(super) fn no_stop_request(stop_requests: u64) -> String {
    match stop_requests {
        0 => "the agent never wanted to stop".to_owned(),
        _ => "the agent wanted to stop, but this hook's answer never came".to_owned(),
    }
}
