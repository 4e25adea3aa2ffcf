//! Models behind the harness's model port: scripted ones, and those of providers over HTTP.
//!
//! One call is one attempt; the engine decides on another. [`resolve()`] leads from a name in the settings to a
//! model and to what the policy says of it. This crate reads neither settings nor environment variables of its
//! own: keys and addresses are handed in. (Proxies and certificate authorities are what the platform says, as
//! for any HTTP client.)
//!
//! What all providers share: `client` (one pooled client an endpoint, errors in words), `stream` and `sse`
//! (answers read piece by piece), `patience` (how long to wait), `failure` (classes), `key` (never shown).
//! What is one provider's own stands in its folder.

mod anthropic;
mod catalog;
mod client;
mod deviations;
mod estimate;
mod failure;
mod gemini;
mod json;
mod key;
mod limits;
mod listing;
mod openai;
mod openai_chat;
mod openai_responses;
mod patience;
mod piece;
mod provider;
mod providers;
mod public_table;
mod resolve;
mod script;
mod sse;
mod stream;
mod tape;
mod wire;

pub use catalog::{Catalog, ModelFacts, Origin, Reasoning};
pub use deviations::{Deviations, EffortField, LeastEffort, OutputCapField, ReasoningBack};
pub use limits::ModelLimits;
pub use provider::{ProviderModel, ProviderOptions};
pub use providers::{Provider, Providers};
pub use public_table::{ModelChange, PublicTable, PublicTableError, TableKind};
pub use resolve::{ProviderSettings, ResolveError, resolve};
pub use script::{ScriptError, ScriptedModel};
pub use tape::{RecordingModel, ReplayModel, TapeError};
pub use wire::WireFormat;
