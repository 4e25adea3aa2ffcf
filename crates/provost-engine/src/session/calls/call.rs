//! One tool call of the last answer: its stage, and the decisions about it.

use provost_event::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, CallId, CallQuestion, Json, NamedScript,
    OutsideSandbox, Permission, PermissionDecided, QuestionAnswer, Seq, Timestamp, ToolCall,
};
use serde::{Deserialize, Serialize};

use crate::OwnCall;
use crate::session::hooks::{CallReplacement, CombinedDecision};

/// The stage of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CallStage {
    Pending,
    /// Hooks are called on whether it may be made, or may be approved.
    Asking(Seq),
    /// It needs approval, requested by the entry `asked`, until the timer that `timer` set.
    Approving {
        asked: Seq,
        timer: Seq,
    },
    Running(Seq),
    /// A sub-agent works for it, requested by this entry; `suspended` while that agent is suspended.
    Delegated {
        started: Seq,
        suspended: bool,
    },
    /// It has its result; hooks are called about that.
    Reviewing(Seq),
    Done,
}

impl CallStage {
    /// The stage when the session is resumed: suspended sub-agents are expected to be resumed too.
    pub(super) const fn resumed(self) -> Self {
        match self {
            Self::Delegated { started, .. } => Self::Delegated { started, suspended: false },
            other => other,
        }
    }

    pub(super) const fn has_result(self) -> bool {
        matches!(self, Self::Reviewing(_) | Self::Done)
    }

    /// Whether a sub-agent works for it.
    pub(super) const fn is_delegated(self) -> bool {
        matches!(self, Self::Delegated { .. })
    }

    /// Whether the sub-agent that works for it is suspended.
    pub(super) const fn is_suspended(self) -> bool {
        matches!(self, Self::Delegated { suspended: true, .. })
    }

    /// The entry that started it, while it runs.
    pub(super) const fn running(self) -> Option<Seq> {
        match self {
            Self::Running(seq) => Some(seq),
            Self::Pending
            | Self::Asking(_)
            | Self::Approving { .. }
            | Self::Reviewing(_)
            | Self::Delegated { .. }
            | Self::Done => None,
        }
    }

    /// The entry that set the timer of its approval question, while that is open.
    pub(super) const fn approval_timer(self) -> Option<Seq> {
        match self {
            Self::Approving { timer, .. } => Some(timer),
            _ => None,
        }
    }
}

/// The hooks' decision on a call that is to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HookAnswer {
    #[default]
    Unasked,
    Free,
    Allow,
    Ask(String),
    Deny(String),
}

/// The decision on a call that needs approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CallConsent {
    #[default]
    Unasked,
    /// The hooks that could have approved it left it to a person.
    LeftOpen,
    Given,
    Refused(String),
}

/// An open approval question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The entry that asked; identifies the question.
    pub asked: Seq,
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// Its arguments.
    pub input: Json,
    /// Why approval is needed.
    pub why: String,
    /// The narrowest pattern that covers it.
    pub pattern: String,
    /// The scripts that the answer is bound to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<NamedScript>,
    /// Whether it may run files that its text doesn't name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unnamed: bool,
    /// Present if it is to run outside of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<OutsideSandbox>,
    /// Present if the tool asks something: the answer is for the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<CallQuestion>>,
    /// When it was asked.
    pub since: Timestamp,
    /// When it expires. While the session is suspended no question does.
    pub due: Timestamp,
}

impl PendingApproval {
    pub(super) fn new(asked: Seq, request: &ApprovalRequested, since: Timestamp) -> Self {
        Self {
            asked,
            call: request.call.clone(),
            tool: request.tool.clone(),
            input: request.input.clone(),
            why: request.why.clone(),
            pattern: request.pattern.clone(),
            scripts: request.scripts.clone(),
            unnamed: request.unnamed,
            outside: request.outside.clone(),
            question: request.question.clone(),
            since,
            due: request.due,
        }
    }

    /// Whether an answer may only count for this call, because the next one may run something else.
    pub(super) const fn is_for_one_call(&self) -> bool {
        self.unnamed || !self.scripts.is_empty() || self.outside.is_some() || self.question.is_some()
    }
}

/// A hook has replaced the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReplacedInput {
    /// The hook: it isn't called again for this call.
    by: String,
    /// Why it requires approval of the call, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<String>,
}

