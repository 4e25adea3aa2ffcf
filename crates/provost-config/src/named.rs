//! The tables with names of the user's choosing: `[providers.NAME]` and `[models."PROVIDER/MODEL"]`.

mod model;
mod provider;

use std::collections::BTreeMap;

use provost_llm::{ModelFacts, Provider, Providers};

use super::Given;
use super::declare::{From, Setting};
use super::errors::Source;
use super::mcp::{MCP, McpTable};

pub use model::ModelTable;
pub(crate) use model::{MODEL, MODELS_WORDS};
pub use provider::ProviderTable;
pub(crate) use provider::{PROVIDER, PROVIDERS_WORDS};

/// The section of providers.
pub(crate) const PROVIDERS: &str = "providers";
/// The section of models.
pub(crate) const MODELS: &str = "models";

/// The providers and models that are set, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// By the provider's name.
    pub providers: BTreeMap<String, ProviderTable>,
    /// By the model's full name.
    pub models: BTreeMap<String, ModelTable>,
    /// MCP servers, by their names.
    pub mcp: BTreeMap<String, McpTable>,
    /// What `provost models update` has taken over from public tables of models.
    pub updated: Vec<ModelFacts>,
}

impl Named {
    /// The variables that hold keys, each with its provider: of those that are built in and of those that are set.
    pub fn key_variables(&self) -> BTreeMap<String, String> {
        let set = self.providers.iter().map(|(name, table)| table.provider(name));
        let all = Providers::built_in().iter().cloned().chain(set).collect::<Vec<_>>();
        let key = |Provider { name, key_env, .. }: Provider| Some((key_env?, name));
        // Of providers that share one, the first is named.
        all.into_iter().rev().filter_map(key).collect()
    }
}

/// A kind of table with names.
pub(crate) trait Table: Default + 'static {
    /// Its section.
    const SECTION: &'static str;
    /// Its fields.
    const FIELDS: &'static [Setting<Self>];
    /// Where its tables are.
    fn all(named: &mut Named) -> &mut BTreeMap<String, Self>;
    /// Why a table can't have this name, as `must be …`.
    fn objection(name: &str) -> Option<&'static str>;
}

const fn field<T>(name: &'static str) -> Setting<T> {
    Setting { from: From::User, ..Setting::declared("", name) }
}

/// A name as it stands in a variable's.
pub(crate) fn upper(name: &str) -> String {
    name.replace(['-', '.'], "_").to_uppercase()
}

/// The variables that set fields of providers, each with the provider and the field: ours first, then those that
/// the providers' own tools read.
pub(crate) fn variables(named: &Named) -> Vec<(String, String, &'static Setting<ProviderTable>)> {
    let built_in = Providers::built_in();
    let configured = named.providers.keys().filter(|name| built_in.get(name).is_none()).cloned();
    let names = built_in.iter().map(|provider| provider.name.clone()).chain(configured).collect::<Vec<_>>();
    let mut all = Vec::new();
    for name in names {
        for field in PROVIDER {
            let own = format!("PROVOST_PROVIDERS_{}_{}", upper(&name), field.name.to_uppercase());
            all.push((own, name.clone(), field));
            if field.name == "base_url" {
                let theirs = built_in.get(&name).map(|known| known.base_url_env.clone()).unwrap_or_default();
                all.extend(theirs.into_iter().map(|variable| (variable, name.clone(), field)));
            }
        }
    }
    all
}

/// The key of a field in a named table, as people read it.
pub(crate) fn key(section: &str, name: &str, field: &str) -> String {
    let bare = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let name = if bare { name.to_owned() } else { format!("\"{name}\"") };
    if field.is_empty() { format!("{section}.{name}") } else { format!("{section}.{name}.{field}") }
}

/// The keys of named tables that are set, in their order.
pub(crate) fn given(all: &BTreeMap<String, Given>) -> impl Iterator<Item = (&String, &Given)> {
    all.iter().filter(|(key, given)| {
        given.source != Source::Default
            && [PROVIDERS, MODELS, MCP]
                .iter()
                .any(|section| key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.')))
    })
}
