//! A person's terminal that is connected to an agent's program: the program's output goes to it, and its keys go
//! to the program one by one.

mod boundary;
mod keys;
mod local;
#[cfg(unix)]
mod raw;
mod report;

use std::path::Path;

use anyhow::Context as _;
use provost_config::DetachKey;
use provost_event::{Exit, SessionId, WindowSize};
use provost_external::{AttachError, AttachUpdate, Attached, AttachedInput, Hello, Role, attach};
use tokio::io::AsyncWriteExt as _;

use self::boundary::Boundary;
pub(crate) use self::keys::{Typed, read};
pub(crate) use self::local::{LocalInput, LocalTerminal};
#[cfg(unix)]
use self::raw::{Keyboard, RawTerminal, Resizes, is_there};
#[cfg(unix)]
pub(crate) use self::raw::{reset, size};
#[cfg(not(unix))]
use self::raw_elsewhere::{Keyboard, RawTerminal, Resizes, is_there};
#[cfg(not(unix))]
pub(crate) use self::raw_elsewhere::{reset, size};
pub(crate) use self::report::Asides;
use crate::exit::Refusal;
use crate::questions::user_name;

/// Refuses unless standard input and output are a terminal.
///
/// # Errors
/// [`Refusal`] with `hint`.
pub(crate) fn must_be_terminal(what: &str, hint: &str) -> Result<(), Refusal> {
    if is_there() {
        return Ok(());
    }
    let words = format!("{what} needs a terminal, and standard input or output is none");
    Err(Refusal::new(words, hint))
}

/// Why a terminal is no longer attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// The user detached it, or it was closed.
    Detached,
    /// The program has ended.
    Gone(Option<Exit>),
    /// The Provost process that drove the program is gone.
    Lost,
}

/// What to attach to, and how.
pub(crate) struct Attaching<'a> {
    /// The folder with the sockets of programs.
    pub(crate) folder: &'a Path,
    /// The session of the program.
    pub(crate) session: SessionId,
    /// What this terminal may do.
    pub(crate) role: Role,
    /// The key that detaches.
    pub(crate) key: DetachKey,
    /// Reports to the terminal besides the program's output.
    pub(crate) asides: Asides,
}

impl Attaching<'_> {
    /// Connects this terminal to the program until it is detached or the program ends.
    ///
    /// # Errors
    /// Those of [`join`](Self::join) and [`Joined::converse`].
    ///
    /// # Cancellation
    /// The terminal is restored.
    pub(crate) async fn converse(&self) -> anyhow::Result<Left> {
        self.join().await?.converse().await
    }

    /// Connects to the program. The terminal isn't touched yet.
    ///
    /// # Errors
    /// [`AttachError`] when it can't be attached.
    pub(crate) async fn join(&self) -> anyhow::Result<Joined<'_>> {
        let hello = Hello::of_terminal(self.role, self.window(), user_name("a person"));
        let (_, shown, input) = attach(self.folder, self.session, hello).await?;
        Ok(Joined { attaching: self, shown, input })
    }

    /// A terminal that only watches doesn't shrink the window of the others.
    fn window(&self) -> Option<WindowSize> {
        if self.role == Role::Watch { None } else { size() }
    }
}

/// A program that this terminal is about to show.
pub(crate) struct Joined<'a> {
    attaching: &'a Attaching<'a>,
    shown: Attached,
    input: AttachedInput,
}

impl Joined<'_> {
    /// Shows the program until the terminal is detached or closed, or the program ends.
    ///
    /// # Errors
    /// When the terminal or the socket fails.
    ///
    /// # Cancellation
    /// The terminal is restored.
    pub(crate) async fn converse(self) -> anyhow::Result<Left> {
        let Self { attaching, shown, input } = self;
        let _held = attaching.asides.hold();
        let terminal = RawTerminal::enter().context("can't use this terminal")?;
        let resizes = Resizes::listen().context("can't watch the window's size")?;
        let keyboard = Keyboard::listen().context("can't read what is typed")?;
        let mut screen = Screen { out: tokio::io::stdout(), boundary: Boundary::default() };
        screen.write(terminal.cleared().as_bytes()).await?;
        Conversation { attaching, shown, input, screen, keyboard, resizes }.work().await
    }
}

/// Whether it may be tried again: the program isn't there yet.
pub(crate) fn is_not_there(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(AttachError::NotThere { .. }))
}

struct Conversation<'a> {
    attaching: &'a Attaching<'a>,
    shown: Attached,
    input: AttachedInput,
    screen: Screen,
    keyboard: Keyboard,
    resizes: Resizes,
}

enum Next {
    Shown(Option<AttachUpdate>),
    Typed(Option<Vec<u8>>),
    Resized,
    Aside,
}

