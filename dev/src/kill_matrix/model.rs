//! A model whose answers depend only on the request and the length of the conversation: the same after every
//! restart.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{Block, CallId, ErrorClass, Json, ModelFailure, Purpose, StopReason, ToolCall, Usage};
use provost_harness::{DeltaSink, Message, Model, ModelRequest, Part, Role};
use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::files::{Files, append, once};
use super::scenario::{FINAL_SUMMARY, GOAL, ROOT, Say, Scenario, SubAgent, Summaries, filler};

/// Bytes per token by this model's count.
const BYTES_PER_TOKEN: usize = 4;
/// Additional tokens for each part of a message.
const PART_TOKENS: usize = 4;

/// The model of one scenario.
pub(super) struct Play {
    pub(super) scenario: &'static Scenario,
    pub(super) files: Files,
    pub(super) fault: Arc<Fault>,
    /// The window, if the policy has it.
    pub(super) window_tokens: Option<u64>,
}

#[async_trait]
impl Model for Play {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        _deltas: &dyn DeltaSink,
        _cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let input_tokens = count(request.messages);
        if request.purpose == Purpose::Judge {
            let (content, stop) = self.verdict(request.session.agent, request.answers_before)?;
            return Ok(answer(content, stop, input_tokens));
        }
        let (goal, turn) = self.part(&request);
        let complaints = complaints(request.messages, goal);
        complaints.iter().for_each(|complaint| self.files.complain(complaint));
        if self.scenario.accepts_tokens.is_some_and(|most| input_tokens > most) {
            return Err(ModelFailure::new(ErrorClass::ContextTooLong, "the request is too long"));
        }
        if self.window_tokens.is_some_and(|most| input_tokens > most) {
            self.files.complain(&format!("a request of {input_tokens} tokens is longer than the window"));
        }
        tokio::time::sleep(Duration::from_millis(self.scenario.answer_ms)).await;
        let (content, stop) = match request.purpose {
            Purpose::Turn => self.turn(turn, request.session.agent, request.answers_before)?,
            Purpose::Summary => self.summary(request.summaries_before)?,
            Purpose::FinalSummary | Purpose::Judge | Purpose::External | Purpose::Hook => {
                (vec![Block::Text(FINAL_SUMMARY.to_owned())], StopReason::EndTurn)
            }
        };
        Ok(answer(content, stop, input_tokens))
    }
}

fn answer(content: Vec<Block>, stop: StopReason, input_tokens: u64) -> Answer {
    let output_tokens = content.iter().map(tokens_of_block).sum();
    let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
    Answer { content, usage, cost: None, model: "the model of the matrix".to_owned(), stop }
}

type ScriptedAnswer = Result<(Vec<Block>, StopReason), ModelFailure>;

impl Play {
    /// The goal of the calling agent, and its answers.
    fn part(&self, request: &ModelRequest<'_>) -> SubAgent {
        let first = request.messages.first().map(|message| message.parts.as_slice()).unwrap_or_default();
        let names =
            |part: &Part, goal: &str| matches!(part, Part::Block(Block::Text(text)) if text.contains(goal));
        let has = |goal: &str| first.iter().any(|part| names(part, goal));
        let mut agents = self.scenario.agents.iter().filter(|_| request.session != ROOT);
        agents.find(|(goal, _)| has(goal)).copied().unwrap_or((GOAL, self.scenario.turn))
    }

    fn turn(&self, turn: fn(u32) -> Say, agent: u32, answers_before: u32) -> ScriptedAnswer {
        let is_first = || once(&self.files.trouble(agent, answers_before));
        match turn(answers_before) {
            Say::FailsOnce(_) if is_first() => {
                let failure = ModelFailure::new(ErrorClass::Overloaded, "too many ask");
                let usage = Usage { input_tokens: 7, ..Usage::default() };
                Err(ModelFailure { retry_after_ms: Some(3), usage, ..failure })
            }
            Say::EmptyOnce(_) if is_first() => Ok((Vec::new(), StopReason::EndTurn)),
            Say::FailsOnce(then) | Say::EmptyOnce(then) => Ok(said(*then, answers_before)),
            Say::Limited => Err(limited()),
            plain => Ok(said(plain, answers_before)),
        }
    }

