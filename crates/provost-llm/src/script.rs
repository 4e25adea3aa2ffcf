//! A model with answers from a YAML file: for the first run, demos and tests. Tools, hooks and log are real; only
//! the model's answers are scripted. The format is described in `docs/script.md`.

mod complaint;
mod expect;
mod fault;
mod format;
mod load;
mod verdict;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{
    Block, CallId, Certainty, DeltaKind, ErrorClass, ModelFailure, Purpose, SessionId, StopReason, ToolCall,
    Usage,
};
use provost_harness::{Clock, DeltaSink, Model, ModelRequest, Part, SystemClock};
use tokio_util::sync::CancellationToken;

use crate::estimate::{block_bytes, request_bytes, tokens};
pub use complaint::ScriptError;
use expect::Expect;
use load::{Fault, Lines, Reply, Script, Slot};

/// The number of the root agent.
const ROOT: u32 = 0;

/// A model that answers by a script.
///
/// The next answer follows from the conversation alone: the session's first answer is the script's first, and so
/// on, by [`ModelRequest::answers_before`]; likewise summaries, by [`ModelRequest::summaries_before`]. So the
/// script continues at the right entry after a restart, a resume or a compaction, and a retry gets the same
/// answer. Faults stand before the answer that they delay; each happens once per process and session.
///
/// As a judge it gives its verdicts, also in order, and for hooks that are models the entries under `hooks:`. There a
/// fault is an entry of its own: each call counts.
///
/// Sub-agents use the same script. An agent whose goal contains the text of an entry under `agents:` gets the
/// answers there, the first entry that fits; the root and all others get the script's own. A judge doesn't get the
/// goal, but its evidence begins with it: the entry whose text comes first there applies.
///
/// Without `final_summary` in the script, the request for a final summary gets an empty answer, without usage.
pub struct ScriptedModel {
    script: Script,
    clock: Arc<dyn Clock>,
    /// The number of faults that each session has had, per purpose and the answer or summary after them.
    met: Mutex<HashMap<(SessionId, Purpose), (u32, usize)>>,
}

