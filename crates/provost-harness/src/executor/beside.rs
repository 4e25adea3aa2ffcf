//! Model calls beside a session's conversation: each has its budget before it is made, and is charged when it is over.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use futures::StreamExt as _;
use provost_engine::{Event, ExternalCallRequest, ExternalCallResult, SessionEvent};
use provost_event::{Entry, Exhausted, ExternalCall, LifecycleEntry, ModelEntry, Seq, SessionId};
use tokio_util::sync::CancellationToken;

use super::HarnessExecutor;

/// The answer to a request for budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    /// The call may be made.
    Granted {
        /// Its number among the session's calls beside its conversation.
        call: u32,
        /// The cap on its answer.
        output_tokens_max: u32,
    },
    /// The limit leaves no useful answer: the session is being suspended.
    Exhausted(Exhausted),
    /// Money is limited, and the price of the model is unknown.
    Unpriced,
    /// The session makes no calls any more, or what asks was cancelled.
    Stopped,
}

/// An id of a request that no other process has given.
pub(super) fn request_id() -> String {
    format!("hook-{:016x}", RandomState::new().hash_one(()))
}

impl HarnessExecutor {
    /// Requests budget for a call. `since` is an entry of the session before it.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns. A call that is granted later is charged when its session stops, with what was
    /// reserved for it, unless it is settled.
    pub(super) async fn grant(
        &self,
        session: SessionId,
        since: Seq,
        request: ExternalCallRequest,
        cancel: &CancellationToken,
    ) -> Grant {
        let id = request.call.request.clone();
        let event = SessionEvent::ExternalCall(Box::new(request));
        match self.backend().post(session.into(), Event::Session(event), None).await {
            Ok(posted) if posted.changed => {}
            Ok(_) => return Grant::Stopped,
            Err(error) => {
                tracing::warn!(%error, "the budget of a hook's call couldn't be requested");
                return Grant::Stopped;
            }
        }
        let mut records = self.backend().subscribe(session.into(), since);
        loop {
            let record = tokio::select! {
                biased;
                record = records.next() => record,
                () = cancel.cancelled() => return Grant::Stopped,
            };
            match record {
                Some(Ok(record)) => {
                    if let Some(grant) = answer(&record.entry, &id) {
                        return grant;
                    }
                }
                Some(Err(error)) => tracing::warn!(%error, "a session's log can't be followed"),
                None => return Grant::Stopped,
            }
        }
    }

    /// Charges a call.
    pub(super) async fn settle_beside(&self, session: SessionId, result: ExternalCallResult) {
        let event = SessionEvent::ExternalAnswered(Box::new(result));
        if let Err(error) = self.backend().post(session.into(), Event::Session(event), None).await {
            tracing::warn!(%error, "a hook's call couldn't be charged: it counts as what was reserved for it");
        }
    }
}

/// What an entry answers to the request `id`.
fn answer(entry: &Entry, id: &str) -> Option<Grant> {
    let is_meant = |of: &ExternalCall| of.request == id;
    match entry {
        Entry::Model(ModelEntry::ExternalCalled(called)) if is_meant(&called.of) => {
            Some(Grant::Granted { call: called.call, output_tokens_max: called.output_tokens_max })
        }
        Entry::Model(ModelEntry::ExternalRefused(refused)) if is_meant(&refused.of) => {
            Some(refused.exhausted.map_or(Grant::Unpriced, Grant::Exhausted))
        }
        Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) => Some(Grant::Stopped),
        _ => None,
    }
}
