//! The judge of goals: one model call with only the evidence as input. It is a heuristic against agents that claim
//! too early to be done, and no security boundary: sufficiently convincing false evidence deceives a model.

mod account;
mod clean;
mod evidence;
mod files;
mod gather;
mod prompt;
mod sheet;
mod verdict;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use provost_engine::Answer;
use provost_event::{
    Block, DeltaKind, Effort, ErrorClass, JudgeAnswer, ModelFailure, Purpose, SessionId, StopReason,
    SupervisorError, SupervisorVerdict, ToolSpec, Usage,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

pub use evidence::{Action, ChangedFiles, Evidence, FileHunks, HookResult, Since};
pub(crate) use gather::{Sources, gather};
pub use verdict::parse_verdict;

use crate::model_panic::answer_of;
use crate::spans::{self, span};
use crate::{Clock, DeltaSink, Message, Model, ModelRequest, Part, Role, ToolChoice};

/// How long a cancelled judge may take to report its usage.
const ENDING_MAX: Duration = Duration::from_secs(2);
/// Default time and token limits of a verdict.
const TIMEOUT_DEFAULT: Duration = Duration::from_mins(1);
const OUTPUT_TOKENS_DEFAULT: u32 = 2_048;
/// Maximum characters kept of a failed call's message.
const MESSAGE_CHARS_MAX: usize = 500;
/// The status of a rate limit (RFC 6585, 4).
const TOO_MANY_REQUESTS: u16 = 429;

/// Asks a model whether a condition is met. It keeps no state between questions; clones ask the same model.
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
    /// The session with the goal.
    pub session: SessionId,
    /// The turn in question, from 1.
    pub turn: u32,
    /// Earlier answers of this model as a judge of this session.
    pub asked_before: u32,
    /// What must be true. An empty condition is never shown to be met; the judge is asked all the same.
    pub condition: &'a str,
    /// The evidence.
    pub evidence: &'a Evidence,
    /// Whether the last answer was no verdict, so that the format is explained again.
    pub again: bool,
}

/// The result of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The judge's answer.
    pub answer: JudgeAnswer,
    /// Its usage, as far as the provider reported it: also if the call failed, timed out or was cancelled.
    pub usage: Usage,
    /// The model that answered, by its own name; empty if the call failed.
    pub model: String,
}

impl GoalSupervisor {
    /// A supervisor with `model` as the judge, with 60 s for a verdict of at most 2,048 tokens. `clock` measures
    /// the time.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, clock: Arc<dyn Clock>) -> Self {
        let (timeout, output_tokens_max) = (TIMEOUT_DEFAULT, OUTPUT_TOKENS_DEFAULT);
        Self { model, clock, timeout, output_tokens_max, effort: None }
    }

    /// Sets the time limit of each verdict, to the millisecond; with 0, every judge that doesn't answer at once
    /// times out.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the maximum tokens of a verdict and the effort of its reasoning (the provider's default if `None`). A
    /// verdict that is cut off at the cap is none.
    #[must_use]
    pub fn with_output(self, tokens_max: u32, effort: Option<Effort>) -> Self {
        Self { output_tokens_max: tokens_max, effort, ..self }
    }

    /// Asks whether `condition` is met, given a summary of the conversation and the last actions, the newest
    /// first. An answer that is no verdict is asked for once more: it takes at most two calls, each with the whole
    /// timeout. Their usage isn't reported; [`ask`](Self::ask) does that.
    ///
    /// # Errors
    /// Why there is no verdict:
    /// - [`Parse`](SupervisorError::Parse): twice no verdict ([`parse_verdict`]); this is the beginning of the
    ///   second answer. An empty answer, reasoning alone and an answer cut off at the cap are no verdict.
    /// - [`RateLimited`](SupervisorError::RateLimited): the status was 429, whatever the text says, or the adapter
    ///   of a model without statuses reports it.
    /// - [`Timeout`](SupervisorError::Timeout): the time limit of a call, in milliseconds.
    /// - [`Llm`](SupervisorError::Llm): the call failed in another way, or the model refused; at most 500 characters of its
    ///   message. As [`Aborted`](ErrorClass::Aborted) where `cancel` fired.
    ///
    /// # Cancellation
    /// When `cancel` fires the call is cancelled, and it fails as aborted, unless the model answers all the same;
    /// a call that doesn't stop is abandoned after 2 s. No further call is made. Dropping the future ends the call
    /// at once.
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

    /// Asks once. Errors are part of the answer, as for [`verify`](Self::verify). A verdict that arrives after the
    /// time limit, while the call is being ended, counts as timed out.
    ///
    /// # Cancellation
    /// When `cancel` fires the call is cancelled, and it fails as aborted, with the usage so far. If the model
    /// answers all the same, its answer is returned: the caller decides whether it still counts. A call that
    /// doesn't stop is abandoned after 2 s, and its usage is unconfirmed. No call is made if `cancel` has fired
    /// before. Dropping the future ends the call at once.
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
        let span = span!(
            "goal.supervisor.verify",
            turn = inquiry.turn,
            again = inquiry.again,
            achieved = Empty,
            error = Empty,
        );
        let judgement = self.answer_in_time(request, cancel).instrument(span.clone()).await;
        spans::judged(&span, &judgement.answer);
        judgement
    }

    async fn answer_in_time(&self, request: ModelRequest<'_>, cancel: &CancellationToken) -> Judgement {
        let stop = cancel.child_token();
        let mut asked = pin!(answer_of(&*self.model, request, &Unheard, &stop));
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
            () = self.clock.sleep(ENDING_MAX) => return failed(error, Usage::unconfirmed()),
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

/// The verdict in a judge's answer: only its text counts, not its reasoning.
fn said(stop: StopReason, content: &[Block]) -> JudgeAnswer {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        Block::Image(_) | Block::Thinking { .. } | Block::Opaque { .. } | Block::ToolCall(_) => None,
    });
    let text = texts.collect::<String>();
    let verdict = match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Commentary => verdict::parse_verdict(&text),
        // The complete answer might have been another verdict.
        StopReason::OutputCap => Err(verdict::no_verdict(&text)),
        StopReason::Refusal => Err(llm(ErrorClass::Refusal, &text)),
    };
    verdict.map_or_else(JudgeAnswer::Failed, JudgeAnswer::Verdict)
}

fn error_of(failure: ModelFailure) -> SupervisorError {
    let ModelFailure { class, status, message, retry_after_ms, hint, .. } = failure;
    match class {
        ErrorClass::RateLimited if status.is_none_or(|status| status == TOO_MANY_REQUESTS) => {
            SupervisorError::RateLimited { retry_after_ms }
        }
        ErrorClass::ContextTooLong => {
            let advice = "show the judge less evidence, or take one with a larger window";
            llm(class, &format!("{advice} ({message})"))
        }
        class => SupervisorError::Llm { class, message: in_short(&message), hint },
    }
}

fn llm(class: ErrorClass, message: &str) -> SupervisorError {
    SupervisorError::Llm { class, message: in_short(message), hint: String::new() }
}

fn in_short(message: &str) -> String {
    verdict::beginning(message.trim(), MESSAGE_CHARS_MAX)
}

fn aborted() -> SupervisorError {
    llm(ErrorClass::Aborted, "it was told to stop")
}

fn failed(error: SupervisorError, usage: Usage) -> Judgement {
    Judgement { answer: JudgeAnswer::Failed(error), usage, model: String::new() }
}

/// A judge's answer isn't streamed to observers.
struct Unheard;

impl DeltaSink for Unheard {
    fn delta(&self, _: DeltaKind, _: &str) {}
}
