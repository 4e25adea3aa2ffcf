//! Implementations of the harness's model port: scripted models, and models of providers over HTTP.
//!
//! One call is one attempt; the engine decides about retries. [`resolve()`] turns a name from the settings into a
//! model and its policy. This crate reads neither settings nor environment variables of its own: keys and
//! addresses are passed in. (Proxies and certificate authorities are the platform's, as for any HTTP client.)
//!
//! Shared by all providers: `client` (one pooled client per endpoint, error messages), `stream` and `sse` (answers
//! read piece by piece), `patience` (how long to wait), `failure` (classes), `key` (never shown). Each provider's
//! own code is in its folder.

mod anthropic;
mod catalog;
mod client;
mod deviations;
mod estimate;
mod failure;
mod gemini;
mod json;
mod key;
mod key_filter;
mod limits;
mod listing;
mod observed;
mod openai;
mod openai_chat;
mod openai_responses;
mod piece;
mod provider;
mod providers;
mod public_table;
mod resolve;
mod script;
mod sent;
mod sse;
mod stream;
mod stream_timeouts;
mod tape;
mod upstream;
mod wire;

pub use catalog::{Catalog, ModelFacts, Origin, Reasoning};
pub use deviations::{Deviations, EffortField, LeastEffort, OutputCapField, ReasoningBack};
pub use key_filter::KeyFilter;
pub use limits::ModelLimits;
pub use observed::{ObservedAnswer, StreamObserver, observed_error};
pub use provider::{ProviderModel, ProviderOptions};
pub use providers::{Provider, Providers};
pub use public_table::{ModelChange, PublicTable, PublicTableError, TableKind};
pub use resolve::{ProviderSettings, ResolveError, resolve};
pub use script::{ScriptError, ScriptedModel};
pub use tape::{RecordingModel, ReplayModel, TapeError};
pub use upstream::{Upstream, UpstreamError, UpstreamRequest};
pub use wire::WireFormat;
