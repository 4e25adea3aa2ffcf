//! Answers a question exactly once. A permanent approval is written to the user's settings before the answer.

use std::path::Path;

use anyhow::Context as _;
use provost_config::{Kept, keep_approved};
use provost_engine::SessionEvent;
use provost_event::{ApprovalAnswer, ApprovalResolved, ApprovalScope, Timestamp};
use provost_harness::Backend;

use provost_view::{ApprovalQuestion, answer_to};

/// The result of an answer.
pub(crate) enum Given {
    /// It counts, with what it added to the settings, if anything.
    Counts(Option<Kept>),
    /// Another answer was first.
    Late(ApprovalResolved, Timestamp),
    /// It is no longer needed: the call has its result.
    Moot,
}

/// Answers `question`. A permanent approval is written to `user_file` first: if the program dies in between, the
/// question stays open and is asked again, and no approval counts that wasn't kept.
///
/// # Errors
/// When the answer can't be written to the settings or the log; the question stays open.
pub(crate) async fn give(
    backend: &dyn Backend,
    question: &ApprovalQuestion,
    (answer, by): (ApprovalAnswer, String),
    user_file: &Path,
) -> anyhow::Result<Given> {
    let mut kept = None;
    if let ApprovalAnswer::Allow { scope: ApprovalScope::Always, pattern: Some(pattern) } = &answer {
        if let Some((first, at)) = answer_to(backend, question).await? {
            return Ok(Given::Late(first, at));
        }
        let (file, pattern) = (user_file.to_owned(), pattern.clone());
        let keep = tokio::task::spawn_blocking(move || keep_approved(&file, &pattern));
        kept = Some(keep.await.context("can't change your settings")??);
    }
    let event = SessionEvent::Resolve { asked: question.asked, answer, by };
    let posted = backend.post(question.session.into(), event.into(), None).await;
    let posted = match kept {
        Some(_) => posted
            .context("the question isn't answered, though your settings allow such calls from now on")?,
        None => posted?,
    };
    if posted.changed {
        return Ok(Given::Counts(kept));
    }
    Ok(answer_to(backend, question).await?.map_or(Given::Moot, |(first, at)| Given::Late(first, at)))
}
