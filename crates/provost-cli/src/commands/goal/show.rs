//! `provost goal show`: the goals of a run's agents, as a page or as one JSON object.

use anyhow::Context as _;
use provost_engine::RunState;
use provost_event::{RunId, SessionId};
use provost_harness::{Backend, Clock as _, SystemClock};
use provost_view::{AgentGoal, CurrentStatus, RunGoals, ViewVersion, run_state};

use super::page::page;
use super::{Target, no_goal};
use crate::cli::GoalShowArgs;
use crate::commands::show::summary;
use crate::commands::target::agent_of;
use crate::commands::{backend_to_read, print};
use crate::exit::Exit;
use crate::render::{safe, terminal_width};

pub(super) async fn show(args: GoalShowArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_read().await?;
    let Target { run, agent } = Target::find(&*backend, &args.run).await?;
    let state = run_state(&*backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    let goals = chosen(&*backend, run, &state, agent).await?;
    if goals.is_empty() {
        let session = SessionId { run, agent: agent.unwrap_or(0) };
        return Err(no_goal(&*backend, session).await?.into());
    }
    let summary = summary(&*backend, run).await?;
    let status = CurrentStatus::read(&*backend, (&summary, &state), SystemClock.now()).await.word;
    let shown = RunGoals {
        v: ViewVersion,
        run,
        status,
        outcome: state.outcome().cloned(),
        task: summary.goal,
        goals,
    };
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&shown)?))?;
    } else {
        print(&safe(&page(&shown, terminal_width())))?;
    }
    Ok(Exit::Done)
}

async fn chosen(
    backend: &dyn Backend,
    run: RunId,
    state: &RunState,
    agent: Option<u32>,
) -> anyhow::Result<Vec<AgentGoal>> {
    let all = AgentGoal::all(backend, state).await?;
    let Some(agent) = agent else { return Ok(all) };
    let session = SessionId { run, agent };
    agent_of(state, session)?;
    Ok(all.into_iter().filter(|goal| goal.session == session).collect())
}
