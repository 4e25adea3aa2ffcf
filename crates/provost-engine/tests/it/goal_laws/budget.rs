//! The cost of judges, counted from both logs: each call was reserved, made, answered and paid once, and all of
//! them together stay within their share.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{
    Budget, BudgetEntry, Entry, GoalEntry, LifecycleEntry, MicroDollars, ModelEntry, Purpose, Record, Retry,
};

/// Tokens and money.
type Amount = (u64, MicroDollars);

/// Compares both logs of a run of one agent. `percent` is the judges' share.
pub(super) fn check(session: &[Record], run: &[Record], percent: u64) {
    let asked = calls(session);
    let judges = asked.iter().filter(|(_, purpose)| **purpose == Purpose::Judge).map(|(call, _)| *call);
    let judges = judges.collect::<BTreeSet<_>>();
    let mut paid = share(run, percent, &judges);
    for record in session {
        match &record.entry {
            Entry::Goal(GoalEntry::Judged(judged)) => {
                assert!(judges.contains(&judged.call.call), "a judge's answer to no call of it");
                let paid = paid.remove(&judged.call.call);
                let told = (judged.call.usage.total(), judged.call.cost.unwrap_or_default());
                assert_eq!(paid, Some(told), "the price of call {}", judged.call.call);
            }
            Entry::Model(ModelEntry::Retried(Retry { call, .. })) if judges.contains(call) => {
                assert!(paid.remove(call).is_some(), "call {call} is answered twice, or never paid");
            }
            _ => {}
        }
    }
    assert!(paid.is_empty(), "judges' calls that were paid and never answered: {paid:?}");
}

/// The calls that were made, each with its purpose.
fn calls(session: &[Record]) -> BTreeMap<u32, Purpose> {
    let called = session.iter().filter_map(|record| match &record.entry {
        Entry::Model(ModelEntry::Called(called)) => Some((called.call, called.purpose)),
        _ => None,
    });
    called.collect()
}

/// Reads the run's log, and returns what was paid for each of the judges' calls.
fn share(run: &[Record], percent: u64, judges: &BTreeSet<u32>) -> BTreeMap<u32, Amount> {
    let (mut budget, mut spent) = (Budget::default(), (0, MicroDollars::default()));
    let mut set_aside = BTreeMap::<u32, (Purpose, Amount)>::new();
    let mut paid = BTreeMap::new();
    for record in run {
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => budget = started.policy.budget,
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => {
                budget.tokens = resumed.budget.tokens.or(budget.tokens);
                budget.money = resumed.budget.money.or(budget.money);
            }
            Entry::Budget(BudgetEntry::Reserved(reserved)) => {
                set_aside.insert(reserved.call, (reserved.purpose, (reserved.tokens, reserved.cost)));
                if reserved.purpose != Purpose::Judge {
                    continue;
                }
                let (tokens, cost) = (spent.0 + reserved.tokens, spent.1 + reserved.cost);
                let most = |limit: u64| limit * percent / 100;
                assert!(
                    budget.tokens.is_none_or(|limit| tokens <= most(limit)),
                    "{tokens} tokens for judges"
                );
                assert!(budget.money.is_none_or(|limit| cost.0 <= most(limit.0)), "{cost} for judges");
            }
            Entry::Budget(BudgetEntry::Charged(charged)) => {
                let took = (charged.usage.total(), charged.cost.unwrap_or_default());
                let (purpose, aside) = set_aside.remove(&charged.call).expect("it was set aside for first");
                let is_judges = judges.contains(&charged.call);
                assert_eq!(
                    purpose == Purpose::Judge,
                    is_judges,
                    "what call {} was set aside for",
                    charged.call
                );
                if is_judges {
                    assert!(budget.tokens.is_none() || took.0 <= aside.0, "more than was set aside");
                    spent = (spent.0 + took.0, spent.1 + took.1);
                    assert_eq!(paid.insert(charged.call, took), None, "paid twice");
                }
            }
            _ => {}
        }
    }
    paid
}
