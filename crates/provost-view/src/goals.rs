//! Goals as the logs have them: the status of each, and its judges' verdicts.

use std::collections::BTreeMap;

use provost_engine::{Actor, AgentState, RunState};
use provost_event::{
    Confidence, ConversationEntry, Entry, GoalEntry, GoalFinding, GoalJudged, GoalPolicy, GoalState,
    GoalTrigger, JudgeAnswer, LifecycleEntry, MicroDollars, OnHookError, Outcome, Record, RunId, Seq,
    SessionId, Timestamp, ToolEntry, Usage,
};
use provost_harness::{Backend, BackendError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::READ_MAX;
use crate::{AgentNames, ViewVersion};

/// The goals of a run's agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunGoals {
    /// The version of the view.
    pub v: ViewVersion,
    /// The run.
    pub run: RunId,
    /// Its status, in the word that the list of runs has.
    pub status: String,
    /// Why it is suspended or has ended; null otherwise.
    pub outcome: Option<Outcome>,
    /// What the run is to do.
    pub task: String,
    /// The goals, by agent; at least one.
    pub goals: Vec<AgentGoal>,
}

/// An agent's goal: what must be confirmed before the agent counts as done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentGoal {
    /// The agent's number; 0 is the root.
    pub agent: u32,
    /// The agent.
    pub session: SessionId,
    /// Its name; empty for the root.
    pub name: String,
    /// The condition that must be true.
    pub condition: String,
    /// The state.
    pub state: GoalState,
    /// Incremented by each change of `state`.
    pub generation: u32,
    /// Claims that were rejected since the agent was last resumed.
    pub rounds: u32,
    /// Verifications in a row without a verdict.
    pub failures: u32,
    /// Turns in a row without measurable progress.
    pub idle_turns: u32,
    /// The result of the last verification; null if there was none.
    pub finding: Option<GoalFinding>,
    /// Whether `finding` is about the work as it is now.
    pub finding_is_current: bool,
    /// Who cleared it; absent while it binds the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleared_by: Option<String>,
    /// Maximum of `rounds`.
    pub rounds_max: u32,
    /// Maximum of `failures`.
    pub failures_max: u32,
    /// `idle_turns` at which the agent counts as stuck.
    pub stuck_turns: u32,
    /// Number of turns after which it is also verified; null if only on a claim and at a limit.
    pub verify_every: Option<u32>,
    /// The judges in the policy's order, each once.
    pub judges: Vec<JudgeSums>,
    /// Quorum: the judges that must find it achieved.
    pub agree: u32,
    /// Minimum confidence of a verdict.
    pub threshold: Confidence,
    /// Limit of a judge's call.
    pub timeout_ms: u64,
    /// Maximum size of the evidence, in estimated tokens.
    pub evidence_tokens_max: u32,
    /// The share of the run's budget that judges may take.
    pub budget_percent: u8,
    /// What a stop hook without an answer means.
    pub stop_hook_errors: OnHookError,
    /// What all judges took.
    pub judging: Judging,
    /// Every time it was verified, in that order.
    pub verifications: Vec<GoalVerification>,
}

/// A judge, and its answers.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeSums {
    /// The model.
    pub name: String,
    /// Calls.
    pub asked: u32,
    /// Of them, those that found it achieved.
    pub achieved: u32,
    /// Those that didn't.
    pub not_achieved: u32,
    /// Those without a verdict.
    pub failed: u32,
    /// Of all, those that came too late to count.
    pub stale: u32,
    /// Tokens.
    pub usage: Usage,
    /// The cost, as far as prices are known.
    #[serde(rename = "cost_micro_usd")]
    pub cost: MicroDollars,
}

/// What judges took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judging {
    /// Calls.
    pub calls: u64,
    /// Of the calls, those whose price isn't known: their cost isn't in `cost`.
    pub unknown_price_calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// The cost, as far as prices are known.
    #[serde(rename = "cost_micro_usd")]
    pub cost: MicroDollars,
}

impl Judging {
    /// Adds a judge's answer.
    pub fn add(&mut self, judged: &GoalJudged) {
        self.calls += 1;
        self.unknown_price_calls += u64::from(judged.call.cost.is_none());
        self.usage += judged.call.usage;
        self.cost += judged.call.cost.unwrap_or_default();
    }
}

