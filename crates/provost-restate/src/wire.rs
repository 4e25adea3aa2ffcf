//! What clients, workers and objects say to each other through the engine. All of it is JSON.

use std::collections::BTreeSet;
use std::path::PathBuf;

use provost_engine::{ActorStatus, Uncertain};
use provost_event::{ActorKey, EffectId, Elapsed, MicroDollars, Outcome, RunId, Seq, Timestamp};
use provost_harness::{BackendError, Posted};
use serde::{Deserialize, Serialize};

use crate::pages::{Item, Pages};
use crate::payload::Payload;

/// The process that holds a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// The worker's name.
    pub(crate) worker: String,
    /// Which process of that name.
    pub(crate) instance: String,
}

/// The time and randomness of a decision, by who asks for it: what an object does must not depend on when it does it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Moment {
    pub(crate) at: Timestamp,
    pub(crate) entropy: u64,
    /// The run's elapsed time by its holder, if that is known.
    pub(crate) elapsed: Option<Elapsed>,
}

/// An event for an actor of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PostRequest {
    pub(crate) actor: ActorKey,
    pub(crate) event: Payload,
    pub(crate) moment: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dedup: Option<String>,
    /// Of the result of an effect: which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<EffectOf>,
    /// The epoch in which the process that posts holds the run; absent if it doesn't, and of the result of an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holds: Option<u64>,
    /// The label of the workers that may take the run; only the first post counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
}

impl PostRequest {
    pub(crate) const fn new(actor: ActorKey, event: Payload, moment: Moment) -> Self {
        Self { actor, event, moment, dedup: None, of: None, holds: None, label: None }
    }
}

/// An effect as it was handed to a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct EffectOf {
    pub(crate) id: EffectId,
    /// The holder's epoch: the result counts in no other.
    pub(crate) epoch: u64,
}

/// The answer of an object, or why it did nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply<T> {
    Done(T),
    /// The epoch is over: another holder has the run, or none.
    Lost,
    /// A live process holds the run.
    Held(Owner),
    Failed(Failure),
}

/// A [`BackendError`] on its way.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failure {
    Unreadable { actor: ActorKey, seq: Seq, message: String },
    Other { message: String },
}

impl From<&BackendError> for Failure {
    fn from(error: &BackendError) -> Self {
        match error {
            BackendError::Unreadable { actor, seq, message } => {
                Self::Unreadable { actor: *actor, seq: *seq, message: message.clone() }
            }
            other => Self::Other { message: other.to_string() },
        }
    }
}

impl From<Failure> for BackendError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreadable { actor, seq, message } => Self::Unreadable { actor, seq, message },
            Failure::Other { message } => {
                Self::Storage { attempt: "have the cluster decide", message, hint: None }
            }
        }
    }
}

/// What an object answers to posts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Decided {
    /// One for each post.
    pub(crate) replies: Vec<Reply<PostDone>>,
    /// The entries that all of them led to, by their places in the order of the run. Only for the run's holder, and
    /// absent if they are long: they are read then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entries: Option<Vec<Item>>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PostDone {
    pub(crate) head: Seq,
    pub(crate) changed: bool,
}

impl From<PostDone> for Posted {
    fn from(PostDone { head, changed }: PostDone) -> Self {
        Self { head, changed }
    }
}

/// A request to hold the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClaimRequest {
    pub(crate) by: Owner,
    /// The epoch of a holder that is known to be gone.
    pub(crate) over: Option<u64>,
    pub(crate) at: Timestamp,
    pub(crate) entropy: u64,
}

/// A request to recover a run without a holder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RecoverRequest {
    /// The epoch of a holder that is known to be gone.
    pub(crate) over: Option<u64>,
    pub(crate) at: Timestamp,
    pub(crate) entropy: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Claimed {
    pub(crate) epoch: u64,
    /// The run's elapsed time.
    pub(crate) elapsed: Elapsed,
}

/// The end of a hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Release {
    pub(crate) epoch: u64,
    pub(crate) elapsed: Elapsed,
    /// The effects that the holder had begun, and whose results don't count any more. It has begun no other open one.
    pub(crate) begun: Vec<EffectId>,
}

/// A request to begin an effect that must not be performed twice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BeginRequest {
    pub(crate) of: EffectOf,
    /// Who asks: the same one may ask again.
    pub(crate) attempt: String,
}

/// An effect to perform.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) of: EffectOf,
    pub(crate) effect: Payload,
    /// Whether it needs a permit before it begins.
    pub(crate) permit: bool,
    /// Whether its abort was asked for before it began.
    #[serde(default)]
    pub(crate) abort: bool,
    /// Of a timer: the run's elapsed time at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<Elapsed>,
}

/// A request to stop an effect.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Stop {
    pub(crate) of: EffectOf,
    pub(crate) how: StopKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopKind {
    /// It stops by itself, and its result is awaited.
    Abort,
    /// Its result doesn't matter any more.
    Close,
}

/// The end of a hold that the run's object has decided on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Dismissal {
    pub(crate) run: RunId,
    pub(crate) epoch: u64,
    /// The effects that are past their deadlines.
    pub(crate) overdue: String,
}

/// Which part of a log to read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ReadLog {
    pub(crate) actor: ActorKey,
    pub(crate) after: Seq,
}

