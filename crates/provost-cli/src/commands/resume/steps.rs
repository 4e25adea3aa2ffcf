//! The own limits of workflow steps that were ended by them: what they lack, and what is added to them.

use provost_engine::{RunState, StepStatus};
use provost_event::{
    Budget, Dimension, Exhausted, LimitOwner, Limits, MicroDollars, Outcome, RunPolicy, Shortfall,
};

use crate::render::{LeastLimit, enough_more};

/// A step whose own limit ended its last attempt.
struct LimitedStep {
    /// Its index in the workflow.
    step: usize,
    exhausted: Exhausted,
}

fn limited(state: &RunState) -> impl Iterator<Item = LimitedStep> {
    let steps = state.flow().into_iter().flat_map(|flow| flow.iter()).enumerate();
    steps.filter_map(|(step, (_, standing))| match standing {
        StepStatus::Failed(Outcome::BudgetExhausted(exhausted))
        | StepStatus::Asks(Outcome::BudgetExhausted(exhausted))
            if exhausted.owner == LimitOwner::Agent =>
        {
            Some(LimitedStep { step, exhausted: *exhausted })
        }
        _ => None,
    })
}

/// The dimensions in which a step's own limit ended it.
pub(super) fn limited_dimensions(state: &RunState) -> Vec<Dimension> {
    limited(state).map(|limited| limited.exhausted.dimension).collect()
}

/// What is to be added, at least, for the next attempts to get further: for each dimension that a step's own limit
/// was reached in.
pub(super) fn lacking(state: &RunState, policy: &RunPolicy) -> Vec<(Dimension, u64)> {
    let amount = |LimitedStep { step, exhausted }: LimitedStep| {
        let Exhausted { dimension, used, shortfall, .. } = exhausted;
        let limit =
            limits(&mut policy.clone(), step, dimension).into_iter().map(|limit| limit.get()).min()?;
        let next = shortfall.map_or(0, |Shortfall { needs, summary, judges, .. }| {
            needs.saturating_add(summary).saturating_add(judges)
        });
        let has_summary = shortfall.is_some_and(|shortfall| shortfall.summary > 0);
        let least = LeastLimit { limit: used.saturating_add(next), has_summary };
        Some((dimension, enough_more(dimension, limit, used, least)))
    };
    limited(state).filter_map(amount).collect()
}

/// Adds what is `given` to the limits of the steps that were ended by them.
pub(super) fn raise(policy: &mut RunPolicy, state: &RunState, given: &Budget) {
    for LimitedStep { step, exhausted } in limited(state) {
        let dimension = exhausted.dimension;
        let more = match dimension {
            Dimension::Tokens => given.tokens,
            Dimension::Money => given.money.map(|money| money.0),
            Dimension::WallTime => given.wall_time_ms,
            Dimension::Turns => given.turns.map(u64::from),
        };
        let Some(more) = more else { continue };
        let mut limits = limits(policy, step, dimension);
        let least = limits.iter().map(|limit| limit.get()).min().unwrap_or_default();
        for limit in &mut limits {
            limit.at_least(least.saturating_add(more));
        }
    }
}

/// A limit in a policy.
enum OwnLimit<'a> {
    Number(&'a mut u64),
    Money(&'a mut MicroDollars),
    Turns(&'a mut u32),
}

impl OwnLimit<'_> {
    fn get(&self) -> u64 {
        match self {
            Self::Number(limit) => **limit,
            Self::Money(limit) => limit.0,
            Self::Turns(limit) => u64::from(**limit),
        }
    }

    fn at_least(&mut self, least: u64) {
        match self {
            Self::Number(limit) => **limit = least.max(**limit),
            Self::Money(limit) => limit.0 = least.max(limit.0),
            Self::Turns(limit) => **limit = u32::try_from(least).unwrap_or(u32::MAX).max(**limit),
        }
    }
}

/// The limits of a step in this dimension: its own and those of its agent. The smallest binds it.
fn limits(policy: &mut RunPolicy, step: usize, dimension: Dimension) -> Vec<OwnLimit<'_>> {
    let RunPolicy { flow, agents, agent, .. } = policy;
    let Some(step) = flow.as_mut().and_then(|flow| flow.steps.get_mut(step)) else { return Vec::new() };
    let named = agents.iter_mut().find(|one| step.agent.as_ref() == Some(&one.name));
    let (turns_max, budget) = match named {
        Some(named) => (&mut named.agent.limits.turns_max, Some(&mut named.budget)),
        None => (&mut agent.limits.turns_max, None),
    };
    let budgets = std::iter::once(&mut step.budget).chain(budget);
    let mut limits = budgets.filter_map(|budget| limit_in(budget, dimension)).collect::<Vec<_>>();
    if dimension == Dimension::Turns && *turns_max != Limits::TURNS_UNLIMITED {
        limits.push(OwnLimit::Turns(turns_max));
    }
    limits
}

fn limit_in(budget: &mut Budget, dimension: Dimension) -> Option<OwnLimit<'_>> {
    match dimension {
        Dimension::Tokens => budget.tokens.as_mut().map(OwnLimit::Number),
        Dimension::Money => budget.money.as_mut().map(OwnLimit::Money),
        Dimension::WallTime => budget.wall_time_ms.as_mut().map(OwnLimit::Number),
        Dimension::Turns => budget.turns.as_mut().map(OwnLimit::Turns),
    }
}
