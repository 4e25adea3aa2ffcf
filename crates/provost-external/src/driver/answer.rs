//! Answers a program's question for consent.

use std::time::Duration;

use provost_event::{
    CallId, ErrorClass, ModelFailure, OptionMeaning, TerminalAsk, TerminalEvent, ToolStatus,
};
use provost_harness::ToolOutput;
use provost_process::TerminalView;
use provost_terminal::ProgramKind;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{PendingQuestion, TerminalDriver};

/// How long an answer may take to have an effect; then it is typed once more, if the question is unchanged.
const TAKES_EFFECT_WITHIN: Duration = Duration::from_secs(4);
/// A dialog that is gone for this long counts as answered.
const GONE_FOR: Duration = Duration::from_millis(250);

/// Characters of a question's subject that must be on the screen; more might be wrapped.
const SUBJECT_CHARS: usize = 16;

/// The effect of an answer's keys.
enum Effect {
    Taken,
    /// The question is gone; nothing was typed.
    Gone,
    /// The question is still asked.
    None,
}

impl TerminalDriver {
    /// Consents to the question of `call`.
    pub(crate) async fn answer(&mut self, call: &CallId, cancel: &CancellationToken) -> ToolOutput {
        self.desk.take_back();
        let asked = self.asked.take();
        let Some(PendingQuestion { ask, .. }) = asked.filter(|asked| asked.call == *call) else {
            return withdrawn("The program doesn't ask that any more.");
        };
        let Some((keys, choice)) = self.keys_for(&ask, OptionMeaning::ApproveOnce) else {
            return ToolOutput::error("It isn't known which keys would consent, so nothing was typed.");
        };
        let choice = self.redactor.redact(&choice).into_owned();
        match self.press(&ask, keys, cancel).await {
            Ok(Effect::Taken) => match self.note(answered(&ask, &choice)).await {
                Ok(()) => ToolOutput::ok(format!("Answered: {choice}")),
                Err(failure) => ToolOutput::error(failure.message),
            },
            Ok(Effect::Gone) => withdrawn(
                "The screen changed before the answer could be given: the program doesn't ask that any more. \
                 Nothing was typed.",
            ),
            Ok(Effect::None) => {
                ToolOutput::error("The answer was typed twice, and the program still asks the same.")
            }
            Err(failure) => ToolOutput::error(failure.message),
        }
    }

