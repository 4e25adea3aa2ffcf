//! This process's terminal for a program that this process itself has started.

use std::io;

use provost_event::WindowSize;
use tokio::io::AsyncWriteExt as _;

#[cfg(unix)]
use super::raw::{Keyboard, RawTerminal, Resizes};
#[cfg(not(unix))]
use super::raw_elsewhere::{Keyboard, RawTerminal, Resizes};
use super::size;

/// What comes from the terminal.
pub(crate) enum LocalInput {
    /// Keys.
    Typed(Vec<u8>),
    /// It has this size now.
    Resized(WindowSize),
    /// It is closed.
    Closed,
}

/// The terminal, until this is dropped.
pub(crate) struct LocalTerminal {
    keyboard: Keyboard,
    resizes: Resizes,
    out: tokio::io::Stdout,
    _raw: RawTerminal,
}

impl LocalTerminal {
    /// Clears it, and delivers every key from now on.
    ///
    /// # Errors
    /// When it can't be used.
    pub(crate) async fn enter() -> io::Result<Self> {
        let raw = RawTerminal::enter()?;
        let keyboard = Keyboard::listen()?;
        let resizes = Resizes::listen()?;
        let cleared = raw.cleared();
        let mut terminal = Self { keyboard, resizes, out: tokio::io::stdout(), _raw: raw };
        terminal.show(cleared.as_bytes()).await?;
        Ok(terminal)
    }

    /// Writes to it.
    ///
    /// # Errors
    /// Its own.
    pub(crate) async fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes).await?;
        self.out.flush().await
    }

    /// What comes from it next.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> LocalInput {
        loop {
            tokio::select! {
                typed = self.keyboard.next() => return typed.map_or(LocalInput::Closed, LocalInput::Typed),
                () = self.resizes.next() => if let Some(size) = size() {
                    return LocalInput::Resized(size);
                },
            }
        }
    }
}
