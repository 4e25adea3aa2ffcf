//! The limit of a run that has no configured limit.

use provost_config::{Settled, Source};
use provost_event::{Budget, Limits, ModelPolicy, RunPolicy};

use crate::Refusal;
use crate::models_of;
use crate::programs_of;
use crate::team::has_metered;

fn costs_something(model: &ModelPolicy) -> bool {
    model.price.is_some_and(|price| !price.is_free())
}

/// `policy` with a limit of money where it limits nothing and a model costs something, and a note about that.
///
/// # Errors
/// Where that limit would apply and the price of another of its models isn't known: it couldn't limit what that one
/// takes. A program's price is never known before; the note names it.
pub fn default_limit(
    mut policy: RunPolicy,
    settled: &Settled,
) -> Result<(RunPolicy, Option<String>), Refusal> {
    let costs = models_of(&policy).chain(programs_of(&policy)).any(costs_something) || has_metered(&policy);
    if !policy.budget.is_unlimited() || !costs {
        return Ok((policy, None));
    }
    if let Some(model) = unpriced_beside_priced(models_of(&policy)).filter(|_| !policy.allow_unpriced) {
        return Err(Refusal::new(unpriced_in_words(&model.name), UNPRICED_REMEDY));
    }
    policy.budget.money = Some(Budget::DEFAULT_MONEY);
    let program =
        programs_of(&policy).find(|program| program.price.is_none()).map(|model| model.name.clone());
    policy.allow_unpriced |= program.is_some();
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
    let unlimited =
        program.map(|name| format!(", but not {name}, whose price isn't known")).unwrap_or_default();
    let note = format!("no limit set: $20 binds{unlimited}; [budget] usd or --usd changes it");
    Ok((policy, Some(note)))
}

/// The first of `models` whose price isn't known, where another one costs something.
pub fn unpriced_beside_priced<'a>(models: impl Iterator<Item = &'a ModelPolicy>) -> Option<&'a ModelPolicy> {
    let models = models.collect::<Vec<_>>();
    let costs = models.iter().any(|model| costs_something(model));
    models.into_iter().find(|model| model.price.is_none()).filter(|_| costs)
}

/// Why no default limit can apply.
pub fn unpriced_in_words(model: &str) -> String {
    format!("no limit is set, and the default of $20 can't limit {model}, whose price isn't known")
}

/// What to do about it.
pub const UNPRICED_REMEDY: &str = "limit tokens, time or turns, e.g. --tokens 2_000_000; or state the price in \
                                          [models.\"NAME\"] of your own settings file; or set allow_unpriced";
