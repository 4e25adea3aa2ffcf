//! The budget: every model call set aside once and paid once, and the sums are right.

use std::collections::BTreeMap;

use provost_engine::Actor;
use provost_event::{Entry, MicroDollars, Usage};

use super::super::evidence::Evidence;
use super::super::scenario::RUN;
use super::Breaches;

pub(super) fn check(seen: &Evidence, found: &mut Breaches) {
    let called = seen.session().filter_map(|(_, entry)| match entry {
        Entry::ModelCalled(called) => Some(called.call),
        _ => None,
    });
    let mut calls = called.map(|call| (call, (0, 0))).collect::<BTreeMap<u32, (usize, usize)>>();
    let (mut charged, mut cost) = (Usage::default(), MicroDollars::default());
    for (_, entry) in seen.run() {
        match entry {
            Entry::BudgetReserved(reserved) => calls.entry(reserved.call).or_default().0 += 1,
            Entry::BudgetCharged(paid) => {
                calls.entry(paid.call).or_default().1 += 1;
                charged += paid.usage;
                cost += paid.cost.unwrap_or_default();
            }
            _ => {}
        }
    }
    for (call, (reserved, paid)) in calls {
        found.one(reserved, || format!("budget set aside for call {call}"));
        found.one(paid, || format!("charge for call {call}"));
    }
    let used = usage_in_session(seen);
    if used != charged {
        found.wrong(format!("the session used {used:?}, the run was charged {charged:?}"));
    }
    sums(seen, charged, cost, found);
}

/// What the session's own entries say that its model calls took.
fn usage_in_session(seen: &Evidence) -> Usage {
    let mut used = Usage::default();
    for (_, entry) in seen.session() {
        match entry {
            Entry::AssistantMessage(message) => used += message.usage,
            Entry::Retry(retry) => used += retry.usage,
            Entry::Compacted(compacted) => {
                used += compacted.call.as_ref().map(|call| call.usage).unwrap_or_default();
            }
            Entry::WrappedUp(wrapped) => {
                used += wrapped.call.as_ref().map(|call| call.usage).unwrap_or_default();
            }
            _ => {}
        }
    }
    used
}

/// What is kept as sums: in the run's state, and in the list of runs.
fn sums(seen: &Evidence, charged: Usage, cost: MicroDollars, found: &mut Breaches) {
    let mut actor = Actor::new(RUN.into());
    let log = seen.logs.get(&RUN.into()).into_iter().flatten();
    if log.into_iter().try_for_each(|record| actor.replay(record)).is_err() {
        return;
    }
    let expected = Some((charged.total(), cost));
    let folded = actor.status().map(|status| (status.tokens, status.cost));
    let listed = seen.row.as_ref().map(|row| (row.tokens, row.cost));
    if folded != expected || listed != expected {
        found.wrong(format!("charged {expected:?}, the run says {folded:?}, the list says {listed:?}"));
    }
}
