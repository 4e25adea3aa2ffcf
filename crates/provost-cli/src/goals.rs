//! Goals as the logs have them: the status of each, and its judges' verdicts.

use provost_engine::{Actor, AgentState, GoalStatus, RunState};
use provost_event::{
    ConversationEntry, Entry, GoalEntry, GoalFinding, GoalJudged, GoalPolicy, GoalTrigger, JudgeAnswer,
    LifecycleEntry, MicroDollars, Record, Seq, SessionId, Timestamp, ToolEntry, Usage,
};
use provost_harness::{Backend, read_actor};
use serde::Serialize;

const READ_MAX: usize = 1_000;

/// An agent's goal.
pub(crate) struct AgentGoal {
    pub(crate) session: SessionId,
    pub(crate) policy: GoalPolicy,
    pub(crate) status: GoalStatus,
    /// Every time it was verified, in the order in which that was.
    pub(crate) verifications: Vec<Verification>,
    /// What all judges took.
    pub(crate) judging: Judging,
    /// Who cleared it.
    pub(crate) cleared_by: Option<String>,
    /// Whether the agent has worked on since the last verdict.
    worked_since: bool,
}

/// What judges took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Judging {
    pub(crate) calls: u64,
    /// Of the calls, those whose price isn't known: their cost isn't in `cost`.
    pub(crate) unknown_price_calls: u64,
    pub(crate) usage: Usage,
    #[serde(rename = "spent_micro_usd")]
    pub(crate) cost: MicroDollars,
}

impl Judging {
    pub(crate) fn add(&mut self, judged: &GoalJudged) {
        self.calls += 1;
        self.unknown_price_calls += u64::from(judged.call.cost.is_none());
        self.usage += judged.call.usage;
        self.cost += judged.call.cost.unwrap_or_default();
    }
}

/// One time that a goal was verified.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verification {
    /// The entry of its verdict, or that began it.
    pub(crate) entry: Seq,
    pub(crate) at_ms: Timestamp,
    pub(crate) turn: u32,
    pub(crate) trigger: GoalTrigger,
    pub(crate) generation: u32,
    /// Its result; absent while it goes on, and for one that was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finding: Option<GoalFinding>,
    /// The judges' answers, in the order in which they were asked.
    pub(crate) answers: Vec<Answer>,
}

/// A judge's answer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Answer {
    pub(crate) judge: String,
    pub(crate) answer: JudgeAnswer,
    pub(crate) duration_ms: u64,
    pub(crate) usage: Usage,
    #[serde(rename = "spent_micro_usd")]
    pub(crate) cost: Option<MicroDollars>,
    /// Whether it came too late to count.
    pub(crate) stale: bool,
}

impl AgentGoal {
    /// The goal of an agent; `None` for one that has none, or hasn't begun.
    pub(crate) async fn read(backend: &dyn Backend, session: SessionId) -> anyhow::Result<Option<Self>> {
        let Actor::Session(state) = read_actor(backend, session.into()).await? else { return Ok(None) };
        let Some(status) = state.goal() else { return Ok(None) };
        let mut reading = GoalReader::default();
        let mut after = Seq::START;
        loop {
            let records = backend.read(session.into(), after, READ_MAX).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            records.iter().for_each(|record| reading.add(record));
        }
        let GoalReader { policy, verifications, judging, cleared_by, worked_since } = reading;
        Ok(policy.map(|policy| Self {
            session,
            policy,
            status,
            verifications,
            judging,
            cleared_by,
            worked_since,
        }))
    }

    /// The goals of those agents that have one.
    pub(crate) async fn of(
        backend: &dyn Backend,
        agents: impl IntoIterator<Item = SessionId>,
    ) -> anyhow::Result<Vec<Self>> {
        let mut goals = Vec::new();
        for session in agents {
            goals.extend(Self::read(backend, session).await?);
        }
        Ok(goals)
    }

    /// The goals of all agents of a run that have begun, by number.
    pub(crate) async fn all(backend: &dyn Backend, state: &RunState) -> anyhow::Result<Vec<Self>> {
        let begun = state.agents().filter(|agent| !matches!(agent.standing, AgentState::Queued));
        Self::of(backend, begun.map(|agent| agent.session)).await
    }

    /// The finding on the work as it is now; `None` if that wasn't verified.
    pub(crate) fn finding(&self) -> Option<&GoalFinding> {
        self.status.finding.as_ref().filter(|_| !self.worked_since)
    }

    /// Whether it binds the agent no longer.
    pub(crate) const fn is_cleared(&self) -> bool {
        self.cleared_by.is_some()
    }
}

/// The goal as an agent's log has it.
#[derive(Default)]
struct GoalReader {
    policy: Option<GoalPolicy>,
    verifications: Vec<Verification>,
    judging: Judging,
    cleared_by: Option<String>,
    worked_since: bool,
}

impl GoalReader {
    fn add(&mut self, record: &Record) {
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                self.policy = started.policy.goal.as_deref().cloned()
            }
            Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => {
                self.policy = changed.policy.goal.as_deref().cloned();
                if changed.goal.is_some() {
                    self.cleared_by = None;
                    self.worked_since = true;
                }
            }
            Entry::Goal(GoalEntry::CheckStarted(started)) => self.verifications.push(Verification {
                entry: record.seq,
                at_ms: record.at,
                turn: started.turn,
                trigger: started.trigger,
                generation: started.generation,
                finding: None,
                answers: Vec::new(),
            }),
            Entry::Goal(GoalEntry::Judged(judged)) => self.judged(judged),
            Entry::Goal(GoalEntry::Verdict(verdict)) => {
                self.worked_since = false;
                if let Some(last) = self.verifications.last_mut() {
                    (last.entry, last.at_ms) = (record.seq, record.at);
                    last.finding = Some(verdict.finding.clone());
                }
            }
            Entry::Goal(GoalEntry::Cleared(cleared)) => self.cleared_by = Some(cleared.by.clone()),
            Entry::Conversation(ConversationEntry::AssistantMessage(_))
            | Entry::Tool(ToolEntry::Finished(_)) => self.worked_since = true,
            _ => {}
        }
    }

    fn judged(&mut self, judged: &GoalJudged) {
        self.judging.add(judged);
        if let Some(last) = self.verifications.last_mut() {
            last.answers.push(Answer {
                judge: judged.judge.clone(),
                answer: judged.answer.clone(),
                duration_ms: judged.duration_ms,
                usage: judged.call.usage,
                cost: judged.call.cost,
                stale: judged.stale,
            });
        }
    }
}
