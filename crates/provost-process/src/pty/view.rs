//! A snapshot of what a terminal shows.

use std::sync::Arc;
use std::time::Duration;

use provost_event::{TerminalAsk, TerminalState, WindowSize};
use provost_terminal::{Cursor, Detector, Modes};
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
    /// The window's size.
    pub size: WindowSize,
    /// Identifies the readable content and the cursor:
    /// [`Screen::fingerprint`](provost_terminal::Screen::fingerprint).
    pub fingerprint: u64,
    /// When the program last wrote, since its start.
    pub at: Duration,
}

impl TerminalView {
    pub(super) fn of(detector: &Detector, size: WindowSize, at: Duration) -> Self {
        let screen = detector.screen();
        Self {
            rows: screen.rows(),
            cursor: screen.cursor(),
            modes: screen.modes(),
            title: screen.title().to_owned(),
            state: detector.state(),
            ask: detector.ask().cloned(),
            size,
            fingerprint: screen.fingerprint(),
            at,
        }
    }
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
