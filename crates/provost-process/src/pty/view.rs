//! A snapshot of what a terminal shows, and what it means.

use std::sync::Arc;
use std::time::Duration;

use provost_event::{TerminalAsk, TerminalState, WindowSize};
use tokio::sync::{oneshot, watch};

use super::shared::{Ask, Shared};

/// A snapshot of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalView {
    /// The rows' texts from the top, without trailing blanks.
    pub rows: Vec<String>,
    /// The cursor.
    pub cursor: Cursor,
    /// The modes in force.
    pub modes: Modes,
    /// The window's title; empty if the program has given none.
    pub title: String,
    /// The program's state.
    pub state: TerminalState,
    /// The question for consent, if one is open.
    pub ask: Option<TerminalAsk>,
    /// Whether what the program waits for is text, as far as there is evidence: a line, a composer. A menu, a pager
    /// and "press any key" aren't.
    pub takes_text: bool,
    /// Whether the program asks for a secret while the terminal shows what is typed: it isn't a password prompt, and
    /// what is typed there is kept out of the recording.
    pub exposes_secret: bool,
    /// Whether the terminal collects lines for the program, as far as the system tells: one with a composer of its own isn't
    /// reading then.
    pub reads_lines: bool,
    /// Whether the program paints frames (the alternate screen, synchronized updates, a hidden cursor) rather than
    /// writing lines.
    pub paints: bool,
    /// The window's size.
    pub size: WindowSize,
    /// Identifies the readable content: the rows' texts, which screen it is, the cursor's position and visibility.
    /// Stable within one version of Provost; don't store it.
    pub fingerprint: u64,
    /// When the program last wrote, since its start.
    pub at: Duration,
}

/// The cursor's position, from 0, and its visibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The row.
    pub row: u16,
    /// The column; may be one past the last.
    pub col: u16,
    /// Whether it is shown.
    pub visible: bool,
}

/// The mouse events that a program requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mouse {
    /// Nothing.
    #[default]
    Off,
    /// Buttons pressed.
    Press,
    /// Buttons pressed and released.
    PressRelease,
    /// Those, and motion with a button held.
    Drag,
    /// All motion.
    Motion,
}

/// The modes that input and display depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// The alternate screen is shown.
    pub alternate: bool,
    /// Pasted text has to be bracketed.
    pub bracketed_paste: bool,
    /// The program is painting a frame (synchronized update). The screen has no clock: the code that waits for the
    /// end of a frame sets the limit after which this no longer counts, in case the program dies within one.
    pub synchronized: bool,
    /// Cursor keys send their application forms.
    pub application_cursor: bool,
    /// The keypad sends its application forms.
    pub application_keypad: bool,
    /// The program requests focus events.
    pub focus_reports: bool,
    /// The requested mouse events.
    pub mouse: Mouse,
    /// Mouse reports have the form of SGR (DECSET 1006).
    pub mouse_sgr: bool,
    /// The flags of kitty's keyboard protocol; 0 for the classic encoding.
    pub keyboard_flags: u8,
    /// xterm's modifyOtherKeys, 0 to 2.
    pub modify_other_keys: u8,
}

/// The settled changes of a terminal, from [`PtySupervisor::changes`](crate::PtySupervisor::changes).
pub struct Changes {
    pub(super) shared: Arc<Shared>,
    pub(super) revision: watch::Receiver<u64>,
}

impl Changes {
    /// Waits until the program has written and paused for 30 ms, or has written for 250 ms without a pause, and
    /// returns the screen at that time. Changes since the last call count as one. `None` when no more changes will
    /// come.
    ///
    /// # Cancellation
    /// No change is lost, except the one about to be returned.
    pub async fn next(&mut self) -> Option<TerminalView> {
        let mut status = self.shared.status.subscribe();
        tokio::select! {
            biased;
            changed = self.revision.changed() => changed.ok()?,
            _ = status.wait_for(|status| status.is_gone) => {
                // The last change may have come with the end.
                if !self.revision.has_changed().unwrap_or(false) {
                    return None;
                }
                self.revision.mark_unchanged();
            }
        }
        view(&self.shared).await
    }
}

pub(super) async fn view(shared: &Shared) -> Option<TerminalView> {
    let (answer, view) = oneshot::channel();
    shared.ask(Ask::View(answer)).await.ok()?;
    view.await.ok()
}
