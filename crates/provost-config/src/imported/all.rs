//! The hooks of settings and of imported files together.

use super::Placed;
use crate::Settings;

/// All hooks of `settings`, each with a name of its own.
pub(crate) fn all(settings: &Settings) -> Vec<Placed> {
    let own = settings.hooks.iter().filter_map(|hook| {
        let place = hook.source.to_string();
        let file = hook.source.is_projects().then(|| crate::FILE_NAME.to_owned());
        Some((Placed { policy: hook.policy()?, place, file }, hook.is_named()))
    });
    let mut own = own.collect::<Vec<_>>();
    own.extend(settings.imported.iter().cloned().map(|placed| (placed, false)));
    let named = own.iter().filter(|(_, is_named)| *is_named);
    let mut taken = named.map(|(placed, _)| placed.policy.name.clone()).collect::<Vec<_>>();
    for (placed, _) in own.iter_mut().filter(|(_, is_named)| !is_named) {
        placed.policy.name = free_name(&placed.policy.name, &taken);
        taken.push(placed.policy.name.clone());
    }
    // The user can't shorten what another program's file says, and no hook outlasts the run.
    let most = settings.budget.wall_time_ms.unwrap_or(u64::MAX);
    for (placed, _) in &mut own {
        placed.policy.timeout_ms = placed.policy.timeout_ms.min(most);
    }
    own.into_iter().map(|(placed, _)| placed).collect()
}

fn free_name(name: &str, taken: &[String]) -> String {
    let is_free = |name: &String| !taken.contains(name);
    let numbered = (2..).map(|number| format!("{name} ({number})"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}
