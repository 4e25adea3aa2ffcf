//! Another model for a conversation that goes on.

use provost_config::{Settings, effort};
use provost_event::ModelPolicy;
use provost_llm::resolve;

use super::{Chosen, Variables, is_program, providers, with_absolute_paths, words};
use crate::exit::Refusal;

/// The model named by `--model`, or `now`, with the effort of `--effort`; `None` where neither is given.
///
/// # Errors
/// [`Refusal`] when there is no such model, or the agent is a program.
pub(crate) fn choose_again(
    (wanted, level): (Option<&str>, Option<&str>),
    now: &ModelPolicy,
    (settings, variables): (&Settings, &Variables),
) -> anyhow::Result<Option<Chosen>> {
    if wanted.is_none() && level.is_none() {
        return Ok(None);
    }
    if is_program(&now.name) {
        let what = "the run's agent is a program, which chooses its model itself";
        return Err(Refusal::new(what, "leave out --model and --effort").into());
    }
    let name = match wanted {
        Some(name) => with_absolute_paths(name, &std::env::current_dir()?),
        None => now.name.clone(),
    };
    let (model, mut policy) = resolve(&name, &providers(settings, variables)).map_err(|error| {
        Refusal::new(format!("--model: {}", words(&error)), "`provost models` lists them")
    })?;
    policy.effort = match level {
        Some(word) => Some(effort(word)),
        None => now.effort,
    };
    policy.output_tokens_max = policy.output_tokens_max.min(now.output_tokens_max);
    policy.fallbacks = now.fallbacks.iter().filter(|one| one.name != name).cloned().collect();
    Ok(Some(Chosen { model, policy }))
}
