//! One exchange: gives the program its next prompt, and reads its events until it needs a decision or is done.

use std::time::Duration;

use provost_engine::Answer;
use provost_event::{
    Block, Blocker, CallId, CompletionScope, ErrorClass, Exit, ModelFailure, Seq, StopReason, TerminalAsk,
    TerminalEvent, TerminalNoted, TerminalState,
};
use provost_harness::{BackendError, Exchange, Prompt, Redactor};
use provost_process::PipedEnding;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::StructuredDriver;
use super::format::Life;
use super::live::{Came, Live};
use super::stream_item::{Done, StreamItem};
use super::turn::{ForwardedQuestion, ProgramPrompt, Turn};
use crate::consent::call_of;
use crate::driver::{TRY_AGAIN, class_of};
use crate::reach::SubjectReach;

/// Prompt for an agent that continues earlier work when there is no other prompt.
const GO_ON: &str = "You were interrupted. Go on where you left off.";

/// How long an interrupted program may take to report that it has stopped.
const INTERRUPT_MAX: Duration = Duration::from_secs(2);

/// The ending of a program that can't be interrupted.
const CUT_OFF: PipedEnding = PipedEnding { own: Duration::ZERO, grace: Duration::from_secs(2) };

/// Bytes of the program's text that a log entry keeps.
const NOTE_BYTES_MAX: usize = 16 * 1024;

/// Characters of a failed program's last output that a message quotes.
const LAST_OUTPUT_CHARS_MAX: usize = 2_000;

impl StructuredDriver {
    /// Starts the program if it isn't running, gives it the next prompt, and waits until it asks for consent or is
    /// done. See [`ExternalAgents::exchange`](provost_harness::ExternalAgents::exchange).
    ///
    /// # Errors
    /// As for that method.
    ///
    /// # Cancellation
    /// When `cancel` fires it interrupts the program's work and waits at most 2 s for that; a program that can't
    /// be interrupted is ended. Dropping the future leaves the program as it is.
    pub async fn exchange(
        &mut self,
        exchange: Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let mut exchange = exchange;
        self.log = Some(exchange.log.clone());
        self.refuse(&mut exchange).await?;
        loop {
            if !self.turn.is_going() {
                if !self.has_words(&mut exchange) {
                    self.wait_for_words(&mut exchange, cancel).await?;
                    continue;
                }
                self.make_ready(&mut exchange, cancel).await?;
                self.tell(&mut exchange).await;
            }
            let idle = exchange.policy.idle_ms.map(Duration::from_millis);
            match self.hear(idle, cancel).await? {
                Some(Came::Said(said)) => {
                    if let Some(answer) = self.take_in(said, &mut exchange).await? {
                        return Ok(answer);
                    }
                }
                Some(Came::Stirred) => {}
                Some(Came::Ended(exit)) => {
                    return Err(self.ended(exit, &mut exchange, "before it was done").await);
                }
                None => return Err(self.unanswered(&exchange, "shows no sign of life")),
            }
        }
    }

    /// Refuses the last question if it wasn't approved.
    async fn refuse(&mut self, exchange: &mut Exchange<'_>) -> Result<(), ModelFailure> {
        let (Some(asked), Some(live)) = (self.turn.asked.take(), self.live.as_mut()) else { return Ok(()) };
        let ask = asked.ask;
        let reason = exchange.words.refusal().unwrap_or("This is not allowed here.").to_owned();
        let Ok(reply) = live.reader.refuse(&ask.fingerprint, &reason) else { return Ok(()) };
        live.tell([reply.line]).await;
        self.turn.refusal = Some(reason);
        self.noted_answer(ask.fingerprint, &reply.choice).await.map_err(|error| storage(&error))
    }

    /// Whether there is a prompt for it. A program without a session to resume gets all prompts again.
    fn has_words(&mut self, exchange: &mut Exchange<'_>) -> bool {
        if !self.was_told && self.kept.session.is_none() && exchange.words.has_begun() {
            exchange.words.start_over();
        }
        self.own_words.is_some() || exchange.words.prompt().is_some() || self.goes_on(exchange)
    }

    /// Whether it was at work when an earlier process of Provost ended.
    fn goes_on(&self, exchange: &Exchange<'_>) -> bool {
        exchange.words.has_begun() && !self.was_told
    }

    /// Gives it the prompt.
    async fn tell(&mut self, exchange: &mut Exchange<'_>) {
        let prompt = exchange.words.prompt();
        let words = prompt.as_ref().map(Prompt::for_agent);
        let text = match (self.own_words.take(), words) {
            (Some(own), Some(words)) => format!("{own}\n\n{words}"),
            (own, words) => own.or(words).unwrap_or_else(|| GO_ON.to_owned()),
        };
        self.meter.begin();
        if let Some(live) = self.live.as_mut() {
            let lines = live.reader.prompt(&text);
            live.tell(lines).await;
            if live.life == Life::Prompt {
                live.child.close_input();
            }
        }
        self.turn = Turn::begin(ProgramPrompt { text, prompt });
    }

