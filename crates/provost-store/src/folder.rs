//! Folders and files that only their owner may read.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// Makes `folder` and what is missing above it, readable by nobody else; leaves one that is there as it is.
pub(crate) fn create(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A file made with these options is readable by nobody else.
#[cfg_attr(not(unix), expect(clippy::needless_pass_by_ref_mut, reason = "nothing to set there"))]
pub(crate) fn only_for_the_owner(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}
