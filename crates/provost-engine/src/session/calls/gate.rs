//! The checks before a tool call is made: hooks, then permissions, then approval. The most restrictive of them
//! wins, always in this order.
//!
//! Hooks that decide on new agents come between permissions and approval: they aren't called for an agent that the
//! permissions deny, and no person is asked about one that a hook denies.

use std::path::PathBuf;

use provost_event::{
    Access, AgentPolicy, ApprovalAnswer, HookPoint, HookTrigger, Json, Permission, PermissionDecided,
    Priority,
};
use serde::{Deserialize, Serialize};

use super::Calls;
use super::call::{CallConsent, CallStage, HookAnswer, TrackedCall};
use crate::WantedAgent;
use crate::permission::{Permissions, scripts_named};
use crate::run::SPAWN_TOOL;
use crate::session::{
    Deciding,
    assignment::Assignment,
    calls::{approve, run},
};

/// The next check of a call.
enum Clearance {
    Hooks,
    Ruling,
    SpawnHooks,
    HooksThatConsent,
    Consent,
    Nothing,
    /// It isn't made; its result gives the reason in its turn.
    Refused,
}

/// What the permissions and the approvals for the whole run allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Permits {
    #[serde(skip)]
    permissions: Option<Permissions>,
    /// Patterns that were approved for the whole run.
    approved: Vec<String>,
}

impl Permits {
    pub(super) fn bound_by(&mut self, assignment: &Assignment) {
        self.permissions = assignment.policy().map(|policy| self.permissions_of(policy));
    }

    fn permissions_of(&self, policy: &AgentPolicy) -> Permissions {
        let mut permissions = Permissions::of_agent(policy, &policy.workspace);
        self.approved.iter().for_each(|pattern| permissions.approve(pattern));
        permissions
    }

    pub(super) fn approval_resolved(&mut self, answer: &ApprovalAnswer) {
        if let ApprovalAnswer::Allow { pattern: Some(pattern), .. } = answer
            && let Some(permissions) = &mut self.permissions
        {
            permissions.approve(pattern);
            self.approved.push(pattern.clone());
        }
    }

    /// Whether there is something to decide on a call.
    fn concern(&self, call: &TrackedCall) -> bool {
        self.permissions.as_ref().is_some_and(|permissions| permissions.concern(&call.tool, &call.input))
    }

    /// What a call that has passed reads outside of what the agent's file tools reach by themselves.
    pub(super) fn granted(&self, call: &TrackedCall) -> Option<PathBuf> {
        self.permissions.as_ref()?.read_outside(&call.tool, &call.input)
    }

    fn rule(&self, call: &TrackedCall) -> Option<PermissionDecided> {
        let ruling = self.permissions.as_ref()?.judge(&call.tool, &call.input);
        Some(PermissionDecided {
            call: call.id.clone(),
            permission: ruling.permission,
            rule: ruling.rule,
            by_default: ruling.by_default,
            leaves_sandbox: self.permissions.as_ref()?.leaves_sandbox(&call.tool, &call.input),
            why: ruling.why,
        })
    }

    /// Whether a call like this needs no approval any more.
    pub(super) fn allow(&self, tool: &str, input: &Json) -> bool {
        let permissions = self.permissions.as_ref();
        permissions.is_some_and(|all| all.judge(tool, input).permission == Permission::Allow)
    }
}

/// The checks of the calls.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct CallGate<'a> {
    pub(in crate::session) calls: &'a Calls,
    pub(in crate::session) assignment: &'a Assignment,
}

