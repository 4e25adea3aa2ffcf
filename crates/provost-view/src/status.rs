//! The status of a run, in the words that every view uses.

use provost_engine::{Actor, RunState};
use provost_event::{
    Blocker, Entry, ModelEntry, ModelTrouble, Outcome, PauseReason, ProviderAwaited, RunId, Seq, SessionId,
    TerminalState, Timestamp, TroubleCause,
};
use provost_harness::{Backend, BackendError, RunStatus, RunSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approvals::questions_with;
use crate::{ApprovalQuestion, Wait, WaitLeft};

/// Entries read at a time.
pub(crate) const READ_MAX: usize = 1_000;
/// Entries at a log's end among which a run mostly records what it waits for.
const AWAITED_WITHIN: u64 = 200;

const NEEDS_APPROVAL: &str = "needs approval";

/// The run as its log has it now; `None` if there is no such run. Reads only the run's own log.
///
/// # Errors
/// When it can't be read.
pub async fn run_state(backend: &dyn Backend, run: RunId) -> Result<Option<Box<RunState>>, BackendError> {
    match backend.state(run.into()).await? {
        Actor::Run(state) if state.policy().is_some() => Ok(Some(state)),
        Actor::Run(_) | Actor::Session(_) => Ok(None),
    }
}

/// The status of a run with these open questions, whose first agent waits for this at its terminal: what a run waits
/// for is more useful than that it works or is suspended.
#[must_use]
pub fn status_word(run: &RunSummary, open: &[ApprovalQuestion], at_terminal: Option<&str>) -> String {
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

/// Whether a run's first agent is an external one.
pub(crate) fn is_external(run: &RunSummary) -> bool {
    run.model.starts_with("external/")
}

/// What a run's first agent waits for at its terminal, if it is an external one that is at work.
pub async fn terminal_wait(backend: &dyn Backend, run: &RunSummary) -> Option<&'static str> {
    if run.status != RunStatus::Running || !is_external(run) {
        return None;
    }
    let Ok(Actor::Session(session)) = backend.state(SessionId::root(run.run).into()).await else {
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

/// The status of a run, and the provider that keeps it from working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentStatus {
    /// In the word that the list of runs has.
    pub word: String,
    /// The provider that it waits for, if it does.
    pub provider: Option<ProviderWait>,
}

impl CurrentStatus {
    /// Reads it from the logs of the run, as of `now`. A log that can't be read hides nothing else.
    pub async fn read(backend: &dyn Backend, (run, state): (&RunSummary, &RunState), now: Timestamp) -> Self {
        let open = questions_with(backend, (run, state)).await;
        Self::with_questions(backend, (run, state), &open, now).await
    }

    /// The same, with its open questions.
    pub async fn with_questions(
        backend: &dyn Backend,
        (run, state): (&RunSummary, &RunState),
        open: &[ApprovalQuestion],
        now: Timestamp,
    ) -> Self {
        let provider = ProviderWait::read(backend, (run, state), open, now).await;
        let word = match &provider {
            Some(provider) => provider.word().to_owned(),
            None => status_word(run, open, terminal_wait(backend, run).await),
        };
        Self { word, provider }
    }
}

/// Since when and until when a run waits for its provider: by the entry of its log that records it.
async fn provider_wait(backend: &dyn Backend, state: &RunState) -> Result<Option<Wait>, BackendError> {
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

/// That a provider keeps a run from working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderWait {
    /// The provider, and why it is awaited.
    pub awaited: ProviderAwaited,
    /// Where a process holds the run, when it is called again: what is left until then, if that is known.
    pub next_try: Option<Option<WaitLeft>>,
}

impl ProviderWait {
    /// Reads it from the run's log, as of `now`; `None` where the run waits for no provider, has an outcome, or has
    /// questions `open`, which matter more. A log that can't be read hides nothing else.
    pub async fn read(
        backend: &dyn Backend,
        (run, state): (&RunSummary, &RunState),
        open: &[ApprovalQuestion],
        now: Timestamp,
    ) -> Option<Self> {
        let is_held = match run.status {
            _ if run.damage.is_some() || !open.is_empty() => return None,
            RunStatus::Running => true,
            RunStatus::Interrupted => false,
            RunStatus::Stopped(_) => return None,
        };
        let awaited = state.awaits_provider()?.clone();
        if !is_held {
            return Some(Self { awaited, next_try: None });
        }
        let wait = provider_wait(backend, state).await.unwrap_or_default();
        Some(Self { awaited, next_try: Some(wait.map(|wait| wait.left(now, true))) })
    }

    /// The status in a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.next_try {
            None => "interrupted",
            Some(_) if self.awaited.suspended => "suspended",
            Some(_) => "waits",
        }
    }

    /// For programs.
    #[must_use]
    pub fn view(&self) -> AwaitedProvider {
        let next_try_ms = self.next_try.flatten().map(|left| match left {
            WaitLeft::Of(ms) | WaitLeft::AtMost(ms) => ms,
            WaitLeft::Over => 0,
        });
        let ModelTrouble { model, message, tried, .. } = &self.awaited.trouble;
        AwaitedProvider {
            tried: tried.clone(),
            cause: self.awaited.trouble.cause(),
            model: model.clone(),
            message: message.clone(),
            next_try_ms,
        }
    }
}

/// The provider that a run waits for, or waited for when its process was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitedProvider {
    /// The models that were asked before it, and why each gave no answer; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<ModelTrouble>,
    /// Why it gives no answer.
    pub cause: TroubleCause,
    /// The model that was called.
    pub model: String,
    /// The provider's own words.
    pub message: String,
    /// Milliseconds until the next call, as of now; null where no process holds the run: then nothing calls it again.
    pub next_try_ms: Option<u64>,
}
