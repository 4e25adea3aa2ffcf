//! The status of a run, in the words that every command uses.

use provost_engine::{Actor, RunState};
use provost_event::{
    Blocker, Entry, ModelEntry, ModelTrouble, Outcome, PauseReason, ProviderAwaited, Seq, SessionId,
    TerminalState, TroubleCause,
};
use provost_harness::{Backend, Clock as _, RunStatus, RunSummary, SystemClock, read_actor};
use serde::Serialize;

use crate::questions::{Question, of_summary};
use crate::render::{Left, Wait, whole_seconds};
use crate::wiring::is_program;

/// Entries read at a time.
const READ_MAX: usize = 1_000;
/// Entries at a log's end among which a run mostly records what it waits for.
const AWAITED_WITHIN: u64 = 200;

const NEEDS_APPROVAL: &str = "needs approval";

/// The status of a run with these open questions, whose program waits for this: what it waits for is more useful
/// than that it works or is suspended.
pub(super) fn status(run: &RunSummary, open: &[Question], at_terminal: Option<&str>) -> String {
    let alone = match &run.status {
        _ if run.damage.is_some() => "damaged",
        RunStatus::Running => "running",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Stopped(outcome) => outcome.word(),
    };
    match &run.status {
        _ if open.is_empty() => at_terminal.unwrap_or(alone).to_owned(),
        RunStatus::Running | RunStatus::Stopped(Outcome::Paused { why: PauseReason::Approval { .. } }) => {
            NEEDS_APPROVAL.to_owned()
        }
        // The answer alone doesn't let it go on.
        RunStatus::Interrupted | RunStatus::Stopped(_) => format!("{alone}, {NEEDS_APPROVAL}"),
    }
}

/// The same, read from its logs, and what its provider keeps it from. A log that can't be read hides nothing else.
pub(super) async fn status_of(
    backend: &dyn Backend,
    (run, state): (&RunSummary, &RunState),
) -> (String, Option<Suspension>) {
    let open = of_summary(backend, run).await.unwrap_or_default();
    let suspension = Suspension::read(backend, (run, state), &open).await;
    let status = match &suspension {
        Some(suspension) => suspension.word().to_owned(),
        None => status(run, &open, at_terminal(backend, run).await),
    };
    (status, suspension)
}

/// What a run's first agent waits for at its terminal, if it is an external one that is at work.
pub(super) async fn at_terminal(backend: &dyn Backend, run: &RunSummary) -> Option<&'static str> {
    if run.status != RunStatus::Running || !is_program(&run.model) {
        return None;
    }
    let Ok(Actor::Session(session)) = read_actor(backend, SessionId::root(run.run).into()).await else {
        return None;
    };
    match session.terminal()? {
        TerminalState::WaitingForInput | TerminalState::Blocked(Blocker::Question) => Some("needs input"),
        TerminalState::Password => Some("needs a password"),
        TerminalState::Blocked(Blocker::Auth) => Some("needs a login"),
        TerminalState::Blocked(Blocker::Approval) => Some(NEEDS_APPROVAL),
        TerminalState::Stalled => Some("stalled"),
        TerminalState::Starting
        | TerminalState::Working
        | TerminalState::Idle
        | TerminalState::Exiting
        | TerminalState::Exited
        | TerminalState::Unknown => None,
    }
}

