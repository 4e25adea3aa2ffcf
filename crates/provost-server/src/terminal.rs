//! The terminals of external agents: what their screens show, what is typed, and what was recorded.
//!
//! A program's output comes through the socket of the process that drives it, as `provost attach` gets it; the screen is
//! drawn here by the same emulator.

pub(crate) mod cells;
pub(crate) mod recordings;

use std::path::Path;
use std::time::Duration;

use provost_event::SessionId;
use provost_external::{AttachError, AttachUpdate, Attached, AttachedInput, Hello, Role, attach};
use provost_terminal::Screen;

use crate::problem::Problem;
use cells::ScreenView;

/// How long the first screen may take.
const FIRST_SCREEN_MAX: Duration = Duration::from_secs(5);

/// A program's screen, kept up to date.
pub(crate) struct LiveScreen {
    screen: Screen,
    /// The program.
    pub(crate) program: String,
    output: Attached,
}

/// What came of waiting for output.
pub(crate) enum Shown {
    /// The screen may differ.
    Changed,
    /// The program has ended, or isn't driven any more; in words.
    Gone(String),
}

impl LiveScreen {
    /// Attaches to a program and waits for its screen.
    ///
    /// # Errors
    /// A [`Problem`] where there is no program at a terminal.
    pub(crate) async fn attach(
        folder: &Path,
        session: SessionId,
        hello: Hello,
    ) -> Result<(Self, AttachedInput), Problem> {
        let (welcome, output, input) =
            attach(folder, session, hello).await.map_err(|error| problem(&error))?;
        let screen = Screen::new(provost_event::WindowSize::default());
        let mut live = Self { screen, program: welcome.program, output };
        let late = || Problem::conflict("its screen didn't come in time");
        let first = tokio::time::timeout(FIRST_SCREEN_MAX, live.next()).await.map_err(|_| late())?;
        match first? {
            Shown::Changed => Ok((live, input)),
            Shown::Gone(why) => Err(Problem::conflict(why)),
        }
    }

    /// The screen as it is, without staying attached.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub(crate) async fn once(folder: &Path, session: SessionId, by: &str) -> Result<ScreenView, Problem> {
        let hello = Hello::new(Role::Look, None, by);
        Ok(Self::attach(folder, session, hello).await?.0.view())
    }

    pub(crate) fn view(&self) -> ScreenView {
        ScreenView::of(&self.screen)
    }

    /// Waits for output, and draws it.
    ///
    /// # Errors
    /// When the socket fails.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> Result<Shown, Problem> {
        loop {
            match self.output.next().await.map_err(|error| problem(&error))? {
                Some(AttachUpdate::Screen { size, bytes, .. }) => {
                    self.screen = Screen::new(size);
                    self.screen.feed(&bytes);
                }
                Some(AttachUpdate::Output(bytes)) => self.screen.feed(&bytes),
                Some(AttachUpdate::Welcome(_) | AttachUpdate::State(_)) => continue,
                Some(AttachUpdate::Gone(_)) => {
                    return Ok(Shown::Gone("the program has ended".to_owned()));
                }
                Some(AttachUpdate::Refused(why)) => return Ok(Shown::Gone(why)),
                None => return Ok(Shown::Gone("the program is no longer driven".to_owned())),
            }
            // Replies to queries are those of the terminal that drives it.
            self.screen.take_replies();
            self.screen.take_signals();
            return Ok(Shown::Changed);
        }
    }
}

fn problem(error: &AttachError) -> Problem {
    match error {
        AttachError::NotThere { session, .. } => {
            Problem::conflict(format!("the program of {session} has no terminal at this moment"))
        }
        _ => Problem::conflict(error.to_string()),
    }
}
