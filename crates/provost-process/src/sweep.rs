//! Ends the descendants of a guard that can't do it: it was stopped, or killed.
//!
//! Speed defeats processes that fork and exit again and again: the children of one process are listed in one small
//! file, which is read and acted on in a fraction of the time that a program takes to start. All of `/proc` is
//! read only where that file doesn't exist, and to be sure that no process is left.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{end_guard, sweep, until_dead};

/// Descendants are unknown on this platform.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_guard(_pid: u32) {}

/// Waits for the whole time; whether a child has ended is unknown.
#[cfg(not(target_os = "linux"))]
pub(crate) fn until_dead(_pid: u32, patience: std::time::Duration) -> bool {
    std::thread::sleep(patience);
    false
}
