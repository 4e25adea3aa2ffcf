//! A model that repeats recorded answers.

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
use super::format::{Call, FILE_BYTES_MAX, Header, LINE_BYTES_MAX, NoHeader, Outcome, TapeKey, place_of};

/// A model that repeats the answers in a recording of [`RecordingModel`](super::RecordingModel); it needs neither
/// key nor network.
///
/// The next answer follows from the session's number and from [`ModelRequest::answers_before`], for a summary from
/// [`ModelRequest::summaries_before`], so that a replay can be resumed in another process. Failures and empty
/// answers are repeated in order, each once per process; the answer that a session continued with, and every
/// outcome of a judge, is repeated on each request. An answer that was recorded and then requested again never got
/// into the log, and is left out.
///
/// The conversation must have the recorded number of messages; its texts and outputs may differ.
pub struct ReplayModel {
    file: String,
    header: Header,
    /// In recorded order.
    calls: HashMap<TapeKey, Vec<Call>>,
    /// How many of the calls with a key each session has had, per purpose.
    had: Mutex<HashMap<(SessionId, Purpose), (u32, usize)>>,
}

impl ReplayModel {
    /// Reads the recording in `file`. An incomplete last line is ignored.
    ///
    /// # Errors
    /// If it can't be read, is larger than 512 MiB, has a line of more than 32 MiB, or isn't a recording: with
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

    /// The recorded model's name in the policy.
    #[must_use]
    pub fn model_name(&self) -> &str {
        &self.header.model
    }

    /// The recorded model's context window in tokens; `None` if unknown.
    #[must_use]
    pub const fn window_tokens(&self) -> Option<u64> {
        self.header.window_tokens
    }

    /// Its output cap in tokens.
    #[must_use]
    pub const fn output_tokens_max(&self) -> u32 {
        self.header.output_tokens_max
    }

    /// Whether it accepted pictures.
    #[must_use]
    pub const fn images(&self) -> bool {
        self.header.images
    }

    /// The next call, which then counts as used.
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

/// Of several calls with one key, a final answer that isn't the last was lost before it was committed.
fn leave_out_lost(calls: &mut Vec<Call>) {
    let last = calls.pop();
    calls.retain(|call| !call.is_final());
    calls.extend(last);
}

fn wanted(request: &ModelRequest<'_>) -> String {
    let (agent, purpose, position) = place_of(request);
    let number = u64::from(position).saturating_add(1);
    match purpose {
        Purpose::Turn | Purpose::External => format!("answer {number} of session {agent}"),
        Purpose::Judge => format!("verdict {number} about session {agent}"),
        Purpose::Hook => format!("answer {number} of a hook about session {agent}"),
        Purpose::Summary => format!("summary {number} of session {agent}"),
        Purpose::FinalSummary => format!("final summary of session {agent} after {position} answers"),
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

/// The complete lines of a file.
struct Lines<'a> {
    reader: BufReader<File>,
    file: &'a str,
    /// The number of the last line read.
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
