//! The limit of a run that has no configured limit.

use provost_event::{Limits, MicroDollars, Price, RunPolicy};

use super::models_of;
use super::programs_of;
use crate::settings::{Settled, Source};

/// The most that a run without a configured limit may cost.
const DEFAULT_LIMIT: MicroDollars = MicroDollars(20_000_000);

const fn costs_something(price: Price) -> bool {
    price.input.0 > 0 || price.output.0 > 0
}

/// `policy` with a limit of money where it limits nothing and a model costs something, and a note about that.
/// Models whose price isn't known don't count.
pub(crate) fn default_limit(mut policy: RunPolicy, settled: &Settled) -> (RunPolicy, Option<String>) {
    let costs = |policy: &RunPolicy| {
        models_of(policy).chain(programs_of(policy)).any(|model| model.price.is_some_and(costs_something))
    };
    if !policy.budget.is_unlimited() || !costs(&policy) {
        return (policy, None);
    }
    policy.budget.money = Some(DEFAULT_LIMIT);
    policy.allow_unpriced = true;
    if settled.source("agent.max_turns") == Source::Default {
        policy.agent.limits.turns_max = Limits::TURNS_UNLIMITED;
        for agent in policy.agents.iter_mut().filter(|agent| agent.agent.external.is_none()) {
            let is_own =
                settled.settings.agents.iter().any(|own| own.name == agent.name && own.max_turns.is_some());
            if !is_own {
                agent.agent.limits.turns_max = Limits::TURNS_UNLIMITED;
            }
        }
    }
    let note = "no limit set: $20 binds; [budget] usd or --usd changes it".to_owned();
    (policy, Some(note))
}
