//! The writer's jobs and replies.

use provost_engine::{Effect, Event};
use provost_event::{ActorKey, BlobId, EffectId, Elapsed, ForkBase, RunId, Seq, SessionId};
use provost_harness::{BackendError, Posted};
use tokio::sync::{mpsc, oneshot, watch};

use crate::transfer::Imported;
use crate::{NewEntry, OpenEffect, StoredRun};

/// The channel of a reply.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, BackendError>>;

/// A job of the writer.
pub(crate) enum Job {
    Post {
        post: Box<Post>,
        reply: Reply<Posted>,
    },
    /// Decide on the requests of other processes in the mailbox of a run, unless another process holds it.
    EmptyMailbox {
        run: RunId,
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
    /// Remove all of a run that no process serves.
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
    /// Reply when all that is committed by now is announced.
    Announced {
        reply: Reply<()>,
    },
    /// Leave the store so that its files can be copied.
    Settle {
        reply: Reply<()>,
    },
    /// Check for commits of other processes.
    Look,
}

/// An event for an actor.
pub(crate) struct Post {
    pub(crate) key: ActorKey,
    pub(crate) event: Event,
    pub(crate) dedup: Option<String>,
    /// Of the result of an effect: the owner's epoch in which it was performed. It counts in no other.
    pub(crate) epoch: Option<u64>,
}

/// Runs to import, checked.
pub(crate) struct Import {
    pub(crate) runs: Vec<ImportRun>,
    /// The references of forks among them.
    pub(crate) bases: Vec<ForkBase>,
    pub(crate) blobs: Vec<(BlobId, Vec<u8>)>,
}

/// One of them.
pub(crate) struct ImportRun {
    pub(crate) run: StoredRun,
    pub(crate) logs: Vec<(ActorKey, Vec<NewEntry>)>,
    /// The log of each entry, in the order in which they are to be appended.
    pub(crate) order: Vec<ActorKey>,
}

/// Why an import conflicts with the store.
pub(crate) enum Unfit {
    Diverges { actor: ActorKey, seq: Seq },
    Missing { session: SessionId, at: Seq },
}

/// The writer's channel to the task that serves a run.
pub(crate) struct Server {
    pub(crate) orders: mpsc::Sender<Orders>,
    pub(crate) failure: watch::Sender<Option<BackendError>>,
}

/// A message to a server after a commit.
pub(crate) enum Orders {
    /// What the commit changed, in order.
    Changed(Vec<Order>),
    /// All open effects, opened by any process, and the current reading of the process's clock.
    Open(Vec<OpenEffect>, Elapsed),
}

/// One change of the open effects.
pub(crate) enum Order {
    /// To start, timers from this reading of the process's clock on.
    Start(EffectId, Box<Effect>, Elapsed),
    Abort(EffectId),
    Close(EffectId),
}

/// A reply that waits for the commit; it gets the commit's error if that failed.
pub(crate) type Answer = Box<dyn FnOnce(Result<(), BackendError>) + Send>;

pub(crate) fn answer<T: Send + 'static>(reply: Reply<T>, value: T) -> Answer {
    Box::new(move |committed| send(reply, committed.map(|()| value)))
}

/// Sends a reply, unless its receiver is gone.
pub(crate) fn send<T>(reply: Reply<T>, result: Result<T, BackendError>) {
    let _ = reply.send(result);
}

impl Job {
    /// Whether it runs outside of transactions.
    pub(crate) const fn is_outside_of_transactions(&self) -> bool {
        matches!(self, Self::Announced { .. } | Self::Settle { .. } | Self::Shrink { .. })
    }

    /// Replies with an error.
    pub(crate) fn refuse(self, error: BackendError) {
        match self {
            Self::Post { reply, .. } => send(reply, Err(error)),
            Self::PutBlob { reply, .. }
            | Self::GiveUp { reply, .. }
            | Self::Remove { reply, .. }
            | Self::RemoveBlobs { reply, .. }
            | Self::Shrink { reply }
            | Self::Announced { reply }
            | Self::Settle { reply } => send(reply, Err(error)),
            Self::TakeOver { reply, .. } => send(reply, Err(error)),
            Self::Import { reply, .. } => send(reply, Err(error)),
            Self::Look | Self::EmptyMailbox { .. } => {}
        }
    }
}
