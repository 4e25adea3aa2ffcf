//! What interrupts the program: Ctrl-C and the request to terminate.

use tokio::signal;

/// Listens from its creation on; until then the system's default action applies.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
    #[cfg(unix)]
    terminate: signal::unix::Signal,
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
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
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
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.terminate.recv() => "SIGTERM",
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
