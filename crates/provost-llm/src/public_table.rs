//! Public tables of models that people have: which one a file is, and what it says of the models of known providers.

mod change;
mod entry;
mod litellm;
mod models_dev;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

pub use change::ModelChange;

use crate::{ModelFacts, Provider, Providers};

/// Which public table a file is.
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

/// A public table of models, as far as it is about chat models of known providers.
#[derive(Debug, Clone)]
pub struct PublicTable {
    kind: TableKind,
    /// By `provider/model`.
    models: BTreeMap<String, ModelFacts>,
    entries: usize,
}

/// Why a text is no public table of models.
#[derive(Debug, thiserror::Error)]
pub enum PublicTableError {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// It isn't JSON.
    #[error("it isn't JSON: {0}")]
    NotJson(serde_json::Error),
    /// It is JSON of something else.
    #[error(
        "it is JSON, but no table of models: neither models.dev's (api.json) nor litellm's \
         (model_prices_and_context_window.json)"
    )]
    Unknown,
    /// A value can't be right.
    #[error("{place}: {what}")]
    Entry {
        /// Where, as keys from the top.
        place: String,
        /// What.
        what: String,
    },
    /// It is a table of other models.
    #[error("it is {kind} table of models, but has no chat model of a provider that Provost knows")]
    NothingKnown {
        /// Which.
        kind: TableKind,
    },
}

impl PublicTable {
    /// Reads a table; tells by its shape which it is. What it says of other things than chat models of `providers`
    /// isn't looked at, and neither are programs on one's own machine: what those allow is theirs to say.
    ///
    /// # Errors
    /// Why it is none, with the place.
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

    /// Which table it is.
    #[must_use]
    pub const fn kind(&self) -> TableKind {
        self.kind
    }

    /// How many models it lists, of whatever provider and kind.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.entries
    }

    /// What it says of the chat models of known providers.
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

/// The provider that a table calls so.
fn owner<'a>(listed: &str, providers: &'a Providers) -> Option<&'a Provider> {
    let is_called = |provider: &&Provider| {
        provider.name == listed || provider.listed_as.iter().any(|name| name == listed)
    };
    providers.iter().filter(|provider| !provider.free).find(is_called)
}

/// Without the releases of which the row of their model says the same.
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
