//! Whether the policy of an agent can be worked by.

use std::collections::HashSet;

use provost_event::{AgentPolicy, Metering};

use crate::HarnessError;

/// Whether money can't limit an agent: its price is unknown, and neither does the gateway meter its calls nor do the
/// settings say that they aren't limited.
pub(crate) fn lacks_price(agent: &AgentPolicy) -> bool {
    let metering = agent.external.as_ref().map_or(Metering::Reported, |external| external.metering);
    agent.model.price.is_none() && metering == Metering::Reported
}

pub(super) fn unique_hooks(policy: &AgentPolicy) -> Result<(), HarnessError> {
    let mut names = HashSet::new();
    let doubled = policy.hooks.iter().find(|hook| !names.insert(&hook.name));
    doubled.map_or(Ok(()), |hook| Err(HarnessError::DoubledHook { hook: hook.name.clone() }))
}
