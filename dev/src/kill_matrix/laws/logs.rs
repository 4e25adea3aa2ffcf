//! The logs themselves: complete, shown as they are, ended once, and the same when read from a snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use provost_engine::Actor;
use provost_event::{ActorKey, AgentEntry, Entry, LifecycleEntry, Record};

use super::super::evidence::Evidence;
use super::super::files::lines;
use super::super::scenario::ROOT;
use super::Breaches;

pub(super) fn check(seen: &Evidence, found: &mut Breaches) {
    for (actor, log) in &seen.logs {
        is_contiguous(*actor, log, found);
        ends_once(*actor, log, seen, found);
        reads_the_same_from_snapshots(*actor, log, found);
    }
    let begun = seen.run().filter_map(|(_, entry)| match entry {
        Entry::Agent(AgentEntry::Started(started)) => Some(started.child),
        _ => None,
    });
    let expected = begun.collect::<HashSet<_>>().len() + 2;
    if seen.logs.len() != expected {
        found.lost(format!("{} logs of {expected}", seen.logs.len()));
    }
    was_truly_shown(seen, found);
    for effect in &seen.open {
        found.wrong(format!("suspended the store still has the open effect {}", effect.id));
    }
    let listed = seen.listed.as_ref().and_then(|row| row.outcome.clone());
    if listed.as_ref() != Some(&seen.rest.outcome) {
        found.wrong(format!("the list says {listed:?}"));
    }
}

fn is_contiguous(actor: ActorKey, log: &[Arc<Record>], found: &mut Breaches) {
    for (number, record) in (1..).zip(log) {
        if record.seq.0 > number {
            return found.lost(format!("entry {number} of {actor}"));
        }
        if record.seq.0 < number {
            return found.doubled(format!("entry {} of {actor}", record.seq));
        }
    }
}

fn ends_once(actor: ActorKey, log: &[Arc<Record>], seen: &Evidence, found: &mut Breaches) {
    let is_end = |record: &&Arc<Record>| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Ended(_)));
    let ends = log.iter().filter(is_end).count();
    if ends > 1 {
        found.doubled(format!("{actor} ended {ends} times"));
    }
    // A fork may be made of a run that has ended.
    let is_forked = |entry: &&Entry| matches!(entry, Entry::Lifecycle(LifecycleEntry::Forked(_)));
    let last = log.iter().rev().map(|record| &record.entry).find(|entry| !is_forked(entry));
    let outcome = match last {
        Some(Entry::Lifecycle(LifecycleEntry::Ended(ended))) if ended.outcome.is_final() => {
            Some(&ended.outcome)
        }
        Some(Entry::Lifecycle(LifecycleEntry::Paused(paused))) if !paused.outcome.is_final() => {
            Some(&paused.outcome)
        }
        _ => None,
    };
    let is_sub_agents = matches!(actor, ActorKey::Session(session) if session != ROOT);
    let is_right = match outcome {
        Some(outcome) if is_sub_agents => outcome.is_final() == seen.rest.outcome.is_final(),
        Some(outcome) => *outcome == seen.rest.outcome,
        None => false,
    };
    if !is_right {
        found.wrong(format!("the last entry of {actor} is {last:?}"));
    }
}

pub(super) fn reads_the_same_from_snapshots(actor: ActorKey, log: &[Arc<Record>], found: &mut Breaches) {
    let mut whole = Actor::new(actor);
    for record in log {
        if let Err(error) = whole.replay(record) {
            return found.wrong(error.to_string());
        }
    }
    let Some(first) = log.first() else { return };
    for (place, snapshot) in log
        .iter()
        .enumerate()
        .filter(|(_, r)| matches!(r.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))))
    {
        let Some(mut restored) = Actor::restore(first, snapshot) else {
            found.wrong(format!("the snapshot in entry {} of {actor} can't be read", snapshot.seq));
            continue;
        };
        let replayed = log.iter().skip(place + 1).try_for_each(|record| restored.replay(record));
        if replayed.is_err() || restored != whole {
            found
                .wrong(format!("from the snapshot in entry {} of {actor} another state comes", snapshot.seq));
        }
    }
}

/// Every record that a subscriber got is in the log.
fn was_truly_shown(seen: &Evidence, found: &mut Breaches) {
    let kept =
        seen.logs.values().chain(seen.fork.values()).flatten().filter_map(|record| record.to_line().ok());
    let kept = kept.collect::<HashSet<_>>();
    // The process was killed while it wrote a half line.
    let is_whole = |line: &String| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
    for line in lines(&seen.files.shown()).into_iter().filter(is_whole) {
        if !kept.contains(&line) {
            let begin = line.chars().take(200).collect::<String>();
            found.lost(format!("was shown but isn't in the log: {begin}"));
        }
    }
}
