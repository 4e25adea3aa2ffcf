//! What the kernel says of a terminal and the processes at it.

/// One look at a terminal and its processes. Where a platform can't tell, a field is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelSample {
    /// Whether the terminal echoes what is typed.
    pub echo: Option<bool>,
    /// Whether input is handed on by the line.
    pub canonical: Option<bool>,
    /// Whether a process of the foreground group is blocked in a read of the terminal.
    pub reads_terminal: Option<bool>,
    /// Whether a process below the terminal is running or about to, or waits for a disk.
    pub is_busy: Option<bool>,
    /// The foreground process group.
    pub foreground: Option<u32>,
}
