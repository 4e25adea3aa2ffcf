//! The decision of a reply or a refusal at a hook point.

use provost_event::{HookContract, HookDecision, HookPoint, HookPolicy, Json, OnFailure, PointRefusal};
use provost_harness::HookAnswer;
use serde_json::Value;

use crate::face::FaceChange;
use crate::point::rules;
use crate::question::{HookQuery, value_of};
use crate::reply::{
    Behavior, PermissionDecision, Reply, RequestDecision, Specific, Top, TopDecision, untaken_words,
};
use crate::tool;

/// The reason of a hook that denies without one.
pub(crate) const NO_REASON: &str = "it gave no reason";

/// The decision of a hook's answer, while it is being read.
#[derive(Debug)]
pub(crate) struct Meaning {
    decision: HookDecision,
    reminders: Vec<String>,
    notes: Vec<String>,
    /// Whether it denies, in the form of its hook point.
    refuses: bool,
    /// The arguments that the call is to be made with instead of its own.
    replacement: Option<Json>,
}

impl Meaning {
    pub(crate) const fn nothing() -> Self {
        Self {
            decision: HookDecision::Continue,
            reminders: Vec::new(),
            notes: Vec::new(),
            refuses: false,
            replacement: None,
        }
    }

    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::no_answer(HookDecision::Failed(why.into()))
    }

    pub(crate) fn no_answer(decision: HookDecision) -> Self {
        Self { decision, ..Self::nothing() }
    }

    pub(crate) fn abort(why: String) -> Self {
        Self { decision: HookDecision::Abort(why), refuses: true, ..Self::nothing() }
    }

    pub(crate) fn pause(why: String) -> Self {
        Self { decision: HookDecision::Pause(why), refuses: true, ..Self::nothing() }
    }

    pub(crate) fn remind(mut self, body: String) -> Self {
        self.reminders.push(body);
        self
    }

    pub(crate) fn note(mut self, words: impl Into<String>) -> Self {
        self.notes.push(words.into());
        self
    }

    pub(crate) const fn refuses(&self) -> bool {
        self.refuses
    }

    /// Combined with `stronger`, whose decision takes precedence; reminders and notes of both are kept.
    pub(crate) fn overruled_by(mut self, stronger: Self) -> Self {
        self.reminders.extend(stronger.reminders);
        self.notes.extend(stronger.notes);
        Self { decision: stronger.decision, refuses: stronger.refuses, replacement: None, ..self }
    }

    pub(crate) fn into_answer(self) -> HookAnswer {
        let note = (!self.notes.is_empty()).then(|| self.notes.join("\n"));
        HookAnswer { decision: self.decision, reminders: self.reminders, note, replacement: self.replacement }
    }

    /// The strictest of a hook's answers about the faces of one call.
    pub(crate) fn strictest(answers: impl IntoIterator<Item = Self>, on_failure: OnFailure) -> Self {
        let rank = |decision: &HookDecision| match (decision, on_failure) {
            (HookDecision::Allow, _) => 0,
            (HookDecision::Continue, _) => 1,
            (
                HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_),
                OnFailure::Continue | OnFailure::ContinueIfRun,
            ) => 2,
            (HookDecision::Ask(_), _) => 3,
            (
                HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_),
                OnFailure::Deny,
            ) => 4,
            (HookDecision::Deny(_), _) => 5,
            (HookDecision::Pause(_), _) => 6,
            (HookDecision::Abort(_), _) => 7,
        };
        let stricter = |one: Self, next: Self| {
            let (mut strict, other) =
                if rank(&next.decision) > rank(&one.decision) { (next, one) } else { (one, next) };
            strict.reminders.extend(other.reminders);
            strict.notes.extend(other.notes);
            strict.replacement = strict.replacement.or(other.replacement);
            strict
        };
        let mut said = answers.into_iter().reduce(stricter).unwrap_or_else(Self::nothing);
        if said.refuses {
            said.replacement = None;
        }
        said.reminders.dedup();
        said.notes.dedup();
        said
    }

    fn decide(mut self, decision: HookDecision) -> Self {
        self.refuses =
            matches!(decision, HookDecision::Deny(_) | HookDecision::Abort(_) | HookDecision::Pause(_));
        self.decision = decision;
        self
    }
}

