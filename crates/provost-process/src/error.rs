//! Why a child couldn't be started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::Launch;

/// Why a child wasn't started; no process is left of the attempt.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program, or the interpreter in its first line, doesn't exist.
    #[error(
        "{program:?} was not found (started in {cwd:?}): check its name, the PATH given to it, \
         and for a script its first line"
    )]
    ProgramNotFound {
        /// The program.
        program: OsString,
        /// The working folder.
        cwd: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The working folder doesn't exist or isn't a folder.
    #[error("{cwd:?}, the folder to start {program:?} in, is not there or not a folder")]
    FolderNotFound {
        /// The program.
        program: OsString,
        /// The working folder.
        cwd: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Any other error: no permission, not a program, no processes, memory or descriptors left, a hung file
    /// system.
    #[error("{program:?} could not be started in {cwd:?}")]
    Failed {
        /// The program.
        program: OsString,
        /// The working folder.
        cwd: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl SpawnError {
    pub(crate) fn new<C>(launch: &Launch<C>, source: io::Error) -> Self {
        use io::ErrorKind::{NotADirectory, NotFound};
        let program = launch.program.clone();
        let cwd = launch.cwd.clone();
        match source.kind() {
            NotFound | NotADirectory if !cwd.is_dir() => Self::FolderNotFound { program, cwd, source },
            NotFound | NotADirectory => Self::ProgramNotFound { program, cwd, source },
            _ => Self::Failed { program, cwd, source },
        }
    }

    /// Returns whether the same call may succeed a moment later: a resource was busy or used up.
    pub fn may_be_retried(&self) -> bool {
        use io::ErrorKind::{ExecutableFileBusy, OutOfMemory, ResourceBusy, TimedOut, WouldBlock};
        match self {
            Self::ProgramNotFound { .. } | Self::FolderNotFound { .. } => false,
            Self::Failed { source, .. } => {
                let kind = source.kind();
                // "Too many open files" has no error kind: ENFILE and EMFILE are 23 and 24 on every Unix.
                matches!(kind, WouldBlock | ExecutableFileBusy | OutOfMemory | ResourceBusy | TimedOut)
                    || cfg!(unix) && matches!(source.raw_os_error(), Some(23 | 24))
            }
        }
    }
}
