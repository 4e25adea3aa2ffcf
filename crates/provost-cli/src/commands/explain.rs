//! `provost explain`: which limits, hooks, observers and permissions took effect in a run, and what they decided.

mod block;
mod observers;
mod page;
mod terminal;

use anyhow::Context as _;
use provost_engine::RunState;
use provost_event::{ModelTrouble, SessionId};
use provost_harness::{Clock as _, RunStatus, RunSummary, SystemClock};
use provost_view::explain::{ExplainedAgents, RunExplanation};
use provost_view::run_state;

use self::observers::observer_segments;
use self::page::{RunPage, page};
use super::ps::with_cause;
use super::status;
use super::target::{Target, agent_of, named};
use super::{place, print};
use crate::cli::ExplainArgs;
use crate::exit::{Exit, Refusal};
use crate::names::Names;
use crate::render::{safe, terminal_width};

/// A page leaves out the agents after this many; `RUN.N` shows each of them.
const AGENTS_MAX: usize = 12;

pub(super) async fn explain(args: ExplainArgs) -> anyhow::Result<Exit> {
    let place = place()?;
    let backend = place.open_to_read().await?;
    let Target { run, agent } = Target::find(&*backend, &args.run).await?;
    let summary = backend.get(run).await?.with_context(|| format!("there is no run {run}"))?;
    let state = run_state(&*backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    let agents = match agent {
        Some(agent) => ExplainedAgents::One(agent),
        None if args.json => ExplainedAgents::All,
        None => ExplainedAgents::First(AGENTS_MAX),
    };
    let kept = match state.policy() {
        Some(policy) if !policy.observers.is_empty() => observer_segments(&place.observers(), run)?,
        _ => Vec::new(),
    };
    let read = RunExplanation::read(&*backend, &summary, agents, &kept, SystemClock.now()).await?;
    let (explained, current) = read.with_context(|| format!("the log of run {run} is empty"))?;
    if let Some(agent) = agent.filter(|_| explained.agents.is_empty()) {
        return Err(not_begun(&state, SessionId { run, agent })?.into());
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&explained)?))?;
    } else {
        let status =
            current.provider.as_ref().map_or_else(|| stopped_in_words(&summary, &explained), status::in_full);
        let seen = RunPage { explained: &explained, status: &status, names: &Names::of(&state) };
        print(&safe(&page(&seen, terminal_width())))?;
    }
    Ok(Exit::Done)
}

/// That an agent has no log yet.
fn not_begun(state: &RunState, session: SessionId) -> Result<Refusal, Refusal> {
    let what = format!("{} of run {} hasn't begun", named(&agent_of(state, session)?), session.run);
    Ok(Refusal::new(what, format!("`provost show {}` says how it stands", session.run)))
}

/// The status with its cause, and the models that were asked before.
fn stopped_in_words(summary: &RunSummary, explained: &RunExplanation) -> String {
    let tried = explained.model_trouble.as_ref().map(ModelTrouble::tried_in_words).unwrap_or_default();
    let outcome = match &summary.status {
        RunStatus::Stopped(outcome) => Some(outcome).filter(|_| summary.damage.is_none()),
        RunStatus::Running | RunStatus::Interrupted => None,
    };
    with_cause(outcome, &explained.status) + &tried
}
