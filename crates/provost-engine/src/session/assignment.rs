//! What a session was given: its goal, its policy, and its place in the tree of agents.

use std::collections::BTreeSet;
use std::path::PathBuf;

use provost_event::{
    Access, AgentPolicy, AgentPolicyChanged, ExternalPolicy, GoalPolicy, HookPoint, HookPolicy, HookReport,
    HookTrigger, HookWaiting, Limits, Metering, OnHookError, Seq, SessionId, SessionStarted, StepMode,
    ToolIdentity, ToolSpec, ToolsChanged, Unanswered,
};
use serde::{Deserialize, Serialize};

use crate::permission::agent_names;
use crate::run::{SPAWN_ALIASES, SPAWN_TOOL};

/// What a session was given. A snapshot leaves out what is in the log's first entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Assignment {
    #[serde(skip)]
    goal: String,
    #[serde(skip)]
    policy: Option<AgentPolicy>,
    /// The policy and the goal in place of its first entry's, if they were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_policy: Option<Box<AgentPolicy>>,
    /// The entry since which the policy applies; 0 if it is the first entry's.
    #[serde(default, skip_serializing_if = "Seq::is_start")]
    policy_since: Seq,
    /// Changes of the tools that wait for the end of the turn, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools_to_change: Vec<ToolsChanged>,
    /// The names of tools that the agent no longer has.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    removed_tools: BTreeSet<String>,
    /// The agent that requested it.
    #[serde(skip)]
    parent: Option<SessionId>,
    #[serde(skip)]
    depth: u32,
    /// The id in Provost's messages to it.
    #[serde(skip)]
    reminder_id: String,
}

impl Assignment {
    pub(super) fn started(&mut self, started: &SessionStarted) {
        self.goal.clone_from(&started.goal);
        self.parent = started.parent;
        self.depth = started.depth;
        self.reminder_id.clone_from(&started.reminder_id);
        self.policy = Some(self.changed_policy.as_deref().unwrap_or(&started.policy).clone());
    }

    /// The entry `head` replaces the policy.
    pub(super) fn policy_changed(&mut self, changed: &AgentPolicyChanged, head: Seq) {
        self.tools_to_change.clear();
        self.replace_policy(changed.policy.clone(), head);
    }

    /// The tools change when the turn has ended.
    pub(super) fn tools_will_change(&mut self, changed: &ToolsChanged) {
        self.tools_to_change.push(changed.clone());
    }

    /// Applies the changes of the tools as of the entry `head`. Returns the policy before; `None` if there were no
    /// changes.
    pub(super) fn change_tools(&mut self, head: Seq) -> Option<AgentPolicy> {
        if self.tools_to_change.is_empty() {
            return None;
        }
        let old = self.policy.clone()?;
        let tools = self.tools_to_come();
        self.tools_to_change.clear();
        self.replace_policy(AgentPolicy { tools, ..old.clone() }, head);
        Some(old)
    }

    fn replace_policy(&mut self, policy: AgentPolicy, head: Seq) {
        let before = self.tools().iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        self.removed_tools.extend(before);
        policy.tools.iter().for_each(|tool| {
            self.removed_tools.remove(&tool.name);
        });
        self.changed_policy = Some(Box::new(policy.clone()));
        self.policy = Some(policy);
        self.policy_since = head;
    }

    /// The entry since which the policy applies; 0 if it is the first entry's.
    pub(super) const fn policy_since(&self) -> Seq {
        self.policy_since
    }

    /// The tools from the next turn on.
    pub(super) fn tools_to_come(&self) -> Vec<ToolSpec> {
        let tools = self.tools().to_vec();
        self.tools_to_change.iter().fold(tools, |tools, changed| changed.applied_to(&tools))
    }

    /// Whether the agent had the tool `name` once, and no longer has it.
    pub(super) fn had_tool(&self, name: &str) -> bool {
        self.removed_tools.contains(name)
    }

    /// The goal, as it was given.
    pub(super) fn goal(&self) -> &str {
        &self.goal
    }

    /// The id in Provost's messages to the agent.
    pub(super) fn reminder_id(&self) -> &str {
        &self.reminder_id
    }

    /// Absent before the first entry.
    pub(super) const fn policy(&self) -> Option<&AgentPolicy> {
        self.policy.as_ref()
    }

    /// The agent that requested it.
    pub(super) const fn parent(&self) -> Option<SessionId> {
        self.parent
    }

