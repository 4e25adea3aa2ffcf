//! One agent's part: the sums of its session's log, and their evaluation.

use provost_event::{
    AgentPolicy, BudgetCharged, Entry, GateEntry, HookPoint, HookPolicy, ModelEntry, Purpose, Record, Seq,
    SessionId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approvals::{ApprovalCounts, ApprovalSums};
use super::calls::Calls;
use super::counters::CounterSums;
use super::goal::{GoalExplanation, GoalSums};
use super::hooks::{HookCounts, HookSums};
use super::limits::LimitUse;
use super::rules::{DefaultRuleUse, GrantUse, PatternUse, PermissionCounts, RuleSums};
use super::say::{ItemGroup, RuleUse};
use super::stop_hooks::{StopHookCounts, StopHookExplanation, StopHookSums};
use super::terminal::{TerminalExplanation, TerminalSums};
use super::why_not::HookFacts;
use crate::GatewayUse;
use crate::gateway::GatewayUseSums;

/// The sums of a session's log. Their size depends on the policy and on what is open, not on the log's length.
pub(super) struct AgentSums {
    session: SessionId,
    head: Seq,
    policy: AgentPolicy,
    /// The policy was changed: some hooks that answered are no longer in it.
    is_changed: bool,
    calls: Calls,
    /// Model calls that weren't for a turn.
    asides: Vec<u32>,
    counters: CounterSums,
    goal: Option<GoalSums>,
    stop_hooks: StopHookSums,
    hooks: HookSums,
    rules: RuleSums,
    approvals: ApprovalSums,
    terminal: Option<TerminalSums>,
    gateway: Option<GatewayUseSums>,
}

/// An agent, and how all that is configured for it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentExplanation {
    /// Its number; 0 is the root.
    pub agent: u32,
    /// The last entry of its log that was read.
    pub entry: Seq,
    /// Its limits.
    pub limits: Vec<LimitUse>,
    /// What judges verify, if it has a goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalExplanation>,
    /// Its stop hooks.
    pub stop_hooks: Vec<StopHookExplanation>,
    /// Its hooks.
    pub hooks: Vec<HookExplanation>,
    /// Answers of hooks that the policy doesn't name: those of the harness, where it couldn't ask them.
    pub unknown_hooks_answers: u64,
    /// Its permissions.
    pub permissions: PermissionsExplanation,
    /// Questions for approval of its calls.
    pub approvals: ApprovalCounts,
    /// What was noted at its terminal, if it is an external agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalExplanation>,
    /// The model calls of its program that passed the gateway; absent where they don't pass it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayUse>,
}

/// A hook, and how it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookExplanation {
    /// Its name.
    pub name: String,
    /// Its hook point.
    pub point: HookPoint,
    /// Its matcher; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// Its `if`; absent without one.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Its answers.
    #[serde(flatten)]
    pub counts: HookCounts,
    /// Whether it took effect.
    #[serde(flatten)]
    pub standing: RuleUse,
}

/// The permissions of an agent, and how they fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionsExplanation {
    /// Whether everything is allowed unchecked.
    pub open: bool,
    /// Each pattern.
    pub patterns: Vec<PatternUse>,
    /// The rule where no pattern matches; null if everything is allowed unchecked.
    pub default: Option<DefaultRuleUse>,
    /// Calls whose text doesn't show what they do, and which therefore need approval.
    pub unclear: PermissionCounts,
    /// Approvals for longer than one call.
    pub grants: Vec<GrantUse>,
}

impl AgentSums {
    /// Before the log of an agent that `policy` binds by now; `is_changed` where it was bound by another before.
    pub(super) fn new(session: SessionId, policy: AgentPolicy, is_changed: bool) -> Self {
        Self {
            session,
            is_changed,
            head: Seq::START,
            calls: Calls::new(&policy),
            asides: Vec::new(),
            counters: CounterSums::new(policy.limits),
            goal: policy.goal.as_deref().map(|goal| GoalSums::new(session, goal)),
            stop_hooks: StopHookSums::new(&policy, stop_point(session)),
            hooks: HookSums::new(&policy),
            rules: RuleSums::new(&policy.permissions),
            approvals: ApprovalSums::default(),
            terminal: TerminalSums::new(&policy),
            gateway: GatewayUseSums::new(&policy),
            policy,
        }
    }

    pub(super) const fn policy(&self) -> &AgentPolicy {
        &self.policy
    }

    pub(super) const fn session(&self) -> SessionId {
        self.session
    }

    /// Model calls for summaries, final summaries and judges.
    pub(super) fn asides(&self) -> &[u32] {
        &self.asides
    }

