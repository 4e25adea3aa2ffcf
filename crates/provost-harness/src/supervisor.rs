//! The judge of goals: one model call about the evidence, with nothing else to go by. It is a heuristic that catches
//! agents which believe too early that they are done, and no security boundary: a model that is lied to well enough
//! believes it.

mod evidence;
mod gather;
mod prompt;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use provost_event::{
    DeltaKind, Effort, ErrorClass, JudgeAnswer, ModelFailure, Purpose, SessionId, SupervisorError,
    SupervisorVerdict, ToolSpec, Usage,
};
use tokio_util::sync::CancellationToken;

pub use evidence::{Action, ChangedFiles, Evidence, HookResult};
pub(crate) use gather::gather;
pub use verdict::parse_verdict;

use crate::{Clock, DeltaSink, Message, Model, ModelRequest, Part, Role, ToolChoice};

/// How long a judge that was told to stop may take to say what it consumed.
const ENDING_MAX: Duration = Duration::from_secs(2);
/// The cap on a verdict, unless told otherwise.
const OUTPUT_TOKENS_DEFAULT: u32 = 2_048;

/// Asks a model whether a condition is met.
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
    /// The turn that it is about.
    pub turn: u32,
    /// Answers that this model has given as a judge about this session before.
    pub asked_before: u32,
    /// What must be true.
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
    /// What it consumed.
    pub usage: Usage,
    /// The model by its own name; empty if it failed.
    pub model: String,
}

impl GoalSupervisor {
    /// One that asks `model`, with 60 s for a verdict of at most 2,048 tokens.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, clock: Arc<dyn Clock>) -> Self {
        let timeout = Duration::from_mins(1);
        Self { model, clock, timeout, output_tokens_max: OUTPUT_TOKENS_DEFAULT, effort: None }
    }

    /// With so much time for each verdict.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// With verdicts of at most so many tokens, about which it thinks so much.
    #[must_use]
    pub fn with_output(self, tokens_max: u32, effort: Option<Effort>) -> Self {
        Self { output_tokens_max: tokens_max, effort, ..self }
    }

    /// Asks whether `condition` is met, by a summary of the conversation and what was done last, the newest first. An
    /// answer that is no verdict is asked for once more: it takes at most two calls.
    ///
    /// # Errors
    /// Why there is no verdict.
    ///
    /// # Cancellation
    /// When `cancel` fires it fails as aborted at once. Dropping the future ends the call.
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

    /// Asks once.
    ///
    /// # Cancellation
    /// When `cancel` fires it fails as aborted at once, with what was consumed up to then. Dropping the future ends the
    /// call.
    pub async fn ask(&self, inquiry: &Inquiry<'_>, cancel: &CancellationToken) -> Judgement {
        let system = prompt::system();
        let question = prompt::question(inquiry);
        let messages =
            [Arc::new(Message::new(Role::User, vec![Part::Block(provost_event::Block::Text(question))]))];
        let tools: Arc<[ToolSpec]> = Arc::from([]);
        let request = ModelRequest {
            session: inquiry.session,
            turn: inquiry.turn,
            purpose: Purpose::Judge,
            answers_before: inquiry.asked_before,
            summaries_before: 0,
            system,
            tools: &tools,
            messages: &messages,
            output_tokens_max: self.output_tokens_max,
            effort: self.effort,
            tool_choice: ToolChoice::None,
        };
        let stop = cancel.child_token();
        let mut asked = std::pin::pin!(self.model.answer(request, &Unheard, &stop));
        let is_late = tokio::select! {
            biased;
            answer = &mut asked => return judgement(answer),
            () = self.clock.sleep(self.timeout) => true,
            () = cancel.cancelled() => false,
        };
        stop.cancel();
        let used = tokio::select! {
            answer = &mut asked => match answer {
                Ok(answer) => answer.usage,
                Err(failure) => failure.usage,
            },
            () = self.clock.sleep(ENDING_MAX) => Usage::default(),
        };
        let error = if is_late {
            SupervisorError::Timeout(u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX))
        } else {
            SupervisorError::Llm { class: ErrorClass::Aborted, message: "it was told to stop".to_owned() }
        };
        Judgement { answer: JudgeAnswer::Failed(error), usage: used, model: String::new() }
    }
}

fn judgement(answer: Result<provost_engine::Answer, ModelFailure>) -> Judgement {
    match answer {
        Ok(answer) => {
            let said = answer.content.iter().filter_map(|block| match block {
                provost_event::Block::Text(text) => Some(text.as_str()),
                _ => None,
            });
            let verdict = parse_verdict(&said.collect::<String>());
            let verdict = verdict.map_or_else(JudgeAnswer::Failed, JudgeAnswer::Verdict);
            Judgement { answer: verdict, usage: answer.usage, model: answer.model }
        }
        Err(failure) => {
            let error = match failure.class {
                ErrorClass::RateLimited => {
                    SupervisorError::RateLimited { retry_after_ms: failure.retry_after_ms }
                }
                class => SupervisorError::Llm { class, message: failure.message },
            };
            Judgement { answer: JudgeAnswer::Failed(error), usage: failure.usage, model: String::new() }
        }
    }
}

/// Nobody watches a judge write.
struct Unheard;

impl DeltaSink for Unheard {
    fn delta(&self, _: DeltaKind, _: &str) {}
}
