//! Why a child couldn't be started.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::ChildSpec;

/// Tells why a child wasn't started; no process is left of the attempt.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program, or the interpreter its first line names, isn't there.
    #[error(
        "{program:?} was not found (started in {cwd:?}): check its name, the PATH given to it, \
         and for a script its first line"
    )]
    ProgramNotFound {
        /// What was to be started.
        program: OsString,
        /// Where it was to be started.
        cwd: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The working folder isn't there or isn't a folder.
    #[error("{cwd:?}, the folder to start {program:?} in, is not there or not a folder")]
    FolderNotFound {
        /// What was to be started.
        program: OsString,
        /// Where it was to be started.
        cwd: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Anything else: no permission, not a program, no processes, memory or descriptors left, a hung file system.
    #[error("{program:?} could not be started in {cwd:?}")]
    Failed {
        /// What was to be started.
        program: OsString,
        /// Where it was to be started.
        cwd: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl SpawnError {
    pub(crate) fn new(spec: &ChildSpec, source: io::Error) -> Self {
        Self::of(&spec.program, &spec.cwd, source)
    }

    pub(crate) fn of(program: &OsStr, cwd: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{NotADirectory, NotFound};
        let (program, cwd) = (program.to_owned(), cwd.to_owned());
        match source.kind() {
            NotFound | NotADirectory if !cwd.is_dir() => Self::FolderNotFound { program, cwd, source },
            NotFound | NotADirectory => Self::ProgramNotFound { program, cwd, source },
            _ => Self::Failed { program, cwd, source },
        }
    }

    /// Tells whether the same call may succeed a moment later: something was busy or used up.
    pub fn may_be_retried(&self) -> bool {
        use io::ErrorKind::{ExecutableFileBusy, OutOfMemory, ResourceBusy, TimedOut, WouldBlock};
        match self {
            Self::ProgramNotFound { .. } | Self::FolderNotFound { .. } => false,
            Self::Failed { source, .. } => {
                let kind = source.kind();
                // Too many open files has no kind of its own: ENFILE and EMFILE are 23 and 24 on every unix.
                matches!(kind, WouldBlock | ExecutableFileBusy | OutOfMemory | ResourceBusy | TimedOut)
                    || cfg!(unix) && matches!(source.raw_os_error(), Some(23 | 24))
            }
        }
    }
}
