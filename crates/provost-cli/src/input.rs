//! Standard input is read where that was asked for; data that waits there otherwise isn't taken, but reported
//! once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::output::tell;

/// Reports once that unread data waits on standard input, if so. `remedy` says how to have it read.
pub(crate) fn tell_of_unread(remedy: &str) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if waits() && !TOLD.swap(true, Ordering::Relaxed) {
        tell(&format!("note: standard input isn't read{remedy}"));
    }
}

/// Whether standard input is a pipe, a socket or a file in which something waits to be read. Nothing is taken from
/// it or waited for.
#[cfg(unix)]
fn waits() -> bool {
    use std::fs::File;
    use std::io::Seek as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileTypeExt as _;

    let Ok(mut input) = std::io::stdin().as_fd().try_clone_to_owned().map(File::from) else { return false };
    let Ok(facts) = input.metadata() else { return false };
    let kind = facts.file_type();
    if kind.is_file() {
        return input.stream_position().is_ok_and(|at| at < facts.len());
    }
    (kind.is_fifo() || kind.is_socket()) && rustix::io::ioctl_fionread(&input).is_ok_and(|bytes| bytes > 0)
}

#[cfg(not(unix))]
fn waits() -> bool {
    false
}