/// A tool call of the last answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrackedCall {
    pub(super) id: CallId,
    pub(super) tool: String,
    /// The arguments that it is made with.
    pub(super) input: Json,
    /// The hook that has replaced those of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaced: Option<ReplacedInput>,
    pub(super) malformed: Option<String>,
    /// Why there is no telling what it means, as text for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ambiguous: Option<String>,
    pub(super) stage: CallStage,
    pub(super) hooks: HookAnswer,
    /// The hooks' decision on the agent that it requests.
    #[serde(default)]
    pub(super) spawn_hooks: HookAnswer,
    pub(super) ruling: Option<PermissionDecided>,
    pub(super) consent: CallConsent,
    /// The scripts that it names, as they were when approval was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scripts: Option<Vec<NamedScript>>,
    /// What its tool has asked, until that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<Box<CallQuestion>>,
    /// The answer with which it is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<Box<QuestionAnswer>>,
    /// A hook paused the session at this call; the hook is called again when the session is resumed.
    pub(super) paused: bool,
    /// The entry with its result.
    pub(super) finished: Option<Seq>,
}

impl TrackedCall {
    /// The call `sent` by the model, as one of the agent's own tools.
    pub(super) fn new(sent: &ToolCall, own: OwnCall) -> Self {
        Self {
            id: sent.id.clone(),
            tool: own.tool,
            input: own.input,
            replaced: None,
            malformed: sent.malformed.clone(),
            ambiguous: own.ambiguous,
            stage: CallStage::Pending,
            hooks: HookAnswer::default(),
            spawn_hooks: HookAnswer::default(),
            ruling: None,
            consent: CallConsent::default(),
            scripts: None,
            question: None,
            answer: None,
            paused: false,
            finished: None,
        }
    }

    /// It is made with other arguments: all checks begin again, with every hook but the one that proposed them.
    pub(super) fn replace(&mut self, replacement: CallReplacement) {
        let CallReplacement { by, input, ask } = replacement;
        self.input = input;
        self.malformed = None;
        self.ambiguous = None;
        self.replaced = Some(ReplacedInput { by, ask });
        self.hooks = HookAnswer::Unasked;
        self.spawn_hooks = HookAnswer::Unasked;
        self.ruling = None;
        self.consent = CallConsent::Unasked;
        self.scripts = None;
    }

    /// The hook that has replaced its arguments.
    pub(super) fn proposer(&self) -> Option<String> {
        self.replaced.as_ref().map(|replaced| replaced.by.clone())
    }

    /// Hooks have decided on it.
    pub(super) fn hooks_decided(&mut self, decision: CombinedDecision) {
        self.paused |= matches!(decision, CombinedDecision::Pause { .. });
        if let Some(answer) = HookAnswer::of(decision) {
            let ask = self.replaced.as_ref().and_then(|replaced| replaced.ask.clone());
            self.hooks = match (answer, ask) {
                (HookAnswer::Free | HookAnswer::Allow, Some(reason)) => HookAnswer::Ask(reason),
                (answer, _) => answer,
            };
        }
    }

    /// Hooks have decided on the agent that it requests.
    pub(super) fn spawn_hooks_decided(&mut self, decision: CombinedDecision) {
        self.paused |= matches!(decision, CombinedDecision::Pause { .. });
        if let Some(answer) = HookAnswer::of(decision) {
            self.spawn_hooks = answer;
        }
    }

    /// The hooks that may approve in place of a person have decided.
    pub(super) fn approval_hooks_decided(
        &mut self,
        decision: CombinedDecision,
        scripts: Option<&[NamedScript]>,
    ) {
        self.scripts = scripts.map(<[_]>::to_vec);
        match decision {
            // Only a person lets a call leave the sandbox.
            CombinedDecision::Allow if self.leaves_sandbox() => self.consent = CallConsent::LeftOpen,
            CombinedDecision::Allow => self.consent = CallConsent::Given,
            CombinedDecision::Deny { hook, reason } => {
                self.consent = CallConsent::Refused(denied_by_hook(&hook, &reason));
            }
            CombinedDecision::Pause { .. } => self.paused = true,
            CombinedDecision::Free | CombinedDecision::Ask(_) => self.consent = CallConsent::LeftOpen,
            CombinedDecision::Abort { .. } => {}
        }
    }

