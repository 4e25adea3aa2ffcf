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
pub mod catalog;
mod client;
mod failure;
mod key;
mod limits;
mod patience;
mod resolve;
mod script;
mod sse;
mod stream;

pub use anthropic::{AnthropicModel, AnthropicOptions};
pub use catalog::ModelFacts;
pub use limits::ModelLimits;
pub use resolve::{AnthropicSettings, ProviderSettings, ResolveError, resolve};
pub use script::{ScriptError, ScriptedModel};
