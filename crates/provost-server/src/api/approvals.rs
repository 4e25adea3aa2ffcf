//! Questions, and their answers.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use provost_engine::SessionEvent;
use provost_event::{ApprovalAnswer, ApprovalScope, Seq, SessionId};
use provost_view::{Approval, ApprovalQuestion, answer_to, open_approvals, open_in, question_at};
use schemars::JsonSchema;
use serde::Deserialize;

use super::actions::done;
use super::extract::{Body, NamedRun, Parameters};
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

#[derive(Deserialize)]
pub(crate) struct Asked {
    agent: u32,
    asked: u64,
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

pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    asked: Result<Path<Asked>, axum::extract::rejection::PathRejection>,
    Body(answer): Body<GivenAnswer>,
) -> Result<Json<Done>, Problem> {
    let Path(Asked { agent, asked }) = asked.map_err(|error| Problem::not_found(error.body_text()))?;
    let session = SessionId { run: run.run, agent };
    let open = open_in(&*app.backend, run.run).await?;
    let is_it = |question: &&ApprovalQuestion| question.session == session && question.asked == Seq(asked);
    let Some(question) = open.iter().find(is_it) else {
        return Err(answered(&app, session, Seq(asked)).await?);
    };
    let answer = allowed(&app, question, answer).await?;
    let event = SessionEvent::Resolve { asked: question.asked, answer, by: app.by.clone() };
    let posted = app.backend.post(question.session.into(), event.into(), None).await?;
    if !posted.changed {
        return Err(answered(&app, session, Seq(asked)).await?);
    }
    done(Ok(true))
}

/// The answer for the log; one for always is kept in the settings first, so that none counts that wasn't kept.
async fn allowed(
    app: &App,
    question: &ApprovalQuestion,
    answer: GivenAnswer,
) -> Result<ApprovalAnswer, Problem> {
    let scope = match answer {
        GivenAnswer::Deny { reason } => return Ok(ApprovalAnswer::Deny { reason: reason.trim().to_owned() }),
        GivenAnswer::Allow { scope: GivenScope::Once } => {
            return Ok(ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None });
        }
        GivenAnswer::Allow { scope } => scope,
    };
    if question.is_for_once() {
        let why = "it may run something else next time: only this call can be allowed";
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
        return Ok(Problem::not_found(format!("entry {asked} of agent {session} asks nothing")));
    };
    Ok(match answer_to(&*app.backend, &question).await? {
        Some((resolved, _)) => Problem::conflict(format!("it has its answer, by {}", resolved.by)),
        None => Problem::conflict("it needs no answer any more"),
    })
}
