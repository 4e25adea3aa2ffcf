//! The interface of the platforms to the terminal's thread.

use std::io;

use provost_event::WindowSize;

use super::connections::ModelConnections;
use super::options::PtySignal;
use super::reader::KernelSample;

/// How a terminal treats input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineModes {
    /// It echoes input.
    pub(super) echo: bool,
    /// It delivers input line by line.
    pub(super) canonical: bool,
    /// The key that delivers the present line, and on an empty line ends the input; absent if it is off.
    pub(super) end_of_input: Option<u8>,
}

/// How to end the processes that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By a request.
    HangUp,
    /// By a kill, with all descendants.
    Kill,
}

/// A terminal and its program. No method blocks, except [`force`](Self::force).
pub(super) trait Device {
    /// Reads the available output, at most what fits; 0 if there is none.
    fn read(&mut self, buffer: &mut [u8]) -> usize;

    /// Types some of `bytes` and returns how many, at least one; `WouldBlock` if there is no room.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// `None` if unknown.
    fn line_modes(&self) -> Option<LineModes>;

    /// With `connections`, the sample also says whether the program awaits an answer over the network.
    fn sample(&mut self, connections: Option<&mut dyn ModelConnections>) -> KernelSample;

    fn resize(&mut self, size: WindowSize) -> io::Result<()>;

    /// `None` if there is no such signal.
    fn signal(&mut self, signal: PtySignal) -> Option<io::Result<()>>;

    fn order(&mut self, order: Order);

    /// Kills the rest and the guard, which doesn't answer. Blocks for up to five seconds.
    fn force(&mut self) {}
}
