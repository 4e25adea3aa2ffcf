//! Ending what descends from a guard that can't do it: it was stopped, or killed.
//!
//! What forks and exits again and again is met by being quick: the children of one process are one small file, which is read
//! and acted on within a fraction of the time that a program takes to begin. All of `/proc` is read only where that file isn't
//! there, and to be sure that nothing is left.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{end_guard, sweep, until_dead};

/// Nobody tells what is below it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_guard(_pid: u32) {}

/// Waits as long as it may; whether a child has ended isn't told.
#[cfg(not(target_os = "linux"))]
pub(crate) fn until_dead(_pid: u32, patience: std::time::Duration) -> bool {
    std::thread::sleep(patience);
    false
}
