//! The judge of goals: one model call about the evidence, with nothing else to go by. It is a heuristic that catches
//! agents which believe too early that they are done, and no security boundary: a model that is lied to well enough
//! believes it.

mod account;
mod clean;
mod evidence;
mod fence;
mod files;
mod gather;
mod prompt;
mod sheet;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use provost_engine::Answer;
use provost_event::{
    Block, DeltaKind, Effort, ErrorClass, JudgeAnswer, ModelFailure, Purpose, SessionId, StopReason,
    SupervisorError, SupervisorVerdict, ToolSpec, Usage,
};
use tokio_util::sync::CancellationToken;

pub use evidence::{Action, ChangedFiles, Evidence, HookResult, Since};
pub(crate) use gather::{Sources, gather};
pub use verdict::parse_verdict;

use crate::{Clock, DeltaSink, Message, Model, ModelRequest, Part, Role, ToolChoice};

/// How long a judge that was told to stop may take to say what it consumed.
const ENDING_MAX: Duration = Duration::from_secs(2);
/// Time and tokens for a verdict, unless told otherwise.
const TIMEOUT_DEFAULT: Duration = Duration::from_mins(1);
const OUTPUT_TOKENS_DEFAULT: u32 = 2_048;
/// Characters of a failed call's message that are kept.
const MESSAGE_CHARS_MAX: usize = 500;
/// The status of a provider that wants its clients to come back later (RFC 6585, 4).
const TOO_MANY_REQUESTS: u16 = 429;

/// Asks a model whether a condition is met. It remembers nothing from one question to the next; clones ask the same
/// model.
#[derive(Clone)]
pub struct GoalSupervisor {
    model: Arc<dyn Model>,
    clock: Arc<dyn Clock>,
    timeout: Duration,
    output_tokens_max: u32,
    effort: Option<Effort>,
}

/// One question to a judge.
#[derive(Debug, Clone, Copy)]
pub struct Inquiry<'a> {
    /// Whose goal it is about.
    pub session: SessionId,
    /// The turn that it is about, from 1.
    pub turn: u32,
    /// Answers that this model has given as a judge about this session before.
    pub asked_before: u32,
    /// What must be true. Of an empty one nothing can be shown; it is asked all the same.
    pub condition: &'a str,
    /// What speaks for and against it.
    pub evidence: &'a Evidence,
    /// Whether the last answer was no verdict, so that it is told once more what one looks like.
    pub again: bool,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What the judge said.
    pub answer: JudgeAnswer,
    /// What it consumed, as far as the provider said: also where the call failed, was too late or was told to stop.
    pub usage: Usage,
    /// The model by its own name; empty if the call failed.
    pub model: String,
}

