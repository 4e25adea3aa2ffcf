//! Where there is no sandbox: nothing can be confined, and what requires a sandbox is refused.

use crate::probe::{Finding, Probe};

/// Nothing was started as a step.
pub const fn run_step_if_asked() {}

pub(crate) fn probe(_search: &std::ffi::OsStr) -> Probe {
    let remedy = "use Linux, or a container or virtual machine as the boundary";
    Probe { bwrap: None, findings: vec![Finding::missing("sandbox", "not there on this system", remedy)] }
}
