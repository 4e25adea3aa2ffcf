//! How permissions fared: each pattern, and the default where none matches.

use provost_engine::Pattern;
use provost_event::{
    ApprovalAnswer, ApprovalResolved, ApprovalScope, Permission, PermissionDecided, PermissionPolicy,
    ToolIdentity,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::Calls;
use super::reach::{means_all_calls, pattern_means};
use super::say::RuleUse;

/// The kind of a pattern; the word that stands before it in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternKind {
    /// Denied.
    Deny,
    /// Needs approval.
    Ask,
    /// Allowed.
    Allow,
    /// Allowed by an earlier approval for all runs.
    Approved,
}

impl PatternKind {
    /// In a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::Approved => "approved",
        }
    }
}

/// The results of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionCounts {
    /// Calls that were allowed.
    pub allowed: u64,
    /// Calls that needed approval.
    pub asked: u64,
    /// Calls that were denied.
    pub denied: u64,
}

impl PermissionCounts {
    /// All calls.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.allowed + self.asked + self.denied
    }

    const fn add(&mut self, permission: Permission) {
        match permission {
            Permission::Allow => self.allowed += 1,
            Permission::Ask => self.asked += 1,
            Permission::Deny => self.denied += 1,
        }
    }
}

/// The sums of a session's log.
pub(super) struct RuleSums {
    rules: Vec<(PatternKind, String, PermissionCounts)>,
    by_default: PermissionCounts,
    /// Calls whose text doesn't show what they do.
    unclear: PermissionCounts,
    grants: Vec<GrantUse>,
}

/// Calls that were approved for longer than once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantUse {
    /// The pattern.
    pub pattern: String,
    /// For how long.
    pub scope: ApprovalScope,
    /// Who approved.
    pub by: String,
    /// How often it decided since.
    pub decided: u64,
}

/// A pattern, and how it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternUse {
    /// Its kind.
    pub kind: PatternKind,
    /// The pattern.
    pub pattern: String,
    /// Calls of its tools that the permissions checked.
    pub consulted: u64,
    /// Of these, those that it decided.
    pub decided: u64,
    /// What it decided.
    #[serde(flatten)]
    pub rulings: PermissionCounts,
    /// Whether it took effect.
    #[serde(flatten)]
    pub standing: RuleUse,
}

/// The rule for calls that no pattern matches, and how it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DefaultRuleUse {
    /// The rule.
    pub permission: Permission,
    /// Calls that the permissions checked.
    pub consulted: u64,
    /// Of these, those that it decided.
    pub decided: u64,
    /// Whether it took effect.
    #[serde(flatten)]
    pub standing: RuleUse,
}

impl RuleSums {
    pub(super) fn new(policy: &PermissionPolicy) -> Self {
        let lists = [
            (PatternKind::Deny, &policy.deny),
            (PatternKind::Ask, &policy.ask),
            (PatternKind::Allow, &policy.allow),
            (PatternKind::Approved, &policy.approved),
        ];
        let rules = lists.into_iter().flat_map(|(kind, texts)| {
            texts.iter().map(move |text| (kind, text.clone(), PermissionCounts::default()))
        });
        Self {
            rules: rules.collect(),
            by_default: PermissionCounts::default(),
            unclear: PermissionCounts::default(),
            grants: Vec::new(),
        }
    }

    pub(super) fn ruled(&mut self, decided: &PermissionDecided) {
        let Some(rule) = &decided.rule else {
            let sums = if decided.by_default { &mut self.by_default } else { &mut self.unclear };
            return sums.add(decided.permission);
        };
        let Some((kind, text)) = rule.split_once(' ') else { return };
        let found = self.rules.iter_mut().find(|(own, pattern, _)| own.word() == kind && pattern == text);
        if let Some((_, _, rulings)) = found {
            rulings.add(decided.permission);
        } else if let Some(grant) = self.grants.iter_mut().find(|grant| grant.pattern == text) {
            grant.decided += 1;
        }
    }

    pub(super) fn resolved(&mut self, resolved: &ApprovalResolved) {
        if let ApprovalAnswer::Allow { scope, pattern: Some(pattern) } = &resolved.answer {
            let (pattern, by) = (pattern.clone(), resolved.by.clone());
            self.grants.push(GrantUse { pattern, scope: *scope, by, decided: 0 });
        }
    }

    pub(super) fn grants(&self) -> Vec<GrantUse> {
        self.grants.clone()
    }

    pub(super) const fn unclear(&self) -> PermissionCounts {
        self.unclear
    }

    pub(super) fn rules(&self, policy: &PermissionPolicy, calls: &Calls) -> Vec<PatternUse> {
        let rule = |(kind, pattern, rulings): &(PatternKind, String, PermissionCounts)| {
            let meant = |tool: &ToolIdentity| pattern_means(pattern, tool);
            let consulted = calls.of(meant).ruled;
            let standing = match unreachable(*kind, pattern, policy, calls) {
                Some(why) if rulings.all() == 0 => RuleUse::unreachable(why),
                _ => RuleUse::of(consulted, || no_ruling(calls, meant)),
            };
            PatternUse {
                kind: *kind,
                pattern: pattern.clone(),
                consulted,
                decided: rulings.all(),
                rulings: *rulings,
                standing,
            }
        };
        self.rules.iter().map(rule).collect()
    }

    /// The rule for calls that no pattern matches; `None` where everything is allowed unchecked.
    pub(super) fn default(&self, policy: &PermissionPolicy, calls: &Calls) -> Option<DefaultRuleUse> {
        let consulted = calls.of(|_| true).ruled;
        let standing = RuleUse::of(consulted, || no_ruling(calls, |_| true));
        let decided = self.by_default.all();
        let permission = policy.default;
        (!policy.is_open()).then_some(DefaultRuleUse { permission, consulted, decided, standing })
    }
}

fn no_ruling(calls: &Calls, meant: impl Fn(&ToolIdentity) -> bool + Copy) -> String {
    let tools = calls.in_words(meant);
    match calls.of(meant).made {
        0 => format!("no {tools} call was made"),
        _ => format!("no {tools} call came as far as the permissions"),
    }
}

/// Why a pattern can't decide anything in any run of this policy.
fn unreachable(kind: PatternKind, pattern: &str, policy: &PermissionPolicy, calls: &Calls) -> Option<String> {
    let allows = matches!(kind, PatternKind::Allow | PatternKind::Approved);
    if allows && Pattern::parse(pattern).is_err() {
        return Some("it can't be read".to_owned());
    }
    let meant = calls.tools(|tool| pattern_means(pattern, tool));
    if meant.is_empty() {
        return Some("the agent has no such tool".to_owned());
    }
    if policy.is_open() {
        return Some("everything is allowed without looking".to_owned());
    }
    if kind == PatternKind::Deny {
        return None;
    }
    let denies = |deny: &&String| {
        let is_whole = Pattern::parse(deny).is_err() || means_all_calls(deny);
        is_whole && meant.iter().all(|tool| pattern_means(deny, tool))
    };
    policy.deny.iter().find(denies).map(|deny| format!("`deny {deny}` comes first"))
}
