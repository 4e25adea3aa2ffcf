//! A run or one of its agents, as the user names it: `RUN`, `RUN.3`, `last`, `last.3`.

use provost_engine::{AgentState, AgentStatus, RunState};
use provost_event::{RunId, SessionId};
use provost_harness::Backend;

use super::find::find;
use crate::exit::Refusal;
use crate::names::{agent_in_words, labelled};
use crate::render::one_line;

/// Agents listed when it isn't clear which is meant.
const SHOWN_MAX: usize = 10;
const NAME_WIDTH: usize = 20;

/// What is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) run: RunId,
    /// One agent; the whole run if absent.
    pub(super) agent: Option<u32>,
}

impl Target {
    /// Finds the run, and reads the agent's number.
    ///
    /// # Errors
    /// [`Refusal`] when there is no such run, several, or what stands behind the dot is no number.
    pub(super) async fn find(backend: &dyn Backend, word: &str) -> anyhow::Result<Self> {
        let Some((run, agent)) = word.rsplit_once('.') else {
            return Ok(Self { run: find(backend, word).await?, agent: None });
        };
        let run = find(backend, run).await?;
        let Ok(agent) = agent.parse() else {
            let what = format!("`{word}` names no agent: `{agent}` is no number");
            return Err(Refusal::new(what, format!("e.g. {run}.1; `provost show {run}` draws them")).into());
        };
        Ok(Self { run, agent: Some(agent) })
    }

    /// The same, and refuses an agent: for what a run does only as a whole.
    pub(super) async fn whole_run(backend: &dyn Backend, word: &str, command: &str) -> anyhow::Result<RunId> {
        let Self { run, agent } = Self::find(backend, word).await?;
        match agent {
            None => Ok(run),
            Some(_) => {
                let what = format!("{command} takes a run, and `{word}` names one of its agents");
                Err(Refusal::new(what, format!("provost {command} {run}")).into())
            }
        }
    }
}

/// The agent with this number.
///
/// # Errors
/// [`Refusal`] that says which there are.
pub(super) fn agent_of(state: &RunState, session: SessionId) -> Result<AgentStatus<'_>, Refusal> {
    let found = state.agents().find(|agent| agent.session == session);
    found.ok_or_else(|| {
        let SessionId { run, agent } = session;
        Refusal::new(format!("run {run} has no agent {agent}; {}", those_there(state)), {
            format!("`provost show {run}` draws them")
        })
    })
}

/// Which agents there are to act on.
pub(super) fn those_there(state: &RunState) -> String {
    let live = state.agents().filter(|agent| !matches!(agent.standing, AgentState::Finished(_)));
    let labels = live.map(|agent| labelled(agent.session.agent, &shown_name(&agent))).collect::<Vec<_>>();
    let last = state.agents().map(|agent| agent.session.agent).max().unwrap_or_default();
    let more = labels.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = labels.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
    // Only where there is a root the first is 0.
    let first = u32::from(state.flow().is_some());
    match (labels.is_empty(), last < first) {
        (_, true) => "it has had none so far".to_owned(),
        (true, false) if first == last => format!("its one agent, {last}, is done"),
        (true, false) => format!("its agents, {first} to {last}, are all done"),
        (false, false) if first == last => format!("it has had {last} alone, and not done is: {shown}"),
        (false, false) => format!("it has had {first} to {last}, and not done are: {shown}{more}"),
    }
}

fn shown_name(agent: &AgentStatus<'_>) -> String {
    let name = if agent.session.agent == 0 && agent.name.is_empty() { "root" } else { agent.name };
    one_line(name, NAME_WIDTH)
}

/// `agent 3 (reviewer)`, `the root agent`.
pub(super) fn named(agent: &AgentStatus<'_>) -> String {
    agent_in_words(agent.session.agent, &shown_name(agent))
}
