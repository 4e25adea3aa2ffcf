//! Types a prompt, and checks that the program took it.

use std::time::Duration;

use provost_event::{Blocker, ErrorClass, ModelFailure, TerminalState};
use provost_process::{PtyError, TerminalView};
use provost_terminal::ProgramKind;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::TerminalDriver;
use super::keys::typing_of;
use super::said;
use super::terminal_status::TerminalStatus;

/// The pause between the text and the return: programs take both at once for a paste, in which a return is a line
/// break.
const SUBMIT_PAUSE: Duration = Duration::from_millis(350);
/// How long a program may take to show that it took a prompt; then the return is typed once more.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// How long a program may take to start while it says that the prompt waits for that.
const STARTED_WITHIN: Duration = Duration::from_mins(1);

/// How long a program may take to show what was typed, and the interval of checks.
const SHOWN_WITHIN: Duration = Duration::from_secs(4);
const SHOWN_PAUSE: Duration = Duration::from_millis(50);

/// Deletes a line in every composer (Ctrl-U).
const CLEAR: &str = "\u{15}";

/// The result of typing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Submission {
    /// The program took it, with this many turns completed before.
    Taken { turns_before: u64 },
    /// The program wasn't ready any more: nothing was typed.
    NotReady,
}

impl TerminalDriver {
    /// Types `text` as the terminal's modes and the profile require.
    pub(super) async fn type_in(
        &self,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<Submission, ModelFailure> {
        let view = self.pty.view().await.map_err(|error| self.failed(&error))?;
        let typing = typing_of(text, &view.modes, &self.profile);
        if !self.send_if(typing.text, takes_words, cancel).await? {
            return Ok(Submission::NotReady);
        }
        self.pause(cancel).await?;
        if !self.shows_words(text, &view, cancel).await? {
            return self.not_taken("the prompt was typed in, and the screen doesn't show it").await;
        }
        for attempt in 0..2 {
            let before = self.desk.look();
            let shown = self.pty.view().await.map_err(|error| self.failed(&error))?;
            // A question that came up meanwhile would take the return as consent, and so would one that comes up later where
            // the return waits for it: a second one is for a composer that still holds the prompt.
            let kind = self.profile.kind;
            let prompt = text.to_owned();
            let takes_it = move |view: &TerminalView| {
                takes_return(kind, view)
                    && (attempt == 0 || kind == ProgramKind::Plain || holds(view, &prompt))
            };
            if !self.send_if(typing.submit.clone(), takes_it, cancel).await? {
                break;
            }
            let deadline = Instant::now() + TAKEN_WITHIN;
            if self.is_taken(&before, deadline, cancel).await?
                && self.leaves_the_composer((text, &before, &shown), deadline, cancel).await?
            {
                // An agent that asks for a sign-in before it has worked drops what was typed.
                let now = self.desk.look();
                let is_dropped = kind == ProgramKind::Agent
                    && now.state == TerminalState::Blocked(Blocker::Auth)
                    && now.shown_works == before.shown_works;
                return Ok(if is_dropped {
                    Submission::NotReady
                } else {
                    Submission::Taken { turns_before: before.turns }
                });
            }
        }
        self.not_taken("the prompt was typed in and returned, and nothing shows that it works on it").await
    }

    /// The failure of a program that didn't take its prompt, unless it has ended.
    async fn not_taken(&self, why: &str) -> Result<Submission, ModelFailure> {
        if !self.pty.is_running() {
            return Ok(Submission::NotReady);
        }
        let shown = self.last_rows().await;
        let message =
            format!("`{}` doesn't take what is typed: {why}. It shows:\n{shown}", self.policy.program);
        Err(ModelFailure::new(ErrorClass::Program, message))
    }

    /// Waits until the screen shows the end of what was typed. A menu, a sign-in or a splash screen doesn't, and would
    /// take the return for a choice.
    pub(super) async fn shows_words(
        &self,
        text: &str,
        before: &TerminalView,
        cancel: &CancellationToken,
    ) -> Result<bool, ModelFailure> {
        let deadline = Instant::now() + SHOWN_WITHIN;
        loop {
            match self.pty.view().await {
                Ok(view) if said::shows_typed(&view, before, text) => return Ok(true),
                Ok(_) if Instant::now() >= deadline => return Ok(false),
                Ok(_) => {}
                Err(_) => return Ok(false),
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(self.aborted()),
                () = sleep(SHOWN_PAUSE) => {}
            }
        }
    }

    /// Deletes what an agent has put back into its composer: some do so with an interrupted prompt. Returns
    /// whether it was ready for that.
    pub(super) async fn clear_composer(&self, cancel: &CancellationToken) -> Result<bool, ModelFailure> {
        let is_ready = self.send_if(CLEAR.to_owned(), takes_words, cancel).await?;
        self.pause(cancel).await?;
        Ok(is_ready)
    }

    /// Waits for a sign that what was typed at `before` was taken.
    async fn is_taken(
        &self,
        before: &TerminalStatus,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<bool, ModelFailure> {
        let mut standing = self.desk.standing();
        let taken = timeout_at(deadline, standing.wait_for(|now| shows_taken(before, now)));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(self.aborted()),
            taken = taken => Ok(matches!(taken, Ok(Ok(_)))),
        }
    }

    /// Waits until the prompt has left the composer: a program that is slow paints it for a while, and one that hasn't
    /// started yet says that it waits.
    async fn leaves_the_composer(
        &self,
        (text, before, shown): (&str, &TerminalStatus, &TerminalView),
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<bool, ModelFailure> {
        let started_by = Instant::now() + STARTED_WITHIN;
        loop {
            let Ok(view) = self.pty.view().await else { return Ok(true) };
            let waits = view.rows.iter().any(|row| self.profile.says_prompt_waits(row));
            if !waits && self.has_left_the_composer((text, before, shown), &view) {
                return Ok(true);
            }
            if Instant::now() >= if waits { started_by } else { deadline } {
                // A program that shows nothing else of its work: it isn't ready for another prompt.
                return Ok(!waits && self.desk.look().state == TerminalState::Working);
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(self.aborted()),
                () = sleep(SHOWN_PAUSE) => {}
            }
        }
    }

    /// An agent that is ready again without having shown that it works took the prompt only if the screen has changed
    /// and the composer doesn't hold the prompt.
    fn has_left_the_composer(
        &self,
        (text, before, shown): (&str, &TerminalStatus, &TerminalView),
        view: &TerminalView,
    ) -> bool {
        let now = self.desk.look();
        self.profile.kind == ProgramKind::Plain
            || now.shown_works > before.shown_works
            || !matches!(now.state, TerminalState::Idle | TerminalState::Working)
            || (view.rows != shown.rows && !said::composer_holds(view, text))
    }

    async fn pause(&self, cancel: &CancellationToken) -> Result<(), ModelFailure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(self.aborted()),
            () = sleep(SUBMIT_PAUSE) => Ok(()),
        }
    }

