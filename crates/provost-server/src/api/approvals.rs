//! Questions, and their answers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use provost_engine::SessionEvent;
use provost_event::{ApprovalAnswer, ApprovalScope, Seq, SessionId, Timestamp};
use provost_view::{
    Approval, ApprovalQuestion, ViewVersion, answer_to, open_approvals, open_in, question_at, visible,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::actions::done;
use super::extract::{Body, NamedQuestion, Parameters};
use super::{Done, NoParameters};
use crate::app::App;
use crate::problem::Problem;

/// An answer to a question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum GivenAnswer {
    /// The call is made.
    Allow {
        /// For what it counts.
        #[serde(default)]
        scope: GivenScope,
    },
    /// What a tool asks has this answer; see `question` of the question. Fields that aren't given have their defaults.
    Fields {
        /// The fields, by their names.
        fields: serde_json::Map<String, serde_json::Value>,
    },
    /// It isn't.
    Deny {
        /// What the agent is told.
        #[serde(default)]
        reason: String,
    },
}

/// For what an approval counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GivenScope {
    /// This call.
    #[default]
    Once,
    /// All calls of this run that the question's pattern covers.
    Run,
    /// Those of all runs of this user: the pattern is kept in the user's settings.
    Always,
}

/// A question, with its answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AskedQuestion {
    /// The version of the view.
    v: ViewVersion,
    /// The question.
    question: ApprovalQuestion,
    /// Whether an answer counts now.
    is_open: bool,
    /// The answer; null while there is none, and where none is needed any more.
    answer: Option<CountedAnswer>,
}

/// The answer that counted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CountedAnswer {
    /// What it was.
    answer: ApprovalAnswer,
    /// Who gave it.
    by: String,
    /// When.
    at_ms: Timestamp,
    /// All of it in words.
    text: String,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<Json<Vec<Approval>>, Problem> {
    let mut all = Vec::new();
    for run in open_approvals(&*app.backend).await?.runs {
        all.extend(run.views(&*app.backend).await);
    }
    Ok(Json(all))
}

pub(crate) async fn one(
    State(app): State<Arc<App>>,
    NamedQuestion { session, asked }: NamedQuestion,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<Json<AskedQuestion>, Problem> {
    let open = open_question(&app, session, asked).await?;
    let is_open = open.is_some();
    let question = match open {
        Some(question) => question,
        None => {
            question_at(&*app.backend, session, asked).await?.ok_or_else(|| no_question(session, asked))?
        }
    };
    let answer = answer_to(&*app.backend, &question).await?.map(|(resolved, at)| {
        let text = in_words(&resolved.answer, &resolved.by, at);
        CountedAnswer { answer: resolved.answer, by: resolved.by, at_ms: at, text }
    });
    Ok(Json(AskedQuestion { v: ViewVersion, question, is_open, answer }))
}

async fn open_question(
    app: &App,
    session: SessionId,
    asked: Seq,
) -> Result<Option<ApprovalQuestion>, Problem> {
    let open = open_in(&*app.backend, session.run).await?;
    Ok(open.into_iter().find(|question| question.session == session && question.asked == asked))
}

/// An answer as `approved for this run by ann, 14:03 UTC`.
fn in_words(answer: &ApprovalAnswer, by: &str, at: Timestamp) -> String {
    let what = match answer {
        ApprovalAnswer::Allow { scope: ApprovalScope::Once, .. } => "approved once".to_owned(),
        ApprovalAnswer::Allow { scope: ApprovalScope::Run, .. } => "approved for this run".to_owned(),
        ApprovalAnswer::Allow { scope: ApprovalScope::Always, .. } => "approved for all runs".to_owned(),
        ApprovalAnswer::Answered { .. } => "answered".to_owned(),
        ApprovalAnswer::Deny { reason } if reason.is_empty() => "denied".to_owned(),
        ApprovalAnswer::Deny { reason } => format!("denied ({})", visible(reason)),
    };
    let minutes = at.0 / 60_000;
    format!("{what} by {}, {:02}:{:02} UTC", visible(by), minutes / 60 % 24, minutes % 60)
}

fn no_question(session: SessionId, asked: Seq) -> Problem {
    Problem::not_found(format!(
        "entry {asked} of agent {session} asks nothing; /v1/approvals lists what does"
    ))
}

pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    NamedQuestion { session, asked }: NamedQuestion,
    Body(answer): Body<GivenAnswer>,
) -> Result<Json<Done>, Problem> {
    let Some(question) = open_question(&app, session, asked).await? else {
        return Err(answered(&app, session, asked).await?);
    };
    let question = &question;
    let answer = allowed(&app, question, answer).await?;
    let event = SessionEvent::Resolve { asked: question.asked, answer, by: app.by.clone() };
    let posted = app.backend.post(question.session.into(), event.into(), None).await?;
    if !posted.changed {
        return Err(answered(&app, session, asked).await?);
    }
    app.take_up(session.run).await?;
    done(Ok(true))
}

/// The answer for the log; one for all runs is kept in the settings first, so that none counts that wasn't kept.
async fn allowed(
    app: &App,
    question: &ApprovalQuestion,
    answer: GivenAnswer,
) -> Result<ApprovalAnswer, Problem> {
    let scope = match answer {
        GivenAnswer::Deny { reason } => return Ok(ApprovalAnswer::Deny { reason: reason.trim().to_owned() }),
        GivenAnswer::Fields { fields } => return question.filled(fields).map_err(Problem::unfit),
        GivenAnswer::Allow { scope: GivenScope::Once } => {
            let agreed = question.agreed().map_err(Problem::conflict)?;
            return Ok(agreed.unwrap_or(ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None }));
        }
        GivenAnswer::Allow { scope } => scope,
    };
    if question.is_for_once() {
        let why = match question.question {
            Some(_) => "a tool asks something else each time: its question is answered once",
            None => "it may run something else next time: only this call can be allowed",
        };
        return Err(Problem::conflict(why));
    }
    let pattern = Some(question.pattern.clone());
    if scope == GivenScope::Run {
        return Ok(ApprovalAnswer::Allow { scope: ApprovalScope::Run, pattern });
    }
    let Some(approved) = &app.approved else {
        return Err(Problem::conflict("this server keeps no settings: allow it once, or for this run"));
    };
    approved.keep(&question.pattern).await.map_err(Problem::conflict)?;
    Ok(ApprovalAnswer::Allow { scope: ApprovalScope::Always, pattern })
}

/// Why a question has no open answer.
async fn answered(app: &App, session: SessionId, asked: Seq) -> Result<Problem, Problem> {
    let Some(question) = question_at(&*app.backend, session, asked).await? else {
        return Ok(no_question(session, asked));
    };
    Ok(match answer_to(&*app.backend, &question).await? {
        Some((resolved, at)) => {
            Problem::conflict(format!("it has its answer: {}", in_words(&resolved.answer, &resolved.by, at)))
        }
        None => Problem::conflict("it needs no answer any more"),
    })
}
