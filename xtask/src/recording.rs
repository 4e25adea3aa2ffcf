//! `cargo xtask recording`: the demo as the README shows it.

use anyhow::Result;
use xtask::shell::{built_provost, workspace};

use crate::in_dev;

/// Records the demo and draws the recording.
pub(crate) fn recording() -> Result<()> {
    let _ = built_provost(&[])?;
    in_dev(&["recording", &workspace().join("docs").to_string_lossy()])
}
