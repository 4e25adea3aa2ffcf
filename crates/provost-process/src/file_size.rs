//! What happens to this process when a file reaches the limit on the size of files.
#![cfg_attr(unix, expect(unsafe_code, reason = "the disposition of a signal has no safe interface"))]

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail, instead of ending this process by
/// SIGXFSZ. Children have the default again. Off Unix it does nothing.
pub fn outlive_file_size_limit() {
    #[cfg(unix)]
    // SAFETY: no memory is involved, and there is no handler to run.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN)
    };
}
