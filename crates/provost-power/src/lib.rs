//! Keeps the machine awake while agents work, by the means of the system:
//!
//! - Linux: logind's inhibitor lock `idle` over D-Bus, and optionally `sleep` (`systemd-inhibit --list` shows
//!   them);
//! - macOS: an assertion of the kind `PreventUserIdleSystemSleep` (`pmset -g assertions`);
//! - Windows: the execution state (`powercfg /requests`).
//!
//! Where none is available (a container, no D-Bus, a refusal, a bus that doesn't answer) the machine may sleep,
//! and one line at level debug says why. The display may always turn off.

mod keep_awake;
mod keeper;
mod lock;
mod shared;

pub use keep_awake::{ANSWER_MAX, KeepAwake, KeepAwakeOptions, LINGER};
