//! `provost goal`: shows what must be confirmed before an agent counts as done, and acts on it.

mod page;
mod show;

use provost_event::SessionId;
use provost_harness::Backend;

pub(super) use self::page::{standing, verdict_lines};
use super::descent::Act;
use super::target::{Target, agent_of, named};
use super::{act, backend};
use crate::cli::GoalCommand;
use crate::exit::{Exit, Refusal};
use provost_view::AgentGoal;
use provost_view::run_state;

pub(super) const fn act_of(command: &GoalCommand) -> Act {
    match command {
        GoalCommand::Show(_) => Act::Looks,
        GoalCommand::Pause(_) => Act::Acts("goal pause"),
        GoalCommand::Clear(_) => Act::Acts("goal clear"),
        GoalCommand::Resume(_) => Act::Works("goal resume"),
    }
}

pub(super) async fn goal(command: GoalCommand) -> anyhow::Result<Exit> {
    match command {
        GoalCommand::Show(args) => show::show(args).await,
        GoalCommand::Pause(args) => {
            has_one(&args.run).await?;
            act::pause(args).await
        }
        GoalCommand::Resume(args) => {
            has_one(&args.run).await?;
            act::resume(*args).await
        }
        GoalCommand::Clear(args) => act::clear_goal(args).await,
    }
}

/// Refuses a run or an agent without a goal.
async fn has_one(word: &str) -> anyhow::Result<()> {
    let backend = backend().await?;
    let Target { run, agent } = Target::find(&*backend, word).await?;
    bound(&*backend, SessionId { run, agent: agent.unwrap_or(0) }).await.map(drop)
}

/// The goal that binds an agent.
///
/// # Errors
/// [`Refusal`] when there is no such agent, it has no goal, or that was cleared.
pub(super) async fn bound(backend: &dyn Backend, session: SessionId) -> anyhow::Result<AgentGoal> {
    let run = session.run;
    match AgentGoal::read(backend, session).await? {
        Some(goal) if !goal.is_cleared() => Ok(goal),
        Some(goal) => {
            let by = goal.cleared_by.unwrap_or_default();
            let what = format!("the goal of {} was cleared already, by {by}", whose(backend, session).await?);
            Err(Refusal::new(what, format!("`provost resume {run}` goes on without it")).into())
        }
        None => Err(no_goal(backend, session).await?.into()),
    }
}

/// Says that an agent has no goal, and which others of its run do.
async fn no_goal(backend: &dyn Backend, session: SessionId) -> anyhow::Result<Refusal> {
    let run = session.run;
    let what = format!("{} has no goal that judges verify", whose(backend, session).await?);
    let others = match run_state(backend, run).await? {
        Some(state) => AgentGoal::all(backend, &state).await?,
        None => Vec::new(),
    };
    let hint = match others.first() {
        Some(other) => {
            format!("`provost goal show {run}` shows those that its agents have, e.g. {}", other.session)
        }
        None => {
            "start a run with one: provost run --goal \"CONDITION\" …, or [goal] in the settings".to_owned()
        }
    };
    Ok(Refusal::new(what, hint))
}

/// `run RUN`, `agent 3 (reviewer) of run RUN`.
async fn whose(backend: &dyn Backend, session: SessionId) -> anyhow::Result<String> {
    let run = session.run;
    let state = run_state(backend, run).await?;
    match state {
        Some(state) if session.agent > 0 => {
            Ok(format!("{} of run {run}", named(&agent_of(&state, session)?)))
        }
        _ => Ok(format!("run {run}")),
    }
}
