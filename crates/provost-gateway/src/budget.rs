//! The budget of calls: requested from the session by an event, and answered by the entries of its log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use provost_engine::{Event, ExternalCallRequest, ExternalCallResult, SessionEvent};
use provost_event::{Entry, Exhausted, ExternalCallEnd, LifecycleEntry, ModelEntry, Seq, SessionId};
use provost_harness::Backend;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The answer to a request for budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetAnswer {
    /// The call may be made, with this cap on its output.
    Granted(u32),
    /// The limit leaves no useful answer.
    Exhausted(Exhausted),
    /// Money is limited, and the price of the model is unknown.
    Unpriced,
    /// The session makes no calls any more.
    Stopped,
}

/// The requests of one session's program that wait for budget.
pub(crate) struct CallBudget {
    backend: Arc<dyn Backend>,
    session: SessionId,
    /// The beginning of the ids of this gateway's requests: the log may have those of earlier ones.
    prefix: String,
    waiting: Mutex<HashMap<String, oneshot::Sender<BudgetAnswer>>>,
    /// The limit that refused a call of this segment.
    refused: Mutex<Option<Exhausted>>,
}

impl CallBudget {
    pub(crate) fn new(backend: Arc<dyn Backend>, session: SessionId, prefix: String) -> Self {
        Self { backend, session, prefix, waiting: Mutex::default(), refused: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<BudgetAnswer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> MutexGuard<'_, Option<Exhausted>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests budget for a call.
    ///
    /// # Cancellation
    /// If the future is dropped, a call that is granted later is settled at once, without usage.
    pub(crate) async fn ask(&self, request: ExternalCallRequest) -> BudgetAnswer {
        let id = request.call.request.clone();
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id.clone(), sender);
        let event = SessionEvent::ExternalCall(Box::new(request));
        let posted = self.backend.post(self.session.into(), Event::Session(event), None).await;
        match posted {
            Ok(posted) if posted.changed => answer.await.unwrap_or(BudgetAnswer::Stopped),
            Ok(_) => {
                self.waiting().remove(&id);
                self.refused().map_or(BudgetAnswer::Stopped, BudgetAnswer::Exhausted)
            }
            Err(error) => {
                tracing::warn!(%error, "the budget of a program's call couldn't be requested");
                BudgetAnswer::Stopped
            }
        }
    }

    /// Charges a call.
    pub(crate) async fn settle(&self, result: ExternalCallResult) {
        let event = SessionEvent::ExternalAnswered(Box::new(result));
        if let Err(error) = self.backend.post(self.session.into(), Event::Session(event), None).await {
            tracing::warn!(%error, "a program's call couldn't be charged: it counts as what was reserved for it");
        }
    }

    /// Follows the session's log until `cancel` fires, and answers the requests that wait.
    pub(crate) async fn follow(&self, cancel: CancellationToken) {
        let mut records = self.backend.subscribe(self.session.into(), Seq::START);
        loop {
            let record = tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                record = records.next() => record,
            };
            match record {
                Some(Ok(record)) => self.read(&record.entry).await,
                Some(Err(error)) => tracing::warn!(%error, "a session's log can't be followed"),
                None => break,
            }
        }
        self.waiting().clear();
    }

    async fn read(&self, entry: &Entry) {
        match entry {
            Entry::Model(ModelEntry::ExternalCalled(called))
                if called.of.request.starts_with(&self.prefix) =>
            {
                let request = &called.of.request;
                let answer = BudgetAnswer::Granted(called.output_tokens_max);
                if !self.answer(request, answer) {
                    self.settle(ExternalCallResult::new(request.clone(), ExternalCallEnd::Aborted)).await;
                }
            }
            Entry::Model(ModelEntry::ExternalRefused(refused)) => {
                let answer = match refused.exhausted {
                    Some(exhausted) => {
                        *self.refused() = Some(exhausted);
                        BudgetAnswer::Exhausted(exhausted)
                    }
                    None => BudgetAnswer::Unpriced,
                };
                self.answer(&refused.of.request, answer);
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => *self.refused() = None,
            Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) => self.waiting().clear(),
            _ => {}
        }
    }

    /// Answers a request; returns whether it is waited for.
    fn answer(&self, request: &str, answer: BudgetAnswer) -> bool {
        let sender = self.waiting().remove(request);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }
}
