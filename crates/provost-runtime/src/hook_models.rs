//! The models of hooks that are models.

use std::path::Path;

use provost_config::{Placed, Settled, Source};
use provost_event::{AgentPolicy, HookPolicy, HookProgram, ModelPolicy, RunPolicy};

use crate::choose::Wanted;
use crate::paths::model_name;
use crate::team::wanted_of_root;
use crate::window::{Keys, Room};

/// Tokens of an answer, besides those of its reasoning.
const ANSWER_TOKENS: u32 = 2_048;
/// The setting that names the model of hooks that name none.
const KEY: &str = "hooks.model";

/// What the hooks that are models need.
pub(crate) fn wanted_of_hooks(settled: &Settled, folder: &Path) -> Vec<Wanted> {
    let hooks = settled.settings.all_hooks();
    hooks.iter().filter_map(|placed| wanted_of(placed, settled, folder)).collect()
}

/// All hooks of the settings, those that are models with the ones that `choose` finds; a hook without its model is left
/// out.
pub(crate) fn hooks_with_models(
    settled: &Settled,
    folder: &Path,
    mut choose: impl FnMut(&Wanted) -> Option<ModelPolicy>,
) -> Vec<HookPolicy> {
    let mut hooks = Vec::new();
    for placed in settled.settings.all_hooks() {
        let chosen = wanted_of(&placed, settled, folder).map(|wanted| choose(&wanted));
        let mut hook = placed.policy;
        match (&mut hook.program, chosen) {
            (Some(HookProgram::Model(_)), Some(None)) => continue,
            (Some(HookProgram::Model(asked)), Some(Some(model))) => asked.model = model,
            _ => {}
        }
        hooks.push(hook);
    }
    hooks
}

/// Gives each agent of `policy` these hooks.
pub(crate) fn with_hooks(mut policy: RunPolicy, hooks: &[HookPolicy]) -> RunPolicy {
    let agents = policy.agents.iter_mut().map(|sub_agent| &mut sub_agent.agent);
    for agent in agents.chain([&mut policy.agent]) {
        agent.hooks = hooks.to_vec();
    }
    policy
}

/// `hooks` with the models of those of `before` that ask the same.
pub(crate) fn with_models_of(mut hooks: Vec<HookPolicy>, before: &[HookPolicy]) -> Vec<HookPolicy> {
    for hook in &mut hooks {
        let Some(HookProgram::Model(asked)) = &mut hook.program else { continue };
        let earlier = before.iter().find_map(|earlier| match &earlier.program {
            Some(HookProgram::Model(model)) if earlier.name == hook.name => Some(model),
            _ => None,
        });
        if let Some(earlier) = earlier {
            asked.model = earlier.model.clone();
        }
    }
    hooks
}

/// The models of an agent's hooks.
pub(crate) fn models_of_hooks(agent: &AgentPolicy) -> impl Iterator<Item = &ModelPolicy> {
    agent.hooks.iter().filter_map(|hook| match &hook.program {
        Some(HookProgram::Model(asked)) => Some(&asked.model),
        _ => None,
    })
}

/// What a hook needs of its model, if it is one: the one that it names, that of all hooks, or that of the run's agent.
fn wanted_of(placed: &Placed, settled: &Settled, folder: &Path) -> Option<Wanted> {
    let Some(HookProgram::Model(asked)) = &placed.policy.program else { return None };
    let (name, source) = match (asked.model.name.as_str(), &settled.settings.hook_model) {
        ("", Some(model)) => {
            let source = settled.source(KEY);
            (model_name(model, &source, folder), source)
        }
        ("", None) => {
            let root = wanted_of_root(settled, folder);
            (root.name, settled.source("agent.model"))
        }
        (named, _) => (model_name(named, &Source::Default, folder), settled.source(KEY)),
    };
    let key = (source, KEY.to_owned());
    Some(Wanted {
        of: Some(format!("the model of the hook `{}`", placed.policy.name)),
        name,
        fallbacks: Vec::new(),
        keys: Keys { model: key.clone(), cap: key },
        cap: None,
        cap_at_most: Some(ANSWER_TOKENS),
        effort: None,
        money: None,
        room: Room::Check,
    })
}
