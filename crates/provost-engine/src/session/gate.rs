//! The checks before a tool call is made: hooks, then permissions, then approval. The most restrictive of them
//! wins, always in this order.
//!
//! Hooks that decide on new agents come between permissions and approval: they aren't called for an agent that the
//! permissions deny, and no person is asked about one that a hook denies.

use provost_event::{HookPoint, HookTrigger, Permission, PermissionDecided};

use crate::permission::scripts_named;

use super::{Call, Consent, Deciding, SessionState, Stage, Word};

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

impl Deciding<'_> {
    /// Takes each call that may begin through the checks that need no answer; returns whether that changed
    /// anything.
    pub(super) fn open_calls(&mut self) -> bool {
        let before = self.state.head;
        for call in self.state.startable() {
            self.open_call(&call);
        }
        self.state.head != before
    }

    fn open_call(&mut self, call: &Call) {
        let id = &call.id;
        loop {
            let Some(call) = self.state.call(id) else { return };
            match self.state.clearance(call) {
                Clearance::Hooks => return self.ask(HookTrigger::Call { call: id.clone() }),
                Clearance::SpawnHooks => return self.ask(HookTrigger::Spawn { call: id.clone() }),
                Clearance::HooksThatConsent => return self.ask(HookTrigger::Approval { call: id.clone() }),
                Clearance::Consent => return self.request_approval(id),
                Clearance::Nothing => return self.start_call(id),
                Clearance::Refused => return,
                Clearance::Ruling => match self.state.rule(call) {
                    Some(decided) => self.commit(decided),
                    None => return,
                },
            }
        }
    }
}

impl SessionState {
    fn clearance(&self, call: &Call) -> Clearance {
        if call.word == Word::Unasked
            && self.assignment.has_hooks_for_tool(&[HookPoint::PreToolCall], &call.tool)
        {
            return Clearance::Hooks;
        }
        let is_denied = matches!(call.word, Word::Deny(_));
        if !is_denied && call.ruling.is_none() && self.has_rules() {
            return Clearance::Ruling;
        }
        if self.refusal(call).is_some() {
            return Clearance::Refused;
        }
        if call.spawn == Word::Unasked
            && self.assignment.delegates(&call.tool)
            && self.assignment.has_hooks_for_tool(&[HookPoint::Spawn], &call.tool)
        {
            return Clearance::SpawnHooks;
        }
        match call.consent {
            Consent::Given => Clearance::Nothing,
            _ if !self.needs_consent(call) => Clearance::Nothing,
            Consent::Unasked if self.is_looked_at_before_consent(call) => Clearance::HooksThatConsent,
            Consent::Unasked | Consent::LeftOpen | Consent::Refused(_) => Clearance::Consent,
        }
    }

    /// Whether hooks may approve in place of a person, or there are scripts that the approval is bound to.
    fn is_looked_at_before_consent(&self, call: &Call) -> bool {
        self.assignment.has_hooks_for_tool(&[HookPoint::Approval], &call.tool)
            || self.assignment.has_hook(HookPoint::Notification)
            || scripts_named(&call.tool, &call.input).is_some()
    }

    fn has_rules(&self) -> bool {
        self.permissions.as_ref().is_some_and(|permissions| !permissions.is_open())
    }

    fn rule(&self, call: &Call) -> Option<PermissionDecided> {
        let ruling = self.permissions.as_ref()?.judge(&call.tool, &call.input);
        Some(PermissionDecided {
            call: call.id.clone(),
            permission: ruling.permission,
            rule: ruling.rule,
            by_default: ruling.by_default,
            why: ruling.why,
        })
    }

    /// Whether the call needs approval. A hook's consent suffices only if no permission pattern matches.
    fn needs_consent(&self, call: &Call) -> bool {
        let ruling = call.ruling.as_ref();
        let asked_by_rules = ruling.is_some_and(|ruling| {
            ruling.permission == Permission::Ask && !(ruling.by_default && call.word == Word::Allow)
        });
        asked_by_rules || matches!(call.word, Word::Ask(_))
    }

    /// Why the call needs approval, as text.
    pub(super) fn why_ask(&self, call: &Call) -> String {
        match (&call.word, &call.ruling) {
            (Word::Ask(reason), _) => reason.clone(),
            (_, Some(ruling)) if ruling.permission == Permission::Ask => ruling.why.clone(),
            _ => String::new(),
        }
    }

    /// Why a call is refused, as text for the model.
    pub(super) fn refusal(&self, call: &Call) -> Option<String> {
        if let Word::Deny(reason) = &call.word {
            return Some(reason.clone());
        }
        if let Word::Deny(reason) = &call.spawn {
            return Some(reason.clone());
        }
        if let Some(ruling) = call.ruling.as_ref().filter(|ruling| ruling.permission == Permission::Deny) {
            return Some(format!("Not allowed by the permissions: {}.", ruling.why));
        }
        match &call.consent {
            Consent::Refused(reason) => Some(reason.clone()),
            Consent::Unasked | Consent::LeftOpen | Consent::Given => None,
        }
    }

    /// Whether the session is to be suspended in the middle of its calls, because one of them waits for an
    /// approval, a sub-agent or a resumption: calls that have not begun stay open.
    pub(super) fn holds_calls(&self) -> bool {
        let waits = |call: &Call| {
            matches!(call.stage, Stage::Approving { .. })
                || matches!(call.stage, Stage::Delegated { .. })
                || call.paused
                || (call.stage == Stage::Pending && call.consent == Consent::Given)
        };
        let suspended = self.stopping.as_ref().is_some_and(|outcome| !outcome.is_final());
        suspended && self.calls.iter().any(waits)
    }
}
