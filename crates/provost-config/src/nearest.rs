//! The nearest known name to an unknown one.

use super::agent::Agent;
use super::hook::Hook;
use super::item::Item;
use super::mcp::MCP;
use super::named::{MODELS, PROVIDERS};
use super::stop_hook::StopHook;
use super::table::{SECTIONS, settings};

/// Proposes a known key for the unknown `key`.
pub(crate) fn advice(key: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    if let Some(setting) = settings().find(|setting| setting.name == name) {
        return format!("`{name}` belongs into [{}]", setting.section);
    }
    let sections = SECTIONS.iter().map(|(section, _)| (*section).to_owned());
    let keys = settings().map(super::declare::Setting::key);
    match nearest(
        key,
        keys.chain(sections)
            .chain([StopHook::LIST, Hook::LIST, Agent::LIST, PROVIDERS, MODELS, MCP].map(str::to_owned)),
    ) {
        Some(known) => format!("did you mean `{known}`?"),
        None => "`provost check` lists what there is".to_owned(),
    }
}

/// Lists the fields that an item has.
pub(crate) fn fields<T: Item>(name: &str) -> String {
    let all = T::FIELDS.iter().map(super::declare::Setting::key);
    match nearest(name, all.clone()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("{} has {}", T::ONE, all.collect::<Vec<_>>().join(", ")),
    }
}

/// The one of `all` that differs from `wrong` the least, unless that is too much.
pub fn nearest(wrong: &str, all: impl Iterator<Item = String>) -> Option<String> {
    let distances = all.map(|known| (strsim::damerau_levenshtein(wrong, &known), known));
    let (distance, known) = distances.min()?;
    (distance <= known.chars().count().div_ceil(3).min(4)).then_some(known)
}