/// Since when and until when a run waits for its provider: by the entry of its log that records it.
///
/// # Errors
/// When the log can't be read.
async fn provider_wait(backend: &dyn Backend, state: &RunState) -> anyhow::Result<Option<Wait>> {
    let Some(awaited) = state.awaits_provider() else { return Ok(None) };
    let run = awaited.session.run;
    for after in [Seq(state.head().0.saturating_sub(AWAITED_WITHIN)), Seq::START] {
        let mut after = after;
        let mut found = None;
        loop {
            let records = backend.read(run.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            let said = records
                .iter()
                .rfind(|record| matches!(&record.entry, Entry::Model(ModelEntry::ProviderAwaited(entry)) if entry == awaited));
            found = said.cloned().or(found);
        }
        if let Some(said) = found {
            let passed_ms = state.elapsed().since_ms(said.elapsed);
            return Ok(Some(Wait { since: said.at, due: awaited.until, passed_ms }));
        }
    }
    Ok(None)
}

/// A run that its provider keeps from working.
pub(super) struct Suspension {
    awaited: ProviderAwaited,
    /// Where a process holds the run: only that calls the provider again.
    wait: Option<Option<Left>>,
}

impl Suspension {
    /// Reads it from the run's log; `None` where the run waits for no provider, has an outcome, or has questions
    /// `open`, which matter more. A log that can't be read hides nothing else.
    pub(super) async fn read(
        backend: &dyn Backend,
        (run, state): (&RunSummary, &RunState),
        open: &[Question],
    ) -> Option<Self> {
        let is_held = match run.status {
            _ if run.damage.is_some() || !open.is_empty() => return None,
            RunStatus::Running => true,
            RunStatus::Interrupted => false,
            RunStatus::Stopped(_) => return None,
        };
        let awaited = state.awaits_provider()?.clone();
        if !is_held {
            return Some(Self { awaited, wait: None });
        }
        let wait = provider_wait(backend, state).await.unwrap_or_default();
        Some(Self { awaited, wait: Some(wait.map(|wait| wait.left(SystemClock.now(), true))) })
    }

    /// The status in a word.
    pub(super) const fn word(&self) -> &'static str {
        match self.wait {
            None => "interrupted",
            Some(_) if self.awaited.suspended => "suspended",
            Some(_) => "waits",
        }
    }

    /// The status with its cause, and with the next try if there is one.
    pub(super) fn words(&self) -> String {
        let word = self.word();
        let cause = self.awaited.trouble.words();
        match self.wait {
            None => format!("{word}: {}", self.awaited.trouble.past()),
            Some(Some(Left::Of(ms))) => format!("{word}: {cause}, next try in {}", whole_seconds(ms)),
            Some(Some(Left::AtMost(ms))) => {
                format!("{word}: {cause}, next try in at most {}", whole_seconds(ms))
            }
            Some(Some(Left::Over)) => format!("{word}: {cause}, next try now"),
            Some(None) => format!("{word}: {cause}"),
        }
    }

    /// The status with its cause and the models that were asked before.
    pub(super) fn words_in_full(&self) -> String {
        self.words() + &self.awaited.trouble.tried_in_words()
    }

    /// The model's failure in full, and what must change: nothing, while it is tried again.
    pub(super) fn trouble(&self) -> String {
        let trouble = &self.awaited.trouble;
        match self.wait {
            Some(_) => format!(
                "{}; it is tried again by itself. For another model: provost pause {run}, then provost resume {run} --model \
                 NAME",
                trouble.what(),
                run = self.awaited.session.run,
            ),
            None => trouble.to_string(),
        }
    }

    pub(super) fn line(&self) -> ProviderLine {
        let next_try_ms = self.wait.flatten().map(|left| match left {
            Left::Of(ms) | Left::AtMost(ms) => ms,
            Left::Over => 0,
        });
        let ModelTrouble { model, message, tried, .. } = &self.awaited.trouble;
        let cause = self.awaited.trouble.cause();
        ProviderLine {
            cause,
            model: model.clone(),
            message: message.clone(),
            next_try_ms,
            tried: tried.clone(),
        }
    }
}

/// The provider that a run waits for, for programs.
#[derive(Serialize)]
pub(super) struct ProviderLine {
    /// The models that were asked before it, and why each gave no answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tried: Vec<ModelTrouble>,
    cause: TroubleCause,
    model: String,
    message: String,
    /// Until the next call, as of now; null where no process holds the run: then nothing calls it again.
    next_try_ms: Option<u64>,
}
