//! The report on an agent that has ended, for the agent that requested it.

use provost_event::{Elapsed, Outcome, PauseReason, SessionId};

use super::agents::Agent;
use super::ledger::Ledger;
use crate::SubAgentReport;

/// The end of an agent's work.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentEnd<'a> {
    pub(super) session: SessionId,
    pub(super) outcome: &'a Outcome,
    /// The agent's final text.
    pub(super) text: &'a str,
    pub(super) at: Elapsed,
}

impl AgentEnd<'_> {
    /// The report on `agent`.
    pub(super) fn report(&self, agent: &Agent, ledger: &Ledger) -> SubAgentReport {
        SubAgentReport {
            status: agent.call_status(self.outcome, self.at),
            text: self.said().to_owned(),
            status_line: Some(self.status_line(agent, ledger)),
            duration_ms: self.at.since_ms(agent.requested_at().elapsed),
            ended: Some((self.session, self.outcome.clone())),
        }
    }

    fn said(&self) -> &str {
        if self.text.trim().is_empty() { "(It said nothing.)" } else { self.text.trim() }
    }

    fn status_line(&self, agent: &Agent, ledger: &Ledger) -> String {
        let child = self.session;
        let name = agent.name();
        let turns = ledger.own_turns(child.agent);
        let attempts = match agent.restarts() {
            0 => String::new(),
            restarts => format!("attempts: {}, ", restarts.saturating_add(1)),
        };
        let spent = ledger.spent(child.agent).copied().unwrap_or_default();
        let tokens = spent.tokens;
        let cost = spent.cost;
        // An agent can't resume a run: the remedies for people are left out.
        let outcome = match self.outcome {
            Outcome::Paused { why: PauseReason::Model(trouble) } => trouble.what(),
            outcome => outcome.to_string(),
        };
        format!(
            "[agent {child} ({name}): {outcome}; {attempts}turns: {turns}, tokens: {tokens}, cost: {cost}]"
        )
    }
}