    pub(super) fn approval_resolved(&mut self, resolved: &ApprovalResolved) {
        self.stage = CallStage::Pending;
        if let Some(question) = self.question.take() {
            let content = match &resolved.answer {
                ApprovalAnswer::Answered { content } => Some(content.clone()),
                ApprovalAnswer::Allow { .. } | ApprovalAnswer::Deny { .. } => None,
            };
            self.answer = Some(Box::new(QuestionAnswer { state: question.state, content }));
        }
        self.consent = match &resolved.answer {
            ApprovalAnswer::Allow { .. } | ApprovalAnswer::Answered { .. } => CallConsent::Given,
            ApprovalAnswer::Deny { reason } if resolved.by == ApprovalResolved::BY_TIMEOUT => {
                CallConsent::Refused(format!("Denied: {reason}."))
            }
            ApprovalAnswer::Deny { reason } if reason.is_empty() => {
                CallConsent::Refused(format!("Denied by {}.", resolved.by))
            }
            ApprovalAnswer::Deny { reason } => {
                CallConsent::Refused(format!("Denied by {}: {reason}", resolved.by))
            }
        };
    }

    /// Whether it needs approval. A hook's consent suffices only if no permission pattern matches.
    pub(super) fn needs_consent(&self) -> bool {
        let asked_by_rules = self.ruling.as_ref().is_some_and(|ruling| {
            ruling.permission == Permission::Ask && !(ruling.by_default && self.hooks == HookAnswer::Allow)
        });
        asked_by_rules || matches!(self.hooks, HookAnswer::Ask(_))
    }

    /// Whether it is to run outside of the agent's sandbox.
    pub(super) fn leaves_sandbox(&self) -> bool {
        self.ruling.as_ref().is_some_and(|ruling| ruling.leaves_sandbox)
    }

    /// Whether only the permissions require approval, and no hook.
    pub(super) fn is_asked_by_rules(&self) -> bool {
        let ruling = self.ruling.as_ref();
        !matches!(self.hooks, HookAnswer::Ask(_))
            && ruling.is_some_and(|ruling| ruling.permission == Permission::Ask)
    }

    /// Why it needs approval, as text.
    pub(super) fn why_ask(&self) -> String {
        match (&self.hooks, &self.ruling) {
            (HookAnswer::Ask(reason), _) => reason.clone(),
            (_, Some(ruling)) if ruling.permission == Permission::Ask => ruling.why.clone(),
            _ => String::new(),
        }
    }

    /// Why it is refused, as text for the model.
    pub(super) fn refusal(&self) -> Option<String> {
        if let HookAnswer::Deny(reason) = &self.hooks {
            return Some(reason.clone());
        }
        if let HookAnswer::Deny(reason) = &self.spawn_hooks {
            return Some(reason.clone());
        }
        if let Some(ruling) = self.ruling.as_ref().filter(|ruling| ruling.permission == Permission::Deny) {
            return Some(format!("Not allowed by the permissions: {}.", ruling.why));
        }
        match &self.consent {
            CallConsent::Refused(reason) => Some(reason.clone()),
            CallConsent::Unasked | CallConsent::LeftOpen | CallConsent::Given => None,
        }
    }

    /// Whether it waits for an approval, a sub-agent or a resumption.
    pub(super) fn waits_for_others(&self) -> bool {
        self.stage.approval_timer().is_some()
            || self.stage.is_delegated()
            || self.paused
            || (self.stage == CallStage::Pending && self.consent == CallConsent::Given)
    }
}

impl HookAnswer {
    /// The answer for a call; `None` if the hooks pause or abort the session instead.
    fn of(decision: CombinedDecision) -> Option<Self> {
        match decision {
            CombinedDecision::Free => Some(Self::Free),
            CombinedDecision::Allow => Some(Self::Allow),
            CombinedDecision::Ask(reason) => Some(Self::Ask(reason)),
            CombinedDecision::Deny { hook, reason } => Some(Self::Deny(denied_by_hook(&hook, &reason))),
            CombinedDecision::Pause { .. } | CombinedDecision::Abort { .. } => None,
        }
    }
}

fn denied_by_hook(hook: &str, reason: &str) -> String {
    format!("Denied by hook `{hook}`: {reason}")
}