impl CallGate<'_> {
    fn clearance(&self, call: &TrackedCall) -> Clearance {
        let assignment = self.assignment;
        if call.hooks == HookAnswer::Unasked
            && assignment.has_hooks_for_tool(&[HookPoint::PreToolCall], &call.tool)
        {
            return Clearance::Hooks;
        }
        let is_denied = matches!(call.hooks, HookAnswer::Deny(_));
        if !is_denied && call.ruling.is_none() && self.calls.permits.concern(call) {
            return Clearance::Ruling;
        }
        if call.refusal().is_some() {
            return Clearance::Refused;
        }
        if call.spawn_hooks == HookAnswer::Unasked
            && assignment.delegates(&call.tool)
            && assignment.has_hooks_for_tool(&[HookPoint::Spawn], &call.tool)
        {
            return Clearance::SpawnHooks;
        }
        match call.consent {
            CallConsent::Given => Clearance::Nothing,
            _ if !call.needs_consent() => Clearance::Nothing,
            CallConsent::Unasked if self.is_looked_at_before_consent(call) => Clearance::HooksThatConsent,
            CallConsent::Unasked | CallConsent::LeftOpen | CallConsent::Refused(_) => Clearance::Consent,
        }
    }

    /// Whether hooks may approve in place of a person, or there are scripts that the approval is bound to.
    fn is_looked_at_before_consent(&self, call: &TrackedCall) -> bool {
        self.assignment.has_hooks_for_tool(&[HookPoint::Approval], &call.tool)
            || self.assignment.has_hook(HookPoint::Notification)
            || scripts_named(&self.assignment.tool_identity(&call.tool), &call.input).is_some()
    }

    /// Why a call can't be run at all, as text for the model.
    pub(super) fn objection(&self, call: &TrackedCall) -> Option<String> {
        if let Some(written) = &call.malformed {
            return Some(format!(
                "The arguments of this call are not a JSON object, so it was not run. They were: {written}"
            ));
        }
        if call.ambiguous.is_some() {
            return call.ambiguous.clone();
        }
        if self.assignment.tool(&call.tool).is_some() {
            return None;
        }
        let names = self.assignment.tools();
        let nearest = names
            .iter()
            .map(|spec| (strsim::normalized_damerau_levenshtein(&spec.name, &call.tool), spec.name.as_str()))
            .filter(|(likeness, _)| *likeness >= 0.5)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let offered = names.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", ");
        Some(match nearest {
            _ if self.assignment.had_tool(&call.tool) => {
                format!("The tool `{}` was removed: you no longer have it. There are: {offered}.", call.tool)
            }
            Some((_, name)) => format!("There is no tool `{}`. Did you mean `{name}`?", call.tool),
            None => format!("There is no tool `{}`. There are: {offered}.", call.tool),
        })
    }

    /// The calls that may start now: in order, up to the first that could conflict with an earlier one.
    fn startable(&self) -> Vec<TrackedCall> {
        let begun = |call: &&TrackedCall| call.stage != CallStage::Pending && !call.stage.has_result();
        let mut claims =
            self.calls.of_answer.0.iter().filter(begun).map(|call| self.claim(call)).collect::<Vec<_>>();
        let mut ready = Vec::new();
        for call in self.calls.of_answer.0.iter().filter(|call| call.stage == CallStage::Pending) {
            if self.objection(call).is_some() || call.refusal().is_some() {
                continue;
            }
            let claim = self.claim(call);
            if claims.iter().any(|other| other.meets(&claim)) {
                break;
            }
            claims.push(claim);
            ready.push(call.clone());
        }
        ready
    }

    fn claim(&self, call: &TrackedCall) -> CallAccess {
        let Some(spec) = self.assignment.tool(&call.tool) else { return CallAccess::Anything };
        match spec.access {
            // The files that a sub-agent accesses aren't known, but it is told to work beside the others.
            Access::Reads | Access::Delegates => CallAccess::Reads,
            Access::Writes => {
                let path = spec.subject.written_path_in(&call.input).as_deref().and_then(names_in);
                path.map_or(CallAccess::Anything, CallAccess::Writes)
            }
            Access::Anything | Access::Consents => CallAccess::Anything,
        }
    }
}

/// The agent that a call requests, as hooks see it.
pub(super) fn wanted_agent(call: &TrackedCall, assignment: &Assignment) -> WantedAgent {
    let said = call.input.read::<SpawnPreview>().unwrap_or_default();
    let agent = (call.tool != SPAWN_TOOL).then(|| call.tool.clone());
    WantedAgent {
        name: agent.clone().or(said.name).unwrap_or_default(),
        goal: said.goal.unwrap_or_default(),
        priority: said.priority.filter(|_| agent.is_none()),
        depth: assignment.depth().saturating_add(1),
        agent,
    }
}

/// The agent that a call requests, as far as its arguments are valid.
#[derive(Debug, Default, Deserialize)]
struct SpawnPreview {
    goal: Option<String>,
    name: Option<String>,
    priority: Option<Priority>,
}

/// Takes each call that may begin through the checks that need no answer; returns whether that changed
/// anything.
pub(in crate::session) fn open_calls(deciding: &mut Deciding<'_>) -> bool {
    let before = deciding.state.head;
    for call in deciding.state.gate().startable() {
        open_call(deciding, &call);
    }
    deciding.state.head != before
}

fn open_call(deciding: &mut Deciding<'_>, call: &TrackedCall) {
    let id = &call.id;
    loop {
        let Some(call) = deciding.state.calls.of_answer.get(id) else { return };
        match deciding.state.gate().clearance(call) {
            Clearance::Hooks => {
                let proposer = call.proposer();
                return deciding.ask(HookTrigger::Call { call: id.clone(), proposer });
            }
            Clearance::SpawnHooks => return deciding.ask(HookTrigger::Spawn { call: id.clone() }),
            Clearance::HooksThatConsent => {
                let proposer = call.proposer();
                return deciding.ask(HookTrigger::Approval { call: id.clone(), proposer });
            }
            Clearance::Consent => return approve::request_approval(deciding, id),
            Clearance::Nothing => return run::start_call(deciding, id),
            Clearance::Refused => return,
            Clearance::Ruling => match deciding.state.calls.permits.rule(call) {
                Some(decided) => deciding.commit(decided),
                None => return,
            },
        }
    }
}

/// What a call may access.
#[derive(Debug, PartialEq, Eq)]
enum CallAccess {
    Reads,
    Writes(Vec<String>),
    Anything,
}

impl CallAccess {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Reads, Self::Reads) => false,
            (Self::Writes(one), Self::Writes(two)) => one.iter().zip(two).all(|(a, b)| a == b),
            _ => true,
        }
    }
}

/// The components of a relative path; `None` if the text alone doesn't determine the file.
fn names_in(path: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            name => parts.push(name.to_owned()),
        }
    }
    if path.starts_with('/') { None } else { Some(parts) }
}