impl Conversation<'_> {
    async fn work(mut self) -> anyhow::Result<Left> {
        loop {
            let next = tokio::select! {
                shown = self.shown.next() => Next::Shown(shown?),
                typed = self.keyboard.next() => Next::Typed(typed),
                () = self.resizes.next() => Next::Resized,
                () = self.attaching.asides.wait() => Next::Aside,
            };
            let left = match next {
                Next::Shown(shown) => self.show(shown).await?,
                Next::Typed(typed) => self.type_in(typed).await?,
                Next::Resized => {
                    self.resize().await?;
                    None
                }
                Next::Aside => None,
            };
            if let Some(left) = left {
                return Ok(left);
            }
            self.screen.tell(&self.attaching.asides).await?;
        }
    }

    async fn show(&mut self, shown: Option<AttachUpdate>) -> anyhow::Result<Option<Left>> {
        match shown {
            Some(AttachUpdate::Screen { scrollback, bytes, .. }) => {
                self.screen.write(&scrolled_off(scrollback)).await?;
                self.screen.write(&bytes).await?;
            }
            Some(AttachUpdate::Output(bytes)) => self.screen.write(&bytes).await?,
            Some(AttachUpdate::Welcome(_) | AttachUpdate::State(_)) => {}
            Some(AttachUpdate::Gone(exit)) => return Ok(Some(Left::Gone(exit))),
            Some(AttachUpdate::Refused(why)) => return Err(AttachError::Refused { why }.into()),
            None => return Ok(Some(Left::Lost)),
        }
        Ok(None)
    }

    async fn type_in(&mut self, typed: Option<Vec<u8>>) -> anyhow::Result<Option<Left>> {
        // A terminal that is closed is detached.
        let Some(typed) = typed else { return Ok(Some(Left::Detached)) };
        let (keys, detaches) = match read(&typed, self.attaching.key) {
            Typed::Keys(keys) => (keys, false),
            Typed::Detach { before } => (before, true),
        };
        if self.attaching.role == Role::Control && !keys.is_empty() {
            self.input.send(keys).await?;
        }
        if detaches {
            self.input.detach().await?;
            return Ok(Some(Left::Detached));
        }
        Ok(None)
    }

    async fn resize(&mut self) -> anyhow::Result<()> {
        if let Some(size) = self.attaching.window() {
            self.input.resize(size).await?;
        } else {
            self.input.repaint().await?;
        }
        Ok(())
    }
}

/// Lines, and what moves all of them into the scrollback of a terminal whose cursor is at the top.
fn scrolled_off(mut lines: Vec<u8>) -> Vec<u8> {
    if lines.is_empty() {
        return lines;
    }
    let rows = usize::from(size().map_or(1, |size| size.rows));
    let count = lines.iter().filter(|byte| **byte == b'\n').count();
    let feeds = "\r\n".repeat(count.min(rows.saturating_sub(1)));
    lines.extend(format!("\u{1b}[{rows};1H{feeds}\u{1b}[H").into_bytes());
    lines
}

/// What is shown.
struct Screen {
    out: tokio::io::Stdout,
    boundary: Boundary,
}

impl Screen {
    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.boundary.take(bytes);
        self.out.write_all(bytes).await?;
        self.out.flush().await
    }

    /// Writes the pending reports, unless that would fall into the middle of a sequence of the program.
    async fn tell(&mut self, asides: &Asides) -> std::io::Result<()> {
        if !self.boundary.is_between() {
            return Ok(());
        }
        let waiting = asides.take();
        if waiting.is_empty() {
            return Ok(());
        }
        self.out.write_all(waiting.as_bytes()).await?;
        self.out.flush().await
    }
}

#[cfg(not(unix))]
mod raw_elsewhere {
    //! Terminals can't be attached on this platform yet.

    use std::io;

    use provost_event::WindowSize;

    pub(super) struct RawTerminal;

    impl RawTerminal {
        pub(super) fn enter() -> io::Result<Self> {
            Err(io::Error::from(io::ErrorKind::Unsupported))
        }

        pub(super) fn cleared(&self) -> String {
            String::new()
        }
    }

    pub(super) struct Keyboard;

    impl Keyboard {
        pub(super) fn listen() -> io::Result<Self> {
            Err(io::Error::from(io::ErrorKind::Unsupported))
        }

        pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
            None
        }
    }

    pub(super) struct Resizes;

    impl Resizes {
        pub(super) fn listen() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn next(&mut self) {
            std::future::pending().await
        }
    }

    pub(super) fn is_there() -> bool {
        false
    }

    pub(crate) fn size() -> Option<WindowSize> {
        None
    }

    pub(crate) fn reset() {}
}
