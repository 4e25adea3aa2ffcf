//! How a prompt ends: done, cut off, failed, interrupted, or with the program's own end.

use std::time::Duration;

use provost_engine::Answer;
use provost_event::{
    Block, CompletionScope, ErrorClass, Exit, ModelFailure, StopReason, TerminalEvent, TerminalState,
};
use provost_harness::{BackendError, Exchange, Redactor};
use provost_process::PipedEnding;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::StructuredDriver;
use super::live::{Came, Live};
use super::stream_item::{Done, Failing, StreamItem};
use crate::driver::{TRY_AGAIN, class_of};

/// How long an interrupted program may take to report that it has stopped.
const INTERRUPT_MAX: Duration = Duration::from_secs(1);

/// The ending of a program that can't be interrupted.
pub(super) const CUT_OFF: PipedEnding = PipedEnding { own: Duration::ZERO, grace: Duration::from_secs(2) };

/// Bytes of the program's text that a log entry keeps.
const NOTE_BYTES_MAX: usize = 16 * 1024;

/// Characters of a failed program's last output that a message quotes.
const LAST_OUTPUT_CHARS_MAX: usize = 2_000;

impl StructuredDriver {
    /// The program is done with the prompt. `None` if it gets another one in the same exchange.
    pub(super) async fn done(
        &mut self,
        done: Done,
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Answer>, ModelFailure> {
        // A program that is done without earlier output has taken the prompt too.
        self.begun(exchange).await?;
        self.turn.end();
        self.keep().await;
        let reasons = self.turn.take_reasons();
        let cut = match done {
            Done::Failed(failing) => return Err(self.has_failed(failing, reasons, exchange).await?),
            Done::Cancelled if reasons.is_none() => {
                let failing = Failing::said("it has stopped before it was done: cancelled");
                return Err(self.has_failed(failing, None, exchange).await?);
            }
            Done::Cancelled | Done::Whole => None,
            Done::Cut(why) => Some(why),
        };
        self.note_done(cut.is_none()).await?;
        let text = self.turn.take_text();
        if let Some(reasons) = reasons {
            // Its model doesn't know yet why it was refused.
            self.said_before = text;
            self.own_words = Some(reasons);
            return Ok(None);
        }
        let program = &exchange.policy.program;
        let note = cut.as_ref().map(|why| format!("({program} has stopped: {why})"));
        let said = [std::mem::take(&mut self.said_before), text].into_iter().chain(note);
        let said = said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        let said = if said.is_empty() { format!("({program} is done, and said nothing.)") } else { said };
        let stop = if cut.is_some() { StopReason::OutputCap } else { StopReason::EndTurn };
        Ok(Some(self.answer_of(vec![Block::Text(said)], stop, exchange)))
    }

    /// The failure of the prompt, once it is recorded. If it may pass, the next exchange goes on with the prompt, and with
    /// the `reasons` of refusals that weren't told yet.
    async fn has_failed(
        &mut self,
        failing: Failing,
        reasons: Option<String>,
        exchange: &mut Exchange<'_>,
    ) -> Result<ModelFailure, ModelFailure> {
        self.note_error(&failing.why, exchange).await?;
        self.note_done(false).await?;
        let failure = self.failed(failing, exchange);
        if failure.class.may_retry() {
            let reasons = reasons.map(|reasons| format!("{reasons}\n\n")).unwrap_or_default();
            self.own_words = Some(format!("{reasons}{TRY_AGAIN}"));
        }
        Ok(failure)
    }

    async fn note_done(&mut self, succeeded: bool) -> Result<(), ModelFailure> {
        let done = TerminalEvent::Completion { scope: CompletionScope::Turn, succeeded: Some(succeeded) };
        self.note(done).await.map_err(|error| storage(&error))?;
        self.note_state(TerminalState::Idle).await.map_err(|error| storage(&error))
    }

    /// Interrupts the program's work.
    pub(super) async fn interrupted(&mut self) -> ModelFailure {
        let lines = self.live.as_mut().map(|live| live.reader.interrupt()).unwrap_or_default();
        if lines.is_empty() {
            self.retire(CUT_OFF, &CancellationToken::new()).await;
        } else if let Some(live) = self.live.as_mut() {
            let meter = &mut self.meter;
            let stops = async {
                live.tell(lines).await;
                loop {
                    match live.next().await {
                        Came::Said(StreamItem::Used(used)) => meter.count(used),
                        Came::Said(StreamItem::Cost(cost)) => meter.pay(cost),
                        Came::Said(StreamItem::Done(_)) | Came::Ended(_) => break,
                        Came::Said(_) | Came::Stirred => {}
                    }
                }
            };
            if timeout(INTERRUPT_MAX, stops).await.is_ok() {
                self.turn.end();
            }
        }
        let (usage, _) = self.meter.charge();
        self.keep().await;
        ModelFailure { usage, ..aborted() }
    }

    /// The program has ended before it was done.
    pub(super) async fn ended(
        &mut self,
        exit: Exit,
        exchange: &mut Exchange<'_>,
        when: &str,
    ) -> ModelFailure {
        let words = self.last_output(exchange);
        let message = format!("`{}` has ended ({exit}) {when}{words}", exchange.policy.program);
        self.turn.end();
        self.retire(CUT_OFF, &CancellationToken::new()).await;
        let (usage, _) = self.meter.charge();
        ModelFailure { usage, ..ModelFailure::new(class_of(&words), message) }
    }

    /// Its last output that may explain a failure, to append to a message.
    pub(super) fn last_output(&self, exchange: &Exchange<'_>) -> String {
        let words = self.live.as_ref().map(Live::last_output).unwrap_or_default();
        let words = exchange.redactor.redact(&words).into_owned();
        let over = words.chars().count().saturating_sub(LAST_OUTPUT_CHARS_MAX);
        let end: String = words.chars().skip(over).collect();
        if end.is_empty() { end } else { format!(": {end}") }
    }

    pub(super) fn failed(&mut self, failing: Failing, exchange: &Exchange<'_>) -> ModelFailure {
        let why = clean(&failing.why, &exchange.redactor);
        let (usage, _) = self.meter.charge();
        let message = format!("`{}` has failed: {why}", exchange.policy.program);
        let class = failing.class.unwrap_or_else(|| class_of(&why));
        ModelFailure { usage, ..ModelFailure::new(class, message) }
    }

    pub(super) fn unanswered(&mut self, exchange: &Exchange<'_>, what: &str) -> ModelFailure {
        let (usage, _) = self.meter.charge();
        let seconds = exchange.policy.idle_ms.unwrap_or_default().div_ceil(1000);
        let message = format!("`{}` {what} for {seconds} s", exchange.policy.program);
        ModelFailure { usage, ..ModelFailure::new(ErrorClass::Unanswered, message) }
    }
}

pub(super) fn clean(text: &str, redactor: &Redactor) -> String {
    let clean = redactor.redact(text);
    clean.get(..clean.floor_char_boundary(NOTE_BYTES_MAX)).unwrap_or_default().to_owned()
}

pub(super) fn aborted() -> ModelFailure {
    ModelFailure::new(ErrorClass::Aborted, "stopped before the program was done")
}

pub(super) fn storage(error: &BackendError) -> ModelFailure {
    ModelFailure::new(ErrorClass::Storage, error.to_string())
}
