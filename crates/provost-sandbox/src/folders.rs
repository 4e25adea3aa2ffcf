//! Private folders, and names that no other process uses.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Makes a folder that only its owner may enter, and those above it.
pub(crate) fn private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes an empty file that can't be opened, unless it is there.
#[cfg(target_os = "linux")]
pub(crate) fn unreadable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// A name of this process's own.
pub(crate) fn unique() -> String {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let at = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}-{number}", std::process::id(), at.as_nanos())
}