/// The decision of a hook that denies: the strongest one at its hook point.
pub(crate) fn refusal(asked: HookQuery<'_>, contract: HookContract, reason: String) -> Meaning {
    let rules = rules(asked.point);
    let is_foreign = contract.is_foreign();
    let said = Meaning { refuses: true, ..Meaning::nothing() };
    if rules.call_was_made {
        // The only option is to tell the model.
        let said = said.remind(reason.clone());
        return if is_foreign { said } else { said.note(reason) };
    }
    match asked.point.refusal() {
        PointRefusal::None => said.note(cant_refuse(&reason)),
        _ if is_foreign && !rules.claude_refuses => said.note(cant_refuse(&reason)),
        PointRefusal::Deny => said.decide(HookDecision::Deny(reason)),
        PointRefusal::Pause => said.decide(HookDecision::Pause(reason)),
        PointRefusal::Abort => said.decide(HookDecision::Abort(reason)),
    }
}

/// The decision of a hook whose program couldn't be run. Where that isn't a failure like any other, it isn't known that
/// nothing objects; what would end the run only suspends it, since the remedy is a repaired hook.
pub(crate) fn not_run(asked: HookQuery<'_>, hook: &HookPolicy, why: &str) -> Meaning {
    let rules = rules(asked.point);
    let reason = format!("it can't be run: {why}");
    let is_failure = hook.on_failure != OnFailure::ContinueIfRun;
    if is_failure || rules.call_was_made || (hook.contract.is_foreign() && !rules.claude_refuses) {
        return Meaning::failed(reason);
    }
    match asked.point.refusal() {
        PointRefusal::None => Meaning::failed(reason),
        PointRefusal::Deny => Meaning::nothing().decide(HookDecision::Deny(reason)),
        PointRefusal::Pause | PointRefusal::Abort => Meaning::nothing().decide(HookDecision::Pause(reason)),
    }
}

fn cant_refuse(reason: &str) -> String {
    format!("it can't refuse at this point: {reason}")
}

/// The decision of a reply.
pub(crate) fn of_reply(asked: HookQuery<'_>, contract: HookContract, reply: Reply) -> Meaning {
    let Reply { mut top, specific, strays } = reply;
    let mut said = Meaning { notes: strays, ..Meaning::nothing() };
    if specific.decision.as_ref().is_some_and(|decision| decision.updated_permissions.is_some()) {
        said = said.note(untaken_words("updatedPermissions"));
    }
    let common = rules(asked.point).takes_common_fields;
    if let Some(message) = top.system_message.clone().filter(|_| common) {
        said = said.note(message);
    }
    let context = specific.additional_context.clone().filter(|context| !context.trim().is_empty());
    if !is_stop(asked.point) {
        said = context_of(said, asked.point, context.clone());
    }
    if top.goes_on == Some(false) && common {
        let reason = top.stop_reason.unwrap_or_else(|| "the hook ended the run".to_owned());
        return said.decide(HookDecision::Abort(reason));
    }
    if top.goes_on == Some(false) {
        said = said.note("its `continue: false` isn't taken at this point");
    }
    // Scripts of some authors say why in the message alone.
    let reason = top.reason.take().filter(|reason| !reason.trim().is_empty());
    top.reason = reason.or_else(|| top.system_message.clone());
    match asked.point {
        HookPoint::PreToolCall => before_call(said, asked, top, specific),
        HookPoint::Approval if specific.decision.is_some() => for_person(said, asked, specific.decision),
        point if is_stop(point) => at_stop(said, top, context),
        _ => blocked(said, asked, contract, top),
    }
}

/// Whether an agent is about to stop at `point`.
const fn is_stop(point: HookPoint) -> bool {
    matches!(point, HookPoint::Stop | HookPoint::SubagentStop)
}

fn context_of(said: Meaning, point: HookPoint, context: Option<String>) -> Meaning {
    match context {
        None => said,
        Some(context) if rules(point).takes_context => said.remind(context),
        Some(_) => said.note("its `additionalContext` isn't taken at this point"),
    }
}