/// One time that a goal was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalVerification {
    /// The entry of its verdict, or that began it.
    pub entry: Seq,
    /// When.
    pub at_ms: Timestamp,
    /// The agent's turn.
    pub turn: u32,
    /// Why it was verified.
    pub trigger: GoalTrigger,
    /// The goal's generation then.
    pub generation: u32,
    /// Its result; absent while it goes on, and for one that was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<GoalFinding>,
    /// The judges' answers, in the order in which they were asked.
    pub answers: Vec<GoalAnswer>,
}

/// A judge's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalAnswer {
    /// The model.
    pub judge: String,
    /// What it said.
    pub answer: JudgeAnswer,
    /// How long it took.
    pub duration_ms: u64,
    /// Tokens.
    pub usage: Usage,
    /// The cost; null if its price isn't known.
    #[serde(rename = "cost_micro_usd")]
    pub cost: Option<MicroDollars>,
    /// Whether it came too late to count.
    pub stale: bool,
}

impl AgentGoal {
    /// The goal of an agent, without the agent's name; `None` for one that has none, or hasn't begun.
    ///
    /// # Errors
    /// When its log can't be read.
    pub async fn read(backend: &dyn Backend, session: SessionId) -> Result<Option<Self>, BackendError> {
        let Actor::Session(state) = backend.state(session.into()).await? else { return Ok(None) };
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
            agent: session.agent,
            session,
            name: String::new(),
            condition: status.condition,
            state: status.state,
            generation: status.generation,
            rounds: status.rounds,
            failures: status.failures,
            idle_turns: status.idle_turns,
            finding_is_current: status.finding.is_some() && !worked_since,
            finding: status.finding,
            cleared_by,
            rounds_max: policy.rounds_max,
            failures_max: policy.failures_max,
            stuck_turns: policy.stuck_turns,
            verify_every: policy.verify_every,
            judges: judges(&policy, &verifications),
            agree: policy.agree,
            threshold: policy.threshold,
            timeout_ms: policy.timeout_ms,
            evidence_tokens_max: policy.evidence_tokens_max,
            budget_percent: policy.budget_percent,
            stop_hook_errors: policy.stop_hook_errors,
            judging,
            verifications,
        }))
    }

    /// The goals of all agents of a run that have begun, by number.
    ///
    /// # Errors
    /// When a log can't be read.
    pub async fn all(backend: &dyn Backend, state: &RunState) -> Result<Vec<Self>, BackendError> {
        let names = AgentNames::of(state);
        let mut goals = Vec::new();
        for agent in state.agents().filter(|agent| !matches!(agent.standing, AgentState::Queued)) {
            let goal = Self::read(backend, agent.session).await?;
            goals.extend(goal.map(|goal| Self { name: names.name(agent.session).to_owned(), ..goal }));
        }
        Ok(goals)
    }

    /// The finding on the work as it is now; `None` if that wasn't verified.
    #[must_use]
    pub fn current_finding(&self) -> Option<&GoalFinding> {
        self.finding.as_ref().filter(|_| self.finding_is_current)
    }

    /// Whether it binds the agent no longer.
    #[must_use]
    pub const fn is_cleared(&self) -> bool {
        self.cleared_by.is_some()
    }
}

/// The judges in the policy's order, each once.
fn judges(policy: &GoalPolicy, verifications: &[GoalVerification]) -> Vec<JudgeSums> {
    let mut by_name = BTreeMap::<&str, JudgeSums>::new();
    for answer in verifications.iter().flat_map(|verification| &verification.answers) {
        let judge = by_name.entry(&answer.judge).or_default();
        judge.asked += 1;
        judge.stale += u32::from(answer.stale);
        judge.usage += answer.usage;
        judge.cost += answer.cost.unwrap_or_default();
        match &answer.answer {
            JudgeAnswer::Verdict(verdict) if verdict.achieved => judge.achieved += 1,
            JudgeAnswer::Verdict(_) => judge.not_achieved += 1,
            JudgeAnswer::Failed(_) => judge.failed += 1,
        }
    }
    let mut judges: Vec<JudgeSums> = Vec::new();
    for judge in &policy.judges {
        if judges.iter().all(|known| known.name != judge.name) {
            let sums = by_name.remove(judge.name.as_str()).unwrap_or_default();
            judges.push(JudgeSums { name: judge.name.clone(), ..sums });
        }
    }
    judges
}

/// The goal as an agent's log has it.
#[derive(Default)]
struct GoalReader {
    policy: Option<GoalPolicy>,
    verifications: Vec<GoalVerification>,
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
            Entry::Goal(GoalEntry::CheckStarted(started)) => self.verifications.push(GoalVerification {
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
            last.answers.push(GoalAnswer {
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
