//! What the writer is asked for, and how it answers.

use provost_engine::{Effect, Event};
use provost_event::{ActorKey, BlobId, EffectId, Elapsed, ForkBase, RunId, Seq, SessionId};
use provost_harness::{HomeError, Posted};
use tokio::sync::{mpsc, oneshot, watch};

use crate::transfer::Imported;
use crate::{NewEntry, OpenEffect, StoredRun};

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, HomeError>>;

/// One thing to be done by the writer.
pub(crate) enum Job {
    Post {
        key: ActorKey,
        event: Event,
        dedup: Option<String>,
        reply: Reply<Posted>,
    },
    PutBlob {
        id: BlobId,
        body: Vec<u8>,
        reply: Reply<()>,
    },
    TakeOver {
        run: RunId,
        server: Server,
        reply: Reply<u64>,
    },
    GiveUp {
        run: RunId,
        epoch: u64,
        reply: Reply<()>,
    },
    Import {
        import: Box<Import>,
        reply: Reply<Result<Vec<Imported>, Unfit>>,
    },
    /// Remove all of a run that nobody works on.
    Remove {
        run: RunId,
        reply: Reply<()>,
    },
    RemoveBlobs {
        names: Vec<BlobId>,
        reply: Reply<()>,
    },
    /// Give space back to the system.
    Shrink {
        reply: Reply<()>,
    },
    /// Leave the store so that its files can be copied.
    Settle {
        reply: Reply<()>,
    },
    /// Look for what other processes wrote.
    Look,
}

/// Runs from elsewhere, checked.
pub(crate) struct Import {
    pub(crate) runs: Vec<ImportRun>,
    /// What forks among them go on from.
    pub(crate) bases: Vec<ForkBase>,
    pub(crate) blobs: Vec<(BlobId, Vec<u8>)>,
}

/// One of them.
pub(crate) struct ImportRun {
    pub(crate) run: StoredRun,
    pub(crate) logs: Vec<(ActorKey, Vec<NewEntry>)>,
}

/// Why an import doesn't go with what is there.
pub(crate) enum Unfit {
    Diverges { actor: ActorKey, seq: Seq },
    Missing { session: SessionId, at: Seq },
}

/// The writer's line to the task that serves a run.
pub(crate) struct Server {
    pub(crate) orders: mpsc::Sender<Orders>,
    pub(crate) failure: watch::Sender<Option<HomeError>>,
}

/// What a server is told after a commit.
pub(crate) enum Orders {
    /// What the commit changed, in order.
    Changed(Vec<Order>),
    /// All that is open now, by whichever process it was opened, and what the process's clock reads now.
    Open(Vec<OpenEffect>, Elapsed),
}

/// One change to what is to be done.
pub(crate) enum Order {
    /// To be begun, timers from this reading of the process's clock on.
    Start(EffectId, Box<Effect>, Elapsed),
    Abort(EffectId),
    Close(EffectId),
}

/// An answer that waits for the commit; told its error if it failed.
pub(crate) type Answer = Box<dyn FnOnce(Result<(), HomeError>) + Send>;

pub(crate) fn answer<T: Send + 'static>(reply: Reply<T>, value: T) -> Answer {
    Box::new(move |committed| send(reply, committed.map(|()| value)))
}

/// Answers, if somebody still waits for it.
pub(crate) fn send<T>(reply: Reply<T>, result: Result<T, HomeError>) {
    let _ = reply.send(result);
}

impl Job {
    /// Whether it is no part of a transaction.
    pub(crate) const fn is_outside_of_transactions(&self) -> bool {
        matches!(self, Self::Settle { .. } | Self::Shrink { .. })
    }

    /// Answers that it can't be done.
    pub(crate) fn refuse(self, error: HomeError) {
        match self {
            Self::Post { reply, .. } => send(reply, Err(error)),
            Self::PutBlob { reply, .. }
            | Self::GiveUp { reply, .. }
            | Self::Remove { reply, .. }
            | Self::RemoveBlobs { reply, .. }
            | Self::Shrink { reply }
            | Self::Settle { reply } => send(reply, Err(error)),
            Self::TakeOver { reply, .. } => send(reply, Err(error)),
            Self::Import { reply, .. } => send(reply, Err(error)),
            Self::Look => {}
        }
    }
}
