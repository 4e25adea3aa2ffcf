//! Which permissions and hooks of settings decide calls at all: those that met none, and those that others always decide
//! before.

use std::collections::BTreeMap;
use std::path::Path;

use provost_engine::Permissions;
use provost_event::{AgentPolicy, HookPolicy, Json, PermissionPolicy, SessionId, ToolCall, ToolSpec};
use provost_runtime::HookMatching;
use serde::Serialize;

/// What stands for anything in a pattern's own text.
const ANYTHING: &str = "x0q";

/// A permission that decided no call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct UnusedRule {
    /// It, with its kind.
    pub(super) rule: String,
    /// Calls that it matches.
    pub(super) matched: u64,
    /// A rule that decides whatever it matches; absent if none is known to.
    pub(super) unreachable_by: Option<String>,
}

impl UnusedRule {
    pub(super) fn in_words(&self) -> String {
        let Self { rule, matched, unreachable_by } = self;
        match unreachable_by {
            Some(other) => format!("unreachable: {rule}: `{other}` decides all that it matches"),
            None if *matched > 0 => {
                format!("decides none of them: {rule}: others decide the {matched} calls that it matches")
            }
            None => format!("decides none of them: {rule}"),
        }
    }
}

/// The permissions, each with what it met.
#[derive(Debug)]
pub(super) struct RuleReach {
    all: PermissionPolicy,
    rules: Vec<RuleUse>,
}

#[derive(Debug)]
struct RuleUse {
    name: String,
    alone: PermissionPolicy,
    matched: u64,
    decided: u64,
}

/// One of the lists of patterns.
type PatternList = fn(&mut PermissionPolicy) -> &mut Vec<String>;

impl RuleReach {
    pub(super) fn new(all: PermissionPolicy) -> Self {
        let none = PermissionPolicy {
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            approved: Vec::new(),
            ..all.clone()
        };
        let lists: [(&str, &[String], PatternList); 4] = [
            ("deny", &all.deny, |policy| &mut policy.deny),
            ("ask", &all.ask, |policy| &mut policy.ask),
            ("allow", &all.allow, |policy| &mut policy.allow),
            ("approved", &all.approved, |policy| &mut policy.approved),
        ];
        let rules = lists.into_iter().flat_map(|(kind, patterns, list)| {
            let none = &none;
            patterns.iter().map(move |pattern| {
                let mut alone = none.clone();
                list(&mut alone).push(pattern.clone());
                RuleUse { name: format!("{kind} {pattern}"), alone, matched: 0, decided: 0 }
            })
        });
        let rules = rules.collect();
        Self { all, rules }
    }

    /// A call that `decided` decided, if any did.
    pub(super) fn count(&mut self, call: &ToolCall, agent: &AgentPolicy, decided: Option<&str>) {
        for rule in &mut self.rules {
            let alone = Permissions::of_policy(&rule.alone, &agent.workspace, &agent.tools);
            let matches = alone.judge(&call.name, &call.input).rule.is_some();
            rule.matched = rule.matched.saturating_add(u64::from(matches));
            rule.decided = rule.decided.saturating_add(u64::from(decided == Some(&rule.name)));
        }
    }

    /// Those that decided nothing, for agents with these tools in `workspace`.
    pub(super) fn unused(&self, tools: &[ToolSpec], workspace: &Path) -> Vec<UnusedRule> {
        let all = Permissions::of_policy(&self.all, workspace, tools);
        let unused = self.rules.iter().filter(|rule| rule.decided == 0);
        let unused = unused.map(|rule| UnusedRule {
            rule: rule.name.clone(),
            matched: rule.matched,
            unreachable_by: unreachable_by(&rule.name, &all, tools),
        });
        unused.collect()
    }
}

/// The rule that decides a call made of a rule's own text, if another does: it matches whatever this one does, as a `*` in
/// it stands for a word that no pattern names.
fn unreachable_by(rule: &str, all: &Permissions, tools: &[ToolSpec]) -> Option<String> {
    let (_, pattern) = rule.split_once(' ')?;
    let (name, argument) = match pattern.trim().split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')?),
        None => (pattern.trim(), "*"),
    };
    let tool = tools.iter().find(|tool| tool.identity().names().any(|known| known == name))?;
    let argument = argument.replace("**", "*").replace('*', ANYTHING);
    let input = Json::of(&BTreeMap::from([(tool.subject.field()?, argument)])).ok()?;
    all.judge(&tool.name, &input).rule.filter(|decides| decides != rule)
}

/// The hooks of settings that are about single calls, and the calls that they met.
pub(super) struct HookReach {
    matching: HookMatching,
    hooks: Vec<(HookPolicy, u64)>,
}

impl HookReach {
    pub(super) fn new(hooks: impl Iterator<Item = HookPolicy>) -> Self {
        let hooks = hooks.filter(HookMatching::is_about_calls).map(|hook| (hook, 0)).collect();
        Self { matching: HookMatching::default(), hooks }
    }

    /// The hooks that would be asked about a call and weren't, and those that were and wouldn't be.
    pub(super) fn changed(&mut self, agent: (SessionId, &AgentPolicy), call: &ToolCall) -> ChangedHooks {
        let mut after = Vec::new();
        for (hook, met) in &mut self.hooks {
            if self.matching.wants(hook, agent, call) {
                *met = met.saturating_add(1);
                after.push(hook.name.clone());
            }
        }
        let before = agent.1.hooks.iter().filter(|hook| HookMatching::is_about_calls(hook));
        let before = before.filter(|hook| self.matching.wants(hook, agent, call));
        let before = before.map(|hook| hook.name.clone()).collect::<Vec<_>>();
        let without = |all: &[String], others: &[String]| {
            all.iter().filter(|name| !others.contains(name)).cloned().collect::<Vec<_>>()
        };
        ChangedHooks { asked: without(&after, &before), left_out: without(&before, &after) }
    }

    /// Those that met no call.
    pub(super) fn unmet(&self) -> Vec<String> {
        self.hooks.iter().filter(|(_, met)| *met == 0).map(|(hook, _)| hook.name.clone()).collect()
    }
}

/// How the hooks of a call change.
#[derive(Debug, Default)]
pub(super) struct ChangedHooks {
    /// Those that would be asked, and weren't.
    pub(super) asked: Vec<String>,
    /// Those that were asked, and wouldn't be.
    pub(super) left_out: Vec<String>,
}
