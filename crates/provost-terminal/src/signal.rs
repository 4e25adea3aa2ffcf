//! What programs report of themselves in escape sequences. Any program can forge them: they are claims.

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// The window's title (OSC 0 and 2).
    Title(String),
    /// Program status (OSC 7501): the fields as they came, `state` among them.
    Status(Vec<(String, String)>),
    /// A shell's mark (OSC 133): `A` prompt starts, `B` it ends, `C` output starts, `D` the command ended, with its
    /// exit status if told.
    Mark(char, Option<i32>),
    /// Progress (ConEmu's OSC 9;4): its state (0 none, 1 normal, 2 error, 3 indeterminate, 4 paused) and percentage.
    Progress(u8, Option<u8>),
    /// A notification (OSC 9, 99, 777).
    Notification(String),
    /// The bell.
    Bell,
}
