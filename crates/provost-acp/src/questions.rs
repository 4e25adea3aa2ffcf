//! Tool calls that need approval: asked in the editor as long as they are open. An answer may come from elsewhere.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use provost_engine::SessionEvent;
use provost_event::{ApprovalAnswer, ApprovalScope, EffectId, Outcome, PauseReason};
use provost_harness::RunStatus;
use provost_view::{ApprovalQuestion, open_in, visible};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::editor::{Answer, AnswerOption, Choice, Question};
use crate::ending::Trouble;
use crate::session::{Released, Session};
use crate::updates::Updates;

/// Questions that are asked at the same time; more wait.
const ASKED_MAX: usize = 32;

/// The questions of a session that were asked in the editor. Dropping it withdraws them.
pub(crate) struct Questions {
    session: Arc<Session>,
    asked: HashMap<EffectId, DropGuard>,
    asking: JoinSet<Answered>,
    /// Answers of the editor that are being given.
    answering: Arc<AtomicUsize>,
}

/// What became of a question that was asked.
struct Answered {
    question: EffectId,
    result: Result<Given, Trouble>,
}

/// What the editor's answer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// It counts, and the run goes on.
    Counts,
    /// There was none, or another was faster.
    Nothing,
}

impl Questions {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session, asked: HashMap::new(), asking: JoinSet::new(), answering: Arc::default() }
    }

    /// Whether the editor is asked something, or gives an answer.
    pub(crate) fn are_open(&self) -> bool {
        !self.asked.is_empty() || self.answering.load(Ordering::Relaxed) > 0
    }

    /// Asks what is open and wasn't asked, and withdraws what isn't open any more.
    ///
    /// # Errors
    /// When the logs can't be read.
    pub(crate) async fn compare(&mut self, updates: &Updates) -> Result<(), Trouble> {
        let open = open_in(self.session.backend(), self.session.run).await?;
        self.asked.retain(|id, _| open.iter().any(|question| question.id() == *id));
        let room = ASKED_MAX.saturating_sub(self.asked.len());
        let new = open.into_iter().filter(|question| !self.asked.contains_key(&question.id()));
        for question in new.take(room).collect::<Vec<_>>() {
            self.ask(question, updates);
        }
        // An answer of this editor goes on with the run by itself.
        if !self.are_open() {
            let goes_on = self.session.outcome().await?.is_none();
            self.session.release(if goes_on { Released::GoesOn } else { Released::StaysSuspended });
        }
        Ok(())
    }

    fn ask(&mut self, question: ApprovalQuestion, updates: &Updates) {
        let id = question.id();
        let withdrawn = CancellationToken::new();
        self.asked.insert(id, withdrawn.clone().drop_guard());
        // It is in the log before the question is.
        let Some(call) = updates.asked(id).cloned() else { return };
        let asked = Question {
            call,
            why: words(&question),
            options: options(&question, self.session.options.approved.is_some()),
        };
        let session = self.session.clone();
        let answering = self.answering.clone();
        self.asking.spawn(async move {
            let choice = session.editor.ask(session.run, asked, withdrawn).await;
            let result = match choice {
                Some(choice) => {
                    answering.fetch_add(1, Ordering::Relaxed);
                    let result = answer(&session, &question, choice).await;
                    answering.fetch_sub(1, Ordering::Relaxed);
                    result
                }
                None => Ok(Given::Nothing),
            };
            Answered { question: id, result }
        });
    }

    /// Waits until a question that was asked has its end here. Never returns while none is asked.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn next_answered(&mut self) {
        let Some(Ok(Answered { question, result })) = self.asking.join_next().await else {
            // A task that panicked asks nothing more, and without tasks there is nothing to wait for.
            if self.asking.is_empty() {
                std::future::pending::<()>().await;
            }
            return;
        };
        match result {
            Ok(Given::Counts) => self.session.release(Released::GoesOn),
            Ok(Given::Nothing) => {}
            Err(trouble) => {
                tracing::warn!(%question, "an answer doesn't count: {}", trouble.words);
                // It is asked again if it is still open.
                self.asked.remove(&question);
                self.session.fail(&trouble);
            }
        }
    }
}

/// Gives an answer. A run that is suspended because it waited for it goes on.
async fn answer(session: &Session, question: &ApprovalQuestion, choice: Choice) -> Result<Given, Trouble> {
    let Choice { answer, reason } = choice;
    let pattern = || Some(question.pattern.clone());
    let answer = match answer {
        Answer::Deny => ApprovalAnswer::Deny { reason },
        Answer::Once => ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None },
        Answer::Run => ApprovalAnswer::Allow { scope: ApprovalScope::Run, pattern: pattern() },
        Answer::Always => {
            let Some(approved) = &session.options.approved else {
                return Err(Trouble::unfit("approvals for all runs aren't kept here"));
            };
            approved.keep(&question.pattern).await.map_err(Trouble::failed)?;
            ApprovalAnswer::Allow { scope: ApprovalScope::Always, pattern: pattern() }
        }
    };
    let by = session.options.by.clone();
    let event = SessionEvent::Resolve { asked: question.asked, answer, by };
    let posted = session.backend().post(question.session.into(), event.into(), None).await?;
    if !posted.changed {
        return Ok(Given::Nothing);
    }
    let waited = |outcome: &Outcome| matches!(outcome, Outcome::Paused { why: PauseReason::Approval { .. } });
    let is_suspended = session.outcome().await?.as_ref().is_some_and(waited);
    if is_suspended || session.status().await? == Some(RunStatus::Interrupted) {
        session.resume(None).await?;
    }
    Ok(Given::Counts)
}

fn options(question: &ApprovalQuestion, may_keep: bool) -> Vec<AnswerOption> {
    let pattern = visible(&question.pattern);
    let option = |answer, name: String| AnswerOption { answer, name };
    // What must be typed can't be given in an editor: its protocol knows answers of a list only.
    let may_agree = question.objection_to_agreeing().is_none();
    let agree = if question.question.is_some() { "Agree" } else { "Allow once" };
    let mut options = Vec::new();
    options.extend(may_agree.then(|| option(Answer::Once, agree.to_owned())));
    if !question.is_for_once() {
        options.push(option(Answer::Run, format!("Allow in this run: {pattern}")));
        if may_keep {
            options.push(option(Answer::Always, format!("Always allow: {pattern}")));
        }
    }
    options.push(option(Answer::Deny, "Deny".to_owned()));
    options
}

/// Why it is asked, and what the answer is bound to.
fn words(question: &ApprovalQuestion) -> String {
    let mut words = vec![question.why.clone()];
    words.extend(question.program.as_ref().map(|program| format!("asked by the program {program}")));
    words.extend(question.outside.is_some().then(|| {
        "it runs outside of the sandbox, with all your rights: only this call can be allowed".to_owned()
    }));
    words.extend(question.objection_to_agreeing());
    if question.question.is_none() && question.outside.is_none() && question.is_for_once() {
        let scripts = question.scripts.iter().map(|script| script.path.as_str()).collect::<Vec<_>>();
        let files =
            if scripts.is_empty() { "files that it doesn't name".to_owned() } else { scripts.join(", ") };
        words.push(format!("it runs {files}, which may be others next time: only this call can be allowed"));
    }
    let answer = if question.objection_to_agreeing().is_some() { " --answer JSON" } else { "" };
    words.push(format!("also answered by: provost approve {}{answer}", question.short_id()));
    words.iter().map(|line| visible(line)).collect::<Vec<_>>().join("\n")
}
