//! What the platforms have in common for the terminal's thread.

use std::io;

use provost_event::WindowSize;
use provost_terminal::KernelSample;

use super::options::PtySignal;

/// How a terminal treats what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineModes {
    /// It shows it.
    pub(super) echo: bool,
    /// It hands it on by the line.
    pub(super) canonical: bool,
    /// The key that hands on what there is, and on an empty line ends the input; absent if it is off.
    pub(super) end_of_input: Option<u8>,
}

/// How what still runs is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// It is asked.
    HangUp,
    /// It is killed, with all below it.
    Kill,
}

/// A terminal and the program at it. Nothing here blocks.
pub(super) trait Device {
    /// Reads what is there, at most what fits; 0 when nothing is.
    fn read(&mut self, buffer: &mut [u8]) -> usize;

    /// Types some of `bytes` and returns how many, at least one; `WouldBlock` when there is no room.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// `None` where that can't be told.
    fn line_modes(&self) -> Option<LineModes>;

    fn sample(&mut self) -> KernelSample;

    fn resize(&mut self, size: WindowSize) -> io::Result<()>;

    /// `None` where there is no such signal.
    fn signal(&mut self, signal: PtySignal) -> Option<io::Result<()>>;

    fn order(&mut self, order: Order);

    /// Kills what is left and the guard, which should have done so and doesn't answer. Blocks for up to five seconds.
    fn force(&mut self) {}
}
