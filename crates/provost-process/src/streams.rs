//! Which of the standard streams this process was started without.
//!
//! The standard library opens the null device in place of a closed stream before `main`; from then on it can't be
//! distinguished from a null device that the user chose.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "what runs before the standard library's own start has no safe interface")
)]

#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed when this process was started (`>&-`), so that output written there is lost.
/// Always `false` off Linux.
#[must_use]
pub fn stdout_was_closed() -> bool {
    #[cfg(target_os = "linux")]
    {
        STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
    }
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(target_os = "linux")]
extern "C" fn look() {
    // SAFETY: no memory is involved; a number that is no descriptor is refused.
    let answer = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(answer == -1, Ordering::Relaxed);
}

// SAFETY: the section holds functions of this form, which the C library calls before `main`; this one uses no part
// of the standard library that isn't initialised yet.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
