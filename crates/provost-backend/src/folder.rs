//! Folders and files that only their owner may read.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// Creates `folder` and its missing parents, accessible only to the owner (0700 on Unix); leaves an existing folder
/// unchanged.
///
/// # Errors
/// When it can't be created.
pub fn create(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes files created with these options accessible only to the owner (0600 on Unix).
#[cfg_attr(not(unix), expect(clippy::needless_pass_by_ref_mut, reason = "nothing to set there"))]
pub fn only_for_the_owner(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}