    pub(super) fn add(&mut self, record: &Record) {
        let entry = &record.entry;
        self.head = record.seq;
        self.calls.add(entry);
        self.counters.add(entry, &self.calls);
        self.goal.iter_mut().for_each(|goal| goal.add(record));
        self.terminal.iter_mut().for_each(|terminal| terminal.add(record));
        self.gateway.iter_mut().for_each(|gateway| gateway.add(entry));
        self.hooks.add(record.seq, entry, &self.policy.hooks);
        self.approvals.add((record.seq, record.at), entry);
        match entry {
            Entry::Model(ModelEntry::Called(called)) if called.purpose != Purpose::Turn => {
                self.asides.push(called.call)
            }
            Entry::Gate(GateEntry::StopChecked(verdicts)) => self.stop_hooks.add(verdicts),
            Entry::Gate(GateEntry::PermissionDecided(decided)) => self.rules.ruled(decided),
            Entry::Gate(GateEntry::ApprovalResolved(resolved)) => self.rules.resolved(resolved),
            _ => {}
        }
    }

    /// Counts what the run's log charges for a call of its program.
    pub(super) fn charge(&mut self, charged: &BudgetCharged) {
        self.gateway.iter_mut().for_each(|gateway| gateway.charge(charged));
    }

    pub(super) fn agent(&self) -> AgentExplanation {
        AgentExplanation {
            agent: self.session.agent,
            entry: self.head,
            limits: self.limits(),
            goal: self.goal.as_ref().map(GoalSums::goal),
            stop_hooks: self.stop_hooks.hooks(&self.policy, self.counters.stop_requests()),
            hooks: self.hooks(),
            unknown_hooks_answers: match self.is_changed {
                true => 0,
                false => self.hooks.strangers() + self.stop_hooks.strangers(),
            },
            permissions: self.permissions(),
            approvals: self.approvals.counts(),
            terminal: self.terminal.as_ref().map(TerminalSums::terminal),
            gateway: self.gateway.as_ref().map(GatewayUseSums::view),
        }
    }

    fn limits(&self) -> Vec<LimitUse> {
        let mut limits = self.counters.limits(&self.policy);
        limits.extend(self.goal.iter().flat_map(GoalSums::limits));
        limits
    }

    fn permissions(&self) -> PermissionsExplanation {
        let policy = &self.policy.permissions;
        PermissionsExplanation {
            open: policy.is_open(),
            patterns: self.rules.rules(policy, &self.calls),
            default: self.rules.default(policy, &self.calls),
            unclear: self.rules.unclear(),
            grants: self.rules.grants(),
        }
    }

    fn hooks(&self) -> Vec<HookExplanation> {
        let mut stops = 0;
        let hooks = self.policy.hooks.iter().zip(self.hooks.counts());
        let hooks = hooks.map(|(hook, counts)| {
            let counts = if hook.point == stop_point(self.session) {
                let verdicts = self.stop_hooks.of_hook(stops, &self.policy);
                stops += 1;
                self.at_stop(verdicts)
            } else {
                *counts
            };
            self.hook(hook, counts)
        });
        hooks.collect()
    }

    /// A hook that is asked before the agent stops: its answers are among those of the stop hooks.
    const fn at_stop(&self, verdicts: StopHookCounts) -> HookCounts {
        HookCounts {
            consulted: verdicts.asked(),
            continued: verdicts.allowed,
            allowed: 0,
            asked: 0,
            denied: verdicts.blocked,
            paused: 0,
            aborted: verdicts.halted,
            failed: verdicts.unanswered(),
            replaced: 0,
            reminders: 0,
            not_meant: self.stop_hooks.answered().saturating_sub(verdicts.asked()),
            decided_before: 0,
            dropped: 0,
            times: verdicts.times,
        }
    }

    fn hook(&self, hook: &HookPolicy, counts: HookCounts) -> HookExplanation {
        let asked = HookFacts {
            hook,
            policy: &self.policy,
            counts,
            calls: &self.calls,
            stop_requests: self.counters.stop_requests(),
            stop_point: stop_point(self.session),
            is_asking: self.hooks.is_asking(hook.point),
        };
        HookExplanation {
            name: hook.name.clone(),
            point: hook.point,
            matcher: hook.matcher.clone(),
            condition: hook.condition.clone(),
            counts,
            standing: asked.standing(),
        }
    }
}

impl AgentExplanation {
    /// Whether what is configured for it took effect, by group.
    pub fn uses(&self) -> [(ItemGroup, Vec<&RuleUse>); 5] {
        let judges = self.goal.iter().flat_map(|goal| &goal.judges);
        let patterns = self.permissions.patterns.iter().map(|rule| &rule.standing);
        let default = self.permissions.default.iter().map(|default| &default.standing);
        [
            (ItemGroup::Limits, self.limits.iter().map(|limit| &limit.standing).collect()),
            (ItemGroup::Judges, judges.map(|judge| &judge.standing).collect()),
            (ItemGroup::StopHooks, self.stop_hooks.iter().map(|hook| &hook.standing).collect()),
            (ItemGroup::Hooks, self.hooks.iter().map(|hook| &hook.standing).collect()),
            (ItemGroup::Permissions, patterns.chain(default).collect()),
        ]
    }
}

/// Where hooks are asked whether the agent may stop.
fn stop_point(session: SessionId) -> HookPoint {
    let root = SessionId::root(session.run);
    HookPoint::stop((session != root).then_some(root))
}