    /// Refuses a question that wasn't approved.
    pub(super) async fn deny(
        &mut self,
        ask: &TerminalAsk,
        reason: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<(), ModelFailure> {
        let Some((keys, choice)) = self.keys_for(ask, OptionMeaning::Deny) else {
            let message =
                format!("`{}` asks something, and it isn't known how to say no to it", self.policy.program);
            return Err(ModelFailure::new(ErrorClass::Program, message));
        };
        match self.press(ask, keys, cancel).await? {
            Effect::Taken => {
                let choice = self.redactor.redact(&choice).into_owned();
                self.note(answered(ask, &choice)).await?;
                self.asked = None;
                let is_agent = self.profile.kind == ProgramKind::Agent;
                self.may_hold_words = is_agent;
                // Its model isn't told why by the key, whether or not it works on.
                if let Some(reason) = reason.filter(|_| is_agent && self.was_told) {
                    self.tell_later(reason);
                }
                Ok(())
            }
            Effect::Gone => {
                self.asked = None;
                self.wait_a_moment(cancel).await
            }
            Effect::None => {
                let shown = self.last_rows().await;
                let program = &self.policy.program;
                let message = format!("`{program}` doesn't take no for an answer. It shows:\n{shown}");
                Err(ModelFailure::new(ErrorClass::Program, message))
            }
        }
    }

    /// Adds to what is typed when the agent is ready; the same is told once.
    pub(super) fn tell_later(&mut self, words: &str) {
        let own = self.own_words.get_or_insert_default();
        if !own.split("\n\n").any(|told| told == words) {
            let gap = if own.is_empty() { "" } else { "\n\n" };
            own.push_str(gap);
            own.push_str(words);
        }
    }

    /// The keys for this meaning, and the option's label.
    pub(super) fn keys_for(&self, ask: &TerminalAsk, meaning: OptionMeaning) -> Option<(String, String)> {
        if let Some(option) = ask.option(meaning) {
            return Some((option.keys.clone(), option.label.clone()));
        }
        let keys = &self.profile.keys;
        let (keys, words) = match meaning {
            // The profile's key may choose something else in a menu that has no such option.
            OptionMeaning::ApproveOnce if !ask.options.is_empty() => (None, ""),
            OptionMeaning::ApproveOnce => (keys.approve_once.clone(), "yes"),
            OptionMeaning::ApproveAlways => (keys.approve_always.clone(), "yes, always"),
            OptionMeaning::Deny => (keys.deny.clone(), "no"),
            OptionMeaning::Other => (None, ""),
        };
        keys.map(|keys| (keys, words.to_owned()))
    }

    /// Types `keys` if the question is still asked at that moment, and waits for their effect.
    async fn press(
        &self,
        ask: &TerminalAsk,
        keys: String,
        cancel: &CancellationToken,
    ) -> Result<Effect, ModelFailure> {
        for attempt in 0..2 {
            let before = self.pty.view().await.map_err(|error| self.failed(&error))?;
            let asked = ask.clone();
            let still_asks = move |view: &TerminalView| is_asked(&asked, view);
            if !self.send_if(keys.clone(), still_asks, cancel).await? {
                return Ok(if attempt == 0 { Effect::Gone } else { Effect::Taken });
            }
            if self.takes_effect(ask, &before.rows, cancel).await? {
                return Ok(Effect::Taken);
            }
        }
        Ok(Effect::None)
    }

    /// Waits until the question stays gone, and the screen has changed.
    async fn takes_effect(
        &self,
        ask: &TerminalAsk,
        rows: &[String],
        cancel: &CancellationToken,
    ) -> Result<bool, ModelFailure> {
        let mut standing = self.desk.standing();
        let effect = timeout(TAKES_EFFECT_WITHIN, async {
            loop {
                let gone = standing.wait_for(|now| now.exit.is_some() || !now.asks(&ask.fingerprint)).await;
                let has_ended = gone.map_or(true, |now| now.exit.is_some());
                if has_ended {
                    return;
                }
                // A dialog that is repainted is gone for a moment too.
                let comes_back = timeout(GONE_FOR, standing.wait_for(|now| now.asks(&ask.fingerprint)));
                let is_gone = comes_back.await.is_err();
                let is_another = self.pty.view().await.is_ok_and(|view| view.rows != rows);
                if is_gone && is_another {
                    return;
                }
            }
        });
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(self.aborted()),
            effect = effect => Ok(effect.is_ok()),
        }
    }

    /// Waits for what was just detected to be recorded.
    pub(super) async fn wait_a_moment(&self, cancel: &CancellationToken) -> Result<(), ModelFailure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(self.aborted()),
            () = sleep(GONE_FOR) => Ok(()),
        }
    }
}

/// Whether the question is still asked and the screen shows its subject: another question may have been painted in
/// its place too recently for the detector to report it.
fn is_asked(ask: &TerminalAsk, view: &TerminalView) -> bool {
    let stands = view.ask.as_ref().is_some_and(|now| now.fingerprint == ask.fingerprint);
    let subject = ask.subject.as_deref().and_then(|subject| subject.lines().next()).unwrap_or_default();
    let head: String = subject.trim().chars().take(SUBJECT_CHARS).collect();
    stands && (head.is_empty() || view.rows.iter().any(|row| row.contains(&head)))
}

/// The result for a question that the program has withdrawn: no failure, however often it does that.
fn withdrawn(why: &str) -> ToolOutput {
    ToolOutput { status: ToolStatus::Cancelled, ..ToolOutput::error(why) }
}

fn answered(ask: &TerminalAsk, choice: &str) -> TerminalEvent {
    TerminalEvent::Answered { fingerprint: ask.fingerprint.clone(), choice: choice.to_owned() }
}
