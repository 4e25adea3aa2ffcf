//! What a run said last: its root agent, or the steps of its flow that nobody needs.

use provost_engine::Actor;
use provost_event::{RunId, SessionId};

use crate::{Home, HomeError, read_actor};

/// What the agents of `run` said last, as far as that is its result: of the root agent; in a run that goes through a
/// flow, of each step that is done and that no other needs, under the step's name where there are several. Empty where
/// nothing was said.
///
/// # Errors
/// When a log can't be read, or isn't one.
pub async fn final_text(home: &dyn Home, run: RunId) -> Result<String, HomeError> {
    let mut steps = Vec::new();
    match read_actor(home, run.into()).await? {
        Actor::Run(state) if state.flow().is_some() => {
            let results = state.flow().into_iter().flat_map(|flow| flow.results());
            steps.extend(results.map(|(name, agent)| (name.to_owned(), SessionId { run, agent })));
        }
        Actor::Run(_) | Actor::Session(_) => return last_text(home, SessionId::root(run)).await,
    }
    if let [(_, only)] = steps.as_slice() {
        return last_text(home, *only).await;
    }
    let mut parts = Vec::with_capacity(steps.len());
    for (name, session) in steps {
        let text = last_text(home, session).await?;
        parts.push(format!("## {name}\n\n{}", text.trim_end()));
    }
    Ok(parts.join("\n\n"))
}

async fn last_text(home: &dyn Home, session: SessionId) -> Result<String, HomeError> {
    match read_actor(home, session.into()).await? {
        Actor::Session(state) => Ok(state.last_text().to_owned()),
        Actor::Run(_) => Ok(String::new()),
    }
}
