//! The budget: every model call is reserved once and charged once, and the sums are right.

use std::collections::BTreeMap;

use provost_engine::Actor;
use provost_event::{
    BudgetEntry, Certainty, ConversationEntry, Entry, GoalEntry, MicroDollars, ModelEntry, SessionId, Usage,
};

use super::super::evidence::Evidence;
use super::super::scenario::RUN;
use super::Breaches;

pub(super) fn check(seen: &Evidence, found: &mut Breaches) {
    let mut calls = BTreeMap::<(SessionId, u32), (usize, usize)>::new();
    for session in seen.sessions() {
        for (_, entry) in seen.session(session) {
            if let Entry::Model(ModelEntry::Called(called)) = entry {
                calls.insert((session, called.call), (0, 0));
            }
        }
    }
    let (mut charged, mut cost) = (Usage::default(), MicroDollars::default());
    let mut reported = Usage::default();
    for (_, entry) in seen.run() {
        match entry {
            Entry::Budget(BudgetEntry::Reserved(reserved)) => {
                calls.entry((reserved.session, reserved.call)).or_default().0 += 1
            }
            Entry::Budget(BudgetEntry::Charged(paid)) => {
                calls.entry((paid.session, paid.call)).or_default().1 += 1;
                charged += paid.usage;
                reported += told(paid.usage);
                cost += paid.cost.unwrap_or_default();
            }
            _ => {}
        }
    }
    for ((session, call), (reserved, paid)) in calls {
        found.one(reserved, || format!("budget set aside for call {call} of {session}"));
        found.one(paid, || format!("charge for call {call} of {session}"));
    }
    let mut used = Usage::default();
    seen.sessions().for_each(|session| used += usage_in(seen, session));
    if used != reported {
        found.wrong(format!("the sessions used {used:?}, the run was charged {reported:?}"));
    }
    sums(seen, charged, cost, found);
}

/// The usage of the model calls in a session's own entries.
fn usage_in(seen: &Evidence, session: SessionId) -> Usage {
    let mut used = Usage::default();
    for (_, entry) in seen.session(session) {
        match entry {
            Entry::Conversation(ConversationEntry::AssistantMessage(message)) => used += message.usage,
            Entry::Model(ModelEntry::Retried(retry)) => used += told(retry.usage),
            Entry::Goal(GoalEntry::Judged(judged)) => used += judged.call.usage,
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => {
                used += compacted.call.as_ref().map(|call| call.usage).unwrap_or_default();
            }
            Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => {
                used += wrapped.call.as_ref().map(|call| call.usage).unwrap_or_default();
            }
            _ => {}
        }
    }
    used
}

/// The sums: in the run's state, and in the list of runs.
fn sums(seen: &Evidence, charged: Usage, cost: MicroDollars, found: &mut Breaches) {
    let mut actor = Actor::new(RUN.into());
    let log = seen.logs.get(&RUN.into()).into_iter().flatten();
    if log.into_iter().try_for_each(|record| actor.replay(record)).is_err() {
        return;
    }
    let expected = Some((charged.total(), cost));
    let folded = actor.status().map(|status| (status.tokens, status.cost));
    let listed = seen.listed.as_ref().map(|row| (row.tokens, row.cost));
    if folded != expected || listed != expected {
        found.wrong(format!("charged {expected:?}, the run says {folded:?}, the list says {listed:?}"));
    }
}

/// The usage of a call, if it was reported: the reservation of a call that a kill has lost is in the run only.
fn told(usage: Usage) -> Usage {
    if usage.certainty == Certainty::Unconfirmed { Usage::default() } else { usage }
}
