//! Public tables of models: recognises a file's format, and reads the models of known providers.

mod change;
mod entry;
mod litellm;
mod models_dev;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

pub use change::ModelChange;

use crate::{ModelFacts, Provider, Providers};

/// The format of a public table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// The `api.json` of models.dev.
    ModelsDev,
    /// The `model_prices_and_context_window.json` of litellm.
    Litellm,
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ModelsDev => "models.dev's",
            Self::Litellm => "litellm's",
        })
    }
}

/// A public table of models, reduced to chat models of known providers.
#[derive(Debug, Clone)]
pub struct PublicTable {
    kind: TableKind,
    /// By `provider/model`.
    models: BTreeMap<String, ModelFacts>,
    entries: usize,
}

/// Why a text isn't a public table of models.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublicTableError {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It isn't JSON.
    #[error("it isn't JSON: {0}")]
    NotJson(serde_json::Error),
    /// It is other JSON.
    #[error(
        "it is JSON, but no table of models: neither models.dev's (api.json) nor litellm's \
         (model_prices_and_context_window.json)"
    )]
    Unknown,
    /// An implausible value.
    #[error("{place}: {what}")]
    Entry {
        /// Its path of keys from the top.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// It has no models of known providers.
    #[error("it is {kind} table of models, but has no chat model of a provider that Provost knows")]
    NothingKnown {
        /// The format of the table.
        kind: TableKind,
    },
}

impl PublicTable {
    /// Parses a table; recognises its format. Anything but chat models of `providers` is ignored, and so are
    /// programs on the user's own machine, whose limits are configured there.
    ///
    /// # Errors
    /// Why it can't be used, with the position.
    pub fn parse(text: &str, providers: &Providers) -> Result<Self, PublicTableError> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(PublicTableError::Empty);
        }
        let value = serde_json::from_str::<Value>(text).map_err(PublicTableError::NotJson)?;
        let top = value.as_object().ok_or(PublicTableError::Unknown)?;
        let kind = kind(top).ok_or(PublicTableError::Unknown)?;
        let (models, entries) = match kind {
            TableKind::ModelsDev => models_dev::read(top, providers)?,
            TableKind::Litellm => litellm::read(top, providers)?,
        };
        if models.is_empty() {
            return Err(PublicTableError::NothingKnown { kind });
        }
        Ok(Self { kind, models: distinct(models), entries })
    }

    /// The table's format.
    #[must_use]
    pub const fn kind(&self) -> TableKind {
        self.kind
    }

    /// The number of all models in it, of any provider and kind.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.entries
    }

    /// Its chat models of known providers.
    pub fn models(&self) -> impl ExactSizeIterator<Item = &ModelFacts> {
        self.models.values()
    }
}

fn kind(top: &Map<String, Value>) -> Option<TableKind> {
    let has =
        |field: &str, is: fn(&Value) -> bool| top.values().any(|entry| entry.get(field).is_some_and(is));
    if has("litellm_provider", Value::is_string) {
        Some(TableKind::Litellm)
    } else if has("models", Value::is_object) {
        Some(TableKind::ModelsDev)
    } else {
        None
    }
}

/// The provider with this name in a table.
fn owner<'a>(listed: &str, providers: &'a Providers) -> Option<&'a Provider> {
    let is_called = |provider: &&Provider| {
        provider.name == listed || provider.listed_as.iter().any(|name| name == listed)
    };
    providers.iter().filter(|provider| !provider.free).find(is_called)
}

/// Leaves out releases whose row equals that of their model.
fn distinct(models: BTreeMap<String, ModelFacts>) -> BTreeMap<String, ModelFacts> {
    let says_more = |facts: &ModelFacts| {
        let model = crate::catalog::without_release(&facts.name).and_then(|bare| models.get(bare));
        model.is_none_or(|model| ModelFacts { name: model.name.clone(), ..facts.clone() } != *model)
    };
    models
        .iter()
        .filter(|(_, facts)| says_more(facts))
        .map(|(name, facts)| (name.clone(), facts.clone()))
        .collect()
}
