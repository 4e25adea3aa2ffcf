//! The built-in providers. Their data is in `providers.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::{Deviations, WireFormat};

static BUILT_IN: LazyLock<Vec<Provider>> = LazyLock::new(|| {
    // A test parses the same file: it can't fail here.
    toml::from_str::<Table>(include_str!("../providers.toml")).map(|table| table.provider).unwrap_or_default()
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    provider: Vec<Provider>,
}

/// A provider: where its models are, and how to call them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The part of its models' names before the slash.
    pub name: String,
    /// Its wire format.
    pub wire: WireFormat,
    /// Its base address; the format's paths are below it.
    pub base_url: String,
    /// The environment variables that override the address, the stronger first.
    #[serde(default)]
    pub base_url_env: Vec<String>,
    /// The environment variable of the key; `None` if it needs none.
    #[serde(default)]
    pub key_env: Option<String>,
    /// Whether a key is required.
    #[serde(default)]
    pub key_required: bool,
    /// Whether its models are free, such as those on the user's own machine.
    #[serde(default)]
    pub free: bool,
    /// How long its models may take to begin an answer, if that isn't the usual limit; in milliseconds.
    #[serde(default)]
    pub first_token_ms: Option<u64>,
    /// The provider that makes these models, if that is another one: the facts about those models apply here.
    #[serde(default)]
    pub models_of: Option<String>,
    /// Its name in public tables of models, if that is different.
    #[serde(default)]
    pub listed_as: Vec<String>,
    /// The address of its Responses API, for a provider with Chat Completions.
    #[serde(default)]
    pub responses_at: Option<String>,
    /// Its deviations in Chat Completions.
    #[serde(default)]
    pub deviations: Deviations,
}

/// Providers by name: the built-in ones, with the user's over them.
#[derive(Debug, Clone)]
pub struct Providers {
    all: Vec<Provider>,
}

impl Providers {
    /// The built-in providers.
    #[must_use]
    pub fn built_in() -> Self {
        Self { all: BUILT_IN.clone() }
    }

    /// Adds `provider`, replacing one of the same name.
    #[must_use]
    pub fn with(mut self, provider: Provider) -> Self {
        match self.all.iter_mut().find(|known| known.name == provider.name) {
            Some(known) => *known = provider,
            None => self.all.push(provider),
        }
        self
    }

    /// The provider called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.all.iter().find(|provider| provider.name == name)
    }

    /// All providers: the built-in ones first, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.all.iter()
    }
}

impl Provider {
    /// A provider at `base_url` that needs no key, with models of unknown cost.
    pub fn new(name: impl Into<String>, wire: WireFormat, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            wire,
            base_url: base_url.into(),
            base_url_env: Vec::new(),
            key_env: None,
            key_required: false,
            free: false,
            first_token_ms: None,
            models_of: None,
            listed_as: Vec::new(),
            responses_at: None,
            deviations: Deviations::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_can_be_read_and_contradicts_nothing() {
        let table = toml::from_str::<Table>(include_str!("../providers.toml")).unwrap();
        assert_eq!(table.provider, *BUILT_IN);
        let names = BUILT_IN.iter().map(|provider| &provider.name).collect::<HashSet<_>>();
        assert_eq!(names.len(), BUILT_IN.len());
        for provider in &*BUILT_IN {
            assert!(!provider.key_required || provider.key_env.is_some(), "{}", provider.name);
            let local = provider.base_url.starts_with("http://127.0.0.1:");
            assert!(local || provider.base_url.starts_with("https://"), "{}", provider.name);
            assert_eq!(provider.free, local && provider.name != "litellm", "{}", provider.name);
        }
    }
}
