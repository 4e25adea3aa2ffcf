//! An agent that has delivered its result, and is asked again: it goes on in its own session.

use provost_event::{AgentAskedAgain, Budget, Json, MicroDollars, Seq, SessionId, ToolStatus};
use serde::{Deserialize, Serialize};

use super::orchestrate::Refused;
use super::{AgentNumber, Deciding, RunState};
use crate::SessionEvent;
use crate::moment::Moment;

/// What an agent is asked besides, until it begins with it.
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

    /// Has its agent go on with it.
    pub(super) fn into_event(self) -> SessionEvent {
        let Self { text, by, turns_max } = self;
        SessionEvent::Resume { by, turns_max: Some(turns_max), text: Some(text), reopens: true }
    }
}

impl Deciding<'_> {
    /// Has `child` work again for the agent that it worked for, as a call of that one asks.
    ///
    /// # Errors
    /// How the call counts, and why the agent doesn't go on.
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
        let (budget, turns_max) = self.state.limits_anew(asked.agent);
        let (text, priority) = (asked.goal, asked.priority);
        self.commit(AgentAskedAgain { child, parent, call, text, budget, turns_max, priority, slot });
        self.free_slot(slot, child);
        Ok(())
    }
}

impl RunState {
    pub(super) fn asked_again(&mut self, asked: &AgentAskedAgain, now: Moment) {
        self.ledger.admit(asked.child.agent, Some(asked.parent.agent), asked.budget);
        self.retries.reset(asked.child.agent);
        self.agents.asked_again(asked, now);
    }

    /// The limits of an agent that is asked again: what it has used, and once more what it may use when it is asked.
    fn limits_anew(&self, agent: AgentNumber) -> (Budget, u32) {
        let brief = self.agents.get(agent).and_then(|agent| agent.brief.as_ref());
        let each = brief.map(|brief| brief.budget).unwrap_or_default();
        let spent = self.ledger.spent(agent).copied().unwrap_or_default();
        let budget = Budget {
            tokens: each.tokens.map(|tokens| tokens.saturating_add(spent.tokens)),
            money: each.money.map(|money| MicroDollars(money.0.saturating_add(spent.cost.0))),
            turns: each.turns.map(|turns| turns.saturating_add(spent.turns)),
            wall_time_ms: each.wall_time_ms,
        };
        let turns = self.policy_of(agent).map_or(0, |policy| policy.limits.turns_max);
        (budget, turns.saturating_add(self.ledger.own_turns(agent)))
    }
}
