//! What the steps of a start hand to each other: JSON in a file without a name, whose descriptor they inherit.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use provost_event::SandboxLimits;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

/// What two steps do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The user namespace of the box to enter, as an inherited descriptor.
    pub(super) user: RawFd,
    /// Its network namespace; absent: that of Provost.
    pub(super) network: Option<RawFd>,
    /// Folders that are written to a private layer above them.
    pub(super) layers: Vec<Layer>,
    /// `bwrap` and its arguments, up to the program that it runs.
    pub(super) bwrap: Vec<OsString>,
    /// What may be written, for Landlock.
    pub(super) write: Vec<OsString>,
    pub(super) limits: SandboxLimits,
}

/// A folder over which a writable layer is mounted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Layer {
    pub(super) folder: OsString,
    pub(super) upper: OsString,
    pub(super) work: OsString,
}

impl Plan {
    pub(super) fn write(&self) -> io::Result<OwnedFd> {
        let mut file = File::from(memfd_create("plan", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(self)?)?;
        Ok(file.into())
    }

    /// Reads the plan at an inherited descriptor, which stays open.
    pub(super) fn read(number: RawFd) -> io::Result<Self> {
        // SAFETY: the step before left it open under this number, and nothing else uses it.
        #[expect(unsafe_code, reason = "an inherited descriptor has no owner yet")]
        let mut file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(number) });
        file.rewind()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}