    /// The judge's answer about `agent`; the call is recorded, and the process may be killed at it.
    fn verdict(&self, agent: u32, answers_before: u32) -> ScriptedAnswer {
        let line = format!("{agent} {answers_before}");
        let asked = self.fault.effect(|| append(&self.files.judges(), &line));
        if let Err(error) = asked {
            self.files.complain(&error.to_string());
        }
        match (self.scenario.judge)(answers_before) {
            Say::Limited => Err(limited()),
            plain => Ok(said(plain, answers_before)),
        }
    }

    fn summary(&self, before: u32) -> ScriptedAnswer {
        let text = |text: String| Ok((vec![Block::Text(text)], StopReason::EndTurn));
        match self.scenario.summaries {
            Summaries::Good => {
                text(format!("Summary {before}: all notes so far are kept in the file of notes."))
            }
            Summaries::Failing => Err(ModelFailure::new(ErrorClass::InvalidRequest, "no summaries here")),
            Summaries::Useless => text(filler("useless", 60_000)),
            Summaries::CallingTools => {
                let input = Json::empty_object();
                let call = ToolCall { id: "lost".into(), name: "note".to_owned(), input, malformed: None };
                Ok((vec![Block::ToolCall(call)], StopReason::ToolUse))
            }
        }
    }
}

/// An answer without a failure.
fn said(say: Say, answers_before: u32) -> (Vec<Block>, StopReason) {
    match say {
        Say::Text(text) => (vec![Block::Text(text)], StopReason::EndTurn),
        Say::Cut(text) => (vec![Block::Text(text)], StopReason::OutputCap),
        Say::Calls(text, calls) => {
            let calls = calls.into_iter().enumerate().map(|(place, (tool, input))| {
                let id = CallId(format!("call-{answers_before}-{place}").into());
                let input = Json::of(&input).unwrap_or_else(|_| Json::empty_object());
                Block::ToolCall(ToolCall { id, name: tool.to_owned(), input, malformed: None })
            });
            (std::iter::once(Block::Text(text)).chain(calls).collect(), StopReason::ToolUse)
        }
        Say::FailsOnce(then) | Say::EmptyOnce(then) => said(*then, answers_before),
        Say::Limited => (Vec::new(), StopReason::EndTurn),
    }
}

fn limited() -> ModelFailure {
    let failure = ModelFailure::new(ErrorClass::RateLimited, "not so fast");
    let usage = Usage { input_tokens: 7, ..Usage::default() };
    ModelFailure { retry_after_ms: Some(3), usage, ..failure }
}

/// The tokens of a request by this model's count.
fn count(messages: &[Arc<Message>]) -> u64 {
    messages.iter().flat_map(|message| &message.parts).map(tokens_of_part).sum()
}

fn tokens_of_part(part: &Part) -> u64 {
    match part {
        Part::Block(block) => tokens_of_block(block),
        Part::ToolResult { output, .. } => tokens(output.len()),
        Part::Image(_) => 1_600,
    }
}

fn tokens_of_block(block: &Block) -> u64 {
    match block {
        Block::Text(text) => tokens(text.len()),
        Block::ToolCall(call) => tokens(call.name.len() + call.input.text().len()),
        Block::Thinking { text, .. } => tokens(text.len()),
        Block::Opaque { json, .. } => tokens(json.text().len()),
        Block::Image(_) => 1_600,
    }
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes / BYTES_PER_TOKEN + PART_TOKENS).unwrap_or(u64::MAX)
}

/// Requests that no provider would accept, or no agent could work with.
fn complaints(messages: &[Arc<Message>], goal: &str) -> Vec<String> {
    let mut found = Vec::new();
    let texts = messages.iter().flat_map(|message| &message.parts);
    if !texts.into_iter().any(|part| matches!(part, Part::Block(Block::Text(text)) if text.contains(goal))) {
        found.push("a request without the goal".to_owned());
    }
    let mut open: Vec<&CallId> = Vec::new();
    for message in messages {
        if message.role == Role::Assistant && !open.is_empty() {
            found.push(format!("an answer while calls have no result: {open:?}"));
            open.clear();
        }
        for part in &message.parts {
            match part {
                Part::Block(Block::ToolCall(call)) => open.push(&call.id),
                Part::ToolResult { call, .. } => match open.iter().position(|known| *known == call) {
                    Some(place) => drop(open.remove(place)),
                    None => found.push(format!("a result of {call} without its call")),
                },
                Part::Block(_) | Part::Image(_) => {}
            }
        }
    }
    if !open.is_empty() {
        found.push(format!("calls without a result at the end: {open:?}"));
    }
    found
}
