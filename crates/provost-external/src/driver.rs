//! Drives one program at a terminal: types prompts, passes its questions on, answers them, and ends it.

mod answer;
mod calls;
mod closing;
mod ended;
mod failing;
mod keys;
mod masked;
mod recorder;
mod said;
mod start;
mod step;
mod submit;
mod terminal_status;
mod trusting;

use std::sync::Arc;

use provost_engine::Answer;
use provost_event::{
    CallId, ErrorClass, ExternalPolicy, ModelFailure, Seq, TerminalAsk, TerminalEvent, TerminalNoted,
    TerminalState,
};
use provost_harness::{BackendError, Exchange, PromptQueue, Redactor, TerminalLog};
use provost_process::{PtyError, PtySupervisor, TerminalView};
use provost_terminal::{Profile, ProgramKind};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub(crate) use calls::CallWatch;
use calls::ModelCalls;
pub(crate) use ended::Ended;
pub(crate) use failing::{TRY_AGAIN, class_of};
pub(crate) use recorder::{Notes, RecorderHandle, WaitEvidence};
pub(crate) use start::{
    Beginning, TERMINAL_COMES_WITHIN, command_shown, ledger_of, not_started, private_folder, profile_of,
    start,
};
use step::{ExchangeStep, Situation, Turn};
use submit::Submission;
pub(crate) use terminal_status::TerminalStatus;

use crate::attach::{Attendance, Hub};
use crate::consent;
use crate::reach::SubjectReach;

/// Prompt for an agent that continues earlier work when there is no other prompt.
const GO_ON: &str = "You were interrupted. Go on where you left off.";

/// A program at a terminal, from its start to its end.
pub(crate) struct TerminalDriver {
    pty: Arc<PtySupervisor>,
    profile: Arc<Profile>,
    policy: ExternalPolicy,
    redactor: Arc<Redactor>,
    log: TerminalLog,
    desk: RecorderHandle,
    hub: Option<Hub>,
    attendance: watch::Receiver<Attendance>,
    calls: CallWatch,
    reach: SubjectReach,
    started: Instant,
    /// The question that was passed on and isn't answered yet.
    asked: Option<PendingQuestion>,
    /// The number of questions passed on.
    handed_on: u64,
    /// The program was told to stop its work.
    is_interrupted: bool,
    /// The composer may hold an earlier prompt.
    may_hold_words: bool,
    /// Text from Provost itself, to be typed when the agent is ready.
    own_words: Option<String>,
    turn: Option<Turn>,
    was_told: bool,
    last_told: String,
    turns_seen: u64,
    seen_at: Instant,
}

/// A question that waits for a decision.
struct PendingQuestion {
    ask: TerminalAsk,
    call: CallId,
}

/// State that is read besides the log.
struct ObservedScreen {
    /// The screen; absent once the program is gone.
    view: Option<TerminalView>,
    attendance: Attendance,
    calls: ModelCalls,
    /// When the exchange began.
    began: Instant,
}

/// The result of an exchange.
pub(crate) enum Came {
    /// The program asks a question, or is done.
    Answer(Answer),
    /// It has ended.
    Ended,
}

