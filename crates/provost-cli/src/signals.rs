//! What interrupts the program: Ctrl-C, the request to terminate, and a terminal that is closed.

use tokio::signal;

/// Listens from its creation on; until then the system's default action applies.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
    #[cfg(unix)]
    terminate: signal::unix::Signal,
    /// Heard once: the shell repeats what the kernel says of a closed terminal, and a second signal ends at once.
    #[cfg(unix)]
    hangup: Option<signal::unix::Signal>,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn listen() -> std::io::Result<Self> {
        #[cfg(unix)]
        {
            use signal::unix::{SignalKind, signal};
            let hears = !hangup::is_ignored();
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: hears.then(|| signal(SignalKind::hangup())).transpose()?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next one, and returns its name for people.
    ///
    /// # Cancellation
    /// Safe: none is lost.
    pub(crate) async fn next(&mut self) -> &'static str {
        #[cfg(unix)]
        {
            let name = tokio::select! {
                _ = self.interrupt.recv() => "Ctrl-C",
                _ = self.terminate.recv() => "SIGTERM",
                () = hangup::of(&mut self.hangup) => "SIGHUP",
            };
            if name == "SIGHUP" {
                self.hangup = None;
            }
            name
        }
        #[cfg(not(unix))]
        {
            // Without a way to receive it, there is nothing to wait for.
            if signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            "Ctrl-C"
        }
    }
}

/// The signal of a closed terminal.
#[cfg(unix)]
mod hangup {
    use tokio::signal::unix::Signal;

    /// Whether this process was started to outlive its terminal (`nohup`). Where the system doesn't tell: whether it
    /// writes to no terminal.
    pub(super) fn is_ignored() -> bool {
        match std::fs::read_to_string("/proc/self/status") {
            Ok(status) => is_in_mask(&status),
            Err(_) => {
                use std::io::IsTerminal as _;
                !std::io::stdout().is_terminal() && !std::io::stderr().is_terminal()
            }
        }
    }

    fn is_in_mask(status: &str) -> bool {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // The first bit stands for the first signal, SIGHUP.
        mask.is_some_and(|mask| mask & 1 == 1)
    }

    pub(super) async fn of(signal: &mut Option<Signal>) {
        match signal {
            Some(signal) => _ = signal.recv().await,
            None => std::future::pending().await,
        }
    }
}
