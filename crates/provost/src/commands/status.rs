//! How a run stands, in the words that every command has for it.

use provost_engine::Actor;
use provost_event::{Blocker, Outcome, PauseReason, ProviderAwaited, SessionId, TerminalState, Timestamp};
use provost_harness::{RunStatus, RunSummary, read_actor};
use provost_store::LocalHome;

use crate::drive::run_state;
use crate::questions::{Question, of_summary};
use crate::render::duration;
use crate::wiring::is_program;

const NEEDS_APPROVAL: &str = "needs approval";

/// How a run stands that has these open questions, and whose program waits for this: what it waits for is more worth
/// knowing than that it works or is suspended.
pub(super) fn status(run: &RunSummary, open: &[Question], at_terminal: Option<&str>) -> String {
    let alone = match &run.status {
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

/// The same, of what its logs have. A log that can't be read takes nothing of the rest away.
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

/// The provider that a run waits for that nobody has seen rest.
pub(super) async fn awaits_provider(
    home: &LocalHome,
    run: &RunSummary,
) -> anyhow::Result<Option<ProviderAwaited>> {
    if matches!(run.status, RunStatus::Rests(_)) {
        return Ok(None);
    }
    let state = run_state(home, run.run).await?;
    Ok(state.and_then(|state| state.awaits_provider().cloned()))
}

/// How a run stands that waits for its provider.
pub(super) fn suspended_until(awaited: &ProviderAwaited, now: Timestamp) -> String {
    let word = if awaited.suspended { "suspended" } else { "waits" };
    let left = duration(awaited.until.since_ms(now) / 1_000 * 1_000);
    format!("{word}: {}, next try in {left}", awaited.trouble.cause().words())
}
