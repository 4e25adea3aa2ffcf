//! Another model for a conversation that goes on.

use provost_config::{Settings, effort};
use provost_event::ModelPolicy;
use provost_llm::resolve;

use crate::{Chosen, Variables, is_program, providers, with_absolute_paths, words};
use crate::{Refusal, RuntimeError};

/// The model named by `--model`, or `now`, with the effort of `--effort`; `None` where neither is given.
///
/// # Errors
/// [`Refusal`] when there is no such model, or the agent is a program.
pub fn choose_again(
    (wanted, level): (Option<&str>, Option<&str>),
    now: &ModelPolicy,
    (settings, variables): (&Settings, &Variables),
) -> Result<Option<Chosen>, RuntimeError> {
    if wanted.is_none() && level.is_none() {
        return Ok(None);
    }
    if is_program(&now.name) {
        let what = "the run's agent is a program, which chooses its model itself";
        return Err(Refusal::new(what, "leave out --model and --effort").into());
    }
    let name = match wanted {
        Some(name) => {
            with_absolute_paths(name, &std::env::current_dir().map_err(RuntimeError::CurrentFolder)?)
        }
        None => now.name.clone(),
    };
    let providers = providers(settings, variables);
    let (model, mut policy) = resolve(&name, &providers).map_err(|error| {
        Refusal::new(format!("--model: {}", words(&error)), "`provost models` lists them")
    })?;
    policy.effort = match level {
        Some(word) => Some(providers.effort(&name, effort(word))),
        // The effort so far, for a model that is known to reason.
        None => policy.effort.map(|usual| now.effort.map_or(usual, |set| providers.effort(&name, set))),
    };
    policy.output_tokens_max = policy.output_tokens_max.min(now.output_tokens_max);
    policy.fallbacks = now.fallbacks.iter().filter(|one| one.name != name).cloned().collect();
    Ok(Some(Chosen { model, policy }))
}
