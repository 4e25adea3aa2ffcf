//! Keeps the machine awake while agents work, by what the system offers for that:
//!
//! - Linux: logind's inhibitor lock `idle` over D-Bus, and `sleep` besides if that is asked for (`systemd-inhibit
//!   --list` shows them);
//! - macOS: an assertion of the kind `PreventUserIdleSystemSleep` (`pmset -g assertions`);
//! - Windows: the execution state (`powercfg /requests`).
//!
//! Where there is none of it (a container, no D-Bus, a refusal, a bus that doesn't answer) the machine may sleep, and
//! one line at level debug says why. The display may always turn off.

mod keep_awake;
mod keeper;
mod lock;
mod shared;

pub use keep_awake::{ANSWER_MAX, KeepAwake, KeepAwakeOptions, LINGER};
