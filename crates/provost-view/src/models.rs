//! The providers and models that are known.

use provost_event::Price;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;

/// The providers and models that settings and catalog know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelList {
    /// The version of the view.
    pub v: ViewVersion,
    /// The model that the settings name.
    pub model: String,
    /// The providers.
    pub providers: Vec<ListedProvider>,
}

/// A provider of models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedProvider {
    /// The name that stands before `/` in the names of its models.
    pub name: String,
    /// Its wire format: `anthropic`, `openai-responses`, `openai-chat` or `gemini`.
    pub wire: String,
    /// Its address, without a password.
    pub base_url: String,
    /// Whether the key that it needs is there.
    pub key: KeyState,
    /// The environment variable of its key; null if it has none.
    pub key_env: Option<String>,
    /// Its models that are known.
    pub models: Vec<ListedModel>,
}

/// Whether the key that a provider needs is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It is there; whether it is valid isn't known.
    There,
    /// There is none, and the provider needs one.
    Missing,
    /// There is none, and none is needed.
    NotNeeded,
}

/// A model, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedModel {
    /// Its name: `provider/model`.
    pub name: String,
    /// Maximum tokens of a request with its answer; null if unknown.
    pub window_tokens: Option<u64>,
    /// Maximum tokens of an answer; null if unknown.
    pub output_tokens_max: Option<u32>,
    /// The price of its tokens; null if unknown.
    pub price_micro_usd_per_million_tokens: Option<Price>,
    /// Whether it accepts pictures.
    pub images: bool,
    /// The day from which the provider no longer offers it, as `YYYY-MM-DD`; null if none is known.
    pub retires: Option<String>,
    /// The model that replaces it then; null if none is known.
    pub successor: Option<String>,
    /// Where these facts come from.
    pub origin: FactsOrigin,
    /// The table or page that they were taken from; null if unknown.
    pub source: Option<String>,
    /// The day of the facts, as `YYYY-MM-DD`; null if unknown.
    pub as_of: Option<String>,
}

/// Where the facts of a model come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactsOrigin {
    /// The built-in table.
    BuiltIn,
    /// A public table that the user has imported.
    Updated,
    /// The user's settings, at least in part.
    Own,
}
