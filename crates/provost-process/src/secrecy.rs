//! Hides secrets in this process's environment and memory from other processes of the same user.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "what the system shows to others has no safe interface")
)]

/// Overwrites the values of the variables that `is_secret` selects by name, where the system shows them to other
/// processes (`/proc/PID/environ`), and so for this process too: read them before.
///
/// Returns whether that was done. It isn't where there is no `/proc`, nor when this process has another thread,
/// which might access the environment at the same time: call it first thing in `main`.
pub fn hide_variables(is_secret: impl Fn(&str) -> bool) -> bool {
    #[cfg(target_os = "linux")]
    if is_alone() {
        // SAFETY: there is no other thread, and none can be started while this one is here.
        unsafe { hide(is_secret) };
        return true;
    }
    let _ = is_secret;
    false
}

/// Keeps other processes of the same user, but not root's, from tracing this one, and from reading its memory,
/// environment and descriptors. It also writes no core dumps. Off Linux it does nothing.
///
/// Children inherit it until they execute a program.
pub fn be_untraceable() {
    #[cfg(target_os = "linux")]
    // SAFETY: no memory is involved.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0)
    };
}

#[cfg(target_os = "linux")]
fn is_alone() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

#[cfg(target_os = "linux")]
unsafe fn hide(is_secret: impl Fn(&str) -> bool) {
    unsafe extern "C" {
        static environ: *const *mut libc::c_char;
    }
    // SAFETY: the block is an array of pointers to texts that end with a zero, and itself ends with a null
    // pointer; no other code changes it now. Only bytes before that zero are written.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            let text = std::ffi::CStr::from_ptr(*next).to_bytes();
            let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
            if std::str::from_utf8(name).is_ok_and(&is_secret) {
                let (from, until) = ((name.len() + 1).min(text.len()), text.len());
                for place in from..until {
                    (*next).add(place).write_volatile(0);
                }
            }
            next = next.add(1);
        }
    }
}
