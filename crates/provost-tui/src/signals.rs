//! What the system asks of this process.

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// To end.
    Ends,
    /// To stop, as a shell's job.
    Stops,
    /// It goes on after it was stopped.
    Continues,
}

#[cfg(unix)]
mod unix {
    use std::io;

    use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

    use super::Signal;

    pub(crate) struct Signals {
        ends: [Stream; 3],
        stops: Stream,
        continues: Stream,
    }

    impl Signals {
        /// Begins to listen.
        pub(crate) fn listen() -> io::Result<Self> {
            let raw = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
            Ok(Self {
                ends: [
                    signal(SignalKind::terminate())?,
                    signal(SignalKind::hangup())?,
                    signal(SignalKind::interrupt())?,
                ],
                stops: signal(raw(rustix::process::Signal::TSTP))?,
                continues: signal(raw(rustix::process::Signal::CONT))?,
            })
        }

        /// The next one.
        ///
        /// # Cancellation
        /// Safe: none is lost.
        pub(crate) async fn next(&mut self) -> Signal {
            let [terminate, hangup, interrupt] = &mut self.ends;
            tokio::select! {
                _ = terminate.recv() => Signal::Ends,
                _ = hangup.recv() => Signal::Ends,
                _ = interrupt.recv() => Signal::Ends,
                _ = self.stops.recv() => Signal::Stops,
                _ = self.continues.recv() => Signal::Continues,
            }
        }
    }
}

#[cfg(unix)]
pub(crate) use unix::Signals;

#[cfg(not(unix))]
mod elsewhere {
    use std::io;

    use super::Signal;

    pub(crate) struct Signals;

    impl Signals {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) async fn next(&mut self) -> Signal {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            Signal::Ends
        }
    }
}

#[cfg(not(unix))]
pub(crate) use elsewhere::Signals;
