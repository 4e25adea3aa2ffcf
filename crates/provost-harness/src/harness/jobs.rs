//! Background commands that ran where agents were worked on before.

use provost_engine::{Actor, RunEvent};
use provost_event::SessionId;

use super::Harness;
use crate::HarnessError;

/// The sender of the message about them.
const BY: &str = "provost";

/// An agent's background commands, in words.
pub(super) struct Jobs {
    session: SessionId,
    running: Vec<String>,
}

impl Jobs {
    /// Those of `agent`, if it has any and is at work.
    pub(super) fn of(session: SessionId, agent: &Actor) -> Option<Self> {
        let Actor::Session(state) = agent else { return None };
        let running = state.jobs().to_vec();
        (!running.is_empty() && !state.has_ended()).then_some(Self { session, running })
    }
}

impl Harness {
    /// Tells agents that these have ended, if the log doesn't: a run that was handed over without an interruption has
    /// nothing in its log that says so.
    pub(super) async fn tell_of_ended_jobs(&mut self, jobs: Vec<Jobs>) -> Result<(), HarnessError> {
        for Jobs { session, running } in jobs {
            let Actor::Session(now) = self.deps.backend.state(session.into()).await? else { continue };
            if now.jobs() != running {
                continue;
            }
            let text = format!(
                "You go on in another process, and background jobs don't outlive that. None of these runs any more: {}. \
                 Start again what you still need.",
                running.join(", ")
            );
            self.to_run(RunEvent::Say { agent: session.agent, text, by: BY.to_owned() }).await?;
        }
        Ok(())
    }
}
