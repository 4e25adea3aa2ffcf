//! Patches: which files one names.

/// What a line begins with that names a file.
pub const PATCH_HEADERS: [&str; 4] =
    ["*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"];

/// The paths that `patch` names, in order, each as written. More lines count than a patch may have such: whatever
/// applies a patch touches no other path.
#[must_use]
pub fn patched_paths(patch: &str) -> Vec<&str> {
    let named = patch.lines().filter_map(|line| {
        let line = line.trim();
        PATCH_HEADERS.iter().find_map(|header| line.strip_prefix(header)).map(str::trim)
    });
    named.collect()
}
