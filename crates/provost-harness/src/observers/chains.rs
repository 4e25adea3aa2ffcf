//! The positions of the agents of a run.

use std::collections::HashMap;

use provost_event::{ActorKey, ChainContext, Entry, LifecycleEntry, Record, Seq, SessionId};

/// The agents whose start was reported, each with the entry of its parent's log that spawned it.
#[derive(Debug, Default)]
pub(super) struct Chains(HashMap<SessionId, (ChainContext, Option<Seq>)>);

impl Chains {
    /// Stores the position in `record`, if it has one.
    pub(super) fn learn(&mut self, record: &Record) {
        if let (ActorKey::Session(session), Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) =
            (record.actor, &record.entry)
        {
            self.0.insert(session, (ChainContext::of(session, started), started.call));
        }
    }

    /// The position of `actor`. An agent other than the root whose start wasn't reported gets the root's.
    pub(super) fn of(&self, actor: ActorKey) -> (ChainContext, Option<Seq>) {
        let run = actor.run();
        let place = ChainContext::root(run);
        match actor {
            ActorKey::Session(session) => self.0.get(&session).cloned().unwrap_or_else(|| {
                let root = SessionId::root(run);
                let below = ChainContext { parent: Some(root), depth: 1, ..place.clone() };
                (if session == root { place } else { below }, None)
            }),
            ActorKey::Run(_) => (place, None),
        }
    }
}
