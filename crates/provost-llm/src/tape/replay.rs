//! A model that answers as another one did.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{Block, DeltaKind, ErrorClass, ModelFailure, Purpose, SessionId};
use provost_harness::{DeltaSink, Model, ModelRequest};
use tokio_util::sync::CancellationToken;

use super::TapeError;
use super::conversation::digest;
use super::format::{Call, FILE_BYTES_MAX, Header, LINE_BYTES_MAX, NoHeader, Outcome, Place, place_of};

/// A model that answers as [`RecordingModel`](super::RecordingModel) heard another one answer; it needs neither
/// key nor network.
///
/// Which answer is next follows from the session's number and from [`ModelRequest::answers_before`], for a summary from
/// [`ModelRequest::summaries_before`], so that a replay can be gone on with in another process. Failures and empty
/// answers come as they came, each once in a process; the answer that a session went on with, and whatever a judge came
/// to, comes as often as it is asked for. An answer that was recorded and yet asked for again never got into the log,
/// and is left out.
///
/// The conversation must have as many messages as it had; in other words and outputs it may differ.
pub struct ReplayModel {
    file: String,
    header: Header,
    /// In recorded order.
    calls: HashMap<Place, Vec<Call>>,
    /// How many of the calls at which place each session has had, of each purpose.
    had: Mutex<HashMap<(SessionId, Purpose), (u32, usize)>>,
}

impl ReplayModel {
    /// Reads the recording in `file`. A last line that wasn't written to its end is ignored.
    ///
    /// # Errors
    /// When it can't be read, is larger than 512 MiB, has a line of more than 32 MiB, or isn't a recording: with
    /// file, line and a remedy.
    pub fn open(file: impl AsRef<Path>) -> Result<Self, TapeError> {
        let path = file.as_ref();
        let file = path.display().to_string();
        let mut lines = Lines::open(path, &file)?;
        let header = lines.next()?.map(|line| Header::read(&line));
        let header = match header {
            Some(Ok(header)) => header,
            Some(Err(NoHeader::Newer { needs })) => return Err(TapeError::Newer { file, needs }),
            Some(Err(NoHeader::Foreign)) | None => return Err(TapeError::NoRecording { file }),
        };
        let mut calls = HashMap::<_, Vec<Call>>::new();
        while let Some(line) = lines.next()? {
            let call = serde_json::from_slice::<Call>(&line);
            let call =
                call.map_err(|source| TapeError::Bad { file: file.clone(), line: lines.number, source })?;
            calls.entry(call.place()).or_default().push(call);
        }
        calls.values_mut().for_each(leave_out_lost);
        Ok(Self { file, header, calls, had: Mutex::default() })
    }

    /// The recorded model, by its policy's name.
    #[must_use]
    pub fn model_name(&self) -> &str {
        &self.header.model
    }

    /// Tokens that fit a request to the recorded model and its answer; `None` if unknown.
    #[must_use]
    pub const fn window_tokens(&self) -> Option<u64> {
        self.header.window_tokens
    }

    /// Tokens an answer could have.
    #[must_use]
    pub const fn output_tokens_max(&self) -> u32 {
        self.header.output_tokens_max
    }

    /// Whether the recorded model was shown pictures.
    #[must_use]
    pub const fn images(&self) -> bool {
        self.header.images
    }

