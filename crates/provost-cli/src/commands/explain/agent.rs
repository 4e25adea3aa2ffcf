//! One agent's part: the sums of its session's log, and their evaluation.

use provost_event::{
    AgentPolicy, Entry, GateEntry, HookPoint, HookPolicy, ModelEntry, Permission, Purpose, Record, Seq,
    SessionId,
};
use serde::Serialize;

use super::approvals::ApprovalSums;
use super::calls::Calls;
use super::counters::CounterSums;
use super::goal::{Goal, GoalSums};
use super::hooks::{HookCounts, HookSums};
use super::limits::Limit;
use super::rules::{DefaultRule, Grant, Rule, RuleSums, Rulings};
use super::say::{Group, RuleUse};
use super::stop_hooks::{StopHook, StopHookSums, Verdicts};
use super::terminal::{Terminal, TerminalSums};
use super::why_not::HookFacts;

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
}

/// An agent, and how all that is configured for it fared.
#[derive(Serialize)]
pub(super) struct Agent<'a> {
    pub(super) agent: u32,
    /// The last entry of its log that was read.
    pub(super) entry: Seq,
    pub(super) limits: Vec<Limit>,
    /// What judges verify, if it has a goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) goal: Option<Goal<'a>>,
    pub(super) stop_hooks: Vec<StopHook<'a>>,
    pub(super) hooks: Vec<Hook<'a>>,
    /// Answers of hooks that the policy doesn't name: those of the harness, where it couldn't ask them.
    pub(super) unknown_hooks_answers: u64,
    pub(super) permissions: Permissions<'a>,
    pub(super) approvals: &'a ApprovalSums,
    /// What was noted at its terminal, if it is an external agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) terminal: Option<Terminal<'a>>,
}

/// A hook, and how it fared.
#[derive(Serialize)]
pub(super) struct Hook<'a> {
    pub(super) name: &'a str,
    pub(super) point: HookPoint,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) matcher: Option<&'a str>,
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub(super) condition: Option<&'a str>,
    #[serde(flatten)]
    pub(super) counts: HookCounts,
    #[serde(flatten)]
    pub(super) standing: RuleUse,
}

/// The permissions of an agent, and how they fared.
#[derive(Serialize)]
pub(super) struct Permissions<'a> {
    /// Whether everything is allowed unchecked.
    pub(super) open: bool,
    pub(super) patterns: Vec<Rule<'a>>,
    pub(super) default: Option<DefaultRule>,
    /// Calls whose text doesn't show what they do, and which therefore need approval.
    pub(super) unclear: Rulings,
    pub(super) grants: &'a [Grant],
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
            stop_hooks: StopHookSums::new(&policy),
            hooks: HookSums::new(&policy),
            rules: RuleSums::new(&policy.permissions),
            approvals: ApprovalSums::default(),
            terminal: TerminalSums::new(&policy),
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

    pub(super) fn agent(&self) -> Agent<'_> {
        Agent {
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
            approvals: &self.approvals,
            terminal: self.terminal.as_ref().map(TerminalSums::terminal),
        }
    }

    fn limits(&self) -> Vec<Limit> {
        let mut limits = self.counters.limits(&self.policy);
        limits.extend(self.goal.iter().flat_map(GoalSums::limits));
        limits
    }

    fn permissions(&self) -> Permissions<'_> {
        let policy = &self.policy.permissions;
        Permissions {
            open: policy.is_open(),
            patterns: self.rules.rules(policy, &self.calls),
            default: self.rules.default(policy, &self.calls),
            unclear: self.rules.unclear(),
            grants: self.rules.grants(),
        }
    }

    fn hooks(&self) -> Vec<Hook<'_>> {
        let mut stops = 0;
        let hooks = self.policy.hooks.iter().zip(self.hooks.counts());
        let hooks = hooks.map(|(hook, counts)| {
            let counts = if hook.point == HookPoint::Stop {
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

    /// A hook of [`HookPoint::Stop`]: its answers are among those of the stop hooks.
    const fn at_stop(&self, verdicts: Verdicts) -> HookCounts {
        HookCounts {
            consulted: verdicts.asked(),
            continued: verdicts.allowed,
            allowed: 0,
            asked: 0,
            denied: verdicts.blocked,
            paused: 0,
            aborted: verdicts.halted,
            failed: verdicts.unanswered(),
            reminders: 0,
            not_meant: self.stop_hooks.answered().saturating_sub(verdicts.asked()),
            decided_before: 0,
            dropped: 0,
            times: verdicts.times,
        }
    }

    fn hook<'a>(&'a self, hook: &'a HookPolicy, counts: HookCounts) -> Hook<'a> {
        let asked = HookFacts {
            hook,
            policy: &self.policy,
            counts,
            calls: &self.calls,
            stop_requests: self.counters.stop_requests(),
            is_asking: self.hooks.is_asking(hook.point),
        };
        Hook {
            name: &hook.name,
            point: hook.point,
            matcher: hook.matcher.as_deref(),
            condition: hook.condition.as_deref(),
            counts,
            standing: asked.standing(),
        }
    }
}

impl Agent<'_> {
    /// The standing of all that is configured for it, by group.
    pub(super) fn standings(&self) -> [(Group, Vec<&RuleUse>); 5] {
        let judges = self.goal.iter().flat_map(|goal| &goal.judges);
        let patterns = self.permissions.patterns.iter().map(|rule| &rule.standing);
        let default = self.permissions.default.iter().map(|default| &default.standing);
        [
            (Group::Limits, self.limits.iter().map(|limit| &limit.standing).collect()),
            (Group::Judges, judges.map(|judge| &judge.standing).collect()),
            (Group::StopHooks, self.stop_hooks.iter().map(|hook| &hook.standing).collect()),
            (Group::Hooks, self.hooks.iter().map(|hook| &hook.standing).collect()),
            (Group::Permissions, patterns.chain(default).collect()),
        ]
    }
}

/// A permission in a word.
pub(super) const fn word(permission: Permission) -> &'static str {
    match permission {
        Permission::Allow => "allow",
        Permission::Ask => "ask",
        Permission::Deny => "deny",
    }
}
