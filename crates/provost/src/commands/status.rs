//! The status of a run, in the words that every command uses.

use provost_engine::{Actor, RunState};
use provost_event::{
    Blocker, Entry, Outcome, PauseReason, ProviderAwaited, Seq, SessionId, TerminalState, Timestamp,
};
use provost_harness::{Home as _, RunStatus, RunSummary, read_actor};
use provost_store::LocalHome;

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
        RunStatus::Rests(outcome) => outcome.word(),
    };
    match &run.status {
        _ if open.is_empty() => at_terminal.unwrap_or(alone).to_owned(),
        RunStatus::Running | RunStatus::Rests(Outcome::Paused { why: PauseReason::Approval { .. } }) => {
            NEEDS_APPROVAL.to_owned()
        }
        // The answer alone doesn't let it go on.
        RunStatus::Interrupted | RunStatus::Rests(_) => format!("{alone}, {NEEDS_APPROVAL}"),
    }
}

/// The same, read from its logs. A log that can't be read hides nothing else.
pub(super) async fn status_of(home: &LocalHome, run: &RunSummary) -> String {
    let open = of_summary(home, run).await.unwrap_or_default();
    status(run, &open, at_terminal(home, run).await)
}

/// What a run's first agent waits for at its terminal, if it is an external one that is at work.
pub(super) async fn at_terminal(home: &LocalHome, run: &RunSummary) -> Option<&'static str> {
    if run.status != RunStatus::Running || !is_program(&run.model) {
        return None;
    }
    let Ok(Actor::Session(session)) = read_actor(home, SessionId::root(run.run).into()).await else {
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
pub(super) async fn provider_wait(home: &LocalHome, state: &RunState) -> anyhow::Result<Option<Wait>> {
    let Some(awaited) = state.awaits_provider() else { return Ok(None) };
    let run = awaited.session.run;
    for after in [Seq(state.head().0.saturating_sub(AWAITED_WITHIN)), Seq::START] {
        let mut after = after;
        let mut found = None;
        loop {
            let records = home.read(run.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            let said = records
                .iter()
                .rfind(|record| matches!(&record.entry, Entry::ProviderAwaited(entry) if entry == awaited));
            found = said.cloned().or(found);
        }
        if let Some(said) = found {
            let passed_ms = state.elapsed().since_ms(said.elapsed);
            return Ok(Some(Wait { since: said.at, due: awaited.until, passed_ms }));
        }
    }
    Ok(None)
}

/// The status of a run that waits for its provider; `is_held` where a process waits with it.
pub(super) fn suspended_until(
    awaited: &ProviderAwaited,
    wait: Option<Wait>,
    (now, is_held): (Timestamp, bool),
) -> String {
    let word = if awaited.suspended { "suspended" } else { "waits" };
    let next = match wait.map(|wait| wait.left(now, is_held)) {
        Some(Left::Of(ms)) => format!(", next try in {}", whole_seconds(ms)),
        Some(Left::AtMost(ms)) => format!(", next try in at most {}", whole_seconds(ms)),
        Some(Left::Over) if is_held => ", next try now".to_owned(),
        Some(Left::Over) | None => String::new(),
    };
    format!("{word}: {}{next}", awaited.trouble.cause().words())
}
