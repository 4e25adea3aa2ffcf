//! An actor of either kind behind one interface: what a backend holds.

use provost_event::{
    ActorKey, Elapsed, Entry, LifecycleEntry, MicroDollars, ModelEntry, Outcome, Record, Seq, Timestamp,
    ToolEntry,
};

use crate::decision_time::DecisionTime;
use crate::{Decision, Event, Now, RunState, SessionState, Uncertain, snapshot};

/// A record that can't follow the last one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// Its number isn't the next one.
    #[error("entry {found} of {actor} follows entry {head}")]
    Gap {
        /// The actor of the log.
        actor: ActorKey,
        /// The last entry before it.
        head: Seq,
        /// The record's number.
        found: Seq,
    },
    /// It follows an end and begins no segment.
    #[error("entry {found} of {actor} stands after an end and begins no segment")]
    AfterEnd {
        /// The actor of the log.
        actor: ActorKey,
        /// The record's number.
        found: Seq,
    },
}

/// An actor's state: the fold of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A run's.
    Run(Box<RunState>),
    /// A session's.
    Session(Box<SessionState>),
}

/// A run's summary for a list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorStatus {
    /// The run's goal.
    pub goal: String,
    /// The root agent's workspace.
    pub workspace: std::path::PathBuf,
    /// The root agent's model.
    pub model: String,
    /// The outcome while the run is suspended or after its end; absent while it is worked on.
    pub outcome: Option<Outcome>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When its last entry was made.
    pub updated_at: Timestamp,
    /// Turns of all agents.
    pub turns: u32,
    /// Tokens charged.
    pub tokens: u64,
    /// Money charged, as far as prices are known.
    pub cost: MicroDollars,
    /// The part of both that no provider has reported: estimated, or lost to a crash.
    pub uncertain: Uncertain,
    /// How long processes have held the run.
    pub elapsed: Elapsed,
}

impl Actor {
    /// The actor `key` before its first entry.
    #[must_use]
    pub fn new(key: ActorKey) -> Self {
        match key {
            ActorKey::Run(run) => Self::Run(Box::new(RunState::new(run))),
            ActorKey::Session(session) => Self::Session(Box::new(SessionState::new(session))),
        }
    }

    /// The actor as a snapshot of its log has it; `first` is the log's first record. `None` if this program can't
    /// read the snapshot: the whole log is folded then. The records after the snapshot are still to be replayed.
    #[must_use]
    pub fn restore(first: &Record, snapshot: &Record) -> Option<Self> {
        let Entry::Lifecycle(LifecycleEntry::Snapshot(taken)) = &snapshot.entry else { return None };
        if first.actor != snapshot.actor {
            return None;
        }
        let mut actor = match snapshot.actor {
            ActorKey::Run(_) => Self::Run(snapshot::state_of(taken)?),
            ActorKey::Session(_) => Self::Session(snapshot::state_of(taken)?),
        };
        let is_complete = match &mut actor {
            Self::Run(state) => state.complete(&first.entry),
            Self::Session(state) => state.complete(&first.entry),
        };
        // The snapshot was taken just before it was written.
        if !is_complete || actor.head().next() != snapshot.seq {
            return None;
        }
        actor.apply(&snapshot.entry, DecisionTime::of(snapshot));
        Some(actor)
    }

    /// Decides on `event`. The state already includes the returned entries; if they can't be stored, discard the
    /// state and fold the log again. An event for the other kind of actor changes nothing.
    #[must_use]
    pub fn decide(&mut self, event: Event, now: Now) -> Decision {
        match (self, event) {
            (Self::Run(state), Event::Run(event)) => state.decide(event, now),
            (Self::Session(state), Event::Session(event)) => state.decide(event, now),
            (Self::Run(_), Event::Session(_)) | (Self::Session(_), Event::Run(_)) => Decision::default(),
        }
    }

    /// Folds in the next entry of the log.
    ///
    /// # Errors
    /// When it can't follow the last entry; the state is unchanged then.
    pub fn replay(&mut self, record: &Record) -> Result<(), ReplayError> {
        let actor = record.actor;
        let head = self.head();
        let found = record.seq;
        // A fork's log begins after the last entry that it takes from the other log.
        let begins = head.is_start() && found == record.entry.follows().next();
        if found != head.next() && !begins {
            return Err(ReplayError::Gap { actor, head, found });
        }
        // A change for the next segment may be recorded before that segment begins.
        let may_follow_end = matches!(
            record.entry,
            Entry::Lifecycle(
                LifecycleEntry::Resumed(_)
                    | LifecycleEntry::RunPolicyChanged(_)
                    | LifecycleEntry::AgentPolicyChanged(_)
                    | LifecycleEntry::Forked(_)
                    | LifecycleEntry::ProcessesLeft(_)
            ) | Entry::Model(ModelEntry::Changed(_) | ModelEntry::OutageWaitChanged(_))
                | Entry::Tool(ToolEntry::Changed(_) | ToolEntry::ServiceNoted(_))
        );
        if self.has_ended() && !may_follow_end {
            return Err(ReplayError::AfterEnd { actor, found });
        }
        self.apply(&record.entry, DecisionTime::of(record));
        Ok(())
    }

    fn apply(&mut self, entry: &Entry, now: DecisionTime) {
        match self {
            Self::Run(state) => state.apply(entry, now),
            Self::Session(state) => state.apply(entry, now),
        }
    }

    /// The run's elapsed time at its last entry; 0 before the first.
    #[must_use]
    pub fn elapsed(&self) -> Elapsed {
        match self {
            Self::Run(state) => state.elapsed(),
            Self::Session(state) => state.elapsed(),
        }
    }

    /// The last entry; 0 before the first.
    #[must_use]
    pub fn head(&self) -> Seq {
        match self {
            Self::Run(state) => state.head(),
            Self::Session(state) => state.head(),
        }
    }

    /// Whether its last segment has ended. Only a request begins another.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Run(state) => state.has_ended(),
            Self::Session(state) => state.has_ended(),
        }
    }

    /// The summary for a list; absent before the run has started.
    #[must_use]
    pub fn status(&self) -> Option<ActorStatus> {
        match self {
            Self::Run(state) => state.status(),
            Self::Session(_) => None,
        }
    }
}
