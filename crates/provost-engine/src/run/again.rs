//! An agent that has delivered its result and is asked again: it continues in its own session.

use provost_event::{AgentAskedAgain, Json, Seq, SessionId, ToolStatus};
use serde::{Deserialize, Serialize};

use super::brief::WantedAgain;
use super::orchestrate::Refused;
use super::{AgentNumber, Deciding, RunState};
use crate::SessionEvent;
use crate::decision_time::DecisionTime;

/// The further request to an agent, until the agent begins with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingRequest {
    pub(super) text: String,
    pub(super) by: String,
    pub(super) turns_max: u32,
}

impl PendingRequest {
    pub(super) fn of(asked: &AgentAskedAgain) -> Self {
        Self { text: asked.text.clone(), by: format!("agent {}", asked.parent), turns_max: asked.turns_max }
    }

    /// The event that resumes the agent with this request.
    pub(super) fn into_event(self) -> SessionEvent {
        let Self { text, by, turns_max } = self;
        SessionEvent::Resume { by, turns_max: Some(turns_max), text: Some(text), reopens: true }
    }
}

impl Deciding<'_> {
    /// Has `child` work again for the agent that it worked for, at that agent's call.
    ///
    /// # Errors
    /// The status of the call, and why the agent doesn't work again.
    pub(super) fn ask_again(
        &mut self,
        parent: SessionId,
        call: Seq,
        tool: &str,
        input: &Json,
    ) -> Result<(), Refused> {
        let rejected = |why: String| Refused { status: ToolStatus::Rejected, why };
        let asked = self.state.wanted_again(parent.agent, tool, input).map_err(rejected)?;
        let slot = self.state.slot_for(parent.agent, asked.priority)?;
        let child = self.state.agents.session(asked.agent);
        let turns_max = self.state.turns_anew(asked.agent);
        let WantedAgain { goal: text, priority, .. } = asked;
        self.commit(AgentAskedAgain { child, parent, call, text, turns_max, priority, slot });
        self.free_slot(slot, child);
        Ok(())
    }
}

impl RunState {
    pub(super) fn asked_again(&mut self, asked: &AgentAskedAgain, now: DecisionTime) {
        self.ledger.asked_again(asked.child.agent);
        self.retries.reset(asked.child.agent);
        self.agents.asked_again(asked, now);
    }

    /// The turn limit of an agent's session once it is asked again: the turns it has taken plus its limit.
    fn turns_anew(&self, agent: AgentNumber) -> u32 {
        let turns = self.policy_of(agent).map_or(0, |policy| policy.limits.turns_max);
        turns.saturating_add(self.ledger.own_turns(agent))
    }
}
