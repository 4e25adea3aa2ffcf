//! `provost goal clear`: removes an agent's goal, also during its verification, and suspends the agent.

use std::sync::Arc;

use provost_engine::RunEvent;
use provost_event::{Outcome, RunId, SessionId};
use provost_harness::RunStatus;

use super::agent::{AgentCommand, AgentControl};
use super::{MeantAgent, Stop, ended, meant, not_ended, resuming, status};
use crate::cli::ActArgs;
use crate::commands::goal::bound;
use crate::commands::print;
use crate::exit::{Exit, Refusal};
use crate::questions::user_name;
use crate::render::{outcome_in_words, safe};

/// # Errors
/// [`Refusal`] when there is no such goal, or the run has ended.
pub(in crate::commands) async fn clear_goal(args: ActArgs) -> anyhow::Result<Exit> {
    let MeantAgent { backend, run, agent } = meant(&args.run).await?;
    let session = SessionId { run, agent: agent.unwrap_or(0) };
    bound(&*backend, session).await?;
    let status = match status(&*backend, run).await? {
        RunStatus::Stopped(outcome) if outcome.is_final() && agent.is_none() => {
            let what = format!(
                "run {run} has ended, and keeps its goal until it goes on: {}",
                outcome_in_words(run, &outcome)
            );
            return Err(
                Refusal::new(what, format!("`provost resume {run} --no-goal` goes on without it")).into()
            );
        }
        _ => not_ended(&*backend, run).await?,
    };
    let by = user_name("provost goal clear");
    if let Some(agent) = agent {
        return AgentControl { backend, run, status, agent }.act(AgentCommand::ClearGoal, by).await;
    }
    let command = RunEvent::ClearGoal { agent: session.agent, by };
    let words = match status {
        RunStatus::Stopped(outcome) => {
            if !backend.post(run.into(), command.into(), None).await?.changed {
                return Err(ended(&*backend, run).await?.into());
            }
            let next = resuming(&*backend, run, &RunStatus::Stopped(outcome.clone())).await?;
            when_suspended(run, &outcome, &next)
        }
        RunStatus::Running | RunStatus::Interrupted => {
            let came = Stop { backend: Arc::clone(&backend), run, status }.post(command).await?;
            let status = came.clone().map_or(RunStatus::Running, RunStatus::Stopped);
            in_words(run, came.as_ref(), &resuming(&*backend, run, &status).await?)
        }
    };
    print(&safe(&words))?;
    Ok(Exit::Done)
}

fn when_suspended(run: RunId, outcome: &Outcome, next: &str) -> String {
    let rest = outcome_in_words(run, outcome);
    format!("run {run} has no goal any more, and is still suspended: {rest}\ngo on without it: {next}\n")
}

fn in_words(run: RunId, came: Option<&Outcome>, next: &str) -> String {
    match came {
        Some(outcome) if outcome.is_final() => {
            format!("run {run} has no goal any more, and has ended: {}\n", outcome_in_words(run, outcome))
        }
        Some(Outcome::Paused { .. }) => {
            format!("run {run} has no goal any more, and is suspended\ngo on without it: {next}\n")
        }
        Some(outcome) => when_suspended(run, outcome, next),
        None => format!(
            "run {run} has no goal any more, and what it does at this moment has not ended yet\n\
             follow it with: provost logs {run} -f\n"
        ),
    }
}