fn before_call(mut said: Meaning, asked: HookQuery<'_>, top: Top, specific: Specific) -> Meaning {
    let old = top.decision.map(|old| match old {
        TopDecision::Approve => PermissionDecision::Allow,
        TopDecision::Block => PermissionDecision::Deny,
    });
    let reason = specific.permission_decision_reason.or(top.reason);
    let or_none = |reason: Option<String>| reason.unwrap_or_else(|| NO_REASON.to_owned());
    let decision = match specific.permission_decision.or(old) {
        None => HookDecision::Continue,
        Some(PermissionDecision::Allow) => {
            said.notes.extend(reason);
            HookDecision::Allow
        }
        Some(PermissionDecision::Ask) => HookDecision::Ask(or_none(reason)),
        Some(PermissionDecision::Deny) => HookDecision::Deny(or_none(reason)),
        Some(PermissionDecision::Defer) => {
            said.notes.push(
                "it defers the call: the run is suspended, and the call is asked about again when it goes on"
                    .into(),
            );
            HookDecision::Pause("deferred".to_owned())
        }
    };
    said = said.decide(decision);
    if said.refuses { said } else { with_input(said, asked, specific.updated_input) }
}

fn for_person(said: Meaning, asked: HookQuery<'_>, decision: Option<RequestDecision>) -> Meaning {
    let Some(RequestDecision { behavior, message, interrupt, updated_input, .. }) = decision else {
        return said;
    };
    let reason = message.unwrap_or_else(|| NO_REASON.to_owned());
    match behavior {
        Behavior::Allow => with_input(said.decide(HookDecision::Allow), asked, updated_input),
        Behavior::Deny if interrupt == Some(true) => said.decide(HookDecision::Abort(reason)),
        Behavior::Deny => said.decide(HookDecision::Deny(reason)),
    }
}

/// With the arguments that the hook proposes for the call, unless they are the call's own.
fn with_input(mut said: Meaning, asked: HookQuery<'_>, wanted: Option<Value>) -> Meaning {
    let (Some(mut wanted), Some(call)) = (wanted, asked.call()) else { return said };
    if let (Some(face), Value::Object(fields)) = (asked.face(), &mut wanted) {
        fields.retain(|name, value| face.more.get(name) != Some(value));
    }
    let input = value_of(&call.input);
    let Some(wanted) = tool::call_changed(call, &input, &wanted, &asked.question.workspace) else {
        return said;
    };
    let other = match asked.face().map(|face| &face.change) {
        None | Some(FaceChange::Whole) => wanted,
        Some(FaceChange::Command(field)) => {
            let mut own = asked.own_call().map(|call| value_of(&call.input)).unwrap_or_default();
            let command = wanted.get("command").cloned();
            if let (Value::Object(own), Some(command)) = (&mut own, command) {
                own.insert(field.clone(), command);
            }
            own
        }
        Some(FaceChange::Impossible) => {
            let why = format!("a hook wants this part of the call to be made with other arguments: {wanted}");
            return said.decide(HookDecision::Deny(why));
        }
    };
    // A value that was just read from JSON can be written as JSON.
    said.replacement = Json::of(&other).ok();
    said
}

fn at_stop(said: Meaning, top: Top, context: Option<String>) -> Meaning {
    let reason = (top.decision == Some(TopDecision::Block)).then(|| {
        top.reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_else(|| NO_REASON.to_owned())
    });
    let words: Vec<String> = reason.into_iter().chain(context).collect();
    if words.is_empty() { said } else { said.decide(HookDecision::Deny(words.join("\n\n"))) }
}

fn blocked(said: Meaning, asked: HookQuery<'_>, contract: HookContract, top: Top) -> Meaning {
    match top.decision {
        None => said,
        Some(TopDecision::Approve) => said.note("its `decision: approve` isn't taken at this point"),
        Some(TopDecision::Block) => {
            let reason = top.reason.unwrap_or_else(|| NO_REASON.to_owned());
            said.overruled_by(refusal(asked, contract, reason))
        }
    }
}
