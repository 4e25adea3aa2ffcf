//! Paths in arguments: absolute for scripts, as short as possible for tools.

use std::path::{Component, Path, PathBuf};

use provost_harness::BLOB_URI;

/// The absolute path of `path` from `workspace`, without `.` and `..`. A stored output's name stays unchanged.
///
/// Links stay as written, except before a `..`, which goes up from the link's target: a script that protects a
/// folder must see the real path.
pub(super) fn absolute(workspace: &Path, path: &str) -> String {
    if path.starts_with(BLOB_URI) {
        return path.to_owned();
    }
    let mut real = PathBuf::new();
    for step in workspace.join(path).components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => {
                real = real.canonicalize().unwrap_or(real);
                real.pop();
            }
            step => real.push(step),
        }
    }
    real.to_string_lossy().into_owned()
}

/// `path` relative to `workspace`, if it is below.
pub(super) fn relative(workspace: &Path, path: &str) -> String {
    match Path::new(path).strip_prefix(workspace) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.to_string_lossy().into_owned(),
        Err(_) => path.to_owned(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::absolute;

    #[test]
    fn going_up_from_a_link_starts_where_it_leads() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("kept/deep")).unwrap();
        std::os::unix::fs::symlink(root.join("kept/deep"), root.join("link")).unwrap();
        let seen = |path: &str| absolute(&root, path).replace(root.to_str().unwrap(), "");
        assert_eq!(seen("link/../x"), "/kept/x");
        assert_eq!(seen("link/x"), "/link/x");
        assert_eq!(seen("./none/../x"), "/x");
        assert_eq!(absolute(&root, "output:abc"), "output:abc");
    }
}
