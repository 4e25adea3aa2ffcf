//! Giving the answer to a question: once, and what was agreed to for always is in the user's settings before.

use std::path::Path;

use anyhow::Context as _;
use provost_engine::SessionEvent;
use provost_event::{ApprovalAnswer, ApprovalResolved, ApprovalScope, Timestamp};
use provost_harness::Home as _;
use provost_store::LocalHome;

use crate::approved::{self, Kept};
use crate::questions::{Question, answer_to};

/// What became of an answer.
pub(crate) enum Given {
    /// It counts; what it added to the settings, if it was to add something.
    Counts(Option<Kept>),
    /// Another was first.
    Late(ApprovalResolved, Timestamp),
    /// Nobody needs it any more: the call has its result.
    Moot,
}

/// Answers `question`. A consent for always goes to `user_file` first: should the program die in between, the
/// question is still there, and what was agreed to is asked again rather than taken as kept when it isn't.
///
/// # Errors
/// When it can't be kept in the settings or in the log; nothing is answered then.
pub(crate) async fn give(
    home: &LocalHome,
    question: &Question,
    (answer, by): (ApprovalAnswer, String),
    user_file: &Path,
) -> anyhow::Result<Given> {
    let mut kept = None;
    if let ApprovalAnswer::Allow { scope: ApprovalScope::Always, pattern: Some(pattern) } = &answer {
        if let Some((first, at)) = answer_to(home, question).await? {
            return Ok(Given::Late(first, at));
        }
        let (file, pattern) = (user_file.to_owned(), pattern.clone());
        let keep = tokio::task::spawn_blocking(move || approved::keep(&file, &pattern));
        kept = Some(keep.await.context("can't change your settings")??);
    }
    let event = SessionEvent::Resolve { asked: question.asked, answer, by };
    let posted = home.post(question.session.into(), event.into(), None).await?;
    if posted.changed {
        return Ok(Given::Counts(kept));
    }
    Ok(answer_to(home, question).await?.map_or(Given::Moot, |(first, at)| Given::Late(first, at)))
}
