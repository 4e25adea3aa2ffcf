//! A provider with a window: counts each request, rejects those that are too long, and checks the invariants.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{Block, ErrorClass, ModelFailure, Purpose, StopReason, ToolSpec, Usage};
use provost_harness::{DeltaSink, Message, Model, ModelRequest, Part, Role, ToolChoice};
use tiktoken_rs::CoreBPE;
use tokio_util::sync::CancellationToken;

use super::long_counter::Counter;
use super::long_job::{GOAL, Job};
use super::long_laws::{calls_of, fault_of, is_said, text_of};

/// The model's answer to a summary request, and at a limit.
pub(crate) const SUMMARY: &str =
    "The gates up to here are closed; the ones that follow are still to be seen.";
pub(crate) const FINAL_SUMMARY: &str = "Half of the gates are closed; the other half comes next.";
/// The model's own name.
pub(crate) const MODEL: &str = "harbour-1";
/// Maximum recorded faults.
const FAULTS_MAX: usize = 20;

/// How a provider counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counting {
    /// Tokens of a request and its answer.
    pub(crate) window: u64,
    /// Its tokens, as a percentage of the tokenizer's.
    pub(crate) density_percent: u64,
    /// The reported percentage of its tokens.
    pub(crate) reported_percent: u64,
}

impl Counting {
    /// Counts like the tokenizer, and reports its count.
    pub(crate) const fn fair(window: u64) -> Self {
        Self { window, density_percent: 100, reported_percent: 100 }
    }
}

/// A provider's answer in place of its usual one to its request number `n`, from 0; `None`: the usual one.
pub(crate) type Interference =
    Box<dyn Fn(u32, &ModelRequest<'_>) -> Option<Result<Answer, ModelFailure>> + Send + Sync>;

/// Statistics of a run.
#[derive(Default)]
pub(crate) struct Seen {
    /// Answered requests for turns; for summaries; for final summaries.
    pub(crate) turns: u32,
    pub(crate) summaries: u32,
    pub(crate) final_summary: u32,
    /// Requests rejected as too long.
    pub(crate) refused: u32,
    /// The longest answered request, with the cap on its answer, in the provider's tokens.
    pub(crate) most: u64,
    /// Requests for turns that didn't begin with all messages of the previous one, byte for byte.
    pub(crate) changed: u32,
    /// Tokens sent in turns, and those of them after the common beginning with the previous request.
    pub(crate) sent: u64,
    pub(crate) anew: u64,
    /// Requests for turns with recreated messages of the same content: another process creates them.
    pub(crate) restarted: u32,
    /// Requests for turns in which a result of the last answer was shortened.
    pub(crate) shortened: u32,
    /// The first faults.
    pub(crate) faults: Vec<String>,
    /// The purpose of each request, and the number of answers before it.
    pub(crate) asked: Vec<(Purpose, u32)>,
    /// All reported usage.
    pub(crate) reported: Usage,
    previous: Vec<Arc<Message>>,
    question: Option<String>,
    given: Option<(String, Vec<ToolSpec>)>,
}

impl Seen {
    /// The statistics on one line.
    pub(crate) fn figures(&self) -> String {
        let Self { turns, summaries, final_summary, refused, most, changed, sent, anew, shortened, .. } =
            self;
        format!(
            "{turns} turns, {summaries} summaries, {final_summary} final summaries, {refused} refused, {most} tokens at \
             most, {changed} with another beginning, {anew} tokens of {sent} anew, {shortened} with the newest \
             results shortened; faults: {:?}",
            self.faults
        )
    }

    fn fault(&mut self, turn: u32, fault: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(format!("turn {turn}: {}", fault.into()));
        }
    }
}

/// The provider.
pub(crate) struct Provider {
    job: Job,
    counting: Counting,
    interference: Option<Interference>,
    counter: Mutex<Counter>,
    pub(crate) seen: Mutex<Seen>,
}

impl Provider {
    pub(crate) fn new(job: Job, counting: Counting, tokenizer: &'static CoreBPE) -> Self {
        let counter = Mutex::new(Counter::new(tokenizer));
        Self { job, counting, interference: None, counter, seen: Mutex::default() }
    }

    pub(crate) fn interfered(self, interference: Interference) -> Self {
        Self { interference: Some(interference), ..self }
    }

    fn answer_to(&self, request: &ModelRequest<'_>) -> (Vec<Block>, StopReason) {
        let words = match request.purpose {
            Purpose::Turn => return self.job.answer(request.answers_before),
            Purpose::Summary => SUMMARY,
            Purpose::FinalSummary => FINAL_SUMMARY,
            Purpose::Judge => "{}",
            Purpose::External | Purpose::Hook => unreachable!("there is no program"),
        };
        (vec![Block::Text(words.to_owned())], StopReason::EndTurn)
    }

    /// Tokens of a request and of its answer, by the provider's count.
    fn count(&self, request: &ModelRequest<'_>, content: &[Block]) -> (u64, u64) {
        let mut counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
        let scaled = |tokens: u64| tokens * self.counting.density_percent / 100;
        (scaled(counter.request(request)), scaled(counter.answer(content)))
    }

    fn reported(&self, input: u64, output: u64) -> Usage {
        let part = |tokens: u64| tokens * self.counting.reported_percent / 100;
        Usage { input_tokens: part(input), output_tokens: part(output), ..Usage::default() }
    }
}