impl ScriptedModel {
    /// Reads the script in the file `path`.
    ///
    /// # Errors
    /// If it can't be read, is larger than 4 MiB, or isn't a script: with file, line, column and a remedy.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        load::read(path.as_ref()).map(Self::of)
    }

    /// Parses the script `text`, which errors call `name`.
    ///
    /// # Errors
    /// If it isn't a script: with name, line, column and a remedy.
    pub fn parse(text: &str, name: &str) -> Result<Self, ScriptError> {
        load::parse(text, name).map(Self::of)
    }

    fn of(script: Script) -> Self {
        Self { script, clock: Arc::new(SystemClock), met: Mutex::default() }
    }

    /// Uses `clock` for waits instead of the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The context window, as the script sets it. Default 200 000.
    #[must_use]
    pub const fn window_tokens(&self) -> u64 {
        self.script.window_tokens
    }

    /// The output cap, as the script sets it. Default 8192, at most a quarter of the window. A longer scripted
    /// answer isn't cut.
    #[must_use]
    pub const fn output_tokens_max(&self) -> u32 {
        self.script.output_tokens_max
    }

    /// The slot of a request, and its next fault, if one is left. `None` for a final summary that the script
    /// doesn't have.
    fn next(&self, request: &ModelRequest<'_>) -> Result<Option<(&Slot, Option<&Fault>)>, ModelFailure> {
        let place = ScriptPosition::of(request);
        let (_, lines) = self.lines(request);
        let slots = match place.purpose {
            Purpose::Turn | Purpose::External => &lines.answers,
            Purpose::Summary => &lines.summaries,
            Purpose::Judge => &lines.verdicts,
            Purpose::Hook => &lines.hooks,
            // Each limit has a final summary of its own, and none is requested twice.
            Purpose::FinalSummary => {
                return Ok(lines.final_summary.as_ref().map(|slot| (slot, slot.faults.first())));
            }
        };
        let slot = usize::try_from(place.position).ok().and_then(|position| slots.get(position));
        let slot = slot.ok_or_else(|| self.exhausted(request))?;
        if matches!(place.purpose, Purpose::Judge | Purpose::Hook) {
            return Ok(Some((slot, slot.faults.first())));
        }
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, faults) = met.entry((request.session, place.purpose)).or_default();
        if *at != place.position {
            (*at, *faults) = (place.position, 0);
        }
        let fault = slot.faults.get(*faults);
        *faults += usize::from(fault.is_some());
        Ok(Some((slot, fault)))
    }

    /// The lines for the requesting agent, or for a judge of it, with the text in its goal that selected them, if
    /// any.
    fn lines(&self, request: &ModelRequest<'_>) -> (Option<&str>, &Lines) {
        // The root's first message may be a summary, which may mention other agents' goals.
        let goal = goal_of(request).filter(|_| request.session.agent != ROOT).unwrap_or_default();
        let agents = self.script.agents.iter();
        let mut fitting = agents.filter_map(|agent| Some((goal.find(agent.0.as_str())?, agent)));
        let fitting = match request.purpose {
            // The evidence may mention other agents' goals too, but only after the agent's own.
            Purpose::Judge => fitting.min_by_key(|(place, _)| *place),
            Purpose::Turn | Purpose::Summary | Purpose::FinalSummary | Purpose::External | Purpose::Hook => {
                fitting.next()
            }
        };
        fitting.map(|(_, agent)| agent).map_or((None, &self.script.own), |(text, lines)| (Some(text), lines))
    }

    fn exhausted(&self, request: &ModelRequest<'_>) -> ModelFailure {
        let (name, place) = (&self.script.name, ScriptPosition::of(request));
        let (goal, lines) = self.lines(request);
        let whose = goal.map(|goal| format!(" for `{goal}`")).unwrap_or_default();
        mismatch(match place.purpose {
            Purpose::Turn | Purpose::External => {
                let answers = lines.answers.iter().filter(|slot| slot.answer.is_some()).count();
                format!("{name} has {answers} answers{whose}, and {place} was asked for; add it to the file")
            }
            Purpose::Summary | Purpose::FinalSummary => {
                format!("{name} has no {place}{whose}; add it under `summaries:`")
            }
            Purpose::Hook => {
                let answers = lines.hooks.len();
                format!(
                    "{name} has {answers} answers of hooks{whose}, and {place} was asked for; add it under `hooks:`"
                )
            }
            Purpose::Judge => {
                let verdicts = lines.verdicts.len();
                format!(
                    "{name} has {verdicts} verdicts{whose}, and {place} was asked for; add it under `verdicts:`"
                )
            }
        })
    }

    fn check(&self, line: u64, expect: &Expect, request: &ModelRequest<'_>) -> Result<(), ModelFailure> {
        expect.check(request).map_err(|complaint| {
            mismatch(format!(
                "{}:{line}: {} expects {complaint}",
                self.script.name,
                ScriptPosition::of(request)
            ))
        })
    }

    async fn play(&self, request: &ModelRequest<'_>, deltas: &dyn DeltaSink) -> Result<Answer, ModelFailure> {
        let Some((slot, fault)) = self.next(request)? else { return Ok(self.nothing()) };
        if let Some(fault) = fault {
            self.check(fault.line, &fault.expect, request)?;
            self.stream(&fault.reply, deltas).await;
            return self.fail(fault, request);
        }
        let Some(reply) = &slot.answer else { return Err(self.exhausted(request)) };
        self.check(reply.line, &reply.expect, request)?;
        self.stream(reply, deltas).await;
        Ok(self.answer_of(reply, request))
    }

    fn nothing(&self) -> Answer {
        let (usage, stop) = (Usage::default(), StopReason::EndTurn);
        Answer { cost: None, content: Vec::new(), usage, model: self.script.model.clone(), stop }
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
            content.push(Block::Thinking {
                text: reply.thinking.concat(),
                signature: None,
                wire: None,
                prefix: None,
            });
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
        Answer { cost: None, content, usage, model: self.script.model.clone(), stop: reply.stop }
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

/// A kind of request, and its number within that kind, from 0.
#[derive(Debug, Clone, Copy)]
struct ScriptPosition {
    purpose: Purpose,
    position: u32,
}

impl ScriptPosition {
    const fn of(request: &ModelRequest<'_>) -> Self {
        let position = match request.purpose {
            Purpose::Turn | Purpose::Judge | Purpose::External | Purpose::Hook => request.answers_before,
            Purpose::Summary => request.summaries_before,
            Purpose::FinalSummary => 0,
        };
        Self { purpose: request.purpose, position }
    }
}

impl fmt::Display for ScriptPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = u64::from(self.position) + 1;
        match self.purpose {
            Purpose::Turn | Purpose::External => write!(f, "answer {number}"),
            Purpose::Summary => write!(f, "summary {number}"),
            Purpose::FinalSummary => f.write_str("final_summary"),
            Purpose::Judge => write!(f, "verdict {number}"),
            Purpose::Hook => write!(f, "answer {number} of a hook"),
        }
    }
}

/// The text that contains the goal: a conversation begins with it, or with a summary that repeats it; a judge's
/// question contains it too.
fn goal_of<'a>(request: &ModelRequest<'a>) -> Option<&'a str> {
    // Provost's own reminders stand before it.
    match request.messages.first()?.parts.iter().find(|part| !part.is_reminder())? {
        Part::Block(Block::Text(text)) => Some(text),
        Part::Block(_) | Part::Image(_) | Part::ToolResult { .. } => None,
    }
}

fn mismatch(message: String) -> ModelFailure {
    ModelFailure::new(ErrorClass::ScriptMismatch, message)
}

/// The script's usage, estimated from lengths if it has none.
fn usage_of(reply: &Reply, content: &[Block], request: &ModelRequest<'_>) -> Usage {
    let said = &reply.usage;
    Usage {
        input_tokens: said.input.unwrap_or_else(|| tokens(request_bytes(request))),
        output_tokens: said.output.unwrap_or_else(|| tokens(content.iter().map(block_bytes).sum())),
        cache_read_tokens: said.cache_read.unwrap_or(0),
        cache_write_tokens: said.cache_write.unwrap_or(0),
        reasoning_tokens: 0,
        certainty: Certainty::Reported,
    }
}

/// A scripted answer always has a stop reason.
const fn stop_of(stop: Option<StopReason>, has_calls: bool) -> StopReason {
    match stop {
        Some(stop) => stop,
        None if has_calls => StopReason::ToolUse,
        None => StopReason::EndTurn,
    }
}
