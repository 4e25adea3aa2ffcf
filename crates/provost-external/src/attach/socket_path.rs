//! The path of a session's socket.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use provost_event::SessionId;

const FOLDER: &str = "sockets";
const OWNER_ONLY: u32 = 0o700;
/// Bytes of a socket path that every Unix accepts; Linux accepts 107.
const PATH_BYTES_MAX: usize = 103;

/// The folder and name of a session's socket.
pub(super) struct SocketPath {
    folder: PathBuf,
    name: String,
}

/// A path to bind or connect a socket, with what keeps the path valid.
pub(super) struct Address {
    pub(super) path: PathBuf,
    _folder: Option<File>,
}

impl SocketPath {
    pub(super) fn of(folder: &Path, session: SessionId) -> Self {
        Self { folder: folder.join(FOLDER), name: format!("{}-{}", session.run, session.agent) }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Makes the folder, for its owner only, and removes the socket of an earlier process. Returns the folder's
    /// owner.
    pub(super) fn prepare(&self) -> io::Result<u32> {
        DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(&self.folder)?;
        fs::set_permissions(&self.folder, Permissions::from_mode(OWNER_ONLY))?;
        self.clear()?;
        Ok(fs::metadata(&self.folder)?.uid())
    }

    pub(super) fn clear(&self) -> io::Result<()> {
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The socket's address. A path that is too long is shortened through the open folder's descriptor, where the
    /// system has a path for that.
    pub(super) fn address(&self) -> io::Result<Address> {
        let path = self.path();
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Address { path, _folder: None });
        }
        if !cfg!(target_os = "linux") {
            let message = format!("{} is too long for a socket's path", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let folder = File::open(&self.folder)?;
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&folder);
        let path = PathBuf::from(format!("/proc/self/fd/{descriptor}")).join(&self.name);
        Ok(Address { path, _folder: Some(folder) })
    }
}
