//! One exchange: gives the program its next prompt, and reads its events until it needs a decision or is done.

use std::time::Duration;

use provost_engine::Answer;
use provost_event::{
    Block, Blocker, CallId, ModelFailure, Plan, PlanItem, ProgramActivity, ProgramCall, ProgramChange, Seq,
    StopReason, TerminalAsk, TerminalEvent, TerminalNoted, TerminalState,
};
use provost_harness::{Exchange, Prompt, Redactor};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::StructuredDriver;
use super::ending::{CUT_OFF, aborted, clean, storage};
use super::live::{Came, Live};
use super::stream_item::{Failing, StreamItem};
use super::turn::{ForwardedQuestion, ProgramPrompt, Turn};
use crate::consent::call_of;
use crate::driver::TRY_AGAIN;
use crate::reach::SubjectReach;

/// Prompt for an agent that continues earlier work when there is no other prompt.
const GO_ON: &str = "You were interrupted. Go on where you left off.";

/// Changed files that a log entry keeps of one call.
const CHANGES_MAX: usize = 100;

impl StructuredDriver {
    /// Starts the program if it isn't running, gives it the next prompt, and waits until it asks for consent or is
    /// done. See [`ExternalAgents::exchange`](provost_harness::ExternalAgents::exchange).
    ///
    /// # Errors
    /// As for that method.
    ///
    /// # Cancellation
    /// When `cancel` fires it interrupts the program's work and waits at most 1 s for that; a program that can't
    /// be interrupted is ended. Dropping the future leaves the program as it is.
    pub async fn exchange(
        &mut self,
        exchange: &mut Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        self.log = Some(exchange.log.clone());
        self.refuse(exchange).await?;
        loop {
            if !self.turn.is_going() {
                if !self.has_words(exchange) {
                    self.wait_for_words(exchange, cancel).await?;
                    continue;
                }
                self.make_ready(exchange, cancel).await?;
                self.tell(exchange).await;
            }
            let idle = exchange.policy.idle_ms.map(Duration::from_millis);
            match self.hear(idle, cancel).await? {
                Some(Came::Said(said)) => {
                    if let Some(answer) = self.take_in(said, exchange).await? {
                        return Ok(answer);
                    }
                }
                Some(Came::Stirred) => {}
                Some(Came::Ended(exit)) => {
                    return Err(self.ended(exit, exchange, "before it was done").await);
                }
                None => return Err(self.unanswered(exchange, "shows no sign of life")),
            }
        }
    }

    /// Refuses the last question if it wasn't approved.
    async fn refuse(&mut self, exchange: &mut Exchange<'_>) -> Result<(), ModelFailure> {
        let (Some(asked), Some(live)) = (self.turn.asked.take(), self.live.as_mut()) else { return Ok(()) };
        let ask = asked.ask;
        let reason = exchange.words.refusal().unwrap_or("This is not allowed here.").to_owned();
        let Ok(reply) = live.reader.refuse(&ask.fingerprint, &reason) else { return Ok(()) };
        live.tell(reply.lines).await;
        if !reply.tells_reason {
            self.turn.keep_reason(reason);
        }
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
            StreamItem::Lost(why) | StreamItem::Unfit(why) | StreamItem::Locked(why) => {
                return Err(self.failed(Failing::said(why), exchange));
            }
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
            StreamItem::Notice(text) => self.note_notice(&text, exchange).await?,
            StreamItem::Activity(activity) => self.note_activity(activity, exchange).await?,
            StreamItem::Untold(reason) => self.turn.keep_reason(reason),
            StreamItem::Done(done) => return self.done(done, exchange).await,
            StreamItem::Session(_) => {}
        }
        Ok(None)
    }

    /// The program works: it has taken its prompt.
    pub(super) async fn begun(&mut self, exchange: &mut Exchange<'_>) -> Result<(), ModelFailure> {
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

    /// The next exchange gives a prompt to go on.
    pub(crate) fn try_again(&mut self) {
        self.own_words = Some(TRY_AGAIN.to_owned());
    }

    pub(super) fn answer_of(
        &mut self,
        content: Vec<Block>,
        stop: StopReason,
        exchange: &Exchange<'_>,
    ) -> Answer {
        let (usage, cost) = self.meter.charge();
        let model = self.model.clone().unwrap_or_else(|| exchange.policy.program.clone());
        Answer { content, usage, cost, model, stop }
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
            let came = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(aborted()),
                waited = exchange.words.wait() => return waited.map_err(|error| storage(&error)),
                came = next_of(self.live.as_mut()) => came,
                () = &mut idle => return Err(self.unanswered(exchange, "waits for something to do")),
            };
            match came {
                Came::Ended(exit) => {
                    self.retire(CUT_OFF, cancel).await;
                    self.note(TerminalEvent::Exited { exit }).await.map_err(|error| storage(&error))?;
                }
                Came::Said(StreamItem::Error(line)) => self.note_error(&line, exchange).await?,
                Came::Said(StreamItem::Notice(text)) => self.note_notice(&text, exchange).await?,
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

    /// Records a remark that is no failure.
    pub(super) async fn note_notice(
        &mut self,
        text: &str,
        exchange: &mut Exchange<'_>,
    ) -> Result<(), ModelFailure> {
        if !self.turn.notes_error() {
            return Ok(());
        }
        let text = clean(text, &exchange.redactor);
        self.note(TerminalEvent::Notification { text }).await.map_err(|error| storage(&error))
    }

    async fn note_activity(
        &mut self,
        activity: ProgramActivity,
        exchange: &mut Exchange<'_>,
    ) -> Result<(), ModelFailure> {
        self.begun(exchange).await?;
        if !self.turn.notes_activity() {
            return Ok(());
        }
        let activity = without_secrets(activity, &exchange.redactor);
        self.note(TerminalEvent::Activity(activity)).await.map_err(|error| storage(&error))
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

fn without_secrets(activity: ProgramActivity, redactor: &Redactor) -> ProgramActivity {
    match activity {
        ProgramActivity::Call(call) => {
            let changes = call.changes.into_iter().take(CHANGES_MAX);
            let changes = changes
                .map(|change| ProgramChange { path: clean(&change.path, redactor), ..change })
                .collect();
            let subject = clean(&call.subject, redactor);
            ProgramActivity::Call(ProgramCall { subject, changes, ..call })
        }
        ProgramActivity::Plan(plan) => {
            let items = plan.items.into_iter();
            let items = items.map(|item| PlanItem { text: clean(&item.text, redactor), ..item }).collect();
            ProgramActivity::Plan(Plan { items })
        }
    }
}

/// The question without secrets. Its subject stays whole: permissions are checked against it.
fn masked(ask: &TerminalAsk, redactor: &Redactor) -> TerminalAsk {
    TerminalAsk {
        question: clean(&ask.question, redactor),
        subject: ask.subject.as_deref().map(|subject| redactor.redact(subject).into_owned()),
        ..ask.clone()
    }
}
