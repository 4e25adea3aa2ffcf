//! What a run's outcome means for the prompt that waits for it.

use provost_event::{Dimension, ErrorClass, Outcome, PauseReason, RunId};

/// How a prompt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Why.
    pub(crate) reason: EndReason,
    /// The outcome in words.
    pub(crate) words: String,
}

/// Why a prompt ended, if not by a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    Completed,
    /// A limit of tokens or money.
    Tokens,
    /// A limit of turns or time.
    Turns,
    Refused,
    Cancelled,
}

/// Why something wasn't done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What kind of trouble it is.
    pub(crate) kind: TroubleKind,
    /// What is wrong, and the remedy.
    pub(crate) words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TroubleKind {
    /// The request can't be fulfilled as it is.
    Unfit,
    /// There is no such session.
    NoSession,
    /// It failed.
    Failed,
}

impl Trouble {
    pub(crate) fn unfit(words: impl Into<String>) -> Self {
        Self { kind: TroubleKind::Unfit, words: words.into() }
    }

    pub(crate) fn no_session(id: &str) -> Self {
        let words = format!("there is no session {id}: session/list names them");
        Self { kind: TroubleKind::NoSession, words }
    }

    pub(crate) fn failed(words: impl Into<String>) -> Self {
        Self { kind: TroubleKind::Failed, words: words.into() }
    }
}

impl<E: std::error::Error> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::failed(error.to_string())
    }
}

/// How the prompt ends that `run` worked on until this outcome.
///
/// # Errors
/// When the work isn't done, for another reason than a limit, a refusal or a cancel.
pub(crate) fn ending(run: RunId, outcome: &Outcome) -> Result<Ending, Trouble> {
    let words = outcome.to_string();
    let reason = match outcome {
        Outcome::Completed { .. } => EndReason::Completed,
        Outcome::Cancelled { .. } => EndReason::Cancelled,
        Outcome::BudgetExhausted(exhausted) => match exhausted.dimension {
            Dimension::Tokens | Dimension::Money => EndReason::Tokens,
            Dimension::Turns | Dimension::WallTime => EndReason::Turns,
        },
        Outcome::Paused { why: PauseReason::Model(trouble) } if trouble.class == ErrorClass::Refusal => {
            EndReason::Refused
        }
        Outcome::Failed { class: ErrorClass::Refusal, .. } => EndReason::Refused,
        Outcome::Paused { .. } | Outcome::Blocked { .. } => {
            let words = format!("run {run} is suspended: {words}; another prompt goes on with it");
            return Err(Trouble::failed(words));
        }
        Outcome::Aborted { .. } | Outcome::Failed { .. } => {
            return Err(Trouble::failed(format!("run {run} ended: {words}")));
        }
    };
    Ok(Ending { reason, words })
}