    /// The number of agents above it.
    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) fn limits(&self) -> Limits {
        self.policy.as_ref().map(|policy| policy.limits).unwrap_or_default()
    }

    /// Whether each turn waits for the event that allows it.
    pub(super) fn is_stepped(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.step_mode == StepMode::Stepped)
    }

    pub(super) fn tools(&self) -> &[ToolSpec] {
        self.policy.as_ref().map(|policy| policy.tools.as_slice()).unwrap_or_default()
    }

    pub(super) fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools().iter().find(|spec| spec.name == name)
    }

    /// The names of a tool, and what its calls are about.
    pub(super) fn tool_identity(&self, name: &str) -> ToolIdentity {
        self.tool(name).map_or_else(|| ToolIdentity::unknown(name), ToolSpec::identity)
    }

    /// Whether calls of `tool` start a sub-agent.
    pub(super) fn delegates(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|spec| spec.access == Access::Delegates)
    }

    /// Whether calls of `tool` change nothing.
    pub(super) fn only_reads(&self, tool: &str) -> bool {
        self.tool(tool).is_some_and(|spec| spec.access == Access::Reads)
    }

    /// The condition and its judges, if one is set. It may have been cleared since.
    pub(super) fn goal_policy(&self) -> Option<&GoalPolicy> {
        self.policy.as_ref()?.goal.as_deref()
    }

    fn external(&self) -> Option<&ExternalPolicy> {
        self.policy.as_ref()?.external.as_deref()
    }

    /// Whether the agent is an external program.
    pub(super) fn is_external(&self) -> bool {
        self.external().is_some()
    }

    /// Whether a hook may replace the arguments of the call that is asked about: at most once, and not where a program
    /// makes the call itself.
    pub(super) fn may_replace(&self, about: &HookTrigger) -> bool {
        let is_call = matches!(about, HookTrigger::Call { .. } | HookTrigger::Approval { .. });
        is_call && about.proposer().is_none() && !self.is_external()
    }

    /// Whether the agent is an external program whose model calls pass the gateway.
    pub(super) fn is_metered(&self) -> bool {
        self.external().is_some_and(|external| external.metering == Metering::Gateway)
    }

    /// Whether the agent is an external program that a person works with.
    pub(super) fn is_attended(&self) -> bool {
        self.external().is_some_and(|external| external.attended)
    }

    /// The folders besides the workspace that the file tools reach.
    pub(super) fn file_roots(&self) -> Vec<PathBuf> {
        self.policy.as_ref().map(|policy| policy.permissions.roots.clone()).unwrap_or_default()
    }

    /// How long an approval question waits for an answer.
    pub(super) fn approval_timeout_ms(&self) -> u64 {
        self.policy.as_ref().map_or(0, |policy| policy.permissions.approval_timeout_ms)
    }

    /// What happens to an approval question that gets no answer in time.
    pub(super) fn when_unanswered(&self) -> Unanswered {
        self.policy.as_ref().map_or(Unanswered::Deny, |policy| policy.permissions.unanswered)
    }

    pub(super) fn hooks(&self) -> &[HookPolicy] {
        self.policy.as_ref().map(|policy| policy.hooks.as_slice()).unwrap_or_default()
    }

    /// Whether a hook is configured at `point`.
    pub(super) fn has_hook(&self, point: HookPoint) -> bool {
        self.hooks().iter().any(|hook| hook.point == point)
    }

    /// Whether hooks are to be called for `about`.
    pub(super) fn has_hooks_for(&self, about: &HookTrigger) -> bool {
        self.hooks().iter().any(|hook| hook.is_asked(about, self.parent))
    }

    /// Whether a hook may match a call of `tool`. Patterns are assumed to match.
    pub(super) fn has_hooks_for_tool(&self, points: &[HookPoint], tool: &str) -> bool {
        let names = self.matcher_names(tool);
        let wants =
            |matcher: &str| matches!(matcher, "" | "*") || !is_list(matcher) || listed(matcher, &names);
        let mut hooks = self.hooks().iter().filter(|hook| points.contains(&hook.point));
        hooks.any(|hook| hook.matcher.as_deref().is_none_or(wants))
    }

    /// The names that matchers may use for a tool, including the kind of agent that it stands for.
    fn matcher_names<'a>(&'a self, tool: &'a str) -> Vec<&'a str> {
        let mut names = vec![tool];
        if let Some(spec) = self.tool(tool) {
            names.extend(spec.aliases.iter().map(String::as_str));
            names.extend(spec.subject.names_for_hooks());
        }
        if self.delegates(tool) {
            names.push(SPAWN_TOOL);
            names.extend(SPAWN_ALIASES);
            names.extend(agent_names(None));
        }
        names
    }

    /// Whether hooks are to be asked, or waited for, before a stop.
    pub(super) fn has_stop_hooks(&self) -> bool {
        let has_own = self.policy.as_ref().is_some_and(|policy| !policy.stop_hooks.is_empty());
        let wakes = |hook: &HookPolicy| hook.setup.waiting == HookWaiting::Wakes;
        has_own || self.has_hook(HookPoint::stop(self.parent)) || self.hooks().iter().any(wakes)
    }

    /// Whether something checks a stop: a hook that no turn waits for doesn't.
    pub(super) fn has_stop_checks(&self) -> bool {
        let has_own = self.policy.as_ref().is_some_and(|policy| !policy.stop_hooks.is_empty());
        let point = HookPoint::stop(self.parent);
        let mut hooks = self.hooks().iter().filter(|hook| hook.point == point);
        has_own || hooks.any(|hook| hook.setup.waiting == HookWaiting::Waits)
    }

    /// Whether turns wait for the hook of this name.
    pub(super) fn waits_for(&self, hook: &str) -> bool {
        let mut hooks = self.hooks().iter().filter(|policy| policy.name == hook);
        hooks.all(|policy| policy.setup.waiting == HookWaiting::Waits)
    }

    /// The effect of a missing answer of the stop hook at this index of the reports. Stop hooks come first, in the
    /// policy's order.
    pub(super) fn on_stop_hook_error(&self, place: usize, report: &HookReport) -> OnHookError {
        let Some(policy) = &self.policy else { return OnHookError::Block };
        match policy.stop_hooks.get(place).filter(|hook| hook.name == report.hook) {
            Some(hook) => hook.on_error,
            // Hooks with the contract of another agent program: there, a missing answer doesn't prevent a stop.
            None if policy.hooks.iter().any(|hook| hook.name == report.hook) => OnHookError::Ignore,
            None => OnHookError::Block,
        }
    }
}

/// Whether a matcher is a plain name or a list of names, by its characters.
fn is_list(matcher: &str) -> bool {
    matcher.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|'))
}

fn listed(matcher: &str, names: &[impl AsRef<str>]) -> bool {
    matcher.split(['|', ',']).map(str::trim).any(|wanted| names.iter().any(|name| name.as_ref() == wanted))
}