#[async_trait]
impl Model for Provider {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        _: &dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let (content, stop) = self.answer_to(&request);
        let (input, output) = self.count(&request, &content);
        let whole = input + u64::from(request.output_tokens_max);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u32::try_from(seen.asked.len()).unwrap_or(u32::MAX);
        seen.asked.push((request.purpose, request.answers_before));
        check(&request, &mut seen);
        if whole > self.counting.window {
            seen.refused += 1;
            let message = format!("{whole} tokens are more than {}", self.counting.window);
            return Err(ModelFailure::new(ErrorClass::ContextTooLong, message));
        }
        if let Some(other) = self.interference.as_ref().and_then(|other| other(number, &request)) {
            seen.reported += other.as_ref().map_or_else(|failure| failure.usage, |answer| answer.usage);
            return other;
        }
        seen.most = seen.most.max(whole);
        match request.purpose {
            Purpose::Turn => {
                seen.turns += 1;
                let counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
                check_turn(&request, &self.job, &mut seen);
                compare(&request, &counter, &mut seen);
            }
            Purpose::Summary => seen.summaries += 1,
            Purpose::FinalSummary | Purpose::Judge => seen.final_summary += 1,
            Purpose::External | Purpose::Hook => unreachable!("there is no program"),
        }
        let usage = self.reported(input, output);
        seen.reported += usage;
        Ok(Answer { cost: None, content, usage, model: MODEL.to_owned(), stop })
    }
}

/// The invariants of requests of every purpose.
fn check(request: &ModelRequest<'_>, seen: &mut Seen) {
    let (turn, messages) = (request.turn, request.messages);
    if let Some(fault) = fault_of(messages) {
        seen.fault(turn, fault);
    }
    if !is_said(messages, GOAL) {
        seen.fault(turn, "the goal isn't in the request");
    }
    let tools = request.tools.to_vec();
    let (system, known) = seen.given.get_or_insert_with(|| (request.system.to_owned(), tools.clone()));
    if system != request.system || *known != tools {
        seen.fault(turn, "the system prompt or the tools have changed");
    }
    let choice = if request.purpose == Purpose::Turn { ToolChoice::Auto } else { ToolChoice::None };
    if request.tool_choice != choice {
        seen.fault(turn, "the choice of tools doesn't fit what is asked");
    }
    if request.purpose == Purpose::Turn {
        if seen.question.as_ref().is_some_and(|question| is_said(messages, question)) {
            seen.fault(turn, "a question that is no part of the conversation is in it");
        }
        if is_said(messages, FINAL_SUMMARY) {
            seen.fault(turn, "the final summary is in the conversation");
        }
        return;
    }
    let question = messages.last().and_then(|last| last.parts.last()).map(text_of);
    seen.question = question.map(str::to_owned);
}

/// The invariants of requests for turns: the plan, and the last answer with its unchanged results.
fn check_turn(request: &ModelRequest<'_>, job: &Job, seen: &mut Seen) {
    let (turn, messages) = (request.answers_before, request.messages);
    if let Some(item) = job.open_item(turn)
        && !is_said(messages, &item)
    {
        seen.fault(turn, format!("`{item}` isn't in the request"));
    }
    let Some(before) = turn.checked_sub(1) else { return };
    let (content, _) = job.answer(before);
    let expected = content.into_iter().map(Part::Block).collect::<Vec<_>>();
    let last = messages.iter().rev().take(2).find(|message| message.role == Role::Assistant);
    if last.is_none_or(|last| last.parts != expected) {
        seen.fault(turn, "the last answer isn't in the request as it was");
    }
    let results = messages.last().map(|last| last.parts.as_slice()).unwrap_or_default();
    if results.iter().any(is_shortened) {
        seen.shortened += 1;
    }
    let pairs = seen.previous.iter().zip(messages);
    let checked = pairs.take_while(|(one, other)| Arc::ptr_eq(one, other)).count();
    for message in messages.iter().skip(checked) {
        if let Some(fault) = strange(message, job) {
            seen.fault(turn, fault);
        }
    }
}

fn is_shortened(part: &Part) -> bool {
    matches!(part, Part::ToolResult { output, .. } if output.contains("left out") && output.contains(", entry "))
}

/// Answers that aren't the model's, and results that aren't their call's.
fn strange(message: &Message, job: &Job) -> Option<String> {
    if message.role == Role::Assistant {
        let first = calls_of(message).first().map(|id| id.to_string())?;
        let number = first.strip_prefix('c')?.parse::<u32>().ok()?;
        let turn = job.turn_of(number)?;
        let said = job.answer(turn).0.into_iter().map(Part::Block).collect::<Vec<_>>();
        return (said != message.parts).then(|| format!("the answer with call {first} isn't as it was"));
    }
    message.parts.iter().find_map(|part| {
        let Part::ToolResult { call, tool, output, .. } = part else { return None };
        let begin = job.result_begins(call)?;
        (!output.contains(&begin)).then(|| format!("the result of {call} ({tool}) doesn't have `{begin}`"))
    })
}

/// Compares the request with the previous one.
fn compare(request: &ModelRequest<'_>, counter: &Counter, seen: &mut Seen) {
    let begins_with = |is_same: fn(&Arc<Message>, &Arc<Message>) -> bool| {
        let pairs = seen.previous.iter().zip(request.messages);
        pairs.take_while(|(one, other)| is_same(one, other)).count()
    };
    let kept = begins_with(Arc::ptr_eq);
    let same = begins_with(|one, other| Arc::ptr_eq(one, other) || says_the_same(one, other));
    if same < seen.previous.len() {
        seen.changed += 1;
    }
    if kept < same {
        seen.restarted += 1;
    }
    let known = |message: &Arc<Message>| counter.known(message);
    seen.sent += request.messages.iter().map(known).sum::<u64>();
    seen.anew += request.messages.iter().skip(same).map(known).sum::<u64>();
    seen.previous = request.messages.to_vec();
}

fn says_the_same(one: &Message, other: &Message) -> bool {
    one.role == other.role && one.parts == other.parts
}
