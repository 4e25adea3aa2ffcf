//! The events of a run as a stream.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use futures::Stream;
use provost_event::{RunId, RunPolicy};
use provost_harness::{
    AgentHarness, Goal, HarnessDeps, Observer, ObserverError, ObserverEvent, ObserverOptions,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agent::finished;
use crate::{Error, Finished};

/// The name of the observer that feeds a stream.
const NAME: &str = "stream";
/// Events between the observer and the reader, besides those in the observer's own queue.
const EVENTS_MAX: usize = 256;

/// An item of [`Agent::stream`](crate::Agent::stream).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StreamItem {
    /// An event of the run, in its order; pieces of an answer included, which may come before the event of their call.
    Event(Arc<ObserverEvent>),
    /// The number of events that were left out here: the reader was too slow.
    Lost(u64),
    /// How the run ended: the last item.
    Finished(Box<Finished>),
}

/// Works on `goal` in a task of its own.
pub(crate) fn streamed(deps: HarnessDeps, policy: Arc<RunPolicy>, goal: Goal) -> Events {
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    let (done, end) = oneshot::channel();
    let stop = CancellationToken::new();
    let work = work(fed(deps, sender), policy, goal, stop.clone());
    // Without a reader the end is in the log.
    tokio::spawn(async move { done.send(work.await).map_err(drop) });
    Events { events, end: Some(end), _stop: stop.drop_guard() }
}

/// The same dependencies, with an observer that passes the events of one run on.
fn fed(deps: HarnessDeps, sender: mpsc::Sender<StreamItem>) -> HarnessDeps {
    // The run has one segment, and so one observer of this name, which drops the sender at its end.
    let sender = Mutex::new(Some(sender));
    let make = move |_: RunId| -> Box<dyn Observer> {
        let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::new(Feed { sender })
    };
    let observers = deps.observers.clone().with(NAME, ObserverOptions::default(), make);
    HarnessDeps { observers, ..deps }
}

async fn work(
    deps: HarnessDeps,
    policy: Arc<RunPolicy>,
    goal: Goal,
    stop: CancellationToken,
) -> Result<Finished, Error> {
    let backend = Arc::clone(&deps.backend);
    let mut run = AgentHarness::new(deps).start(RunId::new(), goal, (*policy).clone()).await?;
    let outcome = run.run(&stop).await?;
    finished(&*backend, run.run_id(), outcome).await
}

/// Passes the events of a run on, as fast as they are read.
struct Feed {
    sender: Option<mpsc::Sender<StreamItem>>,
}

impl Feed {
    async fn pass(&mut self, item: StreamItem) {
        if let Some(sender) = &self.sender
            && sender.send(item).await.is_err()
        {
            self.sender = None;
        }
    }
}

#[async_trait]
impl Observer for Feed {
    async fn observe(&mut self, event: &Arc<ObserverEvent>) -> Result<(), ObserverError> {
        self.pass(StreamItem::Event(Arc::clone(event))).await;
        Ok(())
    }

    async fn lost(&mut self, count: u64) {
        self.pass(StreamItem::Lost(count)).await;
    }

    async fn finish(&mut self) -> Result<(), ObserverError> {
        self.sender = None;
        Ok(())
    }
}

/// The events of a run, and its end.
pub(crate) struct Events {
    events: mpsc::Receiver<StreamItem>,
    end: Option<oneshot::Receiver<Result<Finished, Error>>>,
    /// Pauses the run when the stream is dropped.
    _stop: DropGuard,
}

impl Stream for Events {
    type Item = Result<StreamItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(item) = ready!(self.events.poll_recv(context)) {
            return Poll::Ready(Some(Ok(item)));
        }
        let Some(end) = &mut self.end else { return Poll::Ready(None) };
        let end = ready!(Pin::new(end).poll(context));
        self.end = None;
        Poll::Ready(end.ok().map(|end| end.map(|finished| StreamItem::Finished(Box::new(finished)))))
    }
}