    /// The next event of the program; `None` if there was none within `limit`.
    pub(super) async fn hear(
        &mut self,
        limit: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Option<Came>, ModelFailure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            came = next_of(self.live.as_mut()) => return Ok(Some(came)),
            () = over(limit) => return Ok(None),
        }
        Err(self.interrupted().await)
    }

    async fn take_in(
        &mut self,
        said: StreamItem,
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Answer>, ModelFailure> {
        match said {
            StreamItem::Session(name) if self.kept.session.as_ref() != Some(&name) => {
                self.kept.session = Some(name);
                self.keep().await;
            }
            StreamItem::Lost(why) => self.begin_anew(&why, exchange).await?,
            StreamItem::Unfit(why) => return Err(self.failed(&why, exchange)),
            StreamItem::Begun => self.begun(exchange).await?,
            StreamItem::Text(text) => {
                self.begun(exchange).await?;
                self.turn.add(&text);
            }
            StreamItem::Break => self.turn.break_text(),
            StreamItem::Ask(ask) => return self.asked(ask, exchange).await.map(Some),
            StreamItem::Withdrawn(fingerprint) => {
                if let Some(live) = self.live.as_mut() {
                    live.forget(&fingerprint);
                }
            }
            StreamItem::Model(model) => self.model = Some(model),
            StreamItem::Used(used) => self.meter.count(used),
            StreamItem::Cost(cost) => self.meter.pay(cost),
            StreamItem::Error(line) => self.note_error(&line, exchange).await?,
            StreamItem::Done(done) => return self.done(done, exchange).await,
            StreamItem::Session(_) => {}
        }
        Ok(None)
    }

    /// The program works: it has taken its prompt.
    async fn begun(&mut self, exchange: &mut Exchange<'_>) -> Result<(), ModelFailure> {
        if let Some(told) = self.turn.told.take() {
            // Save first: a prompt that the log has as given is never given again, unless this state says so.
            self.keep().await;
            let through = told.prompt.as_ref().map_or(Seq::START, |prompt| prompt.through);
            let submitted = TerminalNoted::certain(TerminalEvent::Submitted { text: told.text, through });
            exchange.log.note(submitted).await.map_err(|error| storage(&error))?;
            if let Some(prompt) = &told.prompt {
                exchange.words.told(prompt);
            }
            self.was_told = true;
        }
        self.note_state(TerminalState::Working).await.map_err(|error| storage(&error))
    }

    async fn asked(&mut self, ask: TerminalAsk, exchange: &mut Exchange<'_>) -> Result<Answer, ModelFailure> {
        self.begun(exchange).await?;
        let shown = masked(&ask, &exchange.redactor);
        self.asks = self.asks.saturating_add(1);
        let pid = self.live.as_ref().map_or(0, |live| live.child.pid());
        // Unlike any other id in the log, whatever ids the program uses and however often it is started.
        let id =
            CallId::from(format!("{}-{pid}-{}-{}", ask.fingerprint, self.kept.starts, self.asks).as_str());
        let judged = SubjectReach::of(&self.options, exchange).placed(shown.clone()).await;
        let call = call_of(&judged, id.clone());
        self.note(TerminalEvent::ApprovalRequest(shown)).await.map_err(|error| storage(&error))?;
        let blocked = TerminalState::Blocked(Blocker::Approval);
        self.note_state(blocked).await.map_err(|error| storage(&error))?;
        self.turn.asked = Some(ForwardedQuestion { call: id, ask });
        let text = self.turn.take_text();
        let said = (!text.is_empty()).then_some(Block::Text(text));
        let content = said.into_iter().chain([Block::ToolCall(call)]).collect();
        Ok(self.answer_of(content, StopReason::ToolUse, exchange))
    }

    async fn done(
        &mut self,
        done: Done,
        exchange: &mut Exchange<'_>,
    ) -> Result<Option<Answer>, ModelFailure> {
        // A program that is done without earlier output has taken the prompt too.
        self.begun(exchange).await?;
        self.turn.end();
        self.keep().await;
        let program = &exchange.policy.program;
        let short = match done {
            Done::Whole => None,
            Done::Short(why) => Some(format!("({program} has stopped: {why})")),
            Done::Failed(why) => {
                self.note_error(&why, exchange).await?;
                self.note_done(false).await?;
                let failure = self.failed(&why, exchange);
                if failure.class.may_retry() {
                    self.try_again();
                }
                return Err(failure);
            }
        };
        self.note_done(short.is_none()).await?;
        let text = self.turn.take_text();
        if let Some(reason) = self.turn.refusal.take() {
            // It has stopped because of the refusal, and may not know the reason.
            self.own_words = Some(reason);
            return Ok(None);
        }
        let said = [(!text.is_empty()).then_some(text), short]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n\n");
        let said = if said.is_empty() { format!("({program} is done, and said nothing.)") } else { said };
        Ok(Some(self.answer_of(vec![Block::Text(said)], StopReason::EndTurn, exchange)))
    }

    /// The next exchange gives a prompt to go on.
    pub(crate) fn try_again(&mut self) {
        self.own_words = Some(TRY_AGAIN.to_owned());
    }

    async fn note_done(&mut self, succeeded: bool) -> Result<(), ModelFailure> {
        let done = TerminalEvent::Completion { scope: CompletionScope::Turn, succeeded: Some(succeeded) };
        self.note(done).await.map_err(|error| storage(&error))?;
        self.note_state(TerminalState::Idle).await.map_err(|error| storage(&error))
    }

    fn answer_of(&mut self, content: Vec<Block>, stop: StopReason, exchange: &Exchange<'_>) -> Answer {
        let (usage, cost) = self.meter.charge();
        let model = self.model.clone().unwrap_or_else(|| exchange.policy.program.clone());
        Answer { content, usage, cost, model, stop }
    }

    /// A one-prompt process has found its session gone: the session starts from the beginning.
    async fn begin_anew(&mut self, why: &str, exchange: &mut Exchange<'_>) -> Result<(), ModelFailure> {
        self.lost(why, exchange).await?;
        self.retire(CUT_OFF, &CancellationToken::new()).await;
        let told = std::mem::take(&mut self.turn).told;
        self.own_words = told.filter(|told| told.prompt.is_none()).map(|told| told.text);
        Ok(())
    }

    async fn wait_for_words(
        &mut self,
        exchange: &mut Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), ModelFailure> {
        let limit = exchange.policy.idle_ms.map(Duration::from_millis);
        let idle = over(limit);
        tokio::pin!(idle);
        loop {
            // A one-prompt process ends by itself.
            let serves = self.live.as_mut().filter(|live| live.life == Life::Session);
            let came = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(aborted()),
                waited = exchange.words.wait() => return waited.map_err(|error| storage(&error)),
                came = next_of(serves) => came,
                () = &mut idle => return Err(self.unanswered(exchange, "waits for something to do")),
            };
            match came {
                Came::Ended(exit) => {
                    self.retire(CUT_OFF, cancel).await;
                    self.note(TerminalEvent::Exited { exit }).await.map_err(|error| storage(&error))?;
                }
                Came::Said(StreamItem::Error(line)) => self.note_error(&line, exchange).await?,
                Came::Said(_) | Came::Stirred => {}
            }
        }
    }

    pub(super) async fn note_error(
        &mut self,
        line: &str,
        exchange: &mut Exchange<'_>,
    ) -> Result<(), ModelFailure> {
        if !self.turn.notes_error() {
            return Ok(());
        }
        let line = clean(line, &exchange.redactor);
        self.note(TerminalEvent::Error { line }).await.map_err(|error| storage(&error))
    }

    /// Interrupts the program's work.
    async fn interrupted(&mut self) -> ModelFailure {
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

    fn failed(&mut self, why: &str, exchange: &Exchange<'_>) -> ModelFailure {
        let why = clean(why, &exchange.redactor);
        let (usage, _) = self.meter.charge();
        let message = format!("`{}` has failed: {why}", exchange.policy.program);
        ModelFailure { usage, ..ModelFailure::new(class_of(&why), message) }
    }

    fn unanswered(&mut self, exchange: &Exchange<'_>, what: &str) -> ModelFailure {
        let (usage, _) = self.meter.charge();
        let seconds = exchange.policy.idle_ms.unwrap_or_default().div_ceil(1000);
        let message = format!("`{}` {what} for {seconds} s", exchange.policy.program);
        ModelFailure { usage, ..ModelFailure::new(ErrorClass::Unanswered, message) }
    }
}

async fn next_of(live: Option<&mut Live>) -> Came {
    match live {
        Some(live) => live.next().await,
        None => std::future::pending().await,
    }
}

async fn over(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn clean(text: &str, redactor: &Redactor) -> String {
    let clean = redactor.redact(text);
    clean.get(..clean.floor_char_boundary(NOTE_BYTES_MAX)).unwrap_or_default().to_owned()
}

/// The question without secrets. Its subject stays whole: permissions are checked against it.
fn masked(ask: &TerminalAsk, redactor: &Redactor) -> TerminalAsk {
    TerminalAsk {
        question: clean(&ask.question, redactor),
        subject: ask.subject.as_deref().map(|subject| redactor.redact(subject).into_owned()),
        ..ask.clone()
    }
}

fn aborted() -> ModelFailure {
    ModelFailure::new(ErrorClass::Aborted, "stopped before the program was done")
}

pub(super) fn storage(error: &BackendError) -> ModelFailure {
    ModelFailure::new(ErrorClass::Storage, error.to_string())
}
