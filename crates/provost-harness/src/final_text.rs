//! The result text of a run: of its root agent, or of the final steps of its workflow.

use provost_engine::Actor;
use provost_event::{RunId, SessionId};

use crate::{BackendError, Log};

/// The last messages of the agents of `run` that are its result: of the root agent; for a workflow, of each
/// completed step that no other step depends on, under the step's name if there are several. Empty if there is
/// none.
///
/// # Errors
/// When a log can't be read or is invalid.
pub async fn final_text(backend: &dyn Log, run: RunId) -> Result<String, BackendError> {
    let mut steps = Vec::new();
    match backend.state(run.into()).await? {
        Actor::Run(state) if state.flow().is_some() => {
            let results = state.flow().into_iter().flat_map(|flow| flow.results());
            steps.extend(results.map(|(name, agent)| (name.to_owned(), SessionId { run, agent })));
        }
        Actor::Run(_) | Actor::Session(_) => return last_text(backend, SessionId::root(run)).await,
    }
    if let [(_, only)] = steps.as_slice() {
        return last_text(backend, *only).await;
    }
    let mut parts = Vec::with_capacity(steps.len());
    for (name, session) in steps {
        let text = last_text(backend, session).await?;
        parts.push(format!("## {name}\n\n{}", text.trim_end()));
    }
    Ok(parts.join("\n\n"))
}

async fn last_text(backend: &dyn Log, session: SessionId) -> Result<String, BackendError> {
    match backend.state(session.into()).await? {
        Actor::Session(state) => Ok(state.last_text().to_owned()),
        Actor::Run(_) => Ok(String::new()),
    }
}