impl GoalSupervisor {
    /// One that asks `model`, with 60 s for a verdict of at most 2,048 tokens. `clock` measures the time.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, clock: Arc<dyn Clock>) -> Self {
        let (timeout, output_tokens_max) = (TIMEOUT_DEFAULT, OUTPUT_TOKENS_DEFAULT);
        Self { model, clock, timeout, output_tokens_max, effort: None }
    }

    /// With so much time for each verdict, to the millisecond; with none, every judge that doesn't answer at once is
    /// too late.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// With verdicts of at most so many tokens, about which it thinks so much (as its provider has it if `None`). A
    /// verdict that is cut off at the cap is none.
    #[must_use]
    pub fn with_output(self, tokens_max: u32, effort: Option<Effort>) -> Self {
        Self { output_tokens_max: tokens_max, effort, ..self }
    }

    /// Asks whether `condition` is met, by a summary of the conversation and what was done last, the newest first. An
    /// answer that is no verdict is asked for once more: it takes at most two calls, each with the whole timeout. What
    /// they consume isn't reported; [`ask`](Self::ask) does that.
    ///
    /// # Errors
    /// Why there is no verdict:
    /// - [`Parse`](SupervisorError::Parse): twice no verdict ([`parse_verdict`]); this is the beginning of the second
    ///   answer. An empty answer, thoughts alone and one cut off at the cap are no verdict.
    /// - [`RateLimited`](SupervisorError::RateLimited): the status was 429, whatever the text says, or the adapter of a model
    ///   that knows no status says so.
    /// - [`Timeout`](SupervisorError::Timeout): the milliseconds that a call had.
    /// - [`Llm`](SupervisorError::Llm): the call failed in another way, or the model refused; at most 500 characters of its
    ///   message. As [`Aborted`](ErrorClass::Aborted) where `cancel` fired.
    ///
    /// # Cancellation
    /// When `cancel` fires the call is told to stop, and it fails as aborted, unless the model answers all the same; one that
    /// doesn't stop is let go after 2 s. Nobody is asked after that. Dropping the future ends the call at once.
    pub async fn verify(
        &self,
        condition: &str,
        conversation_summary: &str,
        recent_actions: Vec<Action>,
        cancel: &CancellationToken,
    ) -> Result<SupervisorVerdict, SupervisorError> {
        let evidence = Evidence {
            summary: conversation_summary.to_owned(),
            actions: recent_actions,
            ..Evidence::default()
        };
        let session = SessionId::root(provost_event::RunId::from_entropy(0));
        let first =
            Inquiry { session, turn: 1, asked_before: 0, condition, evidence: &evidence, again: false };
        let answer = match self.ask(&first, cancel).await.answer {
            JudgeAnswer::Failed(SupervisorError::Parse(_)) => {
                let again = Inquiry { asked_before: 1, again: true, ..first };
                self.ask(&again, cancel).await.answer
            }
            answer => answer,
        };
        match answer {
            JudgeAnswer::Verdict(verdict) => Ok(verdict),
            JudgeAnswer::Failed(error) => Err(error),
        }
    }

    /// Asks once. What can go wrong is part of the answer, as for [`verify`](Self::verify). A verdict that comes when the
    /// time is up, while the call is being ended, counts as too late.
    ///
    /// # Cancellation
    /// When `cancel` fires the call is told to stop, and it fails as aborted, with what was consumed up to then. A model that
    /// answers all the same is heard: whether that still means something is for whoever asked to say. One that doesn't stop
    /// is let go after 2 s, and nothing is known of what it consumed. Nobody is asked if `cancel` has fired before. Dropping
    /// the future ends the call at once.
    pub async fn ask(&self, inquiry: &Inquiry<'_>, cancel: &CancellationToken) -> Judgement {
        if cancel.is_cancelled() {
            return failed(aborted(), Usage::default());
        }
        let question = prompt::question(inquiry);
        let messages = [Arc::new(Message::new(Role::User, vec![Part::Block(Block::Text(question))]))];
        let tools: Arc<[ToolSpec]> = Arc::from([]);
        let request = ModelRequest {
            session: inquiry.session,
            turn: inquiry.turn,
            purpose: Purpose::Judge,
            answers_before: inquiry.asked_before,
            summaries_before: 0,
            system: prompt::system(),
            tools: &tools,
            messages: &messages,
            output_tokens_max: self.output_tokens_max,
            effort: self.effort,
            patience: 1,
            tool_choice: ToolChoice::None,
        };
        self.answer_in_time(request, cancel).await
    }

    async fn answer_in_time(&self, request: ModelRequest<'_>, cancel: &CancellationToken) -> Judgement {
        let stop = cancel.child_token();
        let mut asked = self.model.answer(request, &Unheard, &stop);
        let error = tokio::select! {
            biased;
            answer = &mut asked => return answer.map_or_else(|failure| missed(failure, cancel), heard),
            () = cancel.cancelled() => aborted(),
            () = self.clock.sleep(self.timeout) => {
                SupervisorError::Timeout(u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX))
            }
        };
        stop.cancel();
        let last = tokio::select! {
            biased;
            answer = &mut asked => answer,
            () = self.clock.sleep(ENDING_MAX) => return failed(error, Usage::default()),
        };
        match last {
            Ok(answer) if !matches!(error, SupervisorError::Timeout(_)) => heard(answer),
            Ok(answer) => failed(error, answer.usage),
            Err(failure) => failed(error, failure.usage),
        }
    }
}

fn heard(answer: Answer) -> Judgement {
    Judgement { answer: said(answer.stop, &answer.content), usage: answer.usage, model: answer.model }
}

fn missed(failure: ModelFailure, cancel: &CancellationToken) -> Judgement {
    let usage = failure.usage;
    failed(if cancel.is_cancelled() { aborted() } else { error_of(failure) }, usage)
}

/// What a judge means that answered: only what it says counts, not what it thinks.
fn said(stop: StopReason, content: &[Block]) -> JudgeAnswer {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        Block::Image(_) | Block::Thinking { .. } | Block::Opaque { .. } | Block::ToolCall(_) => None,
    });
    let text = texts.collect::<String>();
    let verdict = match stop {
        StopReason::EndTurn | StopReason::ToolUse => verdict::parse_verdict(&text),
        // What would have come might have been another verdict.
        StopReason::OutputCap => Err(verdict::no_verdict(&text)),
        StopReason::Refusal => Err(llm(ErrorClass::Refusal, &text)),
    };
    verdict.map_or_else(JudgeAnswer::Failed, JudgeAnswer::Verdict)
}

fn error_of(failure: ModelFailure) -> SupervisorError {
    let ModelFailure { class, status, message, retry_after_ms, .. } = failure;
    match class {
        ErrorClass::RateLimited if status.is_none_or(|status| status == TOO_MANY_REQUESTS) => {
            SupervisorError::RateLimited { retry_after_ms }
        }
        ErrorClass::ContextTooLong => {
            let advice = "show the judge less evidence, or take one with a larger window";
            llm(class, &format!("{advice} ({message})"))
        }
        class => llm(class, &message),
    }
}

fn llm(class: ErrorClass, message: &str) -> SupervisorError {
    SupervisorError::Llm { class, message: verdict::beginning(message.trim(), MESSAGE_CHARS_MAX) }
}

fn aborted() -> SupervisorError {
    llm(ErrorClass::Aborted, "it was told to stop")
}

fn failed(error: SupervisorError, usage: Usage) -> Judgement {
    Judgement { answer: JudgeAnswer::Failed(error), usage, model: String::new() }
}

/// Nobody watches a judge write.
struct Unheard;

impl DeltaSink for Unheard {
    fn delta(&self, _: DeltaKind, _: &str) {}
}