    /// The call that comes now; it is had by that.
    fn next(&self, request: &ModelRequest<'_>) -> Result<&Call, ModelFailure> {
        let place = place_of(request);
        let (_, purpose, position) = place;
        let calls = self.calls.get(&place).map(Vec::as_slice).unwrap_or_default();
        let mut had = self.had.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, count) = had.entry((request.session, purpose)).or_default();
        if *at != position {
            (*at, *count) = (position, 0);
        }
        let again = || calls.last().filter(|call| call.is_final());
        let call = calls.get(*count).or_else(again).ok_or_else(|| self.missing(request, calls.len()))?;
        if call.messages != request.messages.len() {
            return Err(self.of_other_length(request, call));
        }
        *count = count.saturating_add(1);
        Ok(call)
    }

    fn missing(&self, request: &ModelRequest<'_>, recorded: usize) -> ModelFailure {
        let (file, wanted) = (&self.file, wanted(request));
        let what = match recorded {
            0 => format!("{file} has no {wanted}"),
            _ => format!("{file} has no {wanted}, only attempts that gave none"),
        };
        mismatch(&what)
    }

    fn of_other_length(&self, request: &ModelRequest<'_>, call: &Call) -> ModelFailure {
        let (file, wanted) = (&self.file, wanted(request));
        let (then, now) = (call.messages, request.messages.len());
        mismatch(&format!("{file} has {wanted} to {then} messages, and now there are {now}"))
    }

    fn compare(&self, request: &ModelRequest<'_>, call: &Call) {
        if digest(request) != call.digest {
            let (session, turn, file) = (request.session, request.turn, &self.file);
            tracing::debug!(%session, turn, file, "the conversation isn't word for word what was recorded");
        }
    }
}

#[async_trait]
impl Model for ReplayModel {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        if cancel.is_cancelled() {
            let message = "cancelled while the model was answering";
            return Err(ModelFailure::new(ErrorClass::Aborted, message));
        }
        let call = self.next(&request)?;
        self.compare(&request, call);
        match &call.outcome {
            Outcome::Answer(answer) => {
                answer.content.iter().for_each(|block| tell(block, deltas));
                Ok(answer.clone())
            }
            Outcome::Failure(failure) => Err(failure.clone()),
        }
    }
}

impl fmt::Debug for ReplayModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayModel").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Of several calls at one place, an answer to go on with that isn't the last was lost before it was committed.
fn leave_out_lost(calls: &mut Vec<Call>) {
    let last = calls.pop();
    calls.retain(|call| !call.is_final());
    calls.extend(last);
}

fn wanted(request: &ModelRequest<'_>) -> String {
    let (agent, purpose, position) = place_of(request);
    let number = u64::from(position).saturating_add(1);
    match purpose {
        Purpose::Turn => format!("answer {number} of session {agent}"),
        Purpose::Judge => format!("verdict {number} about session {agent}"),
        Purpose::Summary => format!("summary {number} of session {agent}"),
        Purpose::WrapUp => format!("last words of session {agent} after {position} answers"),
    }
}

fn mismatch(what: &str) -> ModelFailure {
    let message =
        format!("{what}: the conversation went another way than when it was recorded; record it again");
    ModelFailure::new(ErrorClass::ScriptMismatch, message)
}

fn tell(block: &Block, deltas: &dyn DeltaSink) {
    match block {
        Block::Text(text) => deltas.delta(DeltaKind::Text, text),
        Block::Thinking { text, .. } if !text.is_empty() => deltas.delta(DeltaKind::Thinking, text),
        Block::Thinking { .. } | Block::Image(_) | Block::Opaque { .. } | Block::ToolCall(_) => {}
    }
}

/// The whole lines of a file.
struct Lines<'a> {
    reader: BufReader<File>,
    file: &'a str,
    /// The number of the line read last.
    number: u64,
}

impl<'a> Lines<'a> {
    fn open(path: &Path, file: &'a str) -> Result<Self, TapeError> {
        let failed = |source| TapeError::Read { file: file.to_owned(), source };
        let opened = File::open(path).map_err(failed)?;
        if opened.metadata().map_err(failed)?.len() > FILE_BYTES_MAX {
            return Err(TapeError::TooLarge { file: file.to_owned() });
        }
        Ok(Self { reader: BufReader::new(opened), file, number: 0 })
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, TapeError> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|source| TapeError::Read { file: self.file.to_owned(), source })?;
        self.number += 1;
        if line.pop_if(|last| *last == b'\n').is_some() {
            Ok(Some(line))
        } else if u64::try_from(read).is_ok_and(|read| read < LINE_BYTES_MAX) {
            Ok(None)
        } else {
            Err(TapeError::LineTooLong { file: self.file.to_owned(), line: self.number })
        }
    }
}
