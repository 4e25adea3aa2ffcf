//! Requests to the process that holds a run: the store's part, and their serialized form.

use provost_engine::Event;
use provost_event::{ActorKey, RunId, Seq};
use provost_harness::{BackendError, Posted};
use serde::{Deserialize, Serialize};

/// Answered requests that are kept for their senders, the newest; older ones are removed.
pub const ANSWERED_REQUESTS_MAX: u64 = 10_000;

/// A request's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailboxState {
    /// No process has decided on it.
    Waiting,
    /// The decision is durable; this is the reply.
    Answered(String),
}

/// The mailboxes of all runs: requests from processes that don't hold the run. Every method is called within a
/// transaction or outside of one, as the store's other methods of the same kind.
pub trait Mailbox {
    /// Adds a request to the mailbox of `run`. Returns its number, which is greater than all numbers before, also
    /// of removed requests.
    ///
    /// # Errors
    /// When it can't.
    fn put_request(&mut self, run: RunId, request: &str) -> Result<u64, BackendError>;

    /// The runs that have waiting requests. Must be cheap when there are none.
    ///
    /// # Errors
    /// When they can't be read.
    fn runs_with_requests(&mut self) -> Result<Vec<RunId>, BackendError>;

    /// The waiting requests of `run` with their numbers, at most `max`, the oldest first. Damaged ones are left out.
    ///
    /// # Errors
    /// When they can't be read.
    fn waiting_requests(&mut self, run: RunId, max: usize) -> Result<Vec<(u64, String)>, BackendError>;

    /// Replaces a waiting request by its reply. Replies older than the newest 10,000 may be removed.
    ///
    /// # Errors
    /// When it can't.
    fn answer_request(&mut self, number: u64, reply: &str) -> Result<(), BackendError>;

    /// The state of a request; `None` if it isn't there.
    ///
    /// # Errors
    /// When it can't be read, or is damaged.
    fn request_state(&mut self, number: u64) -> Result<Option<MailboxState>, BackendError>;

    /// Removes a request that waits. Returns whether it did.
    ///
    /// # Errors
    /// When it can't.
    fn withdraw_request(&mut self, number: u64) -> Result<bool, BackendError>;
}

/// A post as a request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) key: ActorKey,
    pub(crate) event: Event,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dedup: Option<String>,
}

impl Request {
    pub(crate) fn text(&self) -> Result<String, BackendError> {
        serde_json::to_string(self).map_err(|error| failed(&error.to_string()))
    }

    /// # Errors
    /// The reason, if this version doesn't understand it, or it isn't for an actor of `run`.
    pub(crate) fn parse(text: &str, run: RunId) -> Result<Self, String> {
        match serde_json::from_str::<Self>(text) {
            Ok(request) if request.key.run() == run => Ok(request),
            Ok(request) => Err(format!("it is for {}", request.key)),
            Err(error) => Err(format!(
                "the process that holds the run is of another version and can't read it: {error}"
            )),
        }
    }
}

/// The reply to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MailboxReply {
    Posted { head: Seq, changed: bool },
    Unreadable { actor: ActorKey, seq: Seq, message: String },
    Failed { message: String },
}

impl MailboxReply {
    pub(crate) fn of(result: Result<Posted, BackendError>) -> Self {
        match result {
            Ok(Posted { head, changed }) => Self::Posted { head, changed },
            Err(BackendError::Unreadable { actor, seq, message }) => Self::Unreadable { actor, seq, message },
            Err(error) => Self::Failed { message: error.to_string() },
        }
    }

    pub(crate) fn text(&self) -> Result<String, BackendError> {
        serde_json::to_string(self).map_err(|error| failed(&error.to_string()))
    }

    /// The result of the post with this reply.
    pub(crate) fn result(text: &str) -> Result<Posted, BackendError> {
        match serde_json::from_str(text) {
            Ok(Self::Posted { head, changed }) => Ok(Posted { head, changed }),
            Ok(Self::Unreadable { actor, seq, message }) => {
                Err(BackendError::Unreadable { actor, seq, message })
            }
            Ok(Self::Failed { message }) => Err(failed(&message)),
            Err(error) => Err(failed(&format!("its reply can't be read: {error}"))),
        }
    }
}

fn failed(message: &str) -> BackendError {
    BackendError::Storage {
        attempt: "ask the process that holds the run",
        message: message.to_owned(),
        hint: None,
    }
}
