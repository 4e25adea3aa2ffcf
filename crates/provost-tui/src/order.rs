//! What a key orders, and how it is done.

use std::sync::Arc;

use provost_event::{ApprovalAnswer, ApprovalScope, EffectId, RunId, SessionId, Timestamp};
use provost_harness::{Backend, Control};
use provost_view::{ApprovalQuestion, answer_to};

use crate::app::Note;
use crate::host::{Start, TopHost};

/// What a key orders.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Order {
    /// Something on a run.
    Act(Act),
    /// To be connected to the program of an agent.
    Attach(SessionId),
    /// To draw everything anew.
    Redraw,
    /// To stop this process as the shell does.
    Suspend,
    /// To leave.
    Quit,
}

/// Something on a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Act {
    Say { run: RunId, agent: u32, text: String },
    Pause(RunId),
    Cancel(RunId),
    Answer { question: Box<ApprovalQuestion>, answer: ApprovalAnswer },
    Start(Start),
    LookAt(RunId, Timestamp),
}

/// Who acts.
pub(crate) struct Acting {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) by: String,
    pub(crate) host: Arc<dyn TopHost>,
}

impl Acting {
    /// Does it; what came of it is `None` where it shows by itself.
    pub(crate) async fn perform(&self, act: Act) -> Option<Note> {
        let done = match act {
            Act::Say { run, agent, text } => self.say(run, agent, text).await,
            Act::Pause(run) => self.pause(run).await,
            Act::Cancel(run) => self.cancel(run).await,
            Act::Answer { question, answer } => self.answer(&question, answer).await,
            Act::Start(start) => self.start(start).await,
            Act::LookAt(run, changed_at) => {
                self.host.look_at(run, changed_at);
                return None;
            }
        };
        Some(match done {
            Ok(text) => Note { text, is_refusal: false },
            Err(text) => Note { text, is_refusal: true },
        })
    }

    fn control(&self, run: RunId) -> Control {
        Control::new(self.backend.clone(), run, &self.by)
    }

    async fn say(&self, run: RunId, agent: u32, text: String) -> Result<String, String> {
        match self.control(run).say(agent, text).await {
            Ok(true) => Ok(format!("said to agent {agent}: it gets it before its next model call")),
            Ok(false) => Err(format!(
                "not said: agent {agent} of run {run} takes no message any more; p resumes the run"
            )),
            Err(error) => Err(format!("not said: {error}")),
        }
    }

    async fn pause(&self, run: RunId) -> Result<String, String> {
        match self.control(run).pause(None).await {
            Ok(true) => Ok("paused as soon as what is under way has stopped; p resumes it".to_owned()),
            Ok(false) => Err(format!("run {run} isn't working")),
            Err(error) => Err(format!("not paused: {error}")),
        }
    }

    async fn cancel(&self, run: RunId) -> Result<String, String> {
        match self.control(run).cancel(None).await {
            Ok(true) => Ok("cancelled".to_owned()),
            Ok(false) => Err(format!("run {run} has ended already")),
            Err(error) => Err(format!("not cancelled: {error}")),
        }
    }

    async fn start(&self, start: Start) -> Result<String, String> {
        let done = match &start {
            Start::Run { folder, .. } => format!("started in {}", folder.display()),
            Start::Resume { .. } => "goes on".to_owned(),
            Start::Fork { session, .. } => format!("forked from {session}"),
        };
        self.host.start(start).await.map(|()| done)
    }

    /// Answers a question once. A pattern for all runs is kept before the answer counts.
    async fn answer(&self, question: &ApprovalQuestion, answer: ApprovalAnswer) -> Result<String, String> {
        let control = self.control(question.session.run);
        let failed = |error| format!("not answered: {error}");
        let open = control.approvals().await.map_err(failed)?;
        let is_it = |id: EffectId| id == question.id();
        let asked = open
            .into_iter()
            .find(|open| is_it(EffectId { actor: open.session.into(), seq: open.question.asked }));
        let Some(asked) = asked else { return Err(self.why_late(question).await) };
        if let ApprovalAnswer::Allow { scope: ApprovalScope::Always, pattern: Some(pattern) } = &answer {
            self.host.keep_approved(pattern).await.map_err(|why| format!("not answered: {why}"))?;
        }
        let words = in_words(&answer);
        match control.answer(&asked, answer).await {
            Ok(true) => Ok(words),
            Ok(false) => Err(self.why_late(question).await),
            Err(error) => Err(failed(error)),
        }
    }

    async fn why_late(&self, question: &ApprovalQuestion) -> String {
        match answer_to(&*self.backend, question).await {
            Ok(Some((first, _))) => format!("answered already, by {}", provost_view::visible(&first.by)),
            Ok(None) | Err(_) => "it needs no answer any more".to_owned(),
        }
    }
}

fn in_words(answer: &ApprovalAnswer) -> String {
    match answer {
        ApprovalAnswer::Allow { scope: ApprovalScope::Once, .. } => "approved once".to_owned(),
        ApprovalAnswer::Allow { scope: ApprovalScope::Run, .. } => "approved for this run".to_owned(),
        ApprovalAnswer::Allow { scope: ApprovalScope::Always, .. } => {
            "approved for all runs: kept in your settings".to_owned()
        }
        ApprovalAnswer::Answered { .. } => "answered".to_owned(),
        ApprovalAnswer::Deny { .. } => "denied".to_owned(),
    }
}
