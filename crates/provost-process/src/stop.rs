//! Stops this process as a shell's job.

/// Stops this process until a shell or a user tells it to go on. If it can't be stopped, it goes on at once.
pub fn stop_this_process() {
    #[cfg(unix)]
    {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
    }
}
