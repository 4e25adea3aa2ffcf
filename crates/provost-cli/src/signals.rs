//! What interrupts the program: Ctrl-C, the request to terminate, and a terminal that is closed.

use provost_process::PtySignal;
use tokio::signal;

/// A signal that was caught.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caught {
    /// Its name for people.
    pub(crate) name: &'static str,
    /// The signal.
    pub(crate) signal: PtySignal,
}

/// Listens from its creation on; until then the system's default action applies.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
    #[cfg(unix)]
    terminate: signal::unix::Signal,
    /// Heard once: the shell repeats what the kernel says of a closed terminal, and a second signal ends at once.
    #[cfg(unix)]
    hangup: Option<signal::unix::Signal>,
    /// Those that are only forwarded to a program that this one stands for.
    #[cfg(unix)]
    forwarded: Option<forwarded::Signals>,
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
                forwarded: None,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Listens also to those that only a program that this one stands for makes use of.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn with_forwarded(mut self) -> std::io::Result<Self> {
        #[cfg(unix)]
        {
            self.forwarded = Some(forwarded::Signals::listen()?);
        }
        Ok(self)
    }

    /// Waits for the next one, and returns its name for people.
    ///
    /// # Cancellation
    /// Safe: none is lost.
    pub(crate) async fn next(&mut self) -> &'static str {
        self.caught().await.name
    }

    /// Waits for the next one.
    ///
    /// # Cancellation
    /// Safe: none is lost.
    pub(crate) async fn caught(&mut self) -> Caught {
        #[cfg(unix)]
        {
            let caught = tokio::select! {
                _ = self.interrupt.recv() => Caught { name: "Ctrl-C", signal: PtySignal::Interrupt },
                _ = self.terminate.recv() => Caught { name: "SIGTERM", signal: PtySignal::Terminate },
                () = hangup::of(&mut self.hangup) => Caught { name: "SIGHUP", signal: PtySignal::Hangup },
                caught = forwarded::next(&mut self.forwarded) => caught,
            };
            if caught.signal == PtySignal::Hangup {
                self.hangup = None;
            }
            caught
        }
        #[cfg(not(unix))]
        {
            // Without a way to receive it, there is nothing to wait for.
            if signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            Caught { name: "Ctrl-C", signal: PtySignal::Interrupt }
        }
    }
}

/// Signals that have no meaning for a run.
#[cfg(unix)]
mod forwarded {
    use provost_process::PtySignal;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::Caught;

    pub(super) struct Signals {
        quit: Signal,
        user1: Signal,
        user2: Signal,
    }

    impl Signals {
        pub(super) fn listen() -> std::io::Result<Self> {
            Ok(Self {
                quit: signal(SignalKind::quit())?,
                user1: signal(SignalKind::user_defined1())?,
                user2: signal(SignalKind::user_defined2())?,
            })
        }
    }

    pub(super) async fn next(signals: &mut Option<Signals>) -> Caught {
        let Some(signals) = signals else { return std::future::pending().await };
        tokio::select! {
            _ = signals.quit.recv() => Caught { name: "SIGQUIT", signal: PtySignal::Quit },
            _ = signals.user1.recv() => Caught { name: "SIGUSR1", signal: PtySignal::User1 },
            _ = signals.user2.recv() => Caught { name: "SIGUSR2", signal: PtySignal::User2 },
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
