//! Recorded calls of an earlier run in place of the providers.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use provost_event::{
    ActorKey, BlobId, Entry, ExternalCallEnd, ExternalModelAnswered, ExternalModelCalled, ModelEntry, RunId,
    Seq,
};
use provost_harness::{Backend, BackendError};
use provost_llm::WireFormat;
use serde_json::Value;

use crate::answer::scrubbed;
use crate::gateway::Shared;
use crate::refusal::Refusal;

/// Entries that are read at once.
const READ_MAX: usize = 500;
/// The members that hold the messages of a request, by wire format.
const MESSAGES: [&str; 3] = ["messages", "input", "contents"];

/// The calls of a recorded run, each to be given once.
pub(crate) struct Recording {
    run: RunId,
    calls: Mutex<Vec<RecordedCall>>,
}

/// A recorded call.
struct RecordedCall {
    wire: String,
    /// Without its provider.
    model: String,
    shape: RequestShape,
    answer: RecordedAnswer,
}

/// What a request is recognized by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RequestShape {
    /// Of its text, without secrets.
    hash: u64,
    /// The number of its messages.
    messages: usize,
}

/// How a call was answered.
#[derive(Debug, Clone)]
pub(crate) struct RecordedAnswer {
    /// The status; absent if the provider gave none.
    status: Option<u16>,
    body: Option<BlobId>,
    message: String,
}

/// A recorded answer with its body.
pub(crate) enum ReplayedAnswer {
    /// An answer of the provider.
    Response(reqwest::Response),
    /// The provider gave none, for this reason.
    Unreachable(String),
}

impl Recording {
    /// Reads what the programs of `run` were answered.
    ///
    /// # Errors
    /// If a log or a body can't be read, or nothing was recorded.
    pub(crate) async fn read(shared: &Shared, run: RunId) -> Result<Self, String> {
        let backend = &*shared.options.backend;
        let mut calls = Vec::new();
        let failed = |error: BackendError| format!("run {run} can't be replayed: {error}");
        for key in backend.actors(run).await.map_err(failed)? {
            read_calls(shared, key, &mut calls).await.map_err(failed)?;
        }
        if calls.is_empty() {
            return Err(format!(
                "run {run} has no recorded model calls to replay: record a run with --record-calls"
            ));
        }
        Ok(Self { run, calls: Mutex::new(calls) })
    }

    /// Takes the answer of the first recorded call with the same request; without one, of the first with the same model,
    /// wire format and number of messages: texts such as dates and folders differ from run to run.
    ///
    /// # Errors
    /// If there is none left.
    pub(crate) fn take(
        &self,
        shared: &Shared,
        (wire, model): (WireFormat, &str),
        body: &str,
    ) -> Result<RecordedAnswer, Refusal> {
        let asked = RequestShape::of(&scrubbed(shared, body.as_bytes()));
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |call: &RecordedCall| call.wire == wire.name() && call.model == model;
        let same = calls.iter().position(|call| fits(call) && call.shape.hash == asked.hash);
        let like = || calls.iter().position(|call| fits(call) && call.shape.messages == asked.messages);
        match same.or_else(like) {
            Some(place) => Ok(calls.remove(place).answer),
            None => Err(Refusal::bad(format!(
                "the recording of run {} has no further call of `{model}` ({}) with {} messages: the program asks \
                 otherwise than it did then",
                self.run,
                wire.name(),
                asked.messages
            ))),
        }
    }
}

impl RequestShape {
    fn of(text: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let value = serde_json::from_str::<Value>(text).unwrap_or_default();
        let messages =
            MESSAGES.iter().find_map(|name| value.get(name)).map_or(0, |messages| match messages {
                Value::Array(messages) => messages.len(),
                _ => 1,
            });
        Self { hash: hasher.finish(), messages }
    }
}

impl RecordedAnswer {
    /// The answer as its provider gave it.
    ///
    /// # Errors
    /// If its body can't be read.
    pub(crate) async fn response(self, backend: &dyn Backend) -> Result<ReplayedAnswer, String> {
        let Some(status) = self.status else { return Ok(ReplayedAnswer::Unreachable(self.message)) };
        let body = match &self.body {
            None => Vec::new(),
            Some(id) => {
                let body = backend.get_blob(id).await.map_err(|error| error.to_string())?;
                body.ok_or_else(|| format!("the recorded answer {id} is gone from the store"))?
            }
        };
        let is_stream = body.starts_with(b"event:") || body.starts_with(b"data:");
        let kind = if is_stream { "text/event-stream" } else { "application/json" };
        let response = axum::http::Response::builder().status(status).header("content-type", kind);
        let response = response.body(body).map_err(|error| error.to_string())?;
        Ok(ReplayedAnswer::Response(response.into()))
    }
}

/// Adds the calls of a log that were recorded and not given up.
async fn read_calls(
    shared: &Shared,
    key: ActorKey,
    calls: &mut Vec<RecordedCall>,
) -> Result<(), BackendError> {
    let backend = &*shared.options.backend;
    let (mut after, mut open) = (Seq::START, Vec::<ExternalModelCalled>::new());
    loop {
        let records = backend.read(key, after, READ_MAX).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after = last.seq;
        for record in &records {
            match &record.entry {
                Entry::Model(ModelEntry::ExternalCalled(called)) if called.of.body.is_some() => {
                    open.push(called.clone());
                }
                Entry::Model(ModelEntry::ExternalAnswered(answered)) => {
                    let place = open.iter().position(|called| called.of.request == answered.request);
                    if let Some(called) = place.map(|place| open.remove(place)) {
                        calls.extend(call(backend, &called, answered).await?);
                    }
                }
                _ => {}
            }
        }
    }
}

async fn call(
    backend: &dyn Backend,
    called: &ExternalModelCalled,
    answered: &ExternalModelAnswered,
) -> Result<Option<RecordedCall>, BackendError> {
    let message = match &answered.end {
        ExternalCallEnd::Answered => String::new(),
        ExternalCallEnd::Failed { message, .. } => message.clone(),
        ExternalCallEnd::Aborted | ExternalCallEnd::Lost => return Ok(None),
    };
    let Some(request) = &called.of.body else { return Ok(None) };
    let Some(request) = backend.get_blob(request).await? else { return Ok(None) };
    let model = called.of.model.split_once('/').map_or(called.of.model.as_str(), |(_, model)| model);
    Ok(Some(RecordedCall {
        wire: called.of.wire.clone(),
        model: model.to_owned(),
        shape: RequestShape::of(&String::from_utf8_lossy(&request)),
        answer: RecordedAnswer { status: answered.status, body: answered.body.clone(), message },
    }))
}