/// A log, or the part of it that was asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LogHead {
    /// Its last entry.
    pub(crate) head: Seq,
    /// Changes with each change of the actor, also of what its log doesn't say.
    pub(crate) version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<Seq>,
    pub(crate) pages: Pages,
}

/// Some entries of one log, in the order of the run. Its number is the place of the last of them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct OrderRow {
    /// The agent; absent for the run's own log.
    pub(crate) agent: Option<u32>,
    pub(crate) first: Seq,
    pub(crate) count: u64,
}

/// A worker could not begin to work on a run, or go on with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) worker: String,
    /// For a person.
    pub(crate) why: String,
}

/// How a run stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RunStanding {
    pub(crate) label: Option<String>,
    pub(crate) failed: Option<Failed>,
    pub(crate) row: Option<RunRow>,
    pub(crate) owner: Option<Owner>,
    pub(crate) epoch: u64,
    pub(crate) elapsed: Elapsed,
    /// The place of its last entry.
    pub(crate) position: u64,
    /// Its agents that have a log.
    pub(crate) agents: BTreeSet<u32>,
}

/// A run's row for lists.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunRow {
    pub(crate) run: RunId,
    pub(crate) goal: String,
    pub(crate) workspace: PathBuf,
    pub(crate) model: String,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) started_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) turns: u32,
    pub(crate) tokens: u64,
    pub(crate) cost: MicroDollars,
    pub(crate) uncertain: Uncertain,
    pub(crate) elapsed: Elapsed,
}

impl RunRow {
    pub(crate) fn new(run: RunId, status: ActorStatus) -> Self {
        Self {
            run,
            goal: status.goal,
            workspace: status.workspace,
            model: status.model,
            outcome: status.outcome,
            started_at: status.started_at,
            updated_at: status.updated_at,
            turns: status.turns,
            tokens: status.tokens,
            cost: status.cost,
            uncertain: status.uncertain,
            elapsed: status.elapsed,
        }
    }
}

/// A run in the index: only what seldom changes. It is the key of a row, so that lists read no rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct IndexEntry {
    pub(crate) started_at: Timestamp,
    pub(crate) run: RunId,
    pub(crate) phase: IndexPhase,
    pub(crate) label: Option<String>,
    pub(crate) owner: Option<Owner>,
}

/// Stands for what is absent in a key.
const ABSENT: &str = "-";

impl IndexEntry {
    /// The key of its row.
    pub(crate) fn key(&self) -> String {
        let phase = match self.phase {
            IndexPhase::Active => "active",
            IndexPhase::Suspended => "suspended",
            IndexPhase::Ended => "ended",
        };
        let label = self.label.as_deref().unwrap_or(ABSENT);
        let (worker, instance) =
            self.owner.as_ref().map_or((ABSENT, ABSENT), |owner| (&*owner.worker, &*owner.instance));
        format!("{} {} {phase} {label} {worker} {instance}", self.started_at.0, self.run)
    }

    pub(crate) fn of_key(key: &str) -> Option<Self> {
        let parts = key.split(' ').collect::<Vec<_>>();
        let [started_at, run, phase, label, worker, instance] = parts[..] else { return None };
        let present = |part: &str| (part != ABSENT).then(|| part.to_owned());
        let phase = match phase {
            "active" => IndexPhase::Active,
            "suspended" => IndexPhase::Suspended,
            "ended" => IndexPhase::Ended,
            _ => return None,
        };
        let owner = present(worker).zip(present(instance));
        Some(Self {
            started_at: Timestamp(started_at.parse().ok()?),
            run: run.parse().ok()?,
            phase,
            label: present(label),
            owner: owner.map(|(worker, instance)| Owner { worker, instance }),
        })
    }
}

/// A change of the index.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct IndexPut {
    pub(crate) key: String,
    /// The key of the run until now.
    pub(crate) replaces: Option<String>,
    pub(crate) workspace: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IndexPhase {
    /// It has no outcome: it works, or would.
    Active,
    Suspended,
    Ended,
}

impl IndexPhase {
    pub(crate) fn of(outcome: Option<&Outcome>) -> Self {
        match outcome {
            None => Self::Active,
            Some(outcome) if outcome.is_final() => Self::Ended,
            Some(_) => Self::Suspended,
        }
    }
}

/// Which runs of the index to list, the latest start first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct IndexQuery {
    /// Only those after this one.
    pub(crate) after: Option<(Timestamp, RunId)>,
    pub(crate) phases: BTreeSet<IndexPhase>,
    pub(crate) workspace: Option<PathBuf>,
    /// Only those whose id begins with this, by id.
    pub(crate) prefix: Option<String>,
    pub(crate) max: usize,
}

/// The id of a place for large bodies, for runs that have none yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OfferedBlobs {
    pub(crate) id: Option<String>,
}

/// A worker's process says that it lives.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) instance: String,
    pub(crate) count: u64,
}

/// How a worker stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerStanding {
    pub(crate) instance: String,
    pub(crate) count: u64,
    pub(crate) alive: bool,
}

/// What a beat found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BeatReply {
    Fine,
    /// It had been taken for gone: its runs may have other holders.
    Revived,
    /// Another process has its name.
    Replaced,
}
