//! `provost goal show`: the goals of a run's agents, as a page or as one JSON object.

use std::collections::BTreeMap;

use anyhow::Context as _;
use provost_engine::{GoalStatus, RunState};
use provost_event::{
    Confidence, GoalPolicy, JudgeAnswer, MicroDollars, OnHookError, Outcome, RunId, SessionId, Usage,
};
use provost_harness::{Backend, Clock as _, SystemClock};
use serde::Serialize;

use super::page::page;
use super::{Target, no_goal};
use crate::cli::GoalShowArgs;
use crate::commands::show::summary;
use crate::commands::target::agent_of;
use crate::commands::{backend_to_read, print};
use crate::exit::Exit;
use crate::goals::{AgentGoal, Judging, Verification};
use crate::names::Names;
use crate::render::{safe, terminal_width};
use provost_view::CurrentStatus;
use provost_view::run_state;

pub(super) async fn show(args: GoalShowArgs) -> anyhow::Result<Exit> {
    let backend = backend_to_read()?;
    let Target { run, agent } = Target::find(&*backend, &args.run).await?;
    let state = run_state(&*backend, run).await?.with_context(|| format!("the log of run {run} is empty"))?;
    let goals = chosen(&*backend, run, &state, agent).await?;
    if goals.is_empty() {
        let session = SessionId { run, agent: agent.unwrap_or(0) };
        return Err(no_goal(&*backend, session).await?.into());
    }
    let (names, summary) = (Names::of(&state), summary(&*backend, run).await?);
    let status = CurrentStatus::read(&*backend, (&summary, &state), SystemClock.now()).await.word;
    let outcome = state.outcome();
    if args.json {
        let goals = goals.iter().map(|goal| GoalJson::of(goal, &names)).collect();
        let whole = Whole { run, status: &status, outcome, goals };
        print(&format!("{}\n", serde_json::to_string(&whole)?))?;
    } else {
        let shown = GoalsView { run, status: &status, outcome, task: &summary.goal, names: &names };
        print(&safe(&page(&shown, &goals, terminal_width())))?;
    }
    Ok(Exit::Done)
}

async fn chosen(
    backend: &dyn Backend,
    run: RunId,
    state: &RunState,
    agent: Option<u32>,
) -> anyhow::Result<Vec<AgentGoal>> {
    let Some(agent) = agent else { return AgentGoal::all(backend, state).await };
    let session = SessionId { run, agent };
    agent_of(state, session)?;
    Ok(AgentGoal::read(backend, session).await?.into_iter().collect())
}

/// The run that goals are shown of.
pub(super) struct GoalsView<'a> {
    pub(super) run: RunId,
    pub(super) status: &'a str,
    pub(super) outcome: Option<&'a Outcome>,
    /// The run's task.
    pub(super) task: &'a str,
    pub(super) names: &'a Names,
}

/// The goals of a run, for programs.
#[derive(Serialize)]
struct Whole<'a> {
    run: RunId,
    status: &'a str,
    outcome: Option<&'a Outcome>,
    goals: Vec<GoalJson<'a>>,
}

/// A goal, for programs.
#[derive(Serialize)]
pub(in crate::commands) struct GoalJson<'a> {
    agent: u32,
    session: SessionId,
    name: String,
    #[serde(flatten)]
    status: &'a GoalStatus,
    /// Whether `finding` is about the work as it is now.
    finding_is_current: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_by: Option<&'a str>,
    rounds_max: u32,
    failures_max: u32,
    stuck_turns: u32,
    verify_every: Option<u32>,
    judges: Vec<Judge<'a>>,
    agree: u32,
    threshold: Confidence,
    timeout_ms: u64,
    evidence_tokens_max: u32,
    budget_percent: u8,
    stop_hook_errors: OnHookError,
    judging: Judging,
    verifications: &'a [Verification],
}

impl<'a> GoalJson<'a> {
    pub(in crate::commands) fn of(goal: &'a AgentGoal, names: &Names) -> Self {
        let AgentGoal { session, policy, status, verifications, .. } = goal;
        Self {
            agent: session.agent,
            session: *session,
            name: names.name(*session).to_owned(),
            status,
            finding_is_current: goal.finding().is_some(),
            cleared_by: goal.cleared_by.as_deref(),
            rounds_max: policy.rounds_max,
            failures_max: policy.failures_max,
            stuck_turns: policy.stuck_turns,
            verify_every: policy.verify_every,
            judges: judges(policy, verifications),
            agree: policy.agree,
            threshold: policy.threshold,
            timeout_ms: policy.timeout_ms,
            evidence_tokens_max: policy.evidence_tokens_max,
            budget_percent: policy.budget_percent,
            stop_hook_errors: policy.stop_hook_errors,
            judging: goal.judging,
            verifications,
        }
    }
}

/// A judge, and its answers.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Judge<'a> {
    pub(super) name: &'a str,
    pub(super) asked: u32,
    pub(super) achieved: u32,
    pub(super) not_achieved: u32,
    pub(super) failed: u32,
    /// Of all, those that came too late to count.
    pub(super) stale: u32,
    pub(super) usage: Usage,
    #[serde(rename = "spent_micro_usd")]
    pub(super) cost: MicroDollars,
}

/// The judges in the policy's order, each once.
pub(super) fn judges<'a>(policy: &'a GoalPolicy, verifications: &[Verification]) -> Vec<Judge<'a>> {
    let mut by_name = BTreeMap::<&str, Judge<'_>>::new();
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
    let mut judges: Vec<Judge<'a>> = Vec::new();
    for judge in &policy.judges {
        if judges.iter().all(|known| known.name != judge.name) {
            let sums = by_name.get(judge.name.as_str()).copied().unwrap_or_default();
            judges.push(Judge { name: &judge.name, ..sums });
        }
    }
    judges
}
