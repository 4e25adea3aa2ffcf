//! The modes of the terminal, and that they are undone: also after a panic.

use std::io::{self, Stdout};
use std::sync::Once;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::style::Print;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// Marks of which a terminal may make two columns.
const UNSURE_MARKS: &str = "◆●◎↻✓━▌▮";

/// The terminal in its own screen. Dropping it restores what was before.
pub(crate) struct OwnScreen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl OwnScreen {
    /// Takes the terminal: every key comes at once, and what was on the screen comes back later.
    pub(crate) fn enter() -> io::Result<Self> {
        restore_after_panics();
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)
            .inspect_err(|_| restore())?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| restore())?;
        Ok(Self { terminal })
    }

    /// Whether the marks take one column each here; not if the terminal doesn't say.
    pub(crate) fn has_narrow_marks() -> bool {
        let columns = UNSURE_MARKS.chars().count();
        let begun = execute!(io::stdout(), MoveTo(0, 0), Print(UNSURE_MARKS));
        let is_narrow =
            begun.and_then(|()| crossterm::cursor::position()).is_ok_and(|at| usize::from(at.0) == columns);
        let _ = execute!(io::stdout(), MoveTo(0, 0), Clear(ClearType::All));
        is_narrow
    }
}

impl Drop for OwnScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// A terminal that is gone needs none of it.
fn restore() {
    let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

pub(crate) fn restore_after_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The message must not be lost with the screen.
            restore();
            before(panic);
        }));
    });
}
