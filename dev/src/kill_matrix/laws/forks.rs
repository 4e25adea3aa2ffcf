//! A fork: made once, known to its origin, worked on to its end, and charged once.

use std::collections::BTreeMap;

use provost_event::{BudgetEntry, Entry, LifecycleEntry, Outcome};

use super::super::evidence::Evidence;
use super::super::scenario::{FORK, Scenario};
use super::{Breaches, logs};

pub(super) fn check(scenario: &Scenario, seen: &Evidence, found: &mut Breaches) {
    let is_named = |entry: &Entry| matches!(entry, Entry::Lifecycle(LifecycleEntry::Forked(forked)) if forked.to == FORK);
    let named = seen.run().filter(|(_, entry)| is_named(entry)).count();
    if !scenario.forks {
        if named > 0 || !seen.fork.is_empty() {
            found.wrong("there is a fork that was not requested");
        }
        return;
    }
    found.one(named, || "entry of the origin that names the fork".to_owned());
    if seen.fork.len() != 2 {
        found.lost(format!("{} logs of 2 of the fork", seen.fork.len()));
    }
    let mut charged = BTreeMap::<u32, usize>::new();
    for (actor, log) in &seen.fork {
        // The numbers of a fork's agent go on from those of the conversation.
        let first = log.first().map_or(0, |record| record.seq.0);
        if (first..).zip(log).any(|(number, record)| record.seq.0 != number) {
            found.wrong(format!("the entries of {actor} aren't numbered one after the other"));
        }
        logs::reads_the_same_from_snapshots(*actor, log, found);
        let count = |is_it: fn(&Entry) -> bool| log.iter().filter(|record| is_it(&record.entry)).count();
        let starts = count(|entry| {
            matches!(
                entry,
                Entry::Lifecycle(LifecycleEntry::RunStarted(_) | LifecycleEntry::SessionStarted(_))
            )
        });
        found.one(starts, || format!("start of {actor}"));
        let ends = count(|entry| match entry {
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => {
                matches!(ended.outcome, Outcome::Completed { .. })
            }
            _ => false,
        });
        found.one(ends, || format!("end of {actor} as completed"));
        for record in log {
            if let Entry::Budget(BudgetEntry::Charged(charge)) = &record.entry {
                *charged.entry(charge.call).or_default() += 1;
            }
        }
    }
    if charged.is_empty() {
        found.lost("no charge of the fork");
    }
    for (call, times) in charged {
        found.one(times, || format!("charge for call {call} of the fork"));
    }
}
