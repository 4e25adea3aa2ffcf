//! Ends a program and its processes.

use std::time::Duration;

use provost_event::{Exit, ModelFailure, TerminalEvent, TerminalState};
use provost_process::{MAYBE_LEFT, QuitPlan, TerminalView};
use provost_terminal::ProgramKind;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::failing::failure_at_end;
use super::{Ended, TERMINAL_COMES_WITHIN, TerminalDriver};

/// The time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(5);
/// How long a program may take to be ready for its quit keys after its work was interrupted.
const READY_WITHIN: Duration = Duration::from_secs(3);
/// The interval of checks for that.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// How long the last detected events may take to be recorded.
const NOTED_WITHIN: Duration = Duration::from_secs(2);

impl TerminalDriver {
    /// Ends the program, first in its own way; returns when none of its processes is left. When `cancel` fires,
    /// the remaining time is over.
    pub(crate) async fn close(mut self, cancel: &CancellationToken) -> Exit {
        if self.pty.is_running() {
            tokio::select! {
                () = self.quit() => {}
                () = cancel.cancelled() => {}
            }
        }
        let exit = self.end(cancel).await;
        self.note_what_is_left().await;
        self.see_off(exit).await;
        exit
    }

    /// The program has ended by itself: ends its remaining processes, and records that.
    pub(crate) async fn finish(mut self, cancel: &CancellationToken) -> Result<Ended, ModelFailure> {
        let exit = tokio::select! {
            exit = self.pty.gone() => exit,
            () = cancel.cancelled() => self.end(cancel).await,
        };
        let shown = self.last_rows().await;
        let rows = self.pty.view().await.map(|view| view.rows).unwrap_or_default();
        let noted = self.note(TerminalEvent::Exited { exit }).await;
        self.note_what_is_left().await;
        self.see_off(exit).await;
        let failure =
            self.final_failure(exit, &rows).map(|failure| self.redactor.redact(&failure).into_owned());
        noted.map(|()| Ended { failure, shown, was_told: self.was_told, ..Ended::of(&self.profile, exit) })
    }

    /// The program's own failure, in its words: of its last prompt, or with which it has ended though its exit status
    /// is a success.
    fn final_failure(&self, exit: Exit, rows: &[String]) -> Option<String> {
        let standing = self.desk.look();
        let is_agent = self.profile.kind == ProgramKind::Agent;
        let of_turn = standing.turn_failure.as_ref().filter(|_| is_agent && self.turn.is_some());
        let reported = standing.turn_failure.as_ref().filter(|_| !is_agent && exit.is_success());
        let is_unseen = exit.is_success() && !self.policy.attended;
        let last = || failure_at_end(rows, standing.error.as_deref()).filter(|_| is_unseen);
        let failure = of_turn.or(reported).cloned().or_else(last);
        // A person at the terminal has seen it.
        failure.filter(|_| is_agent || !self.policy.attended)
    }

    /// Types the program's quit keys, if it reads them: a return would consent to what it asks, also to what it asks later,
    /// when it reads again. So the words before the return must be seen first.
    async fn quit(&self) {
        self.get_ready().await;
        self.desk.notes().note(TerminalEvent::State(TerminalState::Exiting)).await;
        let kind = self.profile.kind;
        let mut typed: Option<(&str, TerminalView)> = None;
        for (place, step) in self.profile.quit.iter().enumerate() {
            if let Some((words, before)) = &typed
                && !matches!(self.shows_words(words, before, &CancellationToken::new()).await, Ok(true))
            {
                return;
            }
            let Ok(before) = self.pty.view().await else { return };
            let check = move |view: &TerminalView| match place {
                0 => is_ready(kind, view),
                _ => asks_nothing(view),
            };
            if !matches!(self.pty.send_if(&step.keys, check).await, Ok(true)) {
                return;
            }
            let wait = Duration::from_millis(step.wait_ms);
            if timeout(wait, self.pty.wait()).await.is_ok() {
                return;
            }
            let are_words = step.keys.contains(char::is_alphanumeric);
            typed = are_words.then_some((step.keys.as_str(), before));
        }
    }

    /// Interrupts an agent's work. What it asks isn't answered, not even with no, which may mean the opposite
    /// ("Cancel the deletion?"): a program that asks is ended by a signal.
    async fn get_ready(&self) {
        if self.profile.kind != ProgramKind::Agent || reads_answer(self.state().await) {
            return;
        }
        let keys = if self.is_interrupted { "" } else { &self.profile.keys.interrupt };
        if !matches!(self.pty.send_if(keys, takes_interrupt).await, Ok(true)) {
            return;
        }
        let mut changes = self.pty.changes();
        let is_ready = async {
            while !matches!(self.state().await, TerminalState::Idle | TerminalState::Exited) {
                // Its state may change without a change on the screen.
                let _ = timeout(LOOK_PAUSE, changes.next()).await;
            }
        };
        // A program that isn't ready is ended by a signal.
        let _ = timeout(READY_WITHIN, is_ready).await;
    }

    /// Ends what still runs, from the end of input to a kill.
    async fn end(&self, cancel: &CancellationToken) -> Exit {
        let plan = QuitPlan { steps: Vec::new(), grace: GRACE };
        tokio::select! {
            exit = self.pty.end(plan.clone()) => exit,
            // Each further cancel escalates: first the request at once, then the kill.
            () = cancel.cancelled() => tokio::join!(self.pty.end(plan.clone()), self.pty.end(plan.clone())).0,
        }
    }

    /// Records that some processes couldn't be seen to end.
    async fn note_what_is_left(&self) {
        // As in `see_off`: at worst the entry is missing.
        if !self.pty.is_all_ended()
            && let Err(error) = self.note(TerminalEvent::Error { line: MAYBE_LEFT.to_owned() }).await
        {
            tracing::warn!(?error, "what a program has left running could not be noted");
        }
    }

    /// Tells attached terminals, and records the last detected events.
    async fn see_off(&mut self, exit: Exit) {
        let mut standing = self.desk.standing();
        // At worst the last entries are missing.
        let _ = timeout(NOTED_WITHIN, standing.wait_for(|now| now.exit.is_some())).await;
        if let Some(hub) = self.hub.take() {
            let awaited = self.policy.attended.then(|| self.started + TERMINAL_COMES_WITHIN);
            hub.close(Some(exit), awaited).await;
        }
    }
}

/// Whether it reads its quit keys. A program that works may ask a question at any moment. What an agent waits for
/// away from its composer is the answer to another program.
fn is_ready(kind: ProgramKind, view: &TerminalView) -> bool {
    let waits = kind == ProgramKind::Plain && view.state == TerminalState::WaitingForInput;
    (waits || view.state == TerminalState::Idle) && asks_nothing(view)
}

/// Whether keys would be the answer to a question, or there is no work to interrupt.
const fn reads_answer(state: TerminalState) -> bool {
    matches!(
        state,
        TerminalState::Idle
            | TerminalState::Password
            | TerminalState::Blocked(_)
            | TerminalState::WaitingForInput
    )
}

/// Whether an interrupt key interrupts, and is no answer.
pub(super) fn takes_interrupt(view: &TerminalView) -> bool {
    asks_nothing(view) && !reads_answer(view.state)
}

fn asks_nothing(view: &TerminalView) -> bool {
    let asks = matches!(view.state, TerminalState::Blocked(_) | TerminalState::Password);
    !asks && view.ask.is_none()
}
