//! Typed hooks of the embedding program: each can only return the actions of its event.
//!
//! An event is a type ([`PreToolCall`], [`OnTurnEnd`], …) with its own read-only input and its own actions. Hooks
//! are registered with a [`HookRegistryBuilder`] and frozen into a [`HookRegistry`] for a harness
//! ([`HarnessDeps::hooks`]). To observe without deciding, use an [`Observer`].
//!
//! ```
//! use provost_harness::hooks::{HookOptions, HookRegistry, PreToolCall, PreToolCallAction, from_fn};
//!
//! let no_pushing = from_fn::<PreToolCall>(|call| {
//!     if call.tool == "shell" && call.arguments.text().contains("git push") {
//!         PreToolCallAction::Deny("pushing is left to people".to_owned())
//!     } else {
//!         PreToolCallAction::Continue
//!     }
//! });
//! let registry = HookRegistry::builder().on(HookOptions::new("no-pushing"), no_pushing).freeze()?;
//! assert_eq!(registry.policies()[0].name, "no-pushing");
//! # Ok::<(), provost_harness::hooks::HookRegistryError>(())
//! ```
//!
//! [`HarnessDeps::hooks`]: crate::HarnessDeps::hooks
//! [`Observer`]: crate::Observer

mod adapter;
mod dispatch;
mod event;
mod registry;
mod reminders;

pub use adapter::{blocking, from_fn};
pub(crate) use dispatch::Dispatch;
pub use event::*;
pub use registry::{HookOptions, HookRegistry, HookRegistryBuilder, HookRegistryError};
pub use reminders::TaskReminders;

use std::time::Duration;

/// The default timeout of a hook.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of a tool's output in [`PostToolCallInput::summary`].
pub const SUMMARY_BYTES_MAX: usize = 4 * 1024;
/// Maximum bytes of the agent's last message in [`OnTurnEndInput::preview`].
pub const PREVIEW_BYTES_MAX: usize = 1024;
/// Maximum bytes of a hook's reason, of its note and of each of its reminders; longer ones are cut. 10,000
/// characters of any script fit, the maximum of scripts for Claude Code.
pub const WORDS_BYTES_MAX: usize = 40 * 1024;
/// Maximum reminders in one answer; further ones are dropped, and the hook's note says so.
pub const REMINDERS_MAX: usize = 16;