    /// Types `keys` if `check` holds at that moment.
    pub(super) async fn send_if(
        &self,
        keys: String,
        check: impl FnOnce(&TerminalView) -> bool + Send + 'static,
        cancel: &CancellationToken,
    ) -> Result<bool, ModelFailure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(self.aborted()),
            sent = self.pty.send_if(&keys, check) => match sent {
                // The end is handled elsewhere.
                Err(PtyError::Ended) => Ok(false),
                sent => sent.map_err(|error| self.failed(&error)),
            },
        }
    }
}

fn shows_taken(before: &TerminalStatus, now: &TerminalStatus) -> bool {
    let asks_anew = now.happened > before.happened
        && matches!(
            now.state,
            TerminalState::WaitingForInput | TerminalState::Password | TerminalState::Blocked(_)
        );
    now.exit.is_some() || now.works > before.works || now.turns > before.turns || asks_anew
}

/// Only a state that reads text gets text: never a password prompt, a login, or a question for consent.
fn takes_words(view: &TerminalView) -> bool {
    let is_ready = matches!(view.state, TerminalState::Idle | TerminalState::WaitingForInput);
    is_ready && view.takes_text && view.ask.is_none()
}

/// Whether a composer holds the prompt, and reads keys.
fn holds(view: &TerminalView, prompt: &str) -> bool {
    !view.reads_lines && said::composer_holds(view, prompt)
}

fn takes_return(kind: ProgramKind, view: &TerminalView) -> bool {
    let asks_for_more = matches!(
        view.state,
        TerminalState::Password | TerminalState::Blocked(Blocker::Approval | Blocker::Auth)
    );
    let is_plain = kind == ProgramKind::Plain;
    !asks_for_more && (is_plain || view.ask.is_none())
}
