//! A model whose answers stand in a YAML file: for the first run, demos and tests. Tools, hooks and log are real;
//! only the words are scripted. The format is described in `docs/script.md`.

mod complaint;
mod expect;
mod fault;
mod format;
mod load;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{
    Block, CallId, DeltaKind, ErrorClass, ModelFailure, Purpose, SessionId, StopReason, ToolCall, Usage,
};
use provost_harness::{Clock, DeltaSink, Model, ModelRequest, SystemClock};
use tokio_util::sync::CancellationToken;

use crate::estimate::{block_bytes, request_bytes, tokens};
pub use complaint::ScriptError;
use load::{Fault, Reply, Script, Slot};

/// A model that answers by a script.
///
/// Which answer is next follows from the conversation alone: the session's first answer is the script's first,
/// and so on, by [`ModelRequest::answers_before`]. So the script goes on at the right place after a restart, a
/// resume or a compaction, and a repeated attempt gets the same answer. Faults stand before the answer they put
/// off; each happens once in a process and session.
pub struct ScriptedModel {
    script: Script,
    clock: Arc<dyn Clock>,
    /// How many of the faults before which answer each session has met.
    met: Mutex<HashMap<SessionId, (u32, usize)>>,
}

impl ScriptedModel {
    /// Reads the script in the file `path`.
    ///
    /// # Errors
    /// When it can't be read, is larger than 4 MiB, or isn't a script: with file, line, column and a remedy.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        load::read(path.as_ref()).map(Self::of)
    }

    /// Reads the script `text`, which errors call `name`.
    ///
    /// # Errors
    /// When it isn't a script: with name, line, column and a remedy.
    pub fn parse(text: &str, name: &str) -> Result<Self, ScriptError> {
        load::parse(text, name).map(Self::of)
    }

    fn of(script: Script) -> Self {
        Self { script, clock: Arc::new(SystemClock), met: Mutex::default() }
    }

    /// Waits by `clock` instead of the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Tokens that fit a request and its answer, by the script's word. Default 200 000.
    #[must_use]
    pub const fn window_tokens(&self) -> u64 {
        self.script.window_tokens
    }

    /// Tokens an answer may have, by the script's word. Default 8192. Nothing cuts a longer scripted answer.
    #[must_use]
    pub const fn output_tokens_max(&self) -> u32 {
        self.script.output_tokens_max
    }

    /// The slot of the next answer, and which of its faults comes now, if one is left.
    fn next(&self, request: &ModelRequest<'_>) -> Result<(&Slot, Option<&Fault>), ModelFailure> {
        let position = request.answers_before;
        let slot = usize::try_from(position).ok().and_then(|position| self.script.slots.get(position));
        let slot = slot.ok_or_else(|| self.exhausted(position))?;
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, faults) = met.entry(request.session).or_default();
        if *at != position {
            (*at, *faults) = (position, 0);
        }
        let fault = slot.faults.get(*faults);
        *faults += usize::from(fault.is_some());
        Ok((slot, fault))
    }

    fn exhausted(&self, position: u32) -> ModelFailure {
        let Script { name, answers, .. } = &self.script;
        let asked = u64::from(position) + 1;
        mismatch(format!(
            "{name} has {answers} answers, and answer {asked} was asked for; add it to the file"
        ))
    }

    fn check(
        &self,
        slot_number: u32,
        line: u64,
        expect: &expect::Expect,
        request: &ModelRequest<'_>,
    ) -> Result<(), ModelFailure> {
        expect.check(request).map_err(|complaint| {
            let number = u64::from(slot_number) + 1;
            mismatch(format!("{}:{line}: answer {number} expects {complaint}", self.script.name))
        })
    }

    async fn play(&self, request: &ModelRequest<'_>, deltas: &dyn DeltaSink) -> Result<Answer, ModelFailure> {
        if request.purpose != Purpose::Turn {
            return Err(mismatch(format!("{} has no answer for {:?}", self.script.name, request.purpose)));
        }
        let (slot, fault) = self.next(request)?;
        if let Some(fault) = fault {
            self.check(request.answers_before, fault.line, &fault.expect, request)?;
            self.stream(&fault.reply, deltas).await;
            return self.fail(fault, request);
        }
        let Some(reply) = &slot.answer else { return Err(self.exhausted(request.answers_before)) };
        self.check(request.answers_before, reply.line, &reply.expect, request)?;
        self.stream(reply, deltas).await;
        Ok(self.answer_of(reply, request))
    }

    fn fail(&self, fault: &Fault, request: &ModelRequest<'_>) -> Result<Answer, ModelFailure> {
        match &fault.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.answer_of(&fault.reply, request)),
        }
    }

    async fn stream(&self, reply: &Reply, deltas: &dyn DeltaSink) {
        self.wait(reply.delay_ms).await;
        let thinking = reply.thinking.iter().map(|piece| (DeltaKind::Thinking, piece));
        let text = reply.text.iter().map(|piece| (DeltaKind::Text, piece));
        for (place, (kind, piece)) in thinking.chain(text).enumerate() {
            if place > 0 {
                self.wait(reply.chunk_delay_ms).await;
            }
            deltas.delta(kind, piece);
        }
    }

    async fn wait(&self, ms: u64) {
        if ms > 0 {
            self.clock.sleep(Duration::from_millis(ms)).await;
        }
    }

    fn answer_of(&self, reply: &Reply, request: &ModelRequest<'_>) -> Answer {
        let mut content = Vec::new();
        if !reply.thinking.is_empty() {
            content.push(Block::Thinking { text: reply.thinking.concat(), signature: None, wire: None });
        }
        if !reply.text.is_empty() {
            content.push(Block::Text(reply.text.concat()));
        }
        for (place, call) in (1_u32..).zip(&reply.calls) {
            let id =
                call.id.clone().unwrap_or_else(|| format!("call_{}_{place}", request.answers_before + 1));
            content.push(Block::ToolCall(ToolCall {
                id: CallId::from(id.as_str()),
                name: call.name.clone(),
                input: call.input.clone(),
                malformed: call.malformed.clone(),
            }));
        }
        let usage = usage_of(reply, &content, request);
        Answer { content, usage, model: self.script.model.clone(), stop: reply.stop }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelFailure::new(ErrorClass::Aborted, "cancelled while the model was answering")),
            outcome = self.play(&request, deltas) => outcome,
        }
    }
}

fn mismatch(message: String) -> ModelFailure {
    ModelFailure::new(ErrorClass::ScriptMismatch, message)
}

/// The script's word on usage, estimated from lengths where it has none.
fn usage_of(reply: &Reply, content: &[Block], request: &ModelRequest<'_>) -> Usage {
    let said = &reply.usage;
    Usage {
        input_tokens: said.input.unwrap_or_else(|| tokens(request_bytes(request))),
        output_tokens: said.output.unwrap_or_else(|| tokens(content.iter().map(block_bytes).sum())),
        cache_read_tokens: said.cache_read.unwrap_or(0),
        cache_write_tokens: said.cache_write.unwrap_or(0),
        reasoning_tokens: 0,
    }
}

/// A scripted answer always says why it stops.
const fn stop_of(stop: Option<StopReason>, has_calls: bool) -> StopReason {
    match stop {
        Some(stop) => stop,
        None if has_calls => StopReason::ToolUse,
        None => StopReason::EndTurn,
    }
}