impl TerminalDriver {
    /// Runs until the program needs a person, is done, or has ended.
    pub(crate) async fn exchange(
        &mut self,
        exchange: &mut Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<Came, ModelFailure> {
        let began = Instant::now();
        self.desk.take_back();
        let refusal = exchange.words.refusal().map(str::to_owned);
        loop {
            let standing = self.desk.look();
            if let Some(failure) = standing.failure {
                return Err(ModelFailure::new(ErrorClass::Storage, failure));
            }
            self.asked.take_if(|asked| !standing.asks(&asked.ask.fingerprint));
            let seen = ObservedScreen {
                view: self.pty.view().await.ok(),
                attendance: *self.attendance.borrow_and_update(),
                calls: self.calls.look(),
                began,
            };
            let step = step::next(&self.situation(exchange, &standing, &seen));
            match step {
                ExchangeStep::Wait(until) => {
                    let before = (&standing, &seen.attendance);
                    self.wait(exchange.words, before, until, cancel).await?;
                }
                ExchangeStep::Submit => self.submit(exchange.words, cancel).await?,
                ExchangeStep::Deny(ask) => self.deny(&ask, refusal.as_deref(), cancel).await?,
                ExchangeStep::HandOn(ask) => {
                    let rows = seen.view.as_ref().map(|view| view.rows.as_slice()).unwrap_or_default();
                    let subject = trusting::subject_of(&ask, rows, exchange.workspace);
                    let shown = masked::ask_of(&ask, &self.redactor);
                    let shown = TerminalAsk { subject: subject.or(shown.subject), ..shown };
                    let shown = self.reach.placed(shown).await;
                    let call = self.next_call(&ask);
                    if self.desk.hand_on(&ask, &call) {
                        self.asked = Some(PendingQuestion { ask, call: call.clone() });
                        return Ok(Came::Answer(consent::question(&shown, call, &self.policy.program)));
                    }
                }
                ExchangeStep::Done => return self.done(&standing).await.map(Came::Answer),
                ExchangeStep::Unanswered(waits_for) => {
                    let message = format!("`{}` waits for {waits_for}", self.policy.program);
                    let message = self.redactor.redact(&message).into_owned();
                    return Err(ModelFailure::new(ErrorClass::Unanswered, message));
                }
                ExchangeStep::Ended => return Ok(Came::Ended),
            }
        }
    }

    fn situation<'a>(
        &'a self,
        exchange: &Exchange<'_>,
        standing: &'a TerminalStatus,
        seen: &ObservedScreen,
    ) -> Situation<'a> {
        Situation {
            now: Instant::now(),
            standing,
            attendance: seen.attendance,
            kind: self.profile.kind,
            policy: &self.policy,
            is_verified: exchange.is_verified,
            has_words: self.own_words.is_some() || exchange.words.prompt().is_some(),
            was_told: self.was_told,
            refused: self.asked.as_ref().map(|asked| asked.ask.fingerprint.as_str()),
            turn: self.turn,
            turns_seen: self.turns_seen,
            seen_at: self.seen_at,
            started: self.started,
            wrote: seen.view.as_ref().map_or(self.started, |view| self.started + view.at),
            takes_text: seen.view.as_ref().is_some_and(|view| view.takes_text),
            exposes_secret: seen.view.as_ref().is_some_and(|view| view.exposes_secret),
            paints: seen.view.as_ref().is_some_and(|view| view.paints),
            calls: seen.calls,
            began: seen.began,
        }
    }

    /// An id that no other call in the session's log has: the same question may be passed on twice, and the
    /// program may repeat it after a restart.
    fn next_call(&mut self, ask: &TerminalAsk) -> CallId {
        self.handed_on += 1;
        CallId(format!("{}-{}-{}", ask.fingerprint, self.pty.pid(), self.handed_on).into())
    }

    /// Waits until something happens, or until `until`.
    async fn wait(
        &mut self,
        words: &mut PromptQueue,
        (seen, attended): (&TerminalStatus, &Attendance),
        until: Option<Instant>,
        cancel: &CancellationToken,
    ) -> Result<(), ModelFailure> {
        let (mut standing, mut attendance) = (self.desk.standing(), self.attendance.clone());
        let hears_words = words.prompt().is_none();
        // What has changed since the decision to wait ends the wait at once.
        let is_news =
            |now: &TerminalStatus| now.exit.is_some() || now.failure.is_some() || now.changes != seen.changes;
        let mut attends = true;
        loop {
            let calls = &mut self.calls;
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(self.interrupted().await),
                () = async { drop(standing.wait_for(is_news).await) } => return Ok(()),
                changed = attendance.changed(), if attends => match changed {
                    Ok(()) if attendance.borrow_and_update().controls != attended.controls => return Ok(()),
                    Ok(()) => {}
                    Err(_) => attends = false,
                },
                () = calls.changes() => return Ok(()),
                heard = words.wait(), if hears_words => return heard.map_err(|error| storage(&error)),
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => return Ok(()),
            }
        }
    }

    /// Types the pending text.
    async fn submit(
        &mut self,
        words: &mut PromptQueue,
        cancel: &CancellationToken,
    ) -> Result<(), ModelFailure> {
        let pending = words.prompt();
        let said = pending.as_ref().map(|prompt| match self.profile.kind {
            ProgramKind::Agent => prompt.for_agent(),
            ProgramKind::Plain => prompt.text.clone(),
        });
        let own = self.own_words.clone();
        let text = own.into_iter().chain(said).collect::<Vec<_>>().join("\n\n");
        if self.may_hold_words && !self.clear_composer(cancel).await? {
            return self.wait_a_moment(cancel).await;
        }
        let Submission::Taken { turns_before } = self.type_in(&text, cancel).await? else {
            // The event that made it unready is about to be recorded.
            return self.wait_a_moment(cancel).await;
        };
        self.turn = Some(Turn { turns_before, since: Instant::now() });
        self.was_told = true;
        self.may_hold_words = false;
        self.own_words = None;
        let through = pending.as_ref().map_or(Seq::START, |prompt| prompt.through);
        self.note(TerminalEvent::Submitted { text: text.clone(), through }).await?;
        if let Some(prompt) = pending {
            words.told(&prompt);
        }
        self.last_told = text;
        Ok(())
    }

    /// The answer of an agent that is done with its prompt.
    async fn done(&mut self, standing: &TerminalStatus) -> Result<Answer, ModelFailure> {
        let view = self.pty.view().await.map_err(|error| self.failed(&error))?;
        let failure = standing.turn_failure.clone().or_else(|| self.plain_failure(standing, &view));
        if let Some(failure) = failure.filter(|_| self.turn.is_some()) {
            self.turn = None;
            (self.turns_seen, self.seen_at) = (standing.turns, Instant::now());
            return Err(self.turn_failed(&failure));
        }
        let said = said::last_message(&view, (&self.last_told, &self.profile), &self.redactor);
        let said =
            if said.is_empty() { format!("({} is ready for a prompt.)", self.policy.program) } else { said };
        self.turn = None;
        (self.turns_seen, self.seen_at) = (standing.turns, Instant::now());
        Ok(consent::text(said, &self.policy.program))
    }

    /// The last rows that the program showed, without secrets.
    async fn last_rows(&self) -> String {
        match self.pty.view().await {
            Ok(view) => said::last_rows(&view, &self.redactor),
            Err(_) => String::new(),
        }
    }

    /// Its present state, recorded or not.
    async fn state(&self) -> TerminalState {
        self.pty.view().await.map_or(TerminalState::Exited, |view| view.state)
    }

    async fn note(&self, event: TerminalEvent) -> Result<(), ModelFailure> {
        self.log.note(TerminalNoted::certain(event)).await.map_err(|error| storage(&error))
    }

    /// Stops the program's work. The task that cancelled ends the program.
    async fn interrupted(&mut self) -> ModelFailure {
        let works = matches!(self.state().await, TerminalState::Working | TerminalState::Stalled);
        if works && self.profile.kind == ProgramKind::Agent {
            self.is_interrupted = true;
            // A program that takes no keys is ended soon.
            // A question that has just come up would take the key for an answer.
            let typed = self.pty.send_if(&self.profile.keys.interrupt, closing::takes_interrupt);
            let _ = tokio::time::timeout(std::time::Duration::from_millis(200), typed).await;
        }
        self.aborted()
    }

    fn aborted(&self) -> ModelFailure {
        ModelFailure::new(ErrorClass::Aborted, format!("`{}` was told to stop", self.policy.program))
    }

    fn failed(&self, error: &PtyError) -> ModelFailure {
        ModelFailure::new(ErrorClass::Program, format!("`{}`: {error}", self.policy.program))
    }
}

pub(crate) fn storage(error: &BackendError) -> ModelFailure {
    ModelFailure::new(ErrorClass::Storage, error.to_string())
}
